//! The server: does what one client asks for, within bounds.

use std::io;
use std::thread::scope;
use std::time::{Duration, Instant};

use weir_measure::{
    Answer, Connection, ControlError, Message, Protocol, Session, SessionError, Signal, interface_of, now_ns,
};
use weir_telemetry::Sampler;

use super::clock_offset;
use super::ends::{Ends, Role};
use super::message::{REQUEST_BYTES_MAX, RESPONSE_BYTES_MAX, Request, Response, VERSION};
use super::point::{Point, PointTest};
use super::receiver::FlowReceived;
use super::reports::{HostReport, ServerReport};
use super::sender::FlowSent;
use super::work::{Meter, Usage, Work, Worker, all_ended, join, receive_report, send_report};

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
                _ => return Err(ControlError::Nonsense(line).into()),
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
                    ends.connect(point, self.session.peer, &ports)?;
                    self.say(&Response::Connected)?;
                }
                Some(Request::Clock) => self.tell_time()?,
                Some(Request::Point { point }) => return Ok(Some(point)),
                Some(Request::Start { ahead_ns }) => break ahead_ns,
                _ => return Err(ControlError::Nonsense(line).into()),
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
        let meter = Meter::start(self.session.local);
        let flows = scope(|scope| {
            let (mut receivers, mut senders) = (Vec::new(), None);
            if point.forward {
                // Started threads end if another one cannot start.
                receivers = work.receive(scope, ahead_ns).inspect_err(|_| signal.stop())?;
            }
            let start = || work.send(scope);
            let supervised =
                supervise(&mut self.session.control, work, &receivers, &mut senders, start, &meter);
            // Remaining threads are useless: another one has failed, or the client is gone.
            signal.stop();
            let flows = join(receivers)?;
            join(senders.unwrap_or_default())?;
            supervised.map(|()| flows)
        })?;
        let usage = meter.read(ends);
        let is_receiver = point.forward && point.test == PointTest::Stream;
        let received = is_receiver.then(|| receive_report(&flows, ends, usage.clone()));
        let Usage { process, drops } = usage;
        let telemetry = sampler.map(Sampler::stop);
        let done = Response::Done(Box::new(ServerReport { received, process, drops, telemetry }));
        Ok(self.session.control.send_line(&line_of(done))?)
    }
}

/// The line of a report, without telemetry if it would be too long.
fn line_of(mut done: Response) -> String {
    let line = done.line();
    if line.len() < RESPONSE_BYTES_MAX {
        return line;
    }
    if let Response::Done(report) = &mut done {
        report.telemetry = None;
    }
    done.line()
}

/// Announces the start, and follows a measurement on the control connection. `start` starts the `senders`, which are
/// there until they have reported.
fn supervise<'scope>(
    control: &mut Connection,
    work: Work<'_>,
    receivers: &[Worker<'_, FlowReceived>],
    senders: &mut Option<Vec<Worker<'scope, FlowSent>>>,
    start: impl Fn() -> io::Result<Vec<Worker<'scope, FlowSent>>>,
    meter: &Meter,
) -> Result<(), SessionError> {
    let Work { point, ends, signal, .. } = work;
    control.send(&Response::Started)?;
    let patience = point.length().saturating_add(GRACE);
    let begin = Instant::now();
    let mut has_reported = !point.reverse;
    loop {
        if let Some(ended) = senders.take_if(|senders| all_ended(senders)) {
            let report = Box::new(send_report(join(ended)?, ends, meter.read(ends)));
            control.send(&Response::Sent { report })?;
            has_reported = true;
        }
        let has_finished = signal.sent().is_some();
        // A receiver that ends before the client has finished has failed: its error is reported.
        let is_over = if has_finished { has_reported } else { point.forward };
        if is_over && all_ended(receivers) {
            return Ok(());
        }
        if begin.elapsed() >= patience {
            return Err(ControlError::Silent(patience).into());
        }
        let Some(line) = control.poll_line()? else { continue };
        match Request::parse(&line) {
            Some(Request::Go) if senders.is_none() && !has_reported => *senders = Some(start()?),
            Some(Request::Finish { sent }) if !has_finished => signal.finish(sent),
            _ => return Err(ControlError::Nonsense(line).into()),
        }
    }
}
