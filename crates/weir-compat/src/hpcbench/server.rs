//! The server of `udpserver`: does what the lines of one client ask for, within bounds.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use weir_baseline::{Sender, echo};
use weir_measure::{
    Answer, Connection, ControlError, LINE_BYTES_MAX, Message, Protocol, Session, SessionError, with_port,
};
use weir_results::{UdpMode, WaitStrategy};
use weir_udp::{SocketOptions, UdpSocket};

use crate::hpcbench::control::{Counted, Request, Response, VERSION};
use crate::hpcbench::datagram::TrialId;
use crate::hpcbench::flow::{self, Pace, joined};
use crate::hpcbench::report::ctime;
use crate::hpcbench::settings::DATAGRAM_BYTES_MAX;
use crate::hpcbench::system_log::{SystemLog, host_name};

/// How long a client may take to introduce itself.
const GREETING: Duration = Duration::from_secs(10);
/// How long a client may be silent between trials.
const IDLE: Duration = Duration::from_secs(300);
/// How much longer than its time a trial may take, for a long message.
const GRACE: Duration = Duration::from_secs(600);
/// The largest buffers that a client gets, in each direction.
const BUFFER_BYTES_MAX: u64 = 64 << 20;

/// hpcbench's protocol, as `udptest` and `udpserver` speak it.
#[derive(Clone, Copy, Debug)]
pub struct Udptest;

impl Protocol for Udptest {
    const PROGRAM: &'static str = "udpserver";
    const PORT: u16 = 5678;
    const PORT_OPTION: &'static str = "-p";
    const VERSION: u64 = VERSION;
    const REQUEST_BYTES_MAX: usize = LINE_BYTES_MAX;
    const RESPONSE_BYTES_MAX: usize = LINE_BYTES_MAX;
    type Welcome = ();
    type Request = Request;
    type Response = Response;

    fn hello(nonce: String) -> Request {
        Request::Hello { version: VERSION, nonce: Some(nonce) }
    }

    fn proof(proof: String) -> Request {
        Request::Proof { proof }
    }

    fn parse_proof(request: Request) -> Option<String> {
        if let Request::Proof { proof } = request { Some(proof) } else { None }
    }

    fn challenge(nonce: String) -> Response {
        Response::Challenge { nonce }
    }

    fn refusal(reason: String) -> Response {
        Response::Refused { reason }
    }

    fn answer(response: Response) -> Option<Answer<()>> {
        match response {
            Response::Challenge { nonce } => Some(Answer::Challenge { nonce }),
            Response::Hello { version: VERSION, proof } => Some(Answer::Welcome { proof, welcome: () }),
            Response::Refused { reason } => Some(Answer::Refused(reason)),
            _ => None,
        }
    }

    fn greet(session: &mut Session<'_>) -> Result<(), SessionError> {
        greet(session)
    }

    fn serve(session: &mut Session<'_>) -> Result<(), SessionError> {
        let date = ctime(SystemTime::now());
        Client { session, sockets: None, system_log: SystemLog::default(), date }.run()
    }
}

/// Checks the client's version and secret.
fn greet(session: &mut Session<'_>) -> Result<(), SessionError> {
    let line = session.control.receive_line(GREETING)?;
    let Some(Request::Hello { version: VERSION, nonce }) = Request::parse(&line) else {
        return Err(refused(format!("this udpserver speaks version {VERSION} of its protocol only")));
    };
    let proof = session.authenticate::<Udptest>(nonce.as_deref())?;
    Ok(session.control.send(&Response::Hello { version: VERSION, proof })?)
}

struct Client<'a, 's> {
    session: &'a mut Session<'s>,
    sockets: Option<DataSocket>,
    system_log: SystemLog,
    date: String,
}

/// The UDP side of a session.
struct DataSocket {
    socket: UdpSocket,
    datagram_bytes: u64,
    token: u64,
}

impl Client<'_, '_> {
    fn run(&mut self) -> Result<(), SessionError> {
        loop {
            let line = self.session.control.receive_line(IDLE)?;
            match Request::parse(&line) {
                Some(Request::Setup { port, datagram, buffer, tos }) => {
                    self.setup(port, datagram, buffer, tos)?
                }
                Some(Request::Trial { trial, size, both, time_ns, message, rate }) => {
                    let pace = Pace {
                        write_bytes: self.check_size(size)?,
                        time: self.check_time(time_ns)?,
                        message_bytes: message,
                        rate_bps: (rate > 0).then_some(rate),
                    };
                    self.trial(trial, &pace, both != 0)?;
                }
                Some(Request::Echo) => self.echo()?,
                Some(Request::Watch) => self.watch()?,
                Some(Request::Log) => self.send_log()?,
                _ => return Err(ControlError::Nonsense(line).into()),
            }
        }
    }

    /// Opens the UDP socket: on the address that the client reached, connected to the client.
    fn setup(&mut self, port: u16, datagram: u64, buffer: u64, tos: u8) -> Result<(), SessionError> {
        if port == 0 || !(1..=DATAGRAM_BYTES_MAX).contains(&datagram) {
            return Err(refused("no such port or size of datagrams"));
        }
        let buffer = buffer.min(BUFFER_BYTES_MAX);
        let options = SocketOptions {
            force_buffers: self.session.is_authenticated(),
            ..flow::buffered(with_port(self.session.local, 0), buffer, tos)
        };
        let socket = UdpSocket::bind(&options)?;
        socket.connect(with_port(self.session.peer, port))?;
        let token = getrandom::u64().map_err(io::Error::from)?;
        let response = Response::Setup {
            port: socket.local_address().port(),
            send_buffer: socket.granted_send_buffer() as u64,
            recv_buffer: socket.granted_recv_buffer() as u64,
            token,
        };
        self.sockets = Some(DataSocket { socket, datagram_bytes: datagram, token });
        self.session.log(&response.line());
        Ok(self.session.control.send(&response)?)
    }

    fn check_size(&self, size: u64) -> Result<usize, SessionError> {
        let most = self.sockets.as_ref().map_or(0, |sockets| sockets.datagram_bytes);
        if (1..=most).contains(&size) {
            return Ok(size as usize);
        }
        Err(refused(format!("writes of {size} bytes where a datagram has at most {most}")))
    }

    fn check_time(&self, time_ns: u64) -> Result<Duration, SessionError> {
        let (time, most) = (Duration::from_nanos(time_ns), self.session.settings.trial_max);
        if time > most {
            return Err(refused(format!("a trial lasts at most {} s here (--max-time)", most.as_secs())));
        }
        Ok(time)
    }

    /// Receives a stream and, for both directions, sends one.
    fn trial(&mut self, trial: u32, pace: &Pace, both: bool) -> Result<(), SessionError> {
        let Some(DataSocket { socket, token, .. }) = &self.sockets else { return Err(no_setup()) };
        let control = &mut self.session.control;
        let id = TrialId { token: *token, trial };
        let (is_sent, halt) = (AtomicBool::new(false), AtomicBool::new(false));
        let (begin, has_begun) = mpsc::channel();
        flow::drain(socket);
        let counted = std::thread::scope(|scope| {
            let (is_sent, halt) = (&is_sent, &halt);
            // Without a sender, no thread waits for the beginning.
            let begin = move || _ = begin.send(());
            let receiver = scope.spawn(move || flow::receive(socket, id, is_sent, halt, begin));
            // The server's stream starts with the client's. If nothing arrives, nothing is sent, either.
            let send = move || match has_begun.recv() {
                Ok(()) => flow::send_marked(socket, id, pace, halt),
                Err(_) => Ok(Counted::default()),
            };
            let sender = both.then(|| scope.spawn(send));
            let heard = supervise(control, pace.time + GRACE, is_sent, || {
                !receiver.is_finished() || sender.as_ref().is_some_and(|sender| !sender.is_finished())
            });
            if heard.is_err() {
                halt.store(true, Ordering::Relaxed);
            }
            let mut counted = joined(receiver)?;
            if let Some(sender) = sender {
                counted = counted.and(joined(sender)?);
            }
            heard.map(|()| counted)
        })?;
        let response = Response::Counted(counted);
        self.session.log(&response.line());
        Ok(self.session.control.send(&response)?)
    }

    /// Echoes until the client is done.
    fn echo(&mut self) -> Result<(), SessionError> {
        let Some(DataSocket { socket, datagram_bytes, .. }) = &self.sockets else { return Err(no_setup()) };
        let (control, system_log) = (&mut self.session.control, &mut self.system_log);
        let halt = AtomicBool::new(false);
        flow::drain(socket);
        std::thread::scope(|scope| {
            let halt = &halt;
            let echo = scope.spawn(move || send_back(socket, *datagram_bytes as usize, halt));
            let heard = serve_echo(control, system_log, || !echo.is_finished());
            halt.store(true, Ordering::Relaxed);
            joined(echo)?;
            heard
        })?;
        Ok(self.session.control.send(&Response::Ready)?)
    }

    fn watch(&mut self) -> Result<(), SessionError> {
        self.system_log.watch();
        Ok(self.session.control.send(&Response::Ready)?)
    }

    fn send_log(&mut self) -> Result<(), SessionError> {
        let text = self.system_log.text(&host_name(), &self.date);
        self.session.control.send(&Response::Log { bytes: text.len() as u64 })?;
        Ok(self.session.control.send_bytes(text.as_bytes())?)
    }
}

/// The control connection during a trial: announces its beginning, and waits for its end.
fn supervise(
    control: &mut Connection,
    patience: Duration,
    is_sent: &AtomicBool,
    is_running: impl Fn() -> bool,
) -> Result<(), SessionError> {
    control.send(&Response::Ready)?;
    let deadline = Instant::now() + patience;
    // The receiver ends early when its socket fails.
    let Some(line) = control.receive_line_while(patience, &is_running)? else { return Ok(()) };
    if Request::parse(&line) != Some(Request::Sent) {
        return Err(ControlError::Nonsense(line).into());
    }
    is_sent.store(true, Ordering::Relaxed);
    // A message may be too long for the time limit.
    let is_over = || !is_running() || Instant::now() >= deadline;
    if let Some(line) = control.receive_line_while(patience, || !is_over())? {
        return Err(ControlError::Nonsense(line).into());
    }
    if is_running() {
        return Err(refused(format!("the trial is not over after {} s", patience.as_secs())));
    }
    Ok(())
}

/// The control connection during an echo.
fn serve_echo(
    control: &mut Connection,
    system_log: &mut SystemLog,
    is_running: impl Fn() -> bool,
) -> Result<(), SessionError> {
    control.send(&Response::Ready)?;
    while let Some(line) = control.receive_line_while(IDLE, &is_running)? {
        match Request::parse(&line) {
            Some(Request::Sent) => return Ok(()),
            Some(Request::Watch) => {
                system_log.watch();
                control.send(&Response::Ready)?;
            }
            _ => return Err(ControlError::Nonsense(line).into()),
        }
    }
    Ok(())
}

fn send_back(socket: &UdpSocket, bytes: usize, halt: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; bytes];
    let mut sender = Sender::new(UdpMode::Send, None, &buffer);
    let is_over = || halt.load(Ordering::Relaxed);
    echo(socket, WaitStrategy::Block, &mut sender, &mut buffer, |_| true, is_over).map(drop)
}

fn refused(reason: impl Into<String>) -> SessionError {
    SessionError::Refused(reason.into())
}

fn no_setup() -> SessionError {
    refused("a trial before its setup")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_trial_that_never_ends_is_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"SENT\n").unwrap();
        let mut control = Connection::new(listener.accept().unwrap().0, LINE_BYTES_MAX).unwrap();
        let ended = supervise(&mut control, Duration::ZERO, &AtomicBool::new(false), || true);
        assert!(ended.is_err());
    }
}
