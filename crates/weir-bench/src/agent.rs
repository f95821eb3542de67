//! One end of one case, in its own process.
//!
//! The main thread opens the end and measures. A second thread listens to the coordinator: it
//! sleeps in the kernel during the case, sets the [`Signal`] when the other end is done, and ends
//! the process when the coordinator is gone.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;
use weir_measure::{Connection, ControlError, Schedule, Signal, clock};
use weir_results::{LiveSlot, SocketBuffers};

use crate::case::CaseSpec;
use crate::control::{
    self, AgentFault, AgentReport, FromAgent, Joined, LINE_BYTES_MAX, Outcome, Role, SCHEMA, ToAgent,
    VERSION, VersionError,
};
use crate::endpoint::{End, EndpointError, Engine};
use crate::engine;
use crate::live::{Reporter, ReporterOptions};
use crate::watch::Watch;
use crate::workload::PEERS_WAIT;
use crate::workload::process::Process;
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
    let watch = Watch::new(&case);
    let live = ReporterOptions::new(&case);
    let moved = case.method.namespace.as_deref().map_or(Ok(()), enter_namespace);
    let pinned = moved.and_then(|()| cpu.map_or(Ok(()), pin));
    let signal = Arc::new(Signal::new());
    let sender = control.try_clone().map_err(ControlError::Io)?;
    let messages = listen(control, Arc::clone(&signal), options.on_orphaned)?;
    let mut agent = Agent { role: options.role, case: *case, control: sender, messages, signal, live };
    if let Err(error) = pinned.and_then(|()| agent.measure(watch)) {
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

/// How often a process of a workload checks whether all writers are done.
const FINISH_PAUSE: Duration = Duration::from_millis(5);

/// How long an agent that is done waits for the others. The coordinator's own limits end a case before.
const CLOSE_WAIT: Duration = Duration::from_secs(24 * 3600);

struct Agent {
    role: Role,
    case: CaseSpec,
    control: Connection,
    messages: Receiver<ToAgent>,
    signal: Arc<Signal>,
    /// How it reports while it measures; `None`: it does not.
    live: Option<ReporterOptions>,
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
    /// Runs the case.
    fn measure(&mut self, watch: Watch) -> Result<(), Failure> {
        let (case, signal) = (self.case.clone(), Arc::clone(&self.signal));
        let engine = engine::find(&case.engine).ok_or_else(|| Failure::UnknownEngine(case.engine.clone()))?;
        if self.role == Role::Subscriber {
            thread::sleep(case.method.late);
        }
        if case.workload.is_some() {
            return self.run_process(engine, watch);
        }
        let (stop, start) = (signal.stop_flag(), (watch, clock::now_ns()));
        match (case.is_stream(), self.role) {
            (true, Role::Publisher) => {
                self.run(engine.open_publisher(&case)?.as_mut(), start, |end, schedule, _| {
                    throughput::run_publisher(end, &case, schedule).map(Outcome::Publisher)
                })
            }
            (true, Role::Subscriber) => {
                self.run(engine.open_subscriber(&case)?.as_mut(), start, |end, schedule, live| {
                    throughput::run_subscriber(end, &case, &signal, schedule, live).map(Outcome::Subscriber)
                })
            }
            (false, Role::Publisher) => {
                self.run(engine.open_pinger(&case)?.as_mut(), start, |end, _, live| {
                    latency::run_pinger(end, &case, stop, live).map(Outcome::Pinger)
                })
            }
            (_, Role::Process) => Err(AgentError::Unexpected.into()),
            (false, Role::Subscriber) => self.run(engine.open_ponger(&case)?.as_mut(), start, |end, _, _| {
                end.echo(stop).map(|echoed| Outcome::Ponger { echoed })
            }),
        }
    }

    /// Takes an end that began to be opened at `opened_ns` through the case, and keeps it open until the coordinator
    /// closes it: the other end may need retransmissions.
    fn run<E: End + ?Sized>(
        &mut self,
        end: &mut E,
        (watch, opened_ns): (Watch, u64),
        measure: impl FnOnce(&mut E, Option<Schedule>, Option<Arc<LiveSlot>>) -> Result<Outcome, EndpointError>,
    ) -> Result<(), Failure> {
        let address = end.address();
        self.control.send(&FromAgent::Prepared { address, nodes: Vec::new() })?;
        let message_wait = MESSAGE_WAIT + self.case.allowance();
        let peer = |message| if let ToAgent::Connect { peer, .. } = message { Some(peer) } else { None };
        let peer = self.expect(peer, message_wait)?;
        end.connect(peer, PEER_WAIT + self.case.allowance())?;
        // An engine that discovers its peers has no address.
        let joined = address.is_none().then(|| Joined { opened_ns, matched_ns: clock::now_ns() });
        self.control.send(&FromAgent::Connected)?;
        let start = |message| if let ToAgent::Start { at_ns } = message { Some(at_ns) } else { None };
        let at_ns = self.expect(start, message_wait)?;
        let schedule = at_ns.and_then(|at_ns| open_loop::schedule(&self.case, at_ns));
        let watching = watch.start(end.path_probe());
        if self.role == Role::Subscriber {
            self.control.send(&FromAgent::Started)?;
        }
        let reporter = self.live.as_ref().map(|live| Reporter::start(live, &self.control));
        let outcome = measure(end, schedule, reporter.as_ref().map(Reporter::slot));
        drop(reporter);
        let outcome = outcome?;
        let buffers = end.report().buffers;
        let watched = watching.stop(outcome.samples());
        let report = Box::new(AgentReport { outcome, watched, buffers, joined, trace: end.trace() });
        self.control.send(&FromAgent::Finished { report })?;
        Ok(self.expect_close()?)
    }

    /// Takes a process of a workload through it.
    fn run_process(&mut self, engine: &dyn Engine, watch: Watch) -> Result<(), Failure> {
        let opened_ns = clock::now_ns();
        let mut process = Process::open(engine, &self.case)?;
        let nodes = process.addresses();
        let has_discovery = nodes.is_empty();
        self.control.send(&FromAgent::Prepared { address: None, nodes })?;
        let nodes = |message| if let ToAgent::Connect { nodes, .. } = message { Some(nodes) } else { None };
        let nodes = self.expect(nodes, MESSAGE_WAIT * 3)?;
        process.connect(&nodes, PEERS_WAIT)?;
        let joined = has_discovery.then(|| Joined { opened_ns, matched_ns: clock::now_ns() });
        self.control.send(&FromAgent::Connected)?;
        let start = |message| if let ToAgent::Start { at_ns } = message { at_ns } else { None };
        let at_ns = self.expect(start, MESSAGE_WAIT * 3)?;
        let watched = process.run(at_ns, || watch.start(None), |watching| watching.stop(None))?;
        let sent = process.written().iter().map(|it| (it.writer, it.sent)).collect();
        self.control.send(&FromAgent::Sent { sent })?;
        let sent = self.await_finish()?;
        process.drain(&sent);
        let outcome = Outcome::Process(process.finish(&sent));
        let buffers = SocketBuffers::default();
        let report = Box::new(AgentReport { outcome, watched, buffers, joined, trace: None });
        self.control.send(&FromAgent::Finished { report })?;
        // The nodes stay open until then: others may need retransmissions.
        let closed = self.expect_close();
        drop(process);
        Ok(closed?)
    }

    /// Waits until all writers of a workload are done; returns how many samples each has written.
    fn await_finish(&self) -> Result<Vec<u64>, AgentError> {
        let deadline = Instant::now() + MESSAGE_WAIT * 3;
        loop {
            if let Some(sent) = self.signal.sent() {
                return Ok(sent.to_vec());
            }
            if Instant::now() >= deadline {
                return Err(AgentError::Silent(MESSAGE_WAIT * 3));
            }
            thread::sleep(FINISH_PAUSE);
        }
    }

    fn expect_close(&mut self) -> Result<(), AgentError> {
        self.expect(|message| matches!(message, ToAgent::Close).then_some(()), CLOSE_WAIT)
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
