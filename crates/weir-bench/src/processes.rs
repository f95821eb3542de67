//! The processes of a case on this host, from start to end.
//!
//! All are children of this process and run this same program. They never outlive this value: dropping it kills them,
//! and an agent without a coordinator ends by itself.

use std::env;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use weir_measure::{Connection, ControlError, Nonce};

use crate::case::{CaseError, CaseSpec, Ends};
use crate::control::{self, FromAgent, Role, TOKEN_VARIABLE, ToAgent};
use crate::introductions::Introductions;

/// How to start an agent: `program arguments... --role ROLE --control ADDRESS --index N`.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program, usually this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl AgentCommand {
    /// Starts the program that runs now, even if its file is removed or replaced meanwhile.
    #[must_use]
    pub fn of_this_program(arguments: Vec<OsString>) -> Self {
        Self { program: THIS_PROGRAM.into(), arguments }
    }
}

/// The kernel's name of the program that runs now.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// One of the ends of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct EndId {
    /// Which end it is.
    pub(crate) role: Role,
    /// Which of the ends of its kind, from 0.
    pub(crate) index: u32,
}

impl EndId {
    /// All ends of this case: the processes of its workload, or publishers and subscribers.
    pub(crate) fn of_case(case: &CaseSpec) -> Vec<Self> {
        let processes = case.workload.as_ref().map(|workload| workload.processes);
        processes.map_or_else(
            || Self::all(case.ends),
            |count| (0..count).map(|index| Self { role: Role::Process, index }).collect(),
        )
    }

    /// All publishers and subscribers, in this order.
    pub(crate) fn all(ends: Ends) -> Vec<Self> {
        let of = |role, count| (0..count).map(move |index| Self { role, index });
        of(Role::Publisher, ends.publishers).chain(of(Role::Subscriber, ends.subscribers)).collect()
    }

    /// What messages call the end.
    pub(crate) fn name(self, ends: Ends) -> String {
        let count = match self.role {
            Role::Publisher => ends.publishers,
            Role::Subscriber => ends.subscribers,
            Role::Process => return format!("{} {}", self.role.name(), self.index + 1),
        };
        if count == 1 {
            return self.role.name().to_owned();
        }
        format!("{} {} of {count}", self.role.name(), self.index + 1)
    }
}

/// Called with each message of an agent, and with the error that ends its connection; returns whether to go on. Called
/// on a thread for each agent.
pub(crate) type Listener = Arc<dyn Fn(EndId, Result<FromAgent, ControlError>) -> bool + Send + Sync>;

/// The running agents of a case on this host.
pub(crate) struct Processes {
    agents: Vec<Agent>,
}

struct Agent {
    id: EndId,
    /// What messages call it.
    name: String,
    child: Child,
    control: Option<Connection>,
    is_gone: bool,
}

impl Processes {
    /// Starts these ends of a case, and waits until they have introduced themselves.
    pub(crate) fn start(
        command: &AgentCommand,
        ids: &[EndId],
        ends: Ends,
        interrupted: &AtomicBool,
        listener: &Listener,
    ) -> Result<Self, CaseError> {
        let trouble =
            |error: io::Error| CaseError::Failed(format!("cannot open the control channel: {error}"));
        let introductions = Introductions::listen().map_err(trouble)?;
        let address = introductions.address().map_err(trouble)?;
        let token = Nonce::fresh().map_err(|error| CaseError::Failed(error.to_string()))?.text();
        let mut processes = Self { agents: Vec::new() };
        for &id in ids {
            processes.agents.push(Agent::start(command, id, id.name(ends), address, &token)?);
        }
        processes.accept(introductions, &token, interrupted, listener).map(|()| processes)
    }

    /// Sends a message to one agent.
    pub(crate) fn send(&mut self, id: EndId, message: &ToAgent) -> Result<(), CaseError> {
        let Some(agent) = self.agent(id) else { return Err(unknown(id)) };
        let Some(control) = agent.control.as_mut() else {
            return Err(CaseError::Failed(format!("the {} has not connected", agent.name)));
        };
        let sent = control.send(message);
        // The reason why the agent ended says more than the failed write.
        sent.map_err(|error| {
            let failed = CaseError::Failed(format!("the {}: {error}", agent.name));
            agent.check_gone().unwrap_or(failed)
        })
    }

    /// Returns the error for an agent whose connection was closed. Its process ends in the next moment, if it has not
    /// yet.
    pub(crate) fn died(&mut self, id: EndId) -> CaseError {
        let Some(agent) = self.agent(id) else { return unknown(id) };
        let deadline = Instant::now() + END_WAIT;
        loop {
            if let Some(gone) = agent.check_gone() {
                return gone;
            }
            if Instant::now() >= deadline {
                return CaseError::Failed(format!("the {} closed its control channel", agent.name));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Notes that an agent leaves by itself, so that it is not killed.
    pub(crate) fn leaves(&mut self, id: EndId) {
        if let Some(agent) = self.agent(id) {
            agent.is_gone = true;
        }
    }

    /// Accepts connections until all agents have introduced themselves.
    fn accept(
        &mut self,
        mut introductions: Introductions,
        token: &str,
        interrupted: &AtomicBool,
        listener: &Listener,
    ) -> Result<(), CaseError> {
        let start = Instant::now();
        while let Some(missing) = self.agents.iter_mut().find(|agent| agent.control.is_none()) {
            if interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            if let Some(gone) = missing.check_gone() {
                return Err(gone);
            }
            if start.elapsed() >= HELLO_WAIT {
                let text = format!("the {} did not connect within {HELLO_WAIT:?}", missing.name);
                return Err(CaseError::Failed(text));
            }
            match introductions.next(ACCEPT_TICK) {
                Ok(None) => {}
                Ok(Some((message, control))) => self.introduce(message, control, token, listener)?,
                Err(error) => {
                    return Err(CaseError::Failed(format!("the control channel failed: {error}")));
                }
            }
        }
        Ok(())
    }

    /// Handles the first message of a new connection. Other programs are ignored; an agent gets a
    /// thread that reads its messages.
    fn introduce(
        &mut self,
        message: FromAgent,
        reader: Connection,
        token: &str,
        listener: &Listener,
    ) -> Result<(), CaseError> {
        let FromAgent::Hello { schema, version, role, index, token: shown } = message else { return Ok(()) };
        let Ok(writer) = reader.try_clone() else { return Ok(()) };
        let id = EndId { role, index };
        let Some(agent) = self.agent(id).filter(|agent| agent.control.is_none() && shown == token) else {
            return Ok(());
        };
        control::check_version(schema, &version).map_err(|error| CaseError::Failed(error.to_string()))?;
        read_messages(id, reader, Arc::clone(listener))
            .map_err(|error| CaseError::Failed(format!("cannot listen to the {}: {error}", agent.name)))?;
        agent.control = Some(writer);
        Ok(())
    }

    fn agent(&mut self, id: EndId) -> Option<&mut Agent> {
        self.agents.iter_mut().find(|agent| agent.id == id)
    }
}

impl Agent {
    fn start(
        command: &AgentCommand,
        id: EndId,
        name: String,
        control: SocketAddr,
        token: &str,
    ) -> Result<Self, CaseError> {
        let mut program = Command::new(&command.program);
        if command.program == Path::new(THIS_PROGRAM) {
            // Command lines show the name that this one was started by. (The kernel's short name is `exe`.)
            program.arg0(env::args_os().next().unwrap_or_else(|| THIS_PROGRAM.into()));
        }
        let child = program
            .args(&command.arguments)
            .args(["--role", id.role.name(), "--control", &control.to_string()])
            .args(["--index", &id.index.to_string()])
            .env(TOKEN_VARIABLE, token)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // A terminal's Ctrl-C is for the coordinator, which then ends its agents.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = command.program.display();
                CaseError::Failed(format!("cannot start the {name} ({program}): {error}"))
            })?;
        Ok(Self { id, name, child, control: None, is_gone: false })
    }

    /// Returns the error for an agent whose process has ended, if it has.
    fn check_gone(&mut self) -> Option<CaseError> {
        let status = self.child.try_wait().ok().flatten()?;
        self.is_gone = true;
        if ended_with_the_terminal(status) {
            return Some(CaseError::Interrupted);
        }
        Some(CaseError::Failed(format!("the {}'s process ended before its case did ({status})", self.name)))
    }
}

/// Whether a terminal's Ctrl-C ended a process that starts in a process group of its own. It reaches such a process
/// only between its start and its change of group; this process gets the signal, too, but may notice it later.
pub(crate) fn ended_with_the_terminal(status: ExitStatus) -> bool {
    status.signal() == Some(Signal::INT.as_raw())
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only when the child has ended.
        if !self.is_gone {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// How long a process may take to start and connect. This limit catches hangs; a slow, busy machine must stay within
/// it.
pub(crate) const HELLO_WAIT: Duration = Duration::from_secs(20);

/// How long a process may take to end after its connection was closed: a crash may write a core file.
const END_WAIT: Duration = Duration::from_secs(5);

/// How often a coordinator that waits for connections checks the processes.
const ACCEPT_TICK: Duration = Duration::from_millis(20);

/// A thread that reads waits for as long as the connection lasts.
const FOREVER: Duration = Duration::from_secs(1 << 32);

fn unknown(id: EndId) -> CaseError {
    CaseError::Failed(format!("no process is {} {}", id.role.name(), id.index + 1))
}

fn read_messages(id: EndId, mut reader: Connection, listener: Listener) -> io::Result<()> {
    let read = move || {
        loop {
            let message = reader.receive(FOREVER);
            let is_last = message.is_err();
            if !listener(id, message) || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name(format!("control {}{}", id.role.name(), id.index)).spawn(read).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a publisher that runs this script instead of an agent, and returns how that failed.
    fn failure(script: &str) -> CaseError {
        let command = AgentCommand { program: "sh".into(), arguments: vec!["-c".into(), script.into()] };
        let ends = Ends::PAIR;
        let id = EndId { role: Role::Publisher, index: 0 };
        let listener: Listener = Arc::new(|_, _| true);
        let started = Processes::start(&command, &[id], ends, &AtomicBool::new(false), &listener);
        started.err().unwrap()
    }

    #[test]
    fn a_process_that_ctrl_c_ends_before_it_has_its_own_group_interrupts_the_run() {
        // A shell starts programs in the background, such as these tests, with the signal ignored.
        let script = "exec env --default-signal=INT sh -c 'kill -INT $$'";
        assert!(matches!(failure(script), CaseError::Interrupted));
    }

    #[test]
    fn the_end_of_a_process_is_said_with_its_status() {
        let CaseError::Failed(killed) = failure("kill -KILL $$") else { panic!() };
        assert_eq!(killed, "the publisher's process ended before its case did (signal: 9 (SIGKILL))");
    }
}
