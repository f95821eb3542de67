//! The client: connects to a server, and runs one measurement after the other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_measure::{
    Connection, ControlError, Family, MeasureError, Message, Reached, Secret, Signal, check_buffers,
    interface_of, now_ns,
};
use weir_results::{ClockRelation, DropCounters, Environment, ProcessFigures, SocketBuffers, Telemetry};
use weir_telemetry::{LossWatch, Sampler, process_figures};

use super::clock_offset::{self, Exchange, Offset};
use super::ends::{Ends, Role};
use super::message::{Request, Response};
use super::point::{Point, PointTest};
use super::receiver;
use super::reports::{HostReport, PingReport, ReceiveReport, SendReport};
use super::session::{WeirUdp, watched};
use super::work::{Work, Worker, all_ended, join, send_report};

/// Where a server is.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Its name or address.
    pub host: String,
    /// The port of its control connection.
    pub port: u16,
    /// The version of IP.
    pub family: Family,
    /// The shared secret.
    pub secret: Option<Secret>,
}

/// A session with a server.
#[derive(Debug)]
pub struct Client {
    control: Connection,
    local: SocketAddr,
    peer: SocketAddr,
    host: HostReport,
}

/// The result of one measurement, from both ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// From client to server.
    pub forward: Option<(SendReport, ReceiveReport)>,
    /// From server to client.
    pub reverse: Option<(SendReport, ReceiveReport)>,
    /// Round trips.
    pub round_trip: Option<PingReport>,
    /// Resources of the server's process.
    pub server_process: ProcessFigures,
    /// Drops of its host meanwhile.
    pub server_drops: DropCounters,
    /// Samples of this host.
    pub client_telemetry: Option<Telemetry>,
    /// Samples of the server's host.
    pub server_telemetry: Option<Telemetry>,
    /// How the clocks relate, for forward delays; `None` where none were measured.
    pub clocks: Option<ClockRelation>,
}

impl Client {
    /// Connects, and authenticates if there is a secret.
    pub fn connect(settings: &ClientSettings) -> Result<Self, MeasureError> {
        let Reached { control, local, peer, welcome: host } = weir_measure::connect::<WeirUdp>(
            &settings.host,
            settings.port,
            settings.family,
            settings.secret.as_ref(),
        )?;
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
    /// [`MeasureError::Refused`] and [`MeasureError::Usage`] are about this measurement: the next
    /// one may work. After any other the session is over.
    pub fn measure(
        &mut self,
        point: &Point,
        cpu: Option<usize>,
        halt: &AtomicBool,
    ) -> Result<Measured, MeasureError> {
        point.check(self.is_ipv6()).map_err(MeasureError::Usage)?;
        if let Some(cpu) = cpu
            && let Ok(allowed) = weir_udp::affinity::allowed_cpus()
            && !allowed.contains(&cpu)
        {
            let source = std::io::Error::other(format!("it may use {allowed:?}"));
            return Err(MeasureError::Pin { cpu, source });
        }
        let mut ends = Ends::open(point, self.local, Role::Client)?;
        let (ports, mark, buffers) = match self.ask(&Request::Point { point: Box::new(point.clone()) })? {
            Response::Prepared { ports, mark, buffers } if ports.len() == ends.sockets.len() => {
                (ports, mark, buffers)
            }
            other => return Err(unexpected(other)),
        };
        let granted = |buffers: SocketBuffers| [buffers.send_granted, buffers.receive_granted];
        check_buffers(point.size_bytes as u64, granted(ends.buffers), granted(buffers), |_| {
            "smaller datagrams (--sizes) or larger buffers (--socket-buffer) are needed".to_owned()
        })?;
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
        let relation = before.zip(after).map(|(before, after)| clock_offset::relation(before, after));
        measured.clocks = is_timed.then(|| relation.unwrap_or_else(clock_offset::shared));
        Ok(measured)
    }

    /// How far the server's clock is ahead; `None` for the same clock, or without a schedule.
    fn clocks(&mut self, is_timed: bool) -> Result<Option<Offset>, MeasureError> {
        let own = clock_offset::name();
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

    /// Runs the threads of a measurement, and serves the control connection.
    fn run(
        &mut self,
        point: &Point,
        ends: &Ends,
        mark: u32,
        cpu: Option<usize>,
        offset: Option<Offset>,
        halt: &AtomicBool,
    ) -> Result<Measured, MeasureError> {
        let ahead_ns = offset.map_or(0, |offset| offset.offset_ns);
        self.start(ahead_ns)?;
        let signal = Signal::new();
        let work = Work { point, ends, mark, cpu, signal: &signal };
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
                .map_err(MeasureError::Transfer)
                .and_then(|()| self.supervise(point, &mut threads, ends, &signal, halt));
            if supervised.is_err() {
                signal.stop();
            }
            let flows = join(threads.receivers).map_err(MeasureError::Transfer);
            // Errors of the remaining threads are the cause of a lost connection.
            let left =
                join(threads.senders).map(drop).and(join(threads.ping.into_iter().collect()).map(drop));
            let mut heard = match supervised {
                Err(MeasureError::Lost(error)) => {
                    left.map_err(MeasureError::Transfer)?;
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

    /// Starts the server's receivers.
    fn start(&mut self, ahead_ns: i64) -> Result<(), MeasureError> {
        match self.ask(&Request::Start { ahead_ns })? {
            Response::Started => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Follows a measurement on the control connection.
    fn supervise(
        &mut self,
        point: &Point,
        threads: &mut Threads<'_>,
        ends: &Ends,
        signal: &Signal,
        halt: &AtomicBool,
    ) -> Result<Heard, MeasureError> {
        let mut heard = Heard::default();
        if point.reverse {
            self.control.send(&Request::Go)?;
        }
        let patience = point.length().saturating_add(GRACE);
        let begin = Instant::now();
        let mut has_finished = false;
        loop {
            if halt.load(Ordering::Relaxed) {
                return Err(MeasureError::Interrupted);
            }
            if !has_finished && threads.have_sent() {
                let sent = threads.collect(&mut heard, ends)?;
                self.control.send(&Request::Finish { sent })?;
                has_finished = true;
            }
            if begin.elapsed() >= patience {
                return Err(ControlError::Silent(patience).into());
            }
            let line = match self.control.receive_line(Connection::CHECK) {
                Ok(line) => line,
                Err(ControlError::Silent(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            match Response::parse(&line) {
                Some(Response::Sent { report }) if point.reverse && heard.sent.is_none() => {
                    signal.finish(report.sent.clone());
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

    fn ask(&mut self, request: &Request) -> Result<Response, MeasureError> {
        weir_measure::ask::<WeirUdp>(&mut self.control, request)
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
    /// Whether the senders have ended; also without any.
    fn have_sent(&self) -> bool {
        all_ended(&self.senders) && self.ping.as_ref().is_none_or(Worker::is_finished)
    }

    /// Takes the senders' results, and returns the datagrams of each flow.
    fn collect(&mut self, heard: &mut Heard, ends: &Ends) -> Result<Vec<u64>, MeasureError> {
        if let Some(ping) = self.ping.take() {
            let report = join(vec![ping]).map_err(MeasureError::Transfer)?.pop().unwrap_or_default();
            let sent = vec![report.sent];
            heard.ping = Some(report);
            return Ok(sent);
        }
        let flows = join(std::mem::take(&mut self.senders)).map_err(MeasureError::Transfer)?;
        if flows.is_empty() {
            return Ok(vec![0; ends.sockets.len()]);
        }
        let report = send_report(flows, ends);
        let sent = report.sent.clone();
        heard.own_sent = Some(report);
        Ok(sent)
    }
}

/// The results of a measurement so far.
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

/// A server that refuses in the middle of a measurement has ended the session.
fn ended(reason: String) -> MeasureError {
    MeasureError::Ended(reason)
}

fn unexpected(response: Response) -> MeasureError {
    ControlError::Nonsense(response.line()).into()
}

/// How much longer than its length a measurement may take.
const GRACE: Duration = Duration::from_secs(30);
/// Exchanges of times before and after a measurement.
const EXCHANGES: usize = 60;
