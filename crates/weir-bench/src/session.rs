//! The processes of one case, from start to end.
//!
//! All are children of the coordinator and run this same program. They never outlive the session:
//! dropping it kills them, and an agent without a coordinator ends by itself.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use weir_measure::{Connection, ControlError, Nonce};

use crate::case::{CaseError, Ends};
use crate::control::{self, AgentFault, FromAgent, Role, TOKEN_VARIABLE, ToAgent};
use crate::introductions::Introductions;

/// How to start an agent: `program arguments... --role ROLE --control ADDRESS --index N`.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program, usually this one.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// One of the ends of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndId {
    /// Which end it is.
    pub(crate) role: Role,
    /// Which of the ends of its kind, from 0.
    pub(crate) index: u32,
}

/// The running agents of a case.
pub(crate) struct Session<'a> {
    /// Publishers, then subscribers.
    agents: Vec<Agent>,
    /// How many of them are publishers.
    publishers: u32,
    inbox: Receiver<Received>,
    interrupted: &'a AtomicBool,
}

struct Agent {
    id: EndId,
    /// What messages call it.
    name: String,
    child: Child,
    control: Option<Connection>,
    messages: VecDeque<FromAgent>,
    is_gone: bool,
}

struct Received {
    id: EndId,
    message: Result<FromAgent, ControlError>,
}

impl<'a> Session<'a> {
    /// Starts all processes and waits until they have introduced themselves.
    pub(crate) fn start(
        command: &AgentCommand,
        ends: Ends,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, CaseError> {
        let trouble =
            |error: io::Error| CaseError::Failed(format!("cannot open the control channel: {error}"));
        let introductions = Introductions::listen().map_err(trouble)?;
        let address = introductions.address().map_err(trouble)?;
        let token = Nonce::fresh().map_err(|error| CaseError::Failed(error.to_string()))?.text();
        let (sender, inbox) = mpsc::channel();
        let mut session = Self { agents: Vec::new(), publishers: ends.publishers, inbox, interrupted };
        for (role, count) in [(Role::Publisher, ends.publishers), (Role::Subscriber, ends.subscribers)] {
            for index in 0..count {
                let id = EndId { role, index };
                let name = if count == 1 {
                    role.name().to_owned()
                } else {
                    format!("{} {} of {count}", role.name(), index + 1)
                };
                session.agents.push(Agent::start(command, id, name, address, &token)?);
            }
        }
        session.accept(introductions, &token, &sender).map(|()| session)
    }

    /// All ends, publishers first.
    pub(crate) fn ends(&self) -> Vec<EndId> {
        self.agents.iter().map(|agent| agent.id).collect()
    }

    /// The ends of one kind.
    pub(crate) fn ends_of(&self, role: Role) -> Vec<EndId> {
        self.agents.iter().map(|agent| agent.id).filter(|id| id.role == role).collect()
    }

    /// What messages call an end.
    pub(crate) fn name(&mut self, id: EndId) -> String {
        self.agent(id).name.clone()
    }

    /// Sends a message to one agent.
    pub(crate) fn send(&mut self, id: EndId, message: &ToAgent) -> Result<(), CaseError> {
        let agent = self.agent(id);
        let Some(control) = agent.control.as_mut() else {
            return Err(CaseError::Failed(format!("the {} has not connected", agent.name)));
        };
        let sent = control.send(message);
        // The reason why the agent ended says more than the failed write.
        sent.map_err(|error| {
            let failed = CaseError::Failed(format!("the {}: {error}", self.name(id)));
            self.check_gone(id).unwrap_or(failed)
        })
    }

    /// Waits for the next message of one agent. A failure of the other one ends the wait as well.
    /// `on_tick` is called now and then with the time waited.
    pub(crate) fn wait_for(
        &mut self,
        id: EndId,
        what: &str,
        timeout: Duration,
        on_tick: &mut dyn FnMut(Duration),
    ) -> Result<FromAgent, CaseError> {
        let start = Instant::now();
        loop {
            if let Some(message) = self.agent(id).messages.pop_front() {
                return Ok(message);
            }
            if self.interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(CaseError::Failed(format!("the {} {what} within {timeout:?}", self.name(id))));
            }
            on_tick(waited);
            match self.inbox.recv_timeout(TICK.min(timeout - waited)) {
                Ok(received) => self.take(received)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(id)),
            }
        }
    }

    /// Closes all agents and waits until they have ended.
    pub(crate) fn close(mut self) {
        for id in self.ends() {
            // An agent that has ended needs no message.
            let _ = self.send(id, &ToAgent::Close);
        }
        let deadline = Instant::now() + EXIT_WAIT;
        while !self.agents.iter().all(|agent| agent.is_gone) {
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Received { id, message: Err(_) }) => self.agent(id).is_gone = true,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, received: Received) -> Result<(), CaseError> {
        let Received { id, message } = received;
        match message {
            Ok(FromAgent::Failed { fault: AgentFault::NotSupported, reason }) => {
                Err(CaseError::NotSupported(reason))
            }
            Ok(FromAgent::Failed { fault: AgentFault::Trouble, reason }) => {
                Err(CaseError::Failed(format!("{}: {reason}", self.name(id))))
            }
            Ok(message) => {
                self.agent(id).messages.push_back(message);
                Ok(())
            }
            Err(ControlError::Closed | ControlError::Io(_)) => Err(self.died(id)),
            Err(error) => Err(CaseError::Failed(format!("{}: {error}", self.name(id)))),
        }
    }

    /// Accepts connections until all agents have introduced themselves.
    fn accept(
        &mut self,
        mut introductions: Introductions,
        token: &str,
        sender: &Sender<Received>,
    ) -> Result<(), CaseError> {
        let start = Instant::now();
        while let Some(missing) =
            self.agents.iter().find(|agent| agent.control.is_none()).map(|agent| agent.id)
        {
            if self.interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            if let Some(gone) = self.check_gone(missing) {
                return Err(gone);
            }
            if start.elapsed() >= HELLO_WAIT {
                let text = format!("the {} did not connect within {HELLO_WAIT:?}", self.name(missing));
                return Err(CaseError::Failed(text));
            }
            match introductions.next(ACCEPT_TICK) {
                Ok(None) => {}
                Ok(Some((message, control))) => self.introduce(message, control, token, sender)?,
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
        sender: &Sender<Received>,
    ) -> Result<(), CaseError> {
        let FromAgent::Hello { schema, version, role, index, token: shown } = message else { return Ok(()) };
        let Ok(writer) = reader.try_clone() else { return Ok(()) };
        let id = EndId { role, index };
        let is_expected = |agent: &Agent| agent.id == id && agent.control.is_none();
        if shown != token || !self.agents.iter().any(is_expected) {
            return Ok(());
        }
        control::check_version(schema, &version).map_err(|error| CaseError::Failed(error.to_string()))?;
        read_messages(id, reader, sender.clone())
            .map_err(|error| CaseError::Failed(format!("cannot listen to the {}: {error}", self.name(id))))?;
        self.agent(id).control = Some(writer);
        Ok(())
    }

    fn agent(&mut self, id: EndId) -> &mut Agent {
        let before = if id.role == Role::Publisher { 0 } else { self.publishers };
        &mut self.agents[(before + id.index) as usize]
    }

    /// The error for an agent whose process has ended, if it has.
    fn check_gone(&mut self, id: EndId) -> Option<CaseError> {
        let agent = self.agent(id);
        let status = agent.child.try_wait().ok().flatten()?;
        agent.is_gone = true;
        let name = &agent.name;
        Some(CaseError::Failed(format!("the {name}'s process ended before its case did ({status})")))
    }

    /// The error for an agent whose connection was closed. Its process ends in the next moment, if
    /// it has not yet.
    fn died(&mut self, id: EndId) -> CaseError {
        let deadline = Instant::now() + Duration::from_millis(200);
        loop {
            if let Some(gone) = self.check_gone(id) {
                return gone;
            }
            if Instant::now() >= deadline {
                return CaseError::Failed(format!("the {} closed its control channel", self.name(id)));
            }
            thread::sleep(Duration::from_millis(1));
        }
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
        let child = Command::new(&command.program)
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
        Ok(Self { id, name, child, control: None, messages: VecDeque::new(), is_gone: false })
    }
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

/// How long a process may take to start and connect. This limit and those below catch hangs; a
/// slow, busy machine must stay within them.
const HELLO_WAIT: Duration = Duration::from_secs(20);

/// How long an agent may take to end: long enough for an engine to leave the network.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// How often a waiting coordinator wakes up: too seldom to disturb the measurement.
const TICK: Duration = Duration::from_millis(100);

/// How often a coordinator that waits for connections checks the processes.
const ACCEPT_TICK: Duration = Duration::from_millis(20);

/// A thread that reads waits for as long as the connection lasts.
const FOREVER: Duration = Duration::from_secs(1 << 32);

fn read_messages(id: EndId, mut reader: Connection, sender: Sender<Received>) -> io::Result<()> {
    let read = move || {
        loop {
            let message = reader.receive(FOREVER);
            let is_last = message.is_err();
            if sender.send(Received { id, message }).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name(format!("control {}{}", id.role.name(), id.index)).spawn(read).map(drop)
}
