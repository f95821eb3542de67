//! A client's side: connects to a server, and takes it through one measurement after the other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_results::{ClockRelation, DropCounters, Environment, ProcessFigures, SocketBuffers, Telemetry};
use weir_telemetry::{LossWatch, Sampler, process_figures};

use super::clock::{self, Exchange, Offset, now_ns};
use super::ends::{Ends, Role, Shared};
use super::message::{RESPONSE_BYTES_MAX, Request, Response, VERSION};
use super::point::{Point, PointTest};
use super::receiver;
use super::reports::{HostReport, PingReport, ReceiveReport, SendReport};
use super::session::watched;
use super::work::{Work, Worker, all_ended, join, send_report};
use crate::address::{Family, connect, interface_of, resolve};
use crate::control::{Control, ControlError, shown};
use crate::error::UdptestError;
use crate::secret::{self, Nonce, Numbers, Secret};

/// Where a server is.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Its name or address.
    pub host: String,
    /// The port of its control connection.
    pub port: u16,
    /// Which addresses of it are meant.
    pub family: Family,
    /// What it and we know.
    pub secret: Option<Secret>,
}

/// A session with a server.
#[derive(Debug)]
pub struct Client {
    control: Control,
    local: SocketAddr,
    peer: SocketAddr,
    host: HostReport,
}

/// What both ends found in one measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// From client to server.
    pub forward: Option<(SendReport, ReceiveReport)>,
    /// From server to client.
    pub reverse: Option<(SendReport, ReceiveReport)>,
    /// To and fro.
    pub round_trip: Option<PingReport>,
    /// What the server's process used.
    pub server_process: ProcessFigures,
    /// What its host dropped meanwhile.
    pub server_drops: DropCounters,
    /// What this host did meanwhile.
    pub client_telemetry: Option<Telemetry>,
    /// What the server's host did.
    pub server_telemetry: Option<Telemetry>,
    /// How the clocks relate, for forward delays; `None` where none were measured.
    pub clocks: Option<ClockRelation>,
}

impl Client {
    /// Connects and proves who we are, if there is a secret.
    ///
    /// # Errors
    /// [`UdptestError`] says what to do about it.
    pub fn connect(settings: &ClientSettings) -> Result<Self, UdptestError> {
        let named = format!("{}:{}", settings.host, settings.port);
        let addresses = resolve(&settings.host, settings.port, settings.family)?;
        let stream = connect(&addresses).map_err(|source| UdptestError::NoServer {
            program: PROGRAM,
            option: "--port",
            address: named.clone(),
            source,
        })?;
        let local = stream.local_addr().map_err(ControlError::from)?;
        let peer = stream.peer_addr().map_err(ControlError::from)?;
        let mut control = Control::with_lines_of(stream, RESPONSE_BYTES_MAX).map_err(ControlError::from)?;
        let host = greet(&mut control, &named, settings.secret.as_ref())?;
        Ok(Self { control, local, peer, host })
    }

    /// The server's host.
    #[must_use]
    pub fn server(&self) -> &Environment {
        &self.host.environment
    }

    /// Whether the session is over IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        self.local.is_ipv6()
    }

    /// The interface of this host that leads to the server.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        interface_of(self.local.ip()).map(|(name, _)| name)
    }

    /// One measurement, with this end on processor `cpu`.
    ///
    /// # Errors
    /// [`UdptestError::Refused`] and [`UdptestError::Usage`] are about this measurement: the next one may work. After any
    /// other the session is over.
    pub fn measure(
        &mut self,
        point: &Point,
        cpu: Option<usize>,
        halt: &AtomicBool,
    ) -> Result<Measured, UdptestError> {
        point.check(self.is_ipv6()).map_err(UdptestError::Usage)?;
        if let Some(cpu) = cpu
            && let Ok(allowed) = weir_udp::affinity::allowed_cpus()
            && !allowed.contains(&cpu)
        {
            let source = std::io::Error::other(format!("it may use {allowed:?}"));
            return Err(UdptestError::Pin { cpu, source });
        }
        let mut ends = Ends::open(point, self.local, Role::Client)?;
        let (ports, mark, buffers) = match self.ask(&Request::Point { point: Box::new(point.clone()) })? {
            Response::Prepared { ports, mark, buffers } if ports.len() == ends.sockets.len() => {
                (ports, mark, buffers)
            }
            other => return Err(unexpected(other)),
        };
        check_buffers(point, ends.buffers, buffers)?;
        ends.connect(point, self.local, self.peer, Role::Client, &ports)?;
        match self.ask(&Request::Connect { ports: ends.ports() })? {
            Response::Connected => {}
            other => return Err(unexpected(other)),
        }
        let is_timed = point.datagrams_per_s.is_some();
        let before = self.clocks(is_timed)?;
        let sampler = point.watch();
        let mut measured = self.run(point, &ends, mark, cpu, before, halt)?;
        measured.client_telemetry = sampler.map(Sampler::stop);
        let after = self.clocks(is_timed)?;
        let relation = before.zip(after).map(|(before, after)| clock::relation(before, after));
        measured.clocks = is_timed.then(|| relation.unwrap_or_else(clock::shared));
        Ok(measured)
    }

    /// How far the server's clock is ahead; `None` when it is the same clock or nobody asks.
    fn clocks(&mut self, is_timed: bool) -> Result<Option<Offset>, UdptestError> {
        let own = clock::name();
        if !is_timed || (!own.is_empty() && own == self.host.clock) {
            return Ok(None);
        }
        let mut exchanges = Vec::with_capacity(EXCHANGES);
        for _ in 0..EXCHANGES {
            let asked_ns = now_ns();
            let answer = self.ask(&Request::Clock)?;
            let got_ns = now_ns();
            let Response::Clock { heard_ns, answered_ns } = answer else { return Err(unexpected(answer)) };
            exchanges.push(Exchange { asked_ns, heard_ns, answered_ns, got_ns });
        }
        Ok(Offset::of(&exchanges))
    }

    /// Runs the threads of a measurement, while listening to the server.
    fn run(
        &mut self,
        point: &Point,
        ends: &Ends,
        mark: u32,
        cpu: Option<usize>,
        offset: Option<Offset>,
        halt: &AtomicBool,
    ) -> Result<Measured, UdptestError> {
        let ahead_ns = offset.map_or(0, |offset| offset.offset_ns);
        self.start(ahead_ns)?;
        let shared = Shared::default();
        let work = Work { point, ends, mark, cpu, shared: &shared };
        let before = process_figures();
        let watch = LossWatch::start(self.interface().as_deref());
        let is_stream = point.test == PointTest::Stream;
        scope(|scope| {
            let mut threads = Threads::default();
            let started = (|| {
                if point.reverse {
                    // Times of the server become ours by what its clock is ahead.
                    threads.receivers = work.receive(scope, ahead_ns.saturating_neg())?;
                }
                if point.forward && is_stream {
                    threads.senders = work.send(scope)?;
                }
                if !is_stream {
                    threads.ping = Some(work.ping(scope)?);
                }
                Ok(())
            })();
            let supervised = started
                .map_err(UdptestError::Transfer)
                .and_then(|()| self.supervise(point, &mut threads, ends, &shared, halt));
            if supervised.is_err() {
                shared.stop();
            }
            let flows = join(threads.receivers).map_err(UdptestError::Transfer);
            // What is left of them when something went wrong: their errors are its cause.
            let left =
                join(threads.senders).map(drop).and(join(threads.ping.into_iter().collect()).map(drop));
            let mut heard = match supervised {
                Err(UdptestError::Lost(error)) => {
                    left.map_err(UdptestError::Transfer)?;
                    return Err(error.into());
                }
                other => other?,
            };
            let process = process_figures().since(&before);
            let drops = watched(&watch, ends);
            let reverse = match heard.sent.take() {
                None => None,
                Some(sent) => Some((
                    sent,
                    ReceiveReport {
                        kernel_drops: ends.drops(),
                        drops: drops.clone(),
                        process,
                        buffers: ends.buffers,
                        ..receiver::report(&flows?)
                    },
                )),
            };
            let forward = heard.own_sent.zip(heard.received);
            Ok(Measured {
                forward: forward
                    .map(|(sent, received)| (SendReport { process, drops: drops.clone(), ..sent }, received)),
                reverse,
                round_trip: heard.ping.map(|ping| PingReport {
                    process,
                    drops: drops.clone(),
                    buffers: ends.buffers,
                    ..ping
                }),
                server_process: heard.server_process,
                server_drops: heard.server_drops,
                client_telemetry: None,
                server_telemetry: heard.server_telemetry,
                clocks: None,
            })
        })
    }

    /// Has the server receive.
    fn start(&mut self, ahead_ns: i64) -> Result<(), UdptestError> {
        match self.ask(&Request::Start { ahead_ns })? {
            Response::Started => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Goes through a measurement with the server.
    fn supervise(
        &mut self,
        point: &Point,
        threads: &mut Threads<'_>,
        ends: &Ends,
        shared: &Shared,
        halt: &AtomicBool,
    ) -> Result<Heard, UdptestError> {
        let mut heard = Heard::default();
        if point.reverse {
            self.control.say(&Request::Go.line())?;
        }
        let patience = point.length().saturating_add(GRACE);
        let begin = Instant::now();
        let mut has_finished = false;
        loop {
            if halt.load(Ordering::Relaxed) {
                return Err(UdptestError::Interrupted);
            }
            if !has_finished && threads.have_sent() {
                let sent = threads.collect(&mut heard, ends)?;
                self.control.say(&Request::Finish { sent }.line())?;
                has_finished = true;
            }
            if begin.elapsed() >= patience {
                return Err(ControlError::Silent(patience).into());
            }
            let line = match self.control.hear(LOOK) {
                Ok(line) => line,
                Err(ControlError::Silent(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            match Response::parse(&line) {
                Some(Response::Sent { report }) if point.reverse && heard.sent.is_none() => {
                    shared.finish(report.sent.clone());
                    heard.sent = Some(*report);
                }
                Some(Response::Done { received, process, drops, telemetry }) if has_finished => {
                    heard.server_drops = *drops;
                    heard.server_telemetry = telemetry.map(|telemetry| *telemetry);
                    heard.received = received.map(|received| *received);
                    heard.server_process = *process;
                    return Ok(heard);
                }
                Some(Response::Refused { reason }) => return Err(ended(reason)),
                _ => return Err(ControlError::Nonsense(line).into()),
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Response, UdptestError> {
        ask(&mut self.control, request)
    }
}

/// The threads of this end.
#[derive(Default)]
struct Threads<'scope> {
    receivers: Vec<Worker<'scope, receiver::FlowReceived>>,
    senders: Vec<Worker<'scope, super::sender::FlowSent>>,
    ping: Option<Worker<'scope, PingReport>>,
}

impl Threads<'_> {
    /// Whether those that send have ended; also when there are none.
    fn have_sent(&self) -> bool {
        all_ended(&self.senders) && self.ping.as_ref().is_none_or(Worker::is_finished)
    }

    /// Takes what they ended with, and returns how many datagrams each flow has.
    fn collect(&mut self, heard: &mut Heard, ends: &Ends) -> Result<Vec<u64>, UdptestError> {
        if let Some(ping) = self.ping.take() {
            let report = join(vec![ping]).map_err(UdptestError::Transfer)?.pop().unwrap_or_default();
            let sent = vec![report.sent];
            heard.ping = Some(report);
            return Ok(sent);
        }
        let flows = join(std::mem::take(&mut self.senders)).map_err(UdptestError::Transfer)?;
        if flows.is_empty() {
            return Ok(vec![0; ends.sockets.len()]);
        }
        let report = send_report(flows, ends);
        let sent = report.sent.clone();
        heard.own_sent = Some(report);
        Ok(sent)
    }
}

/// What came of a measurement so far.
#[derive(Default)]
struct Heard {
    own_sent: Option<SendReport>,
    sent: Option<SendReport>,
    received: Option<ReceiveReport>,
    ping: Option<PingReport>,
    server_process: ProcessFigures,
    server_drops: DropCounters,
    server_telemetry: Option<Telemetry>,
}

/// Introduces this client, and makes sure of what it talks to.
fn greet(control: &mut Control, named: &str, secret: Option<&Secret>) -> Result<HostReport, UdptestError> {
    let wrong = |said: String| UdptestError::WrongPeer {
        program: PROGRAM,
        address: named.to_owned(),
        version: VERSION.into(),
        said,
    };
    let client = Nonce::fresh()?;
    control.say(&Request::Hello { version: VERSION, nonce: client.text() }.line())?;
    let mut asked = None;
    loop {
        let line = control.hear(PATIENCE).map_err(|error| wrong(error.to_string()))?;
        match Response::parse(&line) {
            Some(Response::Refused { reason }) => return Err(UdptestError::Refused(reason)),
            Some(Response::Challenge { nonce }) if asked.is_none() => {
                let server =
                    Nonce::parse(&nonce).ok_or_else(|| wrong("it said a wrong number".to_owned()))?;
                let numbers = Numbers { client, server };
                let proof = secret::answer(named, secret, &numbers)?;
                control.say(&Request::Proof { proof }.line())?;
                asked = Some(numbers);
            }
            Some(Response::Welcome { version: VERSION, proof, host }) => {
                secret::check_server(named, secret, asked, proof.as_deref())?;
                return Ok(*host);
            }
            _ => return Err(wrong(format!("it said `{}`", shown(&line)))),
        }
    }
}

fn ask(control: &mut Control, request: &Request) -> Result<Response, UdptestError> {
    control.say(&request.line())?;
    let line = control.hear(PATIENCE)?;
    match Response::parse(&line) {
        Some(Response::Refused { reason }) => Err(UdptestError::Refused(reason)),
        Some(response) => Ok(response),
        None => Err(ControlError::Nonsense(line).into()),
    }
}

/// A server that refuses in the middle of a measurement has ended the session.
fn ended(reason: String) -> UdptestError {
    UdptestError::Ended(reason)
}

fn unexpected(response: Response) -> UdptestError {
    ControlError::Nonsense(response.line()).into()
}

/// Refuses datagrams that a buffer can't hold.
fn check_buffers(point: &Point, client: SocketBuffers, server: SocketBuffers) -> Result<(), UdptestError> {
    let size = point.size_bytes as u64;
    for (what, granted) in [
        ("the client's send buffer", client.send_granted),
        ("the client's receive buffer", client.receive_granted),
        ("the server's send buffer", server.send_granted),
        ("the server's receive buffer", server.receive_granted),
    ] {
        if let Some(granted) = granted.filter(|granted| size > *granted) {
            return Err(UdptestError::Usage(format!(
                "a datagram of {size} bytes does not fit into {what} of {granted} bytes: smaller datagrams (--sizes) or \
                 larger buffers (--socket-buffer) are needed"
            )));
        }
    }
    Ok(())
}

/// What should be at the other end.
const PROGRAM: &str = "weir udp server";

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much longer than it should a measurement may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often a measurement that runs is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Exchanges of times before and after a measurement.
const EXCHANGES: usize = 60;
