//! The two processes of one case, from their start to their end.
//!
//! Both are children of the coordinator and run this same program. They never outlive the session:
//! when it is dropped, whatever is left of them is killed, and an agent whose coordinator is gone
//! ends by itself.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use thiserror::Error;

use crate::control::{
    self, AgentFault, ControlError, FromAgent, MessageReader, Role, TOKEN_VARIABLE, ToAgent,
};

/// How to start an agent: `program arguments... --role ROLE --control ADDRESS`.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    /// The program, usually this one.
    pub program: PathBuf,
    /// What it needs to be told to become an agent.
    pub arguments: Vec<OsString>,
}

/// Why a session ended before its case did.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    /// The user stopped the run.
    #[error("interrupted")]
    Interrupted,
    /// The engine said at run time that it cannot do this.
    #[error("{0}")]
    NotSupported(String),
    /// A process, a peer or the host.
    #[error("{0}")]
    Trouble(String),
}

/// Two running agents.
pub(crate) struct Session<'a> {
    agents: [Agent; 2],
    inbox: Receiver<Received>,
    interrupted: &'a AtomicBool,
}

struct Agent {
    role: Role,
    child: Child,
    stream: Option<TcpStream>,
    messages: VecDeque<FromAgent>,
    is_gone: bool,
}

struct Received {
    role: Role,
    message: Result<FromAgent, ControlError>,
}

impl<'a> Session<'a> {
    /// Starts both processes and waits until they have introduced themselves.
    pub(crate) fn start(command: &AgentCommand, interrupted: &'a AtomicBool) -> Result<Self, SessionError> {
        let trouble =
            |error: io::Error| SessionError::Trouble(format!("cannot open the control channel: {error}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(trouble)?;
        let address = listener.local_addr().map_err(trouble)?;
        listener.set_nonblocking(true).map_err(trouble)?;
        let token = format!("{:032x}", fastrand::u128(..));
        let (sender, inbox) = mpsc::channel();
        let agents = [
            Agent::start(command, Role::Publisher, address, &token)?,
            Agent::start(command, Role::Subscriber, address, &token)?,
        ];
        let mut session = Self { agents, inbox, interrupted };
        session.accept(&listener, &token, &sender).map(|()| session)
    }

    /// Sends a message to one agent.
    pub(crate) fn send(&mut self, role: Role, message: &ToAgent) -> Result<(), SessionError> {
        let agent = self.agent(role);
        let Some(stream) = agent.stream.as_mut() else {
            return Err(SessionError::Trouble(format!("the {} has not connected", role.name())));
        };
        let sent = control::send(stream, message);
        // The reason why it is gone is more telling than that writing to it failed.
        sent.map_err(|error| {
            let failed = || SessionError::Trouble(format!("the {}: {error}", role.name()));
            self.check_gone(role).unwrap_or_else(failed)
        })
    }

    /// Waits for the next message of one agent. A failure of the other one ends the wait as well.
    /// `on_tick` is called now and then with the time waited.
    pub(crate) fn wait_for(
        &mut self,
        role: Role,
        what: &str,
        timeout: Duration,
        on_tick: &mut dyn FnMut(Duration),
    ) -> Result<FromAgent, SessionError> {
        let start = Instant::now();
        loop {
            if let Some(message) = self.agent(role).messages.pop_front() {
                return Ok(message);
            }
            if self.interrupted.load(Ordering::Acquire) {
                return Err(SessionError::Interrupted);
            }
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(SessionError::Trouble(format!("the {} {what} within {timeout:?}", role.name())));
            }
            on_tick(waited);
            match self.inbox.recv_timeout(TICK.min(timeout - waited)) {
                Ok(received) => self.take(received)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.died(role)),
            }
        }
    }

    /// Tells both agents to leave and waits until they have.
    pub(crate) fn close(mut self) {
        for role in [Role::Publisher, Role::Subscriber] {
            // One that is gone already needs not be told.
            let _ = self.send(role, &ToAgent::Close);
        }
        let deadline = Instant::now() + EXIT_WAIT;
        while !self.agents.iter().all(|agent| agent.is_gone) {
            match self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Received { role, message: Err(_) }) => self.agent(role).is_gone = true,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    fn take(&mut self, received: Received) -> Result<(), SessionError> {
        let Received { role, message } = received;
        match message {
            Ok(FromAgent::Failed { fault: AgentFault::NotSupported, reason }) => {
                Err(SessionError::NotSupported(reason))
            }
            Ok(FromAgent::Failed { fault: AgentFault::Trouble, reason }) => {
                Err(SessionError::Trouble(format!("{}: {reason}", role.name())))
            }
            Ok(message) => {
                self.agent(role).messages.push_back(message);
                Ok(())
            }
            Err(ControlError::Closed | ControlError::Io(_)) => Err(self.died(role)),
            Err(error) => Err(SessionError::Trouble(format!("{}: {error}", role.name()))),
        }
    }

    /// Accepts connections until both agents have introduced themselves.
    fn accept(
        &mut self,
        listener: &TcpListener,
        token: &str,
        sender: &Sender<Received>,
    ) -> Result<(), SessionError> {
        let start = Instant::now();
        while let Some(missing) =
            self.agents.iter().find(|agent| agent.stream.is_none()).map(|agent| agent.role)
        {
            if self.interrupted.load(Ordering::Acquire) {
                return Err(SessionError::Interrupted);
            }
            if let Some(gone) = self.check_gone(missing) {
                return Err(gone);
            }
            if start.elapsed() >= HELLO_WAIT {
                let text = format!("the {} did not connect within {HELLO_WAIT:?}", missing.name());
                return Err(SessionError::Trouble(text));
            }
            match listener.accept() {
                Ok((stream, _)) => self.introduce(stream, token, sender)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_connection(listener),
                Err(error) => {
                    return Err(SessionError::Trouble(format!("the control channel failed: {error}")));
                }
            }
        }
        Ok(())
    }

    /// Reads the first message of a new connection. A stranger is shown out; an agent gets a thread
    /// that reads its messages.
    fn introduce(
        &mut self,
        stream: TcpStream,
        token: &str,
        sender: &Sender<Received>,
    ) -> Result<(), SessionError> {
        let prepare = || -> io::Result<TcpStream> {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(INTRODUCTION_WAIT))?;
            stream.try_clone()
        };
        let Ok(readable) = prepare() else { return Ok(()) };
        let mut reader = MessageReader::new(readable);
        let Ok(FromAgent::Hello { schema, version, role, token: shown }) = reader.receive() else {
            return Ok(());
        };
        if shown != token || self.agent(role).stream.is_some() {
            return Ok(());
        }
        control::check_version(schema, &version).map_err(|error| SessionError::Trouble(error.to_string()))?;
        let started =
            stream.set_read_timeout(None).and_then(|()| read_messages(role, reader, sender.clone()));
        started.map_err(|error| {
            SessionError::Trouble(format!("cannot listen to the {}: {error}", role.name()))
        })?;
        self.agent(role).stream = Some(stream);
        Ok(())
    }

    fn agent(&mut self, role: Role) -> &mut Agent {
        &mut self.agents[usize::from(role == Role::Subscriber)]
    }

    /// The error for an agent whose process has ended, if it has.
    fn check_gone(&mut self, role: Role) -> Option<SessionError> {
        let status = self.agent(role).child.try_wait().ok().flatten()?;
        self.agent(role).is_gone = true;
        Some(SessionError::Trouble(format!(
            "the {}'s process ended before its case did ({status})",
            role.name()
        )))
    }

    /// The error for an agent whose connection has ended. Its process does so in the next moment,
    /// if it has not yet.
    fn died(&mut self, role: Role) -> SessionError {
        let deadline = Instant::now() + Duration::from_millis(200);
        loop {
            if let Some(gone) = self.check_gone(role) {
                return gone;
            }
            if Instant::now() >= deadline {
                return SessionError::Trouble(format!("the {} closed its control channel", role.name()));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Agent {
    fn start(
        command: &AgentCommand,
        role: Role,
        control: SocketAddr,
        token: &str,
    ) -> Result<Self, SessionError> {
        let child = Command::new(&command.program)
            .args(&command.arguments)
            .args(["--role", role.name(), "--control", &control.to_string()])
            .env(TOKEN_VARIABLE, token)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            // A terminal's Ctrl-C is for the coordinator, which then ends its agents.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let program = command.program.display();
                SessionError::Trouble(format!("cannot start the {} ({program}): {error}", role.name()))
            })?;
        Ok(Self { role, child, stream: None, messages: VecDeque::new(), is_gone: false })
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both fail only when the child is gone already.
        if !self.is_gone {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// How long a process may take to start and connect.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// How long somebody who connected may take to introduce itself.
const INTRODUCTION_WAIT: Duration = Duration::from_secs(1);

/// How long an agent may take to leave: long enough for an engine to say goodbye on the network.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// How often a waiting coordinator looks up: so seldom that it does not disturb what is measured.
const TICK: Duration = Duration::from_millis(100);

fn wait_for_connection(listener: &TcpListener) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // Whatever poll says, the caller looks again.
    let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout));
}

fn read_messages(
    role: Role,
    mut reader: MessageReader<TcpStream>,
    sender: Sender<Received>,
) -> io::Result<()> {
    let read = move || {
        loop {
            let message = reader.receive();
            let is_last = message.is_err();
            if sender.send(Received { role, message }).is_err() || is_last {
                return;
            }
        }
    };
    thread::Builder::new().name(format!("control {}", role.name())).spawn(read).map(drop)
}
