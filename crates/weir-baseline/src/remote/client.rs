//! The client: connects to a server, and runs one measurement after the other.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_measure::{
    Connection, ControlError, Family, MeasureError, Message, Reached, Secret, Signal, check_buffers,
    interface_of, now_ns,
};
use weir_results::{ClockRelation, Environment, SocketBuffers, Telemetry};
use weir_telemetry::Sampler;

use super::clock_offset::{self, Exchange, Offset};
use super::ends::{Ends, Role};
use super::message::{Request, Response};
use super::point::Point;
use super::reports::{HostReport, PingReport, ReceiveReport, SendReport, ServerReport};
use super::sender::FlowSent;
use super::session::WeirUdp;
use super::work::{Meter, Usage, Work, Worker, all_ended, join, receive_report, send_report};

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
    /// The rest of the server's report.
    pub server: ServerReport,
    /// Samples of this host.
    pub client_telemetry: Option<Telemetry>,
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
        let request = Request::Point { point: Box::new(point.clone()) };
        let (ports, mark, buffers) = self.ask(&request, |response| match response {
            Response::Prepared { ports, mark, buffers } if ports.len() == ends.sockets.len() => {
                Some((ports, mark, buffers))
            }
            _ => None,
        })?;
        let granted = |buffers: SocketBuffers| [buffers.send_granted, buffers.receive_granted];
        check_buffers(point.size_bytes as u64, granted(ends.buffers), granted(buffers), |_| {
            "smaller datagrams (--sizes) or larger buffers (--socket-buffer) are needed".to_owned()
        })?;
        ends.connect(point, self.peer, &ports)?;
        self.expect(&Request::Connect { ports: ends.ports() }, &Response::Connected)?;
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
            let (heard_ns, answered_ns) = self.ask(&Request::Clock, |response| match response {
                Response::Clock { heard_ns, answered_ns } => Some((heard_ns, answered_ns)),
                _ => None,
            })?;
            let got_ns = now_ns();
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
        self.expect(&Request::Start { ahead_ns }, &Response::Started)?;
        let signal = Signal::new();
        let work = Work { point, ends, mark, cpu, signal: &signal };
        let meter = Meter::start(self.local);
        scope(|scope| {
            let (mut receivers, mut senders) = (Vec::new(), Vec::new());
            let started = (|| {
                if point.reverse {
                    // Times of the server become ours by what its clock is ahead.
                    receivers = work.receive(scope, ahead_ns.saturating_neg())?;
                }
                if point.forward {
                    senders = work.send(scope)?;
                }
                Ok(())
            })();
            let supervised = started
                .map_err(MeasureError::Transfer)
                .and_then(|()| self.supervise(point, &mut senders, &signal, halt));
            if supervised.is_err() {
                signal.stop();
            }
            let received = join(receivers).map_err(MeasureError::Transfer);
            let left = join(senders).map_err(MeasureError::Transfer);
            let Outcome { flows, sent, mut server } = match supervised {
                // Errors of the remaining threads are the cause of a lost connection.
                Err(MeasureError::Lost(error)) => return Err(left.err().unwrap_or(error.into())),
                other => other?,
            };
            let usage = meter.read(ends);
            let Usage { process, drops } = usage.clone();
            let ping = flows.iter().find_map(|flow| flow.ping.clone());
            let round_trip = ping.map(|ping| PingReport { process, drops, buffers: ends.buffers, ..ping });
            let reverse = match sent {
                Some(sent) => Some((sent, receive_report(&received?, ends, usage.clone()))),
                None => None,
            };
            let received = server.received.take();
            let forward = received.map(|received| (send_report(flows, ends, usage), received));
            Ok(Measured { forward, reverse, round_trip, server, ..Measured::default() })
        })
    }

    /// Follows a measurement on the control connection.
    fn supervise(
        &mut self,
        point: &Point,
        senders: &mut Vec<Worker<'_, FlowSent>>,
        signal: &Signal,
        halt: &AtomicBool,
    ) -> Result<Outcome, MeasureError> {
        let mut outcome = Outcome::default();
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
            if !has_finished && all_ended(senders) {
                outcome.flows = join(std::mem::take(senders)).map_err(MeasureError::Transfer)?;
                let mut sent: Vec<u64> = outcome.flows.iter().map(|flow| flow.counts.datagrams).collect();
                sent.resize(point.flows as usize, 0);
                self.control.send(&Request::Finish { sent })?;
                has_finished = true;
            }
            if begin.elapsed() >= patience {
                return Err(ControlError::Silent(patience).into());
            }
            let Some(line) = self.control.poll_line()? else { continue };
            match Response::parse(&line) {
                Some(Response::Sent { report }) if point.reverse && outcome.sent.is_none() => {
                    signal.finish(report.sent.clone());
                    outcome.sent = Some(*report);
                }
                Some(Response::Done(server)) if has_finished => {
                    outcome.server = *server;
                    return Ok(outcome);
                }
                // A server that refuses in the middle of a measurement has ended the session.
                Some(Response::Refused { reason }) => return Err(MeasureError::Ended(reason)),
                _ => return Err(ControlError::Nonsense(line).into()),
            }
        }
    }

    fn ask<T>(
        &mut self,
        request: &Request,
        read: impl FnOnce(Response) -> Option<T>,
    ) -> Result<T, MeasureError> {
        weir_measure::ask::<WeirUdp, T>(&mut self.control, request, read)
    }

    fn expect(&mut self, request: &Request, expected: &Response) -> Result<(), MeasureError> {
        self.ask(request, |response| (response == *expected).then_some(()))
    }
}

/// What following a measurement brought.
#[derive(Default)]
struct Outcome {
    /// Of this end's senders.
    flows: Vec<FlowSent>,
    /// Of the server's senders.
    sent: Option<SendReport>,
    server: ServerReport,
}

/// How much longer than its length a measurement may take.
const GRACE: Duration = Duration::from_secs(30);
/// Exchanges of times before and after a measurement.
const EXCHANGES: usize = 60;
