//! The server: does what one client asks for, within bounds.

use std::io;
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_measure::{
    Answer, Connection, ControlError, Message, Protocol, Session, SessionError, Signal, interface_of, now_ns,
};
use weir_results::DropCounters;
use weir_telemetry::{LossWatch, process_figures};

use super::clock_offset;
use super::ends::{Ends, Role};
use super::message::{REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, Request, Response, VERSION};
use super::point::{Point, PointTest};
use super::receiver;
use super::reports::{HostReport, ReceiveReport, SendReport};
use super::work::{Work, all_ended, join, send_report};

/// How long a client may take for each step before a measurement.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may be silent between two measurements.
const IDLE: Duration = Duration::from_secs(300);
/// How much longer than its length a measurement may take.
const GRACE: Duration = Duration::from_secs(30);

/// The protocol of `weir udp`.
#[derive(Clone, Copy, Debug)]
pub struct WeirUdp;

impl Protocol for WeirUdp {
    const PROGRAM: &'static str = "weir udp server";
    const PORT: u16 = 5679;
    const PORT_OPTION: &'static str = "--port";
    const VERSION: u64 = VERSION as u64;
    const REQUEST_BYTES_MAX: usize = REQUEST_BYTES_MAX;
    const RESPONSE_BYTES_MAX: usize = RESPONSE_BYTES_MAX;
    type Welcome = HostReport;
    type Request = Request;
    type Response = Response;

    fn hello(nonce: String) -> Request {
        Request::Hello { version: VERSION, nonce }
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

    fn answer(response: Response) -> Option<Answer<HostReport>> {
        match response {
            Response::Challenge { nonce } => Some(Answer::Challenge { nonce }),
            Response::Welcome { version: VERSION, proof, host } => {
                Some(Answer::Welcome { proof, welcome: *host })
            }
            Response::Refused { reason } => Some(Answer::Refused(reason)),
            _ => None,
        }
    }

    fn greet(session: &mut Session<'_>) -> Result<(), SessionError> {
        greet(session)
    }

    fn serve(session: &mut Session<'_>) -> Result<(), SessionError> {
        Client { session }.run()
    }
}

/// Checks the client's version and secret.
fn greet(session: &mut Session<'_>) -> Result<(), SessionError> {
    let line = session.control.receive_line(PATIENCE)?;
    let Some(Request::Hello { version: VERSION, nonce }) = Request::parse(&line) else {
        let reason = format!("this weir udp server speaks version {VERSION} of its messages only");
        return Err(SessionError::Refused(reason));
    };
    let proof = session.authenticate::<WeirUdp>(Some(&nonce))?;
    let interface = interface_of(session.local.ip()).map(|(name, _)| name);
    let environment = weir_telemetry::environment(interface.as_deref());
    let host = Box::new(HostReport { environment, clock: clock_offset::name() });
    Ok(session.control.send(&Response::Welcome { version: VERSION, proof, host })?)
}

struct Client<'a, 's> {
    session: &'a mut Session<'s>,
}

impl Client<'_, '_> {
    fn run(&mut self) -> Result<(), SessionError> {
        let mut next: Option<Box<Point>> = None;
        loop {
            if let Some(point) = next.take() {
                next = self.point(&point)?;
                continue;
            }
            let line = self.session.control.receive_line(IDLE)?;
            match Request::parse(&line) {
                Some(Request::Point { point }) => next = Some(point),
                Some(Request::Clock) => self.tell_time()?,
                _ => return Err(nonsense(line)),
            }
        }
    }

    fn role(&self) -> Role {
        Role::Server { is_trusted: self.session.is_authenticated() }
    }

    fn say(&mut self, response: &Response) -> Result<(), ControlError> {
        self.session.control.send(response)
    }

    fn tell_time(&mut self) -> Result<(), ControlError> {
        let heard_ns = now_ns();
        self.say(&Response::Clock { heard_ns, answered_ns: now_ns() })
    }

    /// Opens the sockets of a measurement, and runs it. A refusal concerns this measurement only. A
    /// client that refuses asks for the next one, which is returned.
    fn point(&mut self, point: &Point) -> Result<Option<Box<Point>>, SessionError> {
        let opened = self
            .check(point)
            .map_err(SessionError::Refused)
            .and_then(|()| Ok(Ends::open(point, self.session.local, self.role())?));
        let mut ends = match opened {
            Ok(ends) => ends,
            Err(error) => {
                self.session.refuse::<WeirUdp>(&error)?;
                return Ok(None);
            }
        };
        let mark = fastrand::u32(..);
        self.say(&Response::Prepared { ports: ends.ports(), mark, buffers: ends.buffers })?;
        let ahead_ns = loop {
            let line = self.session.control.receive_line(PATIENCE)?;
            match Request::parse(&line) {
                Some(Request::Connect { ports })
                    if ports.len() == point.flows as usize && !ports.contains(&0) =>
                {
                    ends.connect(point, self.session.local, self.session.peer, self.role(), &ports)?;
                    self.say(&Response::Connected)?;
                }
                Some(Request::Clock) => self.tell_time()?,
                Some(Request::Point { point }) => return Ok(Some(point)),
                Some(Request::Start { ahead_ns }) => break ahead_ns,
                _ => return Err(nonsense(line)),
            }
        };
        self.session.log(&format!("measures {} B", point.size_bytes));
        self.measure(point, &ends, mark, ahead_ns).map(|()| None)
    }

    fn check(&self, point: &Point) -> Result<(), String> {
        point.check(self.session.local.is_ipv6())?;
        let most = self.session.settings.trial_max;
        if point.length() > most {
            return Err(format!("a measurement lasts at most {} s here (--max-time)", most.as_secs()));
        }
        if point.multicast.is_some() && !self.session.settings.allow_multicast {
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
        let signal = Signal::new();
        let sampler = point.watch();
        let work = Work { point, ends, mark, cpu: point.server_cpu, signal: &signal };
        let before = process_figures();
        let watch = LossWatch::start(interface_of(self.session.local.ip()).map(|(name, _)| name).as_deref());
        let is_stream = point.test == PointTest::Stream;
        let mut received = scope(|scope| {
            // Started threads end if another one cannot start.
            let stop = |_: &io::Error| signal.stop();
            let is_receiver = point.forward && is_stream;
            let receivers =
                if is_receiver { work.receive(scope, ahead_ns).inspect_err(stop)? } else { Vec::new() };
            let echo = if is_stream { None } else { Some(work.echo(scope).inspect_err(stop)?) };
            let mut senders = None;
            let is_receiving =
                || !all_ended(&receivers) || echo.as_ref().is_some_and(|echo| !echo.is_finished());
            let mut steps = Steps { control: &mut self.session.control, left: Left::of(point) };
            let supervised = steps.supervise(point, &signal, &is_receiving, |step| match step {
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
            // Remaining threads are useless: another one has failed, or the client is gone.
            signal.stop();
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
        Ok(self.session.control.send_line(&line_of(done))?)
    }
}

/// The line of a report, without telemetry if it would be too long.
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

/// Drops since then. The sockets of this measurement have the best counters of their own.
pub(super) fn watched(watch: &LossWatch, ends: &Ends) -> DropCounters {
    let counters = watch.counters();
    DropCounters { socket: ends.drops().or(counters.socket), ..counters }
}

/// The remaining steps of a measurement.
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

/// A step of the threads.
enum Step {
    Go,
    AreSendersDone,
}

/// The control connection during a measurement.
struct Steps<'a> {
    control: &'a mut Connection,
    left: Left,
}

impl Steps<'_> {
    /// Announces the start, and follows the measurement on the control connection.
    fn supervise(
        &mut self,
        point: &Point,
        signal: &Signal,
        is_receiving: &dyn Fn() -> bool,
        mut act: impl FnMut(Step) -> io::Result<Option<SendReport>>,
    ) -> Result<(), SessionError> {
        self.control.send(&Response::Started)?;
        let patience = point.length().saturating_add(GRACE);
        let begin = Instant::now();
        loop {
            if !self.left.go
                && self.left.sent
                && let Some(report) = act(Step::AreSendersDone)?
            {
                self.control.send(&Response::Sent { report: Box::new(report) })?;
                self.left.sent = false;
            }
            let has_ended = !is_receiving();
            if has_ended && !self.left.finish && !self.left.sent {
                return Ok(());
            }
            // A receiver that ends early has failed: its error is reported.
            if has_ended && point.forward && self.left.finish {
                return Ok(());
            }
            if begin.elapsed() >= patience {
                return Err(ControlError::Silent(patience).into());
            }
            let line = match self.control.receive_line(Connection::CHECK) {
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
                    signal.finish(sent);
                    self.left.finish = false;
                }
                _ => return Err(nonsense(line)),
            }
        }
    }
}

fn nonsense(line: String) -> SessionError {
    SessionError::Control(ControlError::Nonsense(line))
}
