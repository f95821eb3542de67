//! A server's side: does what one client asks for, within bounds.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_results::DropCounters;
use weir_telemetry::{LossWatch, process_figures};

use super::clock::{self, now_ns};
use super::ends::{Ends, Role, Shared};
use super::message::{REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, Request, Response, VERSION};
use super::point::{Point, PointTest};
use super::receiver;
use super::reports::{HostReport, ReceiveReport};
use super::work::{Work, all_ended, join, send_report};
use crate::address::{canonical, interface_of};
use crate::control::{Control, ControlError};
use crate::secret::{Nonce, Numbers, Side};
use crate::server::{ServerSettings, SessionError};

/// How long a client may take for each step before a measurement.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may say nothing between two measurements.
const IDLE: Duration = Duration::from_secs(300);
/// How much longer than it should a measurement may take.
const GRACE: Duration = Duration::from_secs(30);
/// How often a measurement that runs is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Says that there are too many sessions.
pub(crate) fn refuse(stream: TcpStream, sessions_max: usize) -> Result<(), SessionError> {
    let mut control = Control::with_lines_of(stream, REQUEST_BYTES_MAX)?;
    // The greeting has to be read, or closing would take the answer away from the peer.
    control.hear(Duration::from_secs(1))?;
    let reason = format!("it serves {sessions_max} sessions at a time, try again later (--max-sessions)");
    Ok(control.say(&Response::Refused { reason }.line())?)
}

/// Serves a client until it goes.
pub(crate) fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    settings: &ServerSettings,
    log: &dyn Fn(&str),
) -> Result<(), SessionError> {
    let local = canonical(stream.local_addr()?);
    let control = Control::with_lines_of(stream, REQUEST_BYTES_MAX)?;
    let mut session = Session { control, local, peer, settings, log };
    match session.run() {
        Ok(()) | Err(SessionError::Control(ControlError::Closed)) => Ok(()),
        Err(error) => {
            if !matches!(error, SessionError::Control(_)) {
                session.refuse(&error)?;
            }
            Err(error)
        }
    }
}

struct Session<'a> {
    control: Control,
    local: SocketAddr,
    peer: SocketAddr,
    settings: &'a ServerSettings,
    log: &'a dyn Fn(&str),
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), SessionError> {
        self.greet()?;
        let mut next: Option<Box<Point>> = None;
        loop {
            if let Some(point) = next.take() {
                next = self.point(&point)?;
                continue;
            }
            let line = self.control.hear(IDLE)?;
            match Request::parse(&line) {
                Some(Request::Point { point }) => next = Some(point),
                Some(Request::Clock) => self.tell_time()?,
                _ => return Err(nonsense(line)),
            }
        }
    }

    fn say(&mut self, response: &Response) -> Result<(), ControlError> {
        self.control.say(&response.line())
    }

    fn refuse(&mut self, error: &SessionError) -> Result<(), ControlError> {
        let reason = match error {
            SessionError::Refused(reason) => reason.clone(),
            other => other.to_string(),
        };
        (self.log)(&format!("{}: refused: {reason}", self.peer));
        self.say(&Response::Refused { reason })
    }

    /// Makes sure of whom it talks to.
    fn greet(&mut self) -> Result<(), SessionError> {
        let line = self.control.hear(PATIENCE)?;
        let Some(Request::Hello { version: VERSION, nonce }) = Request::parse(&line) else {
            return Err(refused(format!(
                "this weir udp server speaks version {VERSION} of its messages only"
            )));
        };
        let mut proof = None;
        if let Some(secret) = &self.settings.secret {
            let client = Nonce::parse(&nonce).ok_or_else(|| nonsense(line))?;
            let server = Nonce::fresh().map_err(|error| refused(error.to_string()))?;
            let numbers = Numbers { client, server };
            self.say(&Response::Challenge { nonce: server.text() })?;
            let line = self.control.hear(PATIENCE)?;
            let Some(Request::Proof { proof: shown }) = Request::parse(&line) else {
                return Err(nonsense(line));
            };
            if !secret.accepts(Side::Client, &numbers, &shown) {
                return Err(refused("the client does not know the secret of this server".to_owned()));
            }
            proof = Some(secret.proof(Side::Server, &numbers));
        }
        let interface = interface_of(self.local.ip()).map(|(name, _)| name);
        let environment = weir_telemetry::environment(interface.as_deref());
        let host = Box::new(HostReport { environment, clock: clock::name() });
        Ok(self.say(&Response::Welcome { version: VERSION, proof, host })?)
    }

    fn tell_time(&mut self) -> Result<(), ControlError> {
        let heard_ns = now_ns();
        self.say(&Response::Clock { heard_ns, answered_ns: now_ns() })
    }

    /// Opens the sockets of a measurement, and runs it. A refusal is one of this measurement only; so is a client's, which
    /// asks for the next one, which is returned then.
    fn point(&mut self, point: &Point) -> Result<Option<Box<Point>>, SessionError> {
        let opened = self
            .check(point)
            .map_err(SessionError::Refused)
            .and_then(|()| Ok(Ends::open(point, self.local, Role::Server)?));
        let mut ends = match opened {
            Ok(ends) => ends,
            Err(error) => {
                self.refuse(&error)?;
                return Ok(None);
            }
        };
        let mark = fastrand::u32(..);
        self.say(&Response::Prepared { ports: ends.ports(), mark, buffers: ends.buffers })?;
        let ahead_ns = loop {
            let line = self.control.hear(PATIENCE)?;
            match Request::parse(&line) {
                Some(Request::Connect { ports })
                    if ports.len() == point.flows as usize && !ports.contains(&0) =>
                {
                    ends.connect(point, self.local, self.peer, Role::Server, &ports)?;
                    self.say(&Response::Connected)?;
                }
                Some(Request::Clock) => self.tell_time()?,
                Some(Request::Point { point }) => return Ok(Some(point)),
                Some(Request::Start { ahead_ns }) => break ahead_ns,
                _ => return Err(nonsense(line)),
            }
        };
        (self.log)(&format!("{}: measures {} B", self.peer, point.size_bytes));
        self.measure(point, &ends, mark, ahead_ns).map(|()| None)
    }

    fn check(&self, point: &Point) -> Result<(), String> {
        point.check(self.local.is_ipv6())?;
        let most = self.settings.trial_max;
        if point.length() > most {
            return Err(format!("a measurement lasts at most {} s here (--max-time)", most.as_secs()));
        }
        if point.multicast.is_some() && !self.settings.allow_multicast {
            return Err("this server joins no multicast groups (--allow-multicast)".to_owned());
        }
        let Some(cpu) = point.server_cpu else { return Ok(()) };
        match weir_udp::affinity::allowed_cpus() {
            Ok(allowed) if !allowed.contains(&cpu) => {
                Err(format!("the server may not run on processor {cpu}, but on {allowed:?} (--cpus)"))
            }
            _ => Ok(()),
        }
    }

    /// Runs the threads of a measurement, while listening to the client.
    fn measure(&mut self, point: &Point, ends: &Ends, mark: u32, ahead_ns: i64) -> Result<(), SessionError> {
        let shared = Shared::default();
        let sampler = point.watch();
        let work = Work { point, ends, mark, cpu: point.server_cpu, shared: &shared };
        let before = process_figures();
        let watch = LossWatch::start(interface_of(self.local.ip()).map(|(name, _)| name).as_deref());
        let is_stream = point.test == PointTest::Stream;
        let mut received = scope(|scope| {
            // Whoever has started ends, should another one not.
            let stop = |_: &io::Error| shared.stop();
            let is_receiver = point.forward && is_stream;
            let receivers =
                if is_receiver { work.receive(scope, ahead_ns).inspect_err(stop)? } else { Vec::new() };
            let echo = if is_stream { None } else { Some(work.echo(scope).inspect_err(stop)?) };
            let mut senders = None;
            let is_receiving =
                || !all_ended(&receivers) || echo.as_ref().is_some_and(|echo| !echo.is_finished());
            let mut steps = Steps { control: &mut self.control, left: Left::of(point) };
            let supervised = steps.supervise(point, &shared, &is_receiving, |step| match step {
                Step::Go => {
                    senders = Some(work.send(scope)?);
                    Ok(None)
                }
                Step::AreSendersDone => {
                    if senders.as_ref().is_none_or(|senders| !all_ended(senders)) {
                        return Ok(None);
                    }
                    let flows = join(senders.take().unwrap_or_default())?;
                    let mut report = send_report(flows, ends);
                    report.process = process_figures().since(&before);
                    report.drops = watched(&watch, ends);
                    Ok(Some(report))
                }
            });
            // Whoever still runs does so for nobody: another loop has failed, or the client has gone.
            shared.stop();
            let flows = join(receivers)?;
            join(echo.into_iter().collect())?;
            join(senders.unwrap_or_default())?;
            supervised.map(|()| is_receiver.then(|| receiver::report(&flows)))
        })?;
        let process = Box::new(process_figures().since(&before));
        let drops = Box::new(watched(&watch, ends));
        if let Some(report) = &mut received {
            *report = ReceiveReport {
                kernel_drops: ends.drops(),
                drops: (*drops).clone(),
                process: *process,
                buffers: ends.buffers,
                ..std::mem::take(report)
            };
        }
        let telemetry = sampler.map(|sampler| Box::new(sampler.stop()));
        let done = Response::Done { received: received.map(Box::new), process, drops, telemetry };
        Ok(self.control.say(&line_of(done))?)
    }
}

/// The line of a report: without telemetry where that has more than a client takes, so that the rest arrives.
fn line_of(mut done: Response) -> String {
    let line = done.line();
    if line.len() < RESPONSE_BYTES_MAX {
        return line;
    }
    if let Response::Done { telemetry, .. } = &mut done {
        *telemetry = None;
    }
    done.line()
}

/// What was dropped since then. The sockets of this measurement know their own drops best.
pub(super) fn watched(watch: &LossWatch, ends: &Ends) -> DropCounters {
    let counters = watch.counters();
    DropCounters { socket: ends.drops().or(counters.socket), ..counters }
}

/// What has to happen until a measurement is over.
#[derive(Clone, Copy, Debug)]
struct Left {
    go: bool,
    sent: bool,
    finish: bool,
}

impl Left {
    fn of(point: &Point) -> Self {
        Self { go: point.reverse, sent: point.reverse, finish: true }
    }
}

/// What the loops are asked by the control connection.
enum Step {
    Go,
    AreSendersDone,
}

/// The control connection during a measurement.
struct Steps<'a> {
    control: &'a mut Control,
    left: Left,
}

impl Steps<'_> {
    /// Says that the measurement runs, and goes through it with the client.
    fn supervise(
        &mut self,
        point: &Point,
        shared: &Shared,
        is_receiving: &dyn Fn() -> bool,
        mut act: impl FnMut(Step) -> io::Result<Option<super::reports::SendReport>>,
    ) -> Result<(), SessionError> {
        self.control.say(&Response::Started.line())?;
        let patience = point.length().saturating_add(GRACE);
        let begin = Instant::now();
        loop {
            if !self.left.go
                && self.left.sent
                && let Some(report) = act(Step::AreSendersDone)?
            {
                self.control.say(&Response::Sent { report: Box::new(report) }.line())?;
                self.left.sent = false;
            }
            let has_ended = !is_receiving();
            if has_ended && !self.left.finish && !self.left.sent {
                return Ok(());
            }
            // A receiver that ends before it is told to has failed: its error is the one to tell.
            if has_ended && point.forward && self.left.finish {
                return Ok(());
            }
            if begin.elapsed() >= patience {
                return Err(ControlError::Silent(patience).into());
            }
            let line = match self.control.hear(LOOK) {
                Ok(line) => line,
                Err(ControlError::Silent(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            match Request::parse(&line) {
                Some(Request::Go) if self.left.go => {
                    act(Step::Go)?;
                    self.left.go = false;
                }
                Some(Request::Finish { sent }) if self.left.finish => {
                    shared.finish(sent);
                    self.left.finish = false;
                }
                _ => return Err(nonsense(line)),
            }
        }
    }
}

fn refused(reason: String) -> SessionError {
    SessionError::Refused(reason)
}

fn nonsense(line: String) -> SessionError {
    SessionError::Control(ControlError::Nonsense(line))
}
