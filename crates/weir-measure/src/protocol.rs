//! How a client and a server introduce themselves over a control connection.
//!
//! The client sends hello with a fresh number. A server with a secret answers with a number of its own, which makes the
//! client prove the secret; its welcome then carries the server's proof.

use std::net::SocketAddr;
use std::time::Duration;

use crate::address::{self, Family};
use crate::secret::{Numbers, Side};
use crate::{Connection, ControlError, MeasureError, Message, Nonce, Secret, Session, SessionError, shown};

/// The messages of a control connection, and what a server does with them.
pub trait Protocol: 'static {
    /// The server, in messages for the user.
    const PROGRAM: &'static str;
    /// The port that it listens on by default.
    const PORT: u16;
    /// The option that sets the port.
    const PORT_OPTION: &'static str;
    /// The version of the messages.
    const VERSION: u64;
    /// The longest line that a server accepts.
    const REQUEST_BYTES_MAX: usize;
    /// The longest line that a client accepts.
    const RESPONSE_BYTES_MAX: usize;
    /// What the server sends with its welcome.
    type Welcome;
    /// Messages of the client.
    type Request: Message;
    /// Messages of the server.
    type Response: Message;

    /// The client's first message.
    fn hello(nonce: String) -> Self::Request;

    /// The client's proof.
    fn proof(proof: String) -> Self::Request;

    /// Reads a proof.
    fn parse_proof(request: Self::Request) -> Option<String>;

    /// The server's request for a proof.
    fn challenge(nonce: String) -> Self::Response;

    /// A refusal, with the reason.
    fn refusal(reason: String) -> Self::Response;

    /// Reads an answer to hello or proof; `None` when it is none of this version.
    fn answer(response: Self::Response) -> Option<Answer<Self::Welcome>>;

    /// Receives the client's introduction, calls [`Session::authenticate`], and welcomes the client.
    fn greet(session: &mut Session<'_>) -> Result<(), SessionError>;

    /// Serves a client that was greeted, until it closes the connection.
    fn serve(session: &mut Session<'_>) -> Result<(), SessionError>;
}

/// A server's answer to a client that introduces itself.
#[derive(Debug)]
pub enum Answer<W> {
    /// The client must prove the secret.
    Challenge {
        /// The server's number.
        nonce: String,
    },
    /// The client is welcome.
    Welcome {
        /// The server's proof, if it has a secret.
        proof: Option<String>,
        /// What the server reports about itself.
        welcome: W,
    },
    /// The client is refused.
    Refused(String),
}

/// A server that a client has reached.
#[derive(Debug)]
pub struct Reached<W> {
    /// The connection to it.
    pub control: Connection,
    /// This end's address.
    pub local: SocketAddr,
    /// The server's address.
    pub peer: SocketAddr,
    /// What the server reports about itself.
    pub welcome: W,
}

/// Connects to a server; both ends prove the secret, if there is one.
///
/// # Errors
/// When the server cannot be reached, is another program, refuses, or does not know the secret.
pub fn connect<P: Protocol>(
    host: &str,
    port: u16,
    family: Family,
    secret: Option<&Secret>,
) -> Result<Reached<P::Welcome>, MeasureError> {
    let named = format!("{host}:{port}");
    let addresses = address::resolve(host, port, family)?;
    let stream = address::connect(&addresses).map_err(|source| MeasureError::NoServer {
        program: P::PROGRAM,
        option: P::PORT_OPTION,
        address: named.clone(),
        source,
    })?;
    let local = stream.local_addr().map_err(ControlError::from)?;
    let peer = stream.peer_addr().map_err(ControlError::from)?;
    let mut control = Connection::new(stream, P::RESPONSE_BYTES_MAX).map_err(ControlError::from)?;
    let welcome = greet::<P>(&mut control, &named, secret)?;
    Ok(Reached { control, local, peer, welcome })
}

fn greet<P: Protocol>(
    control: &mut Connection,
    named: &str,
    secret: Option<&Secret>,
) -> Result<P::Welcome, MeasureError> {
    let wrong = |said: String| MeasureError::WrongPeer {
        program: P::PROGRAM,
        address: named.to_owned(),
        version: P::VERSION,
        said,
    };
    let client = Nonce::fresh()?;
    control.send(&P::hello(client.text()))?;
    let mut numbers = None;
    loop {
        let line = control.receive_line(PATIENCE).map_err(|error| wrong(error.to_string()))?;
        match P::Response::parse(&line).and_then(P::answer) {
            Some(Answer::Refused(reason)) => return Err(MeasureError::Refused(reason)),
            Some(Answer::Challenge { nonce }) if numbers.is_none() => {
                let server =
                    Nonce::parse(&nonce).ok_or_else(|| wrong("it said a wrong number".to_owned()))?;
                let Some(secret) = secret else {
                    let text = format!("the server at {named} asks for a secret (--secret-file)");
                    return Err(MeasureError::Secret(text));
                };
                let both = Numbers { client, server };
                control.send(&P::proof(secret.proof(Side::Client, &both)))?;
                numbers = Some(both);
            }
            Some(Answer::Welcome { proof, welcome }) => {
                let Some(secret) = secret else { return Ok(welcome) };
                let accepts = |(numbers, proof): (_, String)| secret.accepts(Side::Server, &numbers, &proof);
                if numbers.zip(proof).is_some_and(accepts) {
                    return Ok(welcome);
                }
                return Err(MeasureError::Secret(format!(
                    "the server at {named} does not prove that it knows the secret (--secret-file)"
                )));
            }
            _ => return Err(wrong(format!("it said `{}`", shown(&line)))),
        }
    }
}

/// Sends a request and waits for the response to it, which `read` takes if it is the expected one.
pub fn ask<P: Protocol, T>(
    control: &mut Connection,
    request: &P::Request,
    read: impl FnOnce(P::Response) -> Option<T>,
) -> Result<T, MeasureError> {
    control.send(request)?;
    let line = control.receive_line(PATIENCE)?;
    P::Response::parse(&line).and_then(read).ok_or_else(|| unexpected::<P>(line))
}

/// The error for a line that does not belong here: a refusal, or nonsense.
#[must_use]
pub fn unexpected<P: Protocol>(line: String) -> MeasureError {
    match P::Response::parse(&line).and_then(P::answer) {
        Some(Answer::Refused(reason)) => MeasureError::Refused(reason),
        _ => ControlError::Nonsense(line).into(),
    }
}

/// Refuses datagrams that do not fit a socket buffer of client or server: bytes granted for sending
/// and receiving, where known. `advice` names the options for an end.
pub fn check_buffers(
    datagram_bytes: u64,
    client: [Option<u64>; 2],
    server: [Option<u64>; 2],
    advice: impl Fn(&str) -> String,
) -> Result<(), MeasureError> {
    for (end, what, granted) in [
        ("client", "send", client[0]),
        ("client", "receive", client[1]),
        ("server", "send", server[0]),
        ("server", "receive", server[1]),
    ] {
        if let Some(granted) = granted.filter(|granted| datagram_bytes > *granted) {
            return Err(MeasureError::Usage(format!(
                "a datagram of {datagram_bytes} bytes does not fit into the {end}'s {what} buffer of {granted} bytes: {}",
                advice(end)
            )));
        }
    }
    Ok(())
}

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
