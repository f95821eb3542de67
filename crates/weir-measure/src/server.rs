//! A server that untrusted clients can reach: accepts connections, and serves several clients at a time.
//!
//! Anyone who can reach the port can start sessions, so everything is bounded: connections, sessions, line lengths,
//! waiting, the length of a measurement. UDP goes to the address of the control connection and nowhere else.
//!
//! A client has a place for its session only after its introduction. Until then it has one of the places of
//! `greetings`, for at most [`GREETING`].

use std::io;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use weir_udp::UdpError;

use crate::address::{canonical, listen};
use crate::greetings::{Begun, Greeting, Greetings};
use crate::secret::{Numbers, Side};
use crate::{Connection, ControlError, MeasureError, Message, Nonce, Protocol, Secret};

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on; `None`: all, of IPv4 and IPv6.
    pub bind: Option<IpAddr>,
    /// The port to listen on; 0: chosen by the kernel.
    pub port: u16,
    /// The most sessions at a time. Clients that have not introduced themselves do not count.
    pub sessions_max: usize,
    /// The longest measurement.
    pub trial_max: Duration,
    /// The secret that clients must know.
    pub secret: Option<Secret>,
    /// Whether clients may make it join multicast groups.
    pub allow_multicast: bool,
}

impl ServerSettings {
    /// The defaults of a protocol.
    #[must_use]
    pub fn new<P: Protocol>() -> Self {
        Self {
            bind: None,
            port: P::PORT,
            sessions_max: 8,
            trial_max: Duration::from_secs(3600),
            secret: None,
            allow_multicast: false,
        }
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Server<P> {
    listener: TcpListener,
    settings: ServerSettings,
    greetings: Arc<Greetings>,
    /// Places for sessions that are taken.
    active: Arc<AtomicUsize>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Server<P> {
    /// Listens.
    ///
    /// # Errors
    /// [`MeasureError::Listen`] when the address or the port is not available.
    pub fn bind(settings: ServerSettings) -> Result<Self, MeasureError> {
        let listener = listen(settings.bind, settings.port)?;
        let (greetings, active) = (Arc::default(), Arc::default());
        Ok(Self { listener, settings, greetings, active, protocol: PhantomData })
    }

    /// The address that it listens on.
    pub fn address(&self) -> Result<SocketAddr, MeasureError> {
        let unknown =
            |source| MeasureError::Listen { address: format!("port {}", self.settings.port), source };
        self.listener.local_addr().map_err(unknown)
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().map_or(self.settings.port, |address| address.port())
    }

    /// Serves for ever, each session in its own thread. `log` receives what happens.
    pub fn run(self, log: impl Fn(&str) + Send + Sync + 'static) -> ! {
        let log: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(log);
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => self.start(stream, canonical(peer), &log),
                Err(error) => {
                    log(&format!("cannot accept a connection: {error}"));
                    // Mostly out of file descriptors: trying again at once would only burn a processor.
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// Waits for one connection and serves it on this thread.
    ///
    /// # Errors
    /// When no connection can be accepted; how the session ends goes to `log`.
    pub fn serve_one(&self, log: &dyn Fn(&str)) -> io::Result<()> {
        let (stream, peer) = self.listener.accept()?;
        let peer = canonical(peer);
        if let Some(Begun { greeting, .. }) = self.greetings.begin(&stream, peer)? {
            log_end(peer, serve::<P>(stream, peer, greeting, &self.active, &self.settings, log), log);
        }
        Ok(())
    }

    fn start(&self, stream: TcpStream, peer: SocketAddr, log: &Arc<dyn Fn(&str) + Send + Sync>) {
        let Ok(Some(Begun { greeting, closed })) = self.greetings.begin(&stream, peer) else {
            log(&format!("{peer}: dropped, too many connections at once"));
            return;
        };
        if let Some(closed) = closed {
            log(&format!("{closed}: closed to make room, it did not introduce itself"));
        }
        let (settings, active, session_log) =
            (self.settings.clone(), Arc::clone(&self.active), Arc::clone(log));
        let spawned = std::thread::Builder::new().name(format!("session {peer}")).spawn(move || {
            let ended = serve::<P>(stream, peer, greeting, &active, &settings, &*session_log);
            log_end(peer, ended, &*session_log);
        });
        if let Err(error) = spawned {
            // The closure released its place.
            log(&format!("{peer}: no thread for a session: {error}"));
        }
    }
}

fn log_end(peer: SocketAddr, ended: Result<(), SessionError>, log: &dyn Fn(&str)) {
    let reason = ended.err().map_or_else(String::new, |error| format!(": {error}"));
    log(&format!("{peer}: session ended{reason}"));
}

/// Serves a client until it closes the connection. Its place is free when this returns.
fn serve<P: Protocol>(
    stream: TcpStream,
    peer: SocketAddr,
    greeting: Greeting,
    active: &Arc<AtomicUsize>,
    settings: &ServerSettings,
    log: &dyn Fn(&str),
) -> Result<(), SessionError> {
    let local = canonical(stream.local_addr()?);
    let mut control = Connection::new(stream, P::REQUEST_BYTES_MAX)?;
    control.receive_by(Some(Instant::now() + GREETING));
    let mut session =
        Session { control, local, peer, settings, place: Place::Greeting(greeting), active, log };
    let served = P::greet(&mut session).and_then(|()| session.admit()).and_then(|()| P::serve(&mut session));
    match served {
        Ok(()) | Err(SessionError::Control(ControlError::Closed)) => Ok(()),
        Err(error) => {
            if !matches!(error, SessionError::Control(_)) {
                session.refuse::<P>(&error)?;
            }
            Err(error)
        }
    }
}

/// A session with one client.
pub struct Session<'a> {
    /// The connection to it.
    pub control: Connection,
    /// This end's address.
    pub local: SocketAddr,
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's settings.
    pub settings: &'a ServerSettings,
    place: Place,
    active: &'a Arc<AtomicUsize>,
    log: &'a dyn Fn(&str),
}

impl Session<'_> {
    /// Logs something about this session.
    pub fn log(&self, event: &str) {
        (self.log)(&format!("{}: {event}", self.peer));
    }

    /// Refuses the client's request.
    pub fn refuse<P: Protocol>(&mut self, error: &SessionError) -> Result<(), ControlError> {
        let reason = match error {
            SessionError::Refused(reason) => reason.clone(),
            // The text may be longer than a line.
            other => other.to_string().chars().take(REASON_CHARS_MAX).collect(),
        };
        self.log(&format!("refused: {reason}"));
        self.control.send(&P::refusal(reason))
    }

    /// Has the client prove the secret, if there is one, and gives it a place for its session. `nonce` is the number
    /// of its hello. Returns the server's proof.
    ///
    /// # Errors
    /// When the client sent no number, or does not know the secret, or all places are taken.
    pub fn authenticate<P: Protocol>(&mut self, nonce: Option<&str>) -> Result<Option<String>, SessionError> {
        let proof = self.exchange_proofs::<P>(nonce)?;
        self.admit()?;
        Ok(proof)
    }

    /// Returns whether the client has proved that it knows a secret. The session must have begun.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.settings.secret.is_some()
    }

    /// Gives the client a place for its session, unless it has one.
    fn admit(&mut self) -> Result<(), SessionError> {
        match &self.place {
            Place::Session(_) => return Ok(()),
            // Closed to make room for others: it must not take a place from them, either.
            Place::Greeting(greeting) if !greeting.end() => return Err(ControlError::Closed.into()),
            Place::Greeting(_) => {}
        }
        let most = self.settings.sessions_max;
        let place = SessionPlace::take(self.active, most).ok_or_else(|| {
            let reason = format!("it serves {most} sessions at a time, try again later (--max-sessions)");
            SessionError::Refused(reason)
        })?;
        self.place = Place::Session(place);
        self.control.receive_by(None);
        Ok(())
    }

    fn exchange_proofs<P: Protocol>(&mut self, nonce: Option<&str>) -> Result<Option<String>, SessionError> {
        let Some(secret) = &self.settings.secret else { return Ok(None) };
        let refused = |reason: &str| SessionError::Refused(reason.to_owned());
        let client = nonce.and_then(Nonce::parse);
        let client = client.ok_or_else(|| refused("this server asks for a secret (--secret-file)"))?;
        let server = Nonce::fresh().map_err(|error| refused(&error.to_string()))?;
        let numbers = Numbers { client, server };
        self.control.send(&P::challenge(server.text()))?;
        let line = self.control.receive_line(GREETING)?;
        let proof = P::Request::parse(&line).and_then(P::parse_proof);
        if !secret.accepts(Side::Client, &numbers, &proof.ok_or(ControlError::Nonsense(line))?) {
            return Err(refused("the client does not know the secret of this server"));
        }
        Ok(Some(secret.proof(Side::Server, &numbers)))
    }
}

/// Why a session ended early.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The control connection failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A UDP socket could not be opened.
    #[error(transparent)]
    Socket(#[from] UdpError),
    /// Sending or receiving failed.
    #[error("the UDP socket failed: {0}")]
    Transfer(#[from] io::Error),
    /// The server refused.
    #[error("refused: {0}")]
    Refused(String),
}

/// The place that a connection has.
enum Place {
    Greeting(Greeting),
    #[expect(dead_code, reason = "held for its drop")]
    Session(SessionPlace),
}

/// One of the places for sessions; dropping it frees it.
struct SessionPlace(Arc<AtomicUsize>);

impl SessionPlace {
    /// Takes one of `most` places, if one is free.
    fn take(active: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let next = |taken: usize| (taken < most).then_some(taken + 1);
        active.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()?;
        Some(Self(Arc::clone(active)))
    }
}

impl Drop for SessionPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How long a client may take to introduce itself, in all.
const GREETING: Duration = Duration::from_secs(10);

/// Characters of a refusal at most, but for those that the server words itself.
const REASON_CHARS_MAX: usize = 200;
