//! `weir host`: runs the ends of cases on its host, for a coordinator on another one.
//!
//! Standard input and output are the channel. When the input ends, the coordinator is gone, and this program ends all
//! that it has started.

use std::env;
use std::fs;
use std::io::{self, BufReader, Stdout};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use weir_measure::{ControlError, clock};
use weir_results::Environment;

use super::clocks;
use super::link::{read_line, write_line};
use super::protocol::{FromHost, HostFacts, HostInterface, IDLE_MAX, READY, ToHost};
use crate::case::{CaseError, Ends};
use crate::control::{SCHEMA, ToAgent, VERSION};
use crate::host;
use crate::idle_check;
use crate::keep_awake::KeepAwake;
use crate::processes::{AgentCommand, EndId, Listener, Processes};
use crate::session::cannot_keep_awake;

/// Serves a coordinator until it is gone.
///
/// # Errors
/// When standard output is closed, or no thread can be started.
pub fn serve(agent: &AgentCommand) -> io::Result<()> {
    let output = Arc::new(Mutex::new(io::stdout()));
    let is_over = Arc::new(AtomicBool::new(false));
    let messages = read_messages(Arc::clone(&is_over))?;
    {
        let mut output = output.lock();
        io::Write::write_all(&mut *output, format!("{READY}\n").as_bytes())?;
        let facts = Box::new(facts());
        write_line(&mut *output, &FromHost::Hello { schema: SCHEMA, version: VERSION.to_owned(), facts })?;
    }
    let mut host = Host { agent, output, is_over, running: None, clock: None };
    let mut patience = Patience::default();
    loop {
        match messages.recv_timeout(patience.limit()) {
            Ok(message) => {
                patience.heed(&message);
                host.handle(message)?;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// What the coordinator has to know of this host.
pub(super) fn facts() -> HostFacts {
    let interfaces = weir_udp::interfaces().unwrap_or_default();
    let interfaces = interfaces.into_iter().filter(|interface| interface.is_up);
    HostFacts {
        interfaces: interfaces
            .map(|interface| HostInterface {
                prefix: u32::from(interface.netmask).leading_ones(),
                name: interface.name,
                address: interface.address,
                is_loopback: interface.is_loopback,
            })
            .collect(),
        cpus: weir_udp::affinity::allowed_cpus().unwrap_or_default(),
        clock: weir_baseline::clock_name(),
        network: network(),
        reached: env::var("SSH_CONNECTION").ok().and_then(|text| reached(&text)),
    }
}

/// Names the network namespace of this process; empty if the kernel does not.
fn network() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/net");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        _ => String::new(),
    }
}

/// The addresses in `SSH_CONNECTION`: client, port, server, port.
fn reached(text: &str) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let mut words = text.split_whitespace();
    let client = words.next()?.parse().ok()?;
    let server = words.nth(1)?.parse().ok()?;
    Some((server, client))
}

/// How long a host waits for the next message.
#[derive(Debug, Default)]
struct Patience {
    /// The case that began last, until it ends.
    session: Option<u32>,
    /// How long it runs; nothing while no case does.
    case: Duration,
}

impl Patience {
    fn limit(&self) -> Duration {
        IDLE_MAX + self.case
    }

    /// Heeds a message. A case is silent long after its start, with other messages in between.
    fn heed(&mut self, message: &ToHost) {
        match message {
            ToHost::Begin { session, .. } => *self = Self { session: Some(*session), case: Duration::ZERO },
            ToHost::Tell { session, message: ToAgent::Case { case, .. }, .. }
                if self.session == Some(*session) =>
            {
                self.case = self.case.max(case.warmup + case.duration + case.allowance());
            }
            ToHost::End { session } if self.session == Some(*session) => *self = Self::default(),
            _ => {}
        }
    }
}

struct Host<'a> {
    agent: &'a AgentCommand,
    output: Arc<Mutex<Stdout>>,
    is_over: Arc<AtomicBool>,
    running: Option<Running>,
    /// Answers questions for the time.
    clock: Option<clocks::ClockServer>,
}

/// The processes of a case.
struct Running {
    session: u32,
    processes: Arc<Mutex<Option<Processes>>>,
    /// Until the case ends.
    #[expect(dead_code, reason = "held, not read")]
    awake: Option<KeepAwake>,
}

impl Host<'_> {
    fn handle(&mut self, message: ToHost) -> io::Result<()> {
        match message {
            ToHost::Describe { interface } => {
                let environment =
                    Environment { wake_ups: idle_check::wake_ups(), ..host::environment(&interface) };
                let environment = Box::new(environment);
                self.answer(&FromHost::Environment { environment })?;
            }
            ToHost::Clock => self.answer(&FromHost::Clock { now_ns: clock::now_ns() })?,
            ToHost::AnswerClock { address } => {
                let answer = match clocks::ClockServer::start(address) {
                    Ok(server) => {
                        let address = server.address();
                        self.clock = Some(server);
                        FromHost::AnswersClock { address }
                    }
                    Err(error) => FromHost::Refused { reason: format!("no socket at {address}: {error}") },
                };
                self.answer(&answer)?;
            }
            ToHost::CompareClock { from, to } => self.compare(from, to)?,
            ToHost::Begin { session, ids, ends, keep_awake } => {
                self.begin(session, &ids, ends, keep_awake)?
            }
            ToHost::Tell { session, id, message } => self.tell(session, id, &message)?,
            ToHost::End { session } => {
                if self.running.as_ref().is_some_and(|running| running.session == session) {
                    self.end();
                }
            }
        }
        Ok(())
    }

    fn answer(&self, message: &FromHost) -> io::Result<()> {
        write_line(&mut *self.output.lock(), message)
    }

    fn compare(&self, from: Ipv4Addr, to: SocketAddrV4) -> io::Result<()> {
        let answer = match clocks::compare(from, to) {
            Ok(offset) => FromHost::Compared { offset },
            Err(error) => FromHost::Refused { reason: format!("no socket at {from}: {error}") },
        };
        self.answer(&answer)
    }

    /// Starts the processes of a case, and ends those of the one before.
    fn begin(&mut self, session: u32, ids: &[EndId], ends: Ends, keep_awake: bool) -> io::Result<()> {
        self.end();
        let awake = match keep_awake.then(KeepAwake::start).transpose() {
            Ok(awake) => awake,
            Err(error) => {
                let reason = cannot_keep_awake(error).to_string();
                return self.answer(&FromHost::NotBegun { session, reason });
            }
        };
        let processes = Arc::new(Mutex::new(None));
        let listener = self.listener(session, &processes);
        // Agents that end early wait for the lock in the listener.
        let mut slot = processes.lock();
        match Processes::start(self.agent, ids, ends, &self.is_over, &listener) {
            Ok(started) => {
                *slot = Some(started);
                drop(slot);
                let how = awake.as_ref().map(KeepAwake::description);
                self.running = Some(Running { session, processes, awake });
                self.answer(&FromHost::Begun { session, awake: how })
            }
            Err(error) => {
                drop(slot);
                self.answer(&FromHost::NotBegun { session, reason: error.to_string() })
            }
        }
    }

    /// Passes what agents say on to the coordinator.
    fn listener(&self, session: u32, processes: &Arc<Mutex<Option<Processes>>>) -> Listener {
        let (output, processes) = (Arc::clone(&self.output), Arc::downgrade(processes));
        Arc::new(move |id, said| {
            let message = match said {
                Ok(message) => FromHost::Said { session, id, message },
                Err(ControlError::Closed | ControlError::Io(_)) => {
                    let Some(processes) = processes.upgrade() else { return false };
                    let Some(error) = processes.lock().as_mut().map(|running| running.died(id)) else {
                        return false;
                    };
                    FromHost::Gone { session, id, reason: error.to_string() }
                }
                Err(error) => FromHost::Gone { session, id, reason: error.to_string() },
            };
            write_line(&mut *output.lock(), &message).is_ok()
        })
    }

    fn tell(&self, session: u32, id: EndId, message: &ToAgent) -> io::Result<()> {
        let Some(running) = self.running.as_ref().filter(|running| running.session == session) else {
            return Ok(());
        };
        let sent = running.processes.lock().as_mut().map_or(Ok(()), |processes| processes.send(id, message));
        if let Err(CaseError::Failed(reason)) = sent {
            self.answer(&FromHost::Gone { session, id, reason })?;
        }
        Ok(())
    }

    /// Ends the processes that are left.
    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            // Not with the lock: threads that report the ends wait for it.
            let processes = running.processes.lock().take();
            drop(processes);
        }
    }
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads messages on a thread until the input ends, which ends the wait for agents, too.
fn read_messages(is_over: Arc<AtomicBool>) -> io::Result<mpsc::Receiver<ToHost>> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut input = BufReader::new(io::stdin());
        while let Ok(Some(line)) = read_line(&mut input) {
            // What this version does not know ends the channel.
            let Ok(message) = serde_json::from_slice(&line) else { break };
            if sender.send(message).is_err() {
                break;
            }
        }
        is_over.store(true, Ordering::Release);
    };
    thread::Builder::new().name("coordinator".to_owned()).spawn(read)?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::CaseSpec;
    use crate::control::Role;

    #[test]
    fn the_addresses_of_a_connection_are_read() {
        let (server, client) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(reached("10.0.0.1 40000 10.0.0.2 22"), Some((server, client)));
        assert_eq!(reached("fe80::1 40000 fe80::2 22"), None);
        assert_eq!(reached(""), None);
    }

    #[test]
    fn the_patience_with_a_long_case_lasts_until_it_ends() {
        let hour = Duration::from_secs(3600);
        let id = EndId { role: Role::Publisher, index: 0 };
        let tell = |message| ToHost::Tell { session: 7, id, message };
        let begin = |session| ToHost::Begin { session, ids: vec![id], ends: Ends::PAIR, keep_awake: false };
        let case = CaseSpec { duration: hour, ..CaseSpec::new("mock", Test::Throughput) };
        let case = ToAgent::Case {
            schema: SCHEMA,
            version: VERSION.to_owned(),
            case: Box::new(CaseSpec { size_bytes: 0, ..case }),
            cpu: None,
        };
        let mut patience = Patience::default();
        let mut after = |message: ToHost| {
            patience.heed(&message);
            patience.limit().saturating_sub(IDLE_MAX)
        };
        assert_eq!(after(begin(7)), Duration::ZERO);
        assert_eq!(after(tell(case.clone())), hour);
        assert_eq!(after(tell(ToAgent::Connect { peer: None, nodes: Vec::new() })), hour);
        assert_eq!(after(tell(ToAgent::Start { at_ns: None })), hour);
        assert_eq!(after(ToHost::End { session: 6 }), hour);
        assert_eq!(after(ToHost::End { session: 7 }), Duration::ZERO);
        assert_eq!(after(tell(case.clone())), Duration::ZERO, "of a case that is over");
        assert_eq!((after(begin(7)), after(tell(case))), (Duration::ZERO, hour));
        assert_eq!(after(begin(8)), Duration::ZERO);
    }

    #[test]
    fn this_host_has_a_loopback_interface_and_a_processor() {
        let facts = facts();
        let is_lo = |interface: &&HostInterface| interface.is_loopback && interface.prefix == 8;
        assert!(facts.interfaces.iter().any(|interface| is_lo(&interface)));
        assert!(!facts.cpus.is_empty());
    }
}
