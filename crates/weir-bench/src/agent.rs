//! One end of one case, in its own process.
//!
//! The main thread opens the end and measures. A second thread listens to the coordinator: it
//! sleeps in the kernel during the case, sets the [`Signal`] when the other end is done, and ends
//! the process when the coordinator is gone.

use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use weir_measure::{Connection, ControlError, Schedule, Signal, clock};
use weir_results::ProcessFigures;
use weir_telemetry::{
    LossWatch, Sampler, SamplerOptions, SystemCalls, SystemCallsError, process_figures, reset_peak_memory,
};

use crate::case::CaseSpec;
use crate::control::{
    self, AgentFault, AgentReport, FromAgent, Joined, LINE_BYTES_MAX, Outcome, Role, SCHEMA, ToAgent,
    VERSION, VersionError,
};
use crate::endpoint::{End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, Subscriber};
use crate::engine;
use crate::{latency, open_loop, path, throughput};

/// Where and as what an agent joins.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Which end it is.
    pub role: Role,
    /// Which of the ends of its kind, from 0.
    pub index: u32,
    /// The coordinator's control address.
    pub control: SocketAddr,
    /// What the coordinator gave to the process.
    pub token: String,
    /// Ends the process: called on another thread when the coordinator is gone.
    pub on_orphaned: fn(),
}

/// Why an agent failed. Errors of the case itself are reported to the coordinator.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The channel to the coordinator.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The coordinator is of another version.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// The coordinator said something that does not belong here.
    #[error("the coordinator sent an unexpected message")]
    Unexpected,
    /// The coordinator said nothing.
    #[error("the coordinator said nothing for {0:?}")]
    Silent(Duration),
}

/// Joins the coordinator and runs one case.
///
/// # Errors
/// When the control channel fails; the coordinator notices that by itself.
pub fn run(options: &AgentOptions) -> Result<(), AgentError> {
    let stream = TcpStream::connect_timeout(&options.control, CONNECT_WAIT).map_err(ControlError::Io)?;
    let mut control = Connection::new(stream, LINE_BYTES_MAX).map_err(ControlError::Io)?;
    let hello = FromAgent::Hello {
        schema: SCHEMA,
        version: VERSION.to_owned(),
        role: options.role,
        index: options.index,
        token: options.token.clone(),
    };
    control.send(&hello)?;
    let ToAgent::Case { schema, version, case, cpu } = control.receive(MESSAGE_WAIT)? else {
        return Err(AgentError::Unexpected);
    };
    control::check_version(schema, &version)?;
    // Before any thread starts: threads inherit all of it.
    let telemetry = sampler_options(&case);
    let moved = case.method.namespace.as_deref().map_or(Ok(()), enter_namespace);
    let pinned = moved.and_then(|()| cpu.map_or(Ok(()), pin));
    let system_calls = case.method.count_system_calls.then(SystemCalls::start);
    let signal = Arc::new(Signal::new());
    let sender = control.try_clone().map_err(ControlError::Io)?;
    let messages = listen(control, Arc::clone(&signal), options.on_orphaned)?;
    let (role, case) = (options.role, *case);
    let mut agent = Agent {
        role,
        case,
        control: sender,
        messages,
        signal,
        opened_ns: 0,
        joined: None,
        system_calls,
        telemetry,
    };
    if let Err(error) = pinned.and_then(|()| agent.measure()) {
        agent.control.send(&failure(&error))?;
        // Waits, so that the end of this process is not mistaken for a crash.
        agent.expect_close()?;
    }
    Ok(())
}

/// How long connecting may take: the coordinator listens before it starts agents.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// How long the coordinator may take to answer, while it waits for the other agent.
const MESSAGE_WAIT: Duration = Duration::from_secs(60);

/// The thread that listens waits for as long as the connection lasts.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// How long the engine may look for its peer.
const PEER_WAIT: Duration = Duration::from_secs(20);

/// How long an agent that is done waits for the others. The coordinator's own limits end a case before.
const CLOSE_WAIT: Duration = Duration::from_secs(24 * 3600);

struct Agent {
    role: Role,
    case: CaseSpec,
    control: Connection,
    messages: Receiver<ToAgent>,
    signal: Arc<Signal>,
    /// When the end began to be opened, nanoseconds of the host's monotonic clock.
    opened_ns: u64,
    joined: Option<Joined>,
    /// The counter, or why there is none; `None`: disabled.
    system_calls: Option<Result<SystemCalls, SystemCallsError>>,
    /// How the host is watched; `None` = it is not.
    telemetry: Option<SamplerOptions>,
}

/// Why an agent's case cannot go on.
#[derive(Debug, Error)]
enum Failure {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error("cannot run on processor {cpu}: {source}; choose others with --cpus")]
    Pin { cpu: usize, source: std::io::Error },
    #[error("cannot enter the network namespace {}: {source}", file.display())]
    Namespace { file: PathBuf, source: std::io::Error },
    #[error("`{0}` is not an engine of this program")]
    UnknownEngine(String),
}

impl Agent {
    /// Runs the case and keeps its end open until the coordinator closes it: the other end may need
    /// retransmissions.
    fn measure(&mut self) -> Result<(), Failure> {
        let case = self.case.clone();
        let engine = engine::find(&case.engine).ok_or_else(|| Failure::UnknownEngine(case.engine.clone()))?;
        if self.role == Role::Subscriber {
            thread::sleep(case.method.late);
        }
        self.opened_ns = clock::now_ns();
        match (case.is_stream(), self.role) {
            (true, Role::Publisher) => self.publish(engine),
            (true, Role::Subscriber) => self.subscribe(engine),
            (false, Role::Publisher) => self.ping(engine),
            (false, Role::Subscriber) => self.pong(engine),
        }
    }

    fn publish(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        let mut end: Box<dyn Publisher> = engine.open_publisher(&self.case)?;
        self.join(end.as_mut())?;
        let (before, schedule) = self.start_sending()?;
        let outcome = throughput::run_publisher(end.as_mut(), &self.case, schedule)?;
        let report = self.report(before, Outcome::Publisher(outcome), &end.report());
        self.finish(report)
    }

    fn subscribe(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        let mut end: Box<dyn Subscriber> = engine.open_subscriber(&self.case)?;
        self.join(end.as_mut())?;
        let (before, schedule) = self.start_receiving()?;
        let outcome = throughput::run_subscriber(end.as_mut(), &self.case, &self.signal, schedule)?;
        let report = self.report(before, Outcome::Subscriber(outcome), &end.report());
        self.finish(report)
    }

    fn ping(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        let mut end: Box<dyn Pinger> = engine.open_pinger(&self.case)?;
        self.join(end.as_mut())?;
        let (before, _) = self.start_sending()?;
        let outcome = latency::run_pinger(end.as_mut(), &self.case, self.signal.stop_flag())?;
        let report = self.report(before, Outcome::Pinger(outcome), &end.report());
        let report = AgentReport { trace: end.trace(), ..report };
        self.finish(report)
    }

    fn pong(&mut self, engine: &dyn Engine) -> Result<(), Failure> {
        let mut end: Box<dyn Ponger> = engine.open_ponger(&self.case)?;
        self.join(end.as_mut())?;
        let (before, _) = self.start_receiving()?;
        let echoed = end.echo(self.signal.stop_flag())?;
        let report = self.report(before, Outcome::Ponger { echoed }, &end.report());
        let report = AgentReport { trace: end.trace(), ..report };
        self.finish(report)
    }

    /// Finds the peers of an end that was just opened.
    fn join<E: End + ?Sized>(&mut self, end: &mut E) -> Result<(), Failure> {
        let address = end.address();
        let peer = self.prepared(address)?;
        end.connect(peer, PEER_WAIT + self.case.allowance())?;
        let has_discovery = address.is_none();
        self.joined =
            has_discovery.then(|| Joined { opened_ns: self.opened_ns, matched_ns: clock::now_ns() });
        Ok(())
    }

    /// Reports the address of this end, and waits for that of the other one.
    fn prepared(&mut self, address: Option<SocketAddrV4>) -> Result<Option<SocketAddrV4>, Failure> {
        self.control.send(&FromAgent::Prepared { address })?;
        let peer = |message| if let ToAgent::Connect { peer } = message { Some(peer) } else { None };
        Ok(self.expect(peer, self.message_wait())?)
    }

    fn start_sending(&mut self) -> Result<(Before, Option<Schedule>), Failure> {
        self.control.send(&FromAgent::Connected)?;
        let schedule = self.expect_start()?;
        Ok((self.begin(), schedule))
    }

    fn start_receiving(&mut self) -> Result<(Before, Option<Schedule>), Failure> {
        self.control.send(&FromAgent::Connected)?;
        let schedule = self.expect_start()?;
        let before = self.begin();
        self.control.send(&FromAgent::Started)?;
        Ok((before, schedule))
    }

    fn finish(&mut self, report: AgentReport) -> Result<(), Failure> {
        self.control.send(&FromAgent::Finished { report: Box::new(report) })?;
        Ok(self.expect_close()?)
    }

    /// Reads the counters before the case.
    fn begin(&mut self) -> Before {
        reset_peak_memory();
        Before {
            telemetry: self.telemetry.clone().map(Sampler::start),
            drops: LossWatch::start(Some(&self.case.place.interface)),
            process: self.process_figures(),
        }
    }

    fn report(&mut self, before: Before, outcome: Outcome, end: &EndReport) -> AgentReport {
        let process = self.process_figures().since(&before.process);
        let drops = before.drops.counters();
        let uncounted = match &self.system_calls {
            Some(Err(reason)) => Some(reason.to_string()),
            _ => None,
        };
        AgentReport {
            process: ProcessFigures { samples: outcome.samples(), ..process },
            outcome,
            buffers: end.buffers,
            host_receive_errors: drops.receive_buffer_errors,
            drops,
            telemetry: before.telemetry.map(Sampler::stop),
            system_calls_uncounted: uncounted,
            joined: self.joined,
            trace: None,
        }
    }

    fn process_figures(&mut self) -> ProcessFigures {
        let system_calls = match &mut self.system_calls {
            Some(Ok(calls)) => calls.counts(),
            _ => None,
        };
        ProcessFigures {
            system_calls: system_calls.map(|counts| counts.all),
            send_calls: system_calls.and_then(|counts| counts.sends),
            receive_calls: system_calls.and_then(|counts| counts.receives),
            instructions: system_calls.and_then(|counts| counts.instructions),
            ..process_figures()
        }
    }

    fn message_wait(&self) -> Duration {
        MESSAGE_WAIT + self.case.allowance()
    }

    fn expect_close(&mut self) -> Result<(), AgentError> {
        self.expect(|message| matches!(message, ToAgent::Close).then_some(()), CLOSE_WAIT)
    }

    /// Waits for the start, and the start time of the schedule, if there is one.
    fn expect_start(&mut self) -> Result<Option<Schedule>, AgentError> {
        let start = |message| if let ToAgent::Start { at_ns } = message { Some(at_ns) } else { None };
        let at_ns = self.expect(start, self.message_wait())?;
        Ok(at_ns.and_then(|at_ns| open_loop::schedule(&self.case, at_ns)))
    }

    fn expect<T>(
        &mut self,
        accept: impl Fn(ToAgent) -> Option<T>,
        timeout: Duration,
    ) -> Result<T, AgentError> {
        match self.messages.recv_timeout(timeout) {
            Ok(message) => accept(message).ok_or(AgentError::Unexpected),
            Err(RecvTimeoutError::Timeout) => Err(AgentError::Silent(timeout)),
            Err(RecvTimeoutError::Disconnected) => Err(ControlError::Closed.into()),
        }
    }
}

/// The counters before the case.
struct Before {
    process: ProcessFigures,
    drops: LossWatch,
    telemetry: Option<Sampler>,
}

/// How to sample the host during `case`. Called before this process is pinned: the sampler may use
/// all processors.
fn sampler_options(case: &CaseSpec) -> Option<SamplerOptions> {
    // Its system calls would be counted with those of the engine.
    let period = case.method.telemetry_period.filter(|_| !case.method.count_system_calls)?;
    let cpus = weir_udp::affinity::allowed_cpus().unwrap_or_default();
    Some(SamplerOptions { period, cpus })
}

/// Listens to the coordinator until it closes the channel.
fn listen(
    mut control: Connection,
    signal: Arc<Signal>,
    on_orphaned: fn(),
) -> Result<Receiver<ToAgent>, ControlError> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            loop {
                let message = match control.receive(FOREVER) {
                    Ok(ToAgent::Finish { sent }) => {
                        signal.finish(sent);
                        signal.stop();
                        continue;
                    }
                    Ok(message) => message,
                    Err(_) => return on_orphaned(),
                };
                let is_last = message == ToAgent::Close;
                // Fails once the agent is leaving.
                if sender.send(message).is_err() || is_last {
                    return;
                }
            }
        })
        .map_err(ControlError::Io)?;
    Ok(receiver)
}

fn pin(cpu: usize) -> Result<(), Failure> {
    weir_udp::affinity::pin_process(cpu).map_err(|source| Failure::Pin { cpu, source })
}

fn enter_namespace(file: &Path) -> Result<(), Failure> {
    path::enter_namespace(file).map_err(|source| Failure::Namespace { file: file.to_owned(), source })
}

fn failure(error: &Failure) -> FromAgent {
    let fault = match error {
        Failure::Endpoint(EndpointError::NotSupported { .. }) => AgentFault::NotSupported,
        _ => AgentFault::Trouble,
    };
    FromAgent::Failed { fault, reason: error.to_string() }
}
