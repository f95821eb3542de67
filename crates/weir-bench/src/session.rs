//! The processes of one case, from start to end, on this host and on others.
//!
//! They never outlive the session: dropping it kills those of this host, and ends those of other hosts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use weir_measure::ControlError;

use crate::case::{CaseError, CaseSpec, Ends};
use crate::control::{AgentFault, FromAgent, Role, ToAgent};
use crate::hosts::{Booking, Hosts};
use crate::keep_awake::KeepAwake;
use crate::live::LiveEnd;
use crate::processes::{AgentCommand, EndId, HELLO_WAIT, Listener, Processes};

/// Called while a case is measured.
pub(crate) type OnTick<'a> = &'a mut dyn FnMut(Duration, &[LiveEnd]);

/// The running agents of a case.
pub(crate) struct Session<'a> {
    ends: Ends,
    /// Publishers, then subscribers.
    agents: BTreeMap<EndId, Agent>,
    local: Option<Processes>,
    /// Those of other hosts.
    bookings: Vec<Booking>,
    inbox: Receiver<Heard>,
    /// The last live reports, one for each end that has sent any.
    live: Vec<LiveEnd>,
    /// Keeps the processors of this host out of idle states, if it has ends and the case asks for it.
    awake: Option<KeepAwake>,
    /// How other hosts do that, by host.
    awake_elsewhere: Vec<(String, String)>,
    interrupted: &'a AtomicBool,
}

#[derive(Default)]
struct Agent {
    messages: VecDeque<FromAgent>,
    is_gone: bool,
}

/// What a session receives.
#[derive(Debug)]
pub(crate) enum Heard {
    /// From an agent of this host.
    Local(EndId, Result<FromAgent, ControlError>),
    /// From an agent of another host.
    Said(EndId, FromAgent),
    /// An agent of another host has ended; why.
    Gone(EndId, String),
    /// The agents of another host have started.
    Begun {
        /// Its name.
        host: String,
        /// How its processors are kept out of idle states; `None`: they are not.
        awake: Option<String>,
    },
    /// The agents of another host cannot start, or the host is gone.
    Lost(String),
}

impl<'a> Session<'a> {
    /// Starts all processes and waits until they have introduced themselves.
    pub(crate) fn start(
        command: &AgentCommand,
        case: &CaseSpec,
        hosts: Option<&Hosts>,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, CaseError> {
        let (sender, inbox) = mpsc::channel();
        let (ends, keep_awake) = (case.ends, case.method.keep_awake);
        let ids = EndId::of_case(case);
        let agents = ids.iter().map(|id| (*id, Agent::default())).collect();
        let (bookings, awake_elsewhere, live) = (Vec::new(), Vec::new(), Vec::new());
        let (local, awake) = (None, None);
        let mut session =
            Self { ends, agents, local, bookings, inbox, live, awake, awake_elsewhere, interrupted };
        let mut here = ids;
        if let Some(hosts) = hosts {
            session.bookings = hosts.book(&here, case, &sender, interrupted)?;
            here.retain(|id| session.bookings.iter().all(|booking| !booking.has(*id)));
        }
        if !here.is_empty() {
            session.awake = keep_awake.then(KeepAwake::start).transpose().map_err(cannot_keep_awake)?;
            let listener: Listener = Arc::new(move |id, said| sender.send(Heard::Local(id, said)).is_ok());
            session.local = Some(Processes::start(command, &here, ends, interrupted, &listener)?);
        }
        session.await_hosts().map(|()| session)
    }

    /// How the processors are kept out of idle states, on all hosts; `None`: they are not.
    pub(crate) fn awake(&self) -> Option<String> {
        let here = self.awake.as_ref().map(KeepAwake::description);
        let elsewhere = self.awake_elsewhere.iter().map(|(host, how)| format!("{host}: {how}"));
        let all: Vec<String> = here.into_iter().chain(elsewhere).collect();
        (!all.is_empty()).then(|| all.join(" | "))
    }

    /// All ends, publishers first.
    pub(crate) fn ends(&self) -> Vec<EndId> {
        self.agents.keys().copied().collect()
    }

    /// The ends of one kind.
    pub(crate) fn ends_of(&self, role: Role) -> Vec<EndId> {
        self.agents.keys().copied().filter(|id| id.role == role).collect()
    }

    /// What messages call an end.
    pub(crate) fn name(&self, id: EndId) -> String {
        id.name(self.ends)
    }

    /// Sends a message to one agent.
    pub(crate) fn send(&mut self, id: EndId, message: &ToAgent) -> Result<(), CaseError> {
        if let Some(booking) = self.bookings.iter().find(|booking| booking.has(id)) {
            return booking.tell(id, message);
        }
        self.local.as_mut().map_or(Ok(()), |local| local.send(id, message))
    }

    /// Waits for the next message of one agent. A failure of the other one ends the wait as well.
    /// `on_tick` is called now and then with the time waited, and with what the ends have measured so far.
    pub(crate) fn wait_for(
        &mut self,
        id: EndId,
        what: &str,
        timeout: Duration,
        on_tick: OnTick<'_>,
    ) -> Result<FromAgent, CaseError> {
        let start = Instant::now();
        loop {
            if let Some(message) = self.agents.get_mut(&id).and_then(|agent| agent.messages.pop_front()) {
                return Ok(message);
            }
            if self.interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(CaseError::Failed(format!("the {} {what} within {timeout:?}", self.name(id))));
            }
            on_tick(waited, &self.live);
            match self.inbox.recv_timeout(TICK.min(timeout - waited)) {
                Ok(heard) => _ = self.take(heard)?,
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
        while !self.agents.values().all(|agent| agent.is_gone) {
            let left = deadline.saturating_duration_since(Instant::now());
            let id = match self.inbox.recv_timeout(left) {
                Ok(Heard::Local(id, Err(_)) | Heard::Gone(id, _)) => id,
                Ok(Heard::Lost(_)) | Err(_) => return,
                Ok(_) => continue,
            };
            if let Some(local) = self.local.as_mut() {
                local.leaves(id);
            }
            if let Some(agent) = self.agents.get_mut(&id) {
                agent.is_gone = true;
            }
        }
    }

    /// Waits until all other hosts have started their agents.
    fn await_hosts(&mut self) -> Result<(), CaseError> {
        let deadline = Instant::now() + HELLO_WAIT * 2;
        let mut missing = self.bookings.len();
        while missing > 0 {
            if self.interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            match self.inbox.recv_timeout(TICK) {
                Ok(heard) => missing -= usize::from(self.take(heard)?),
                Err(_) if Instant::now() < deadline => {}
                Err(_) => {
                    let names: Vec<&str> = self.bookings.iter().map(Booking::host).collect();
                    let text = format!("the processes on {} did not start in time", names.join(", "));
                    return Err(CaseError::Failed(text));
                }
            }
        }
        Ok(())
    }

    /// Handles what was received; returns whether it is that a host has started its agents.
    fn take(&mut self, heard: Heard) -> Result<bool, CaseError> {
        let (id, message) = match heard {
            Heard::Begun { host, awake } => {
                self.awake_elsewhere.extend(awake.map(|awake| (host, awake)));
                return Ok(true);
            }
            Heard::Lost(reason) => return Err(CaseError::Failed(reason)),
            Heard::Gone(_, reason) => return Err(CaseError::Failed(reason)),
            Heard::Local(id, Err(ControlError::Closed | ControlError::Io(_))) => return Err(self.died(id)),
            Heard::Local(id, Err(error)) => {
                return Err(CaseError::Failed(format!("{}: {error}", self.name(id))));
            }
            Heard::Local(id, Ok(message)) | Heard::Said(id, message) => (id, message),
        };
        match message {
            FromAgent::Failed { fault: AgentFault::NotSupported, reason } => {
                Err(CaseError::NotSupported(reason))
            }
            FromAgent::Failed { fault: AgentFault::Trouble, reason } => {
                Err(CaseError::Failed(format!("{}: {reason}", self.name(id))))
            }
            FromAgent::Live { report } => {
                let (role, index) = (id.role, id.index);
                match self.live.iter_mut().find(|end| (end.role, end.index) == (role, index)) {
                    Some(end) => end.report = report,
                    None => self.live.push(LiveEnd { role, index, report }),
                }
                Ok(false)
            }
            message => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.messages.push_back(message);
                }
                Ok(false)
            }
        }
    }

    fn died(&mut self, id: EndId) -> CaseError {
        let name = self.name(id);
        let gone = || CaseError::Failed(format!("the {name} is gone"));
        self.local.as_mut().map_or_else(gone, |local| local.died(id))
    }
}

/// The error of processors that cannot be kept out of idle states.
pub(crate) fn cannot_keep_awake(error: std::io::Error) -> CaseError {
    CaseError::Failed(format!("cannot keep the processors awake: {error}; run with --keep-awake=no"))
}

/// How long an agent may take to end: long enough for an engine to leave the network.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// How often a waiting coordinator wakes up: too seldom to disturb the measurement.
const TICK: Duration = Duration::from_millis(100);
