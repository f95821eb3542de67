//! A client's end of a session: the control connection, and the UDP socket beside it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use weir_measure::{
    Connection as Control, MeasureError, Message, ask, check_buffers, connect, nanos, unexpected, with_port,
};
use weir_udp::UdpSocket;

use crate::hpcbench::control::{Counted, LOG_BYTES_MAX, Request, Response};
use crate::hpcbench::datagram::TrialId;
use crate::hpcbench::flow::{self, Pace, joined};
use crate::hpcbench::report::{Buffers, Heading, ctime};
use crate::hpcbench::server::Udptest;
use crate::hpcbench::settings::{Mode, Settings};
use crate::hpcbench::system_log::host_name;
use crate::hpcbench::trial::Trial;

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The client's own clock ends its sending.
const FOREVER: Duration = Duration::from_secs(1 << 32);
/// How much longer than the client the server may take for a trial.
const GRACE: Duration = Duration::from_secs(60);

/// A session with a server.
pub(super) struct Connection {
    control: Control,
    pub(super) socket: UdpSocket,
    token: u64,
    trial: u32,
    pub(super) heading: Heading,
}

impl Connection {
    /// Connects, and has both sides open their UDP sockets.
    pub(super) fn open(settings: &Settings) -> Result<Self, MeasureError> {
        let secret = settings.secret.as_ref();
        let mut server = connect::<Udptest>(&settings.host, settings.port, settings.family, secret)?;
        let socket = UdpSocket::bind(&flow::client_socket(with_port(server.local, 0), settings))?;
        let datagram = match settings.mode {
            Mode::RoundTrip { message_bytes } => message_bytes,
            _ => settings.datagram_bytes,
        };
        let buffer = settings.server_buffer_bytes.or(settings.client_buffer_bytes).unwrap_or(0);
        let (port, tos) = (socket.local_address().port(), settings.tos());
        let request = Request::Setup { port, datagram, buffer, tos };
        let (port, server_buffers, token) =
            ask::<Udptest, _>(&mut server.control, &request, |response| match response {
                Response::Setup { port, send_buffer: send, recv_buffer: recv, token } => {
                    Some((port, Buffers { send, recv }, token))
                }
                _ => None,
            })?;
        socket.connect(with_port(server.peer, port))?;
        let client_buffers =
            Buffers { send: socket.granted_send_buffer() as u64, recv: socket.granted_recv_buffer() as u64 };
        let granted = |buffers: Buffers| [Some(buffers.send), Some(buffers.recv)];
        check_buffers(datagram, granted(client_buffers), granted(server_buffers), |end| {
            let option = if end == "client" { "-b" } else { "-B or -b" };
            format!("smaller datagrams (-l) or larger buffers ({option}) are needed")
        })?;
        let heading = Heading {
            date: ctime(SystemTime::now()),
            client_host: host_name(),
            server_host: settings.host.clone(),
            client_buffers,
            server_buffers,
            server_port: port,
        };
        Ok(Self { control: server.control, socket, token, trial: 0, heading })
    }

    /// One trial of a stream, in one or both directions.
    pub(super) fn trial(
        &mut self,
        pace: &Pace,
        both: bool,
        halt: &AtomicBool,
    ) -> Result<Trial, MeasureError> {
        self.trial += 1;
        let id = TrialId { token: self.token, trial: self.trial };
        let request = Request::Trial {
            trial: self.trial,
            size: pace.write_bytes as u64,
            both: both.into(),
            time_ns: nanos(pace.time),
            message: pace.message_bytes,
            rate: pace.rate_bps.unwrap_or(0),
        };
        flow::drain(&self.socket);
        self.expect_ready(&request)?;
        let (socket, control) = (&self.socket, &mut self.control);
        let (is_done, stop, has_failed) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (is_done, stop, has_failed) = (&is_done, &stop, &has_failed);
            let fail = |_: &std::io::Error| has_failed.store(true, Ordering::Relaxed);
            let sender = scope.spawn(move || flow::send_marked(socket, id, pace, stop).inspect_err(fail));
            let receiver = both.then(|| scope.spawn(move || flow::receive(socket, id, is_done, stop, || {})));
            let is_wanted = || !halt.load(Ordering::Relaxed) && !has_failed.load(Ordering::Relaxed);
            let server = supervise(control, pace, is_wanted, || !sender.is_finished());
            // Datagrams in flight get time to arrive, unless the server is gone.
            is_done.store(true, Ordering::Relaxed);
            stop.store(server.is_err(), Ordering::Relaxed);
            let mut client = joined(sender).map_err(MeasureError::Transfer)?;
            if let Some(receiver) = receiver {
                client = client.and(joined(receiver).map_err(MeasureError::Transfer)?);
            }
            Ok(Trial { write_bytes: pace.write_bytes as u64, client, server: server? })
        })
    }

    /// Whether the server is still there.
    pub(super) fn check(&mut self) -> Result<(), MeasureError> {
        let line = self.control.poll_line()?;
        line.map_or(Ok(()), |line| Err(unexpected::<Udptest>(line)))
    }

    /// The server's system log.
    pub(super) fn system_log(&mut self) -> Result<Vec<u8>, MeasureError> {
        let bytes = ask::<Udptest, _>(&mut self.control, &Request::Log, |response| match response {
            Response::Log { bytes } if bytes <= LOG_BYTES_MAX => Some(bytes),
            _ => None,
        })?;
        Ok(self.control.receive_bytes(bytes as usize, PATIENCE)?)
    }

    /// Sends a request and waits until the server is ready for it, or has done it.
    pub(super) fn expect_ready(&mut self, request: &Request) -> Result<(), MeasureError> {
        let is_ready = |response| (response == Response::Ready).then_some(());
        ask::<Udptest, _>(&mut self.control, request, is_ready)
    }
}

/// The control connection during a trial: watches it while the client sends, then asks for the
/// server's counts. A failed sender does not ask: its own error is reported.
fn supervise(
    control: &mut Control,
    pace: &Pace,
    is_wanted: impl Fn() -> bool,
    is_sending: impl Fn() -> bool,
) -> Result<Counted, MeasureError> {
    if let Some(line) = control.receive_line_while(FOREVER, || is_wanted() && is_sending())? {
        return Err(unexpected::<Udptest>(line));
    }
    if !is_wanted() {
        return Err(MeasureError::Interrupted);
    }
    control.send(&Request::Sent)?;
    let Some(line) = control.receive_line_while(pace.time + GRACE, is_wanted)? else {
        return Err(MeasureError::Interrupted);
    };
    match Response::parse(&line) {
        Some(Response::Counted(counted)) => Ok(counted),
        _ => Err(unexpected::<Udptest>(line)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};

    use weir_udp::SocketOptions;

    use super::*;

    #[test]
    fn a_sender_that_fails_ends_the_trial_without_waiting_for_the_server() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let answers =
                ["WEIR-UDPSERVER version=1", "UDPPORT port=9 sndbuf=99999 rcvbuf=99999 token=1", "READY"];
            for answer in answers {
                lines.next().unwrap().unwrap();
                writeln!(stream, "{answer}").unwrap();
            }
            lines.next().map(Result::unwrap)
        });
        let settings = Settings { port, ..Settings::new("127.0.0.1", Mode::Unidirectional) };
        let mut connection = Connection::open(&settings).unwrap();
        // This one has no peer.
        connection.socket =
            UdpSocket::bind(&SocketOptions::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))).unwrap();
        let time = Duration::from_secs(5);
        let pace = Pace { write_bytes: 100, time, message_bytes: 0, rate_bps: None };
        let error = connection.trial(&pace, false, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(error, MeasureError::Transfer(_)), "{error}");
        drop(connection);
        assert_eq!(server.join().unwrap(), None, "the server gets no further request");
    }
}
