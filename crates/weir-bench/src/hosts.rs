//! The ends of a case on several hosts: this one, its network namespaces, and remote ones.
//!
//! On each other host runs `weir host`, started through SSH (or in a namespace, or by Slurm) once for a run. It starts
//! the processes of each case there as the coordinator does here, and passes their messages on. It ends with the
//! channel, and everything that it has started ends with it.
//!
//! - `spec`: the value of `--hosts`; `addresses`: by which addresses hosts reach each other
//! - `start`: how the program gets to a host and runs there; `link`: the channel to it; `protocol`: the messages
//! - `agent`: `weir host`; `clocks`: compares the clocks of two hosts by round trips

mod addresses;
mod agent;
mod clock_watch;
mod clocks;
mod link;
mod protocol;
mod spec;
mod start;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use weir_results::{Environment, HostRecord};

use crate::case::{CaseError, CaseSpec, CpuPair, Ends};
use crate::control::{Role, ToAgent};
use crate::processes::EndId;
use crate::session::Heard;
use addresses::Candidate;
use link::HostLink;
use protocol::{FromHost, HostFacts, HostInterface, ToHost};
use start::Parcel;

pub(crate) use clock_watch::ClockWatch;

pub use agent::serve;
pub use spec::{HostSpec, HostsError, HostsSpec, Place};
pub use start::Reach;

/// Why the hosts of a run are not there.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The user ended the run.
    #[error("interrupted")]
    Interrupted,
    /// The program of this run cannot be read.
    #[error("cannot read {path}, which is copied to the hosts: {source}")]
    Program {
        /// Its file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A host cannot be reached, or is not as the options say.
    #[error("{0}")]
    Host(String),
}

/// The hosts of a run.
pub struct Hosts {
    spec: HostsSpec,
    reach: Reach,
    parcel: Option<Arc<Parcel>>,
    hosts: Vec<Host>,
    /// Numbers the cases.
    sessions: AtomicU32,
}

/// One of them.
struct Host {
    spec: HostSpec,
    /// `None`: this host, without a namespace.
    link: Option<Mutex<LinkState>>,
    facts: HostFacts,
    /// Carries the samples.
    interface: HostInterface,
    environment: Environment,
}

/// The channel to a host, which may have to be opened again.
struct LinkState {
    link: Option<Arc<HostLink>>,
    /// Attempts in a row that failed, and why.
    failures: u32,
    reason: String,
}

impl Hosts {
    /// Connects to all hosts. `interface` is the one to use on hosts that name none.
    ///
    /// # Errors
    /// When one of them cannot be reached, with what to do.
    pub fn connect(
        spec: HostsSpec,
        reach: Reach,
        interface: Option<&str>,
        interrupted: &AtomicBool,
    ) -> Result<Self, ConnectError> {
        let needs_parcel = reach.remote_program.is_none()
            && spec.hosts().iter().any(|host| matches!(host.place, Place::Ssh(_)));
        let pack = || Parcel::pack(&reach.program).map(Arc::new);
        let parcel = needs_parcel
            .then(pack)
            .transpose()
            .map_err(|source| ConnectError::Program { path: reach.program.display().to_string(), source })?;
        let open = |host: &HostSpec| match host.place {
            Place::Local => Ok((None, agent::facts())),
            _ => open(&host.place, &reach, parcel.as_ref(), interrupted)
                .map(|(link, facts)| (Some(Arc::new(link)), facts)),
        };
        let opened: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = spec.hosts().iter().map(|host| scope.spawn(|| open(host))).collect();
            let panicked = |_| Err(Some("a thread that connects to a host panicked".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        });
        let mut connected = Vec::new();
        for opened in opened {
            connected
                .push(opened.map_err(|error| error.map_or(ConnectError::Interrupted, ConnectError::Host))?);
        }
        let candidates: Vec<Candidate<'_>> =
            spec.hosts().iter().zip(&connected).map(|(spec, (_, facts))| Candidate { spec, facts }).collect();
        let interfaces = addresses::choose(&candidates, interface).map_err(ConnectError::Host)?;
        let mut hosts = Vec::new();
        for ((host, (link, facts)), interface) in spec.hosts().iter().zip(connected).zip(interfaces) {
            let environment = environment(link.as_deref(), &interface.name).map_err(ConnectError::Host)?;
            let link = link
                .map(|link| Mutex::new(LinkState { link: Some(link), failures: 0, reason: String::new() }));
            hosts.push(Host { spec: host.clone(), link, facts, interface, environment });
        }
        Ok(Self { spec, reach, parcel, hosts, sessions: AtomicU32::new(0) })
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &HostsSpec {
        &self.spec
    }

    /// The hosts as results record them, with the ends of these cases.
    #[must_use]
    pub fn records(&self, ends: Ends) -> Vec<HostRecord> {
        let record = |(number, host): (usize, &Host)| HostRecord {
            name: host.spec.place.to_string(),
            ends: self.ends_of(number, ends),
            interface: host.interface.name.clone(),
            address: host.interface.address.to_string(),
            environment: host.environment.clone(),
        };
        self.hosts.iter().enumerate().map(record).collect()
    }

    /// The environment of the host of the first end of a kind.
    #[must_use]
    pub fn environment(&self, role: Role) -> &Environment {
        &self.of(EndId { role, index: 0 }).environment
    }

    /// Whether both ends of a pair are on the same host and in the same network namespace.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.hosts.len() == 1
    }

    /// Whether all hosts are one machine.
    pub(crate) fn is_one_machine(&self) -> bool {
        self.hosts.iter().all(|host| host.is_machine_of(&self.hosts[0]))
    }

    /// Whether all hosts have the same clock.
    #[must_use]
    pub fn have_one_clock(&self) -> bool {
        self.hosts.iter().all(|host| host.shares_clock_of(&self.hosts[0]))
    }

    /// One line for each host: name, interface, address, host name.
    #[must_use]
    pub fn describe(&self, ends: Ends) -> String {
        let line = |(number, host): (usize, &Host)| {
            let hostname = host.environment.hostname.as_deref().unwrap_or("unnamed");
            let ends = self.ends_of(number, ends).join(", ");
            let HostInterface { name, address, .. } = &host.interface;
            format!("host {}: {ends}; {name} {address}; {hostname}\n", host.spec.place)
        };
        self.hosts.iter().enumerate().map(line).collect()
    }

    /// Reserves the other hosts for the ends of a case, and lets them start their processes.
    pub(crate) fn book(
        &self,
        ids: &[EndId],
        case: &CaseSpec,
        sender: &Sender<Heard>,
        interrupted: &AtomicBool,
    ) -> Result<Vec<Booking>, CaseError> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let mut bookings = Vec::new();
        for (number, host) in self.hosts.iter().enumerate() {
            let ids: Vec<EndId> = ids.iter().copied().filter(|id| self.spec.host_of(*id) == number).collect();
            if ids.is_empty() || host.link.is_none() {
                continue;
            }
            let link = self.link(number, interrupted)?;
            link.route(session, sender.clone());
            let booking = Booking { link, session, ids: ids.clone() };
            let (ends, keep_awake) = (case.ends, case.method.keep_awake);
            booking.send(&ToHost::Begin { session, ids, ends, keep_awake })?;
            bookings.push(booking);
        }
        Ok(bookings)
    }

    /// The case as an end on its host has it, and the processor that it runs on.
    pub(crate) fn placed(&self, mut case: CaseSpec, id: EndId) -> CaseSpec {
        let host = self.of(id);
        case.place.interface.clone_from(&host.interface.name);
        case.place.address = host.interface.address;
        // A peer at the own address as well, if another end is there.
        let others = EndId::all(case.ends).into_iter().filter(|other| *other != id);
        let addresses: BTreeSet<Ipv4Addr> = others.map(|other| self.of(other).interface.address).collect();
        case.method.peers = addresses.into_iter().collect();
        case
    }

    /// Two processors for a pair of ends: the second one of each host, which serves fewer interrupts, or two of a
    /// machine with both ends. `None`: not pinned.
    ///
    /// # Errors
    /// When requested processors are not there.
    pub fn cpus(&self, requested: Option<CpuPair>) -> Result<Option<CpuPair>, String> {
        let [publisher, subscriber] =
            [Role::Publisher, Role::Subscriber].map(|role| self.of(EndId { role, index: 0 }));
        if let Some(cpus) = requested {
            for (host, cpu) in [(publisher, cpus.publisher), (subscriber, cpus.subscriber)] {
                if !host.facts.cpus.contains(&cpu) {
                    return Err(format!(
                        "processes may not run on processor {cpu} of {}; --cpus takes two of {:?}, or none",
                        host.spec.place, host.facts.cpus
                    ));
                }
            }
            return Ok(Some(cpus));
        }
        let second = |host: &Host| host.facts.cpus.get(1).copied();
        let first = |host: &Host| host.facts.cpus.first().copied();
        let of_subscriber =
            if publisher.is_machine_of(subscriber) { first(subscriber) } else { second(subscriber) };
        Ok(second(publisher)
            .zip(of_subscriber)
            .map(|(publisher, subscriber)| CpuPair { publisher, subscriber }))
    }

    /// The name of a host.
    fn name(&self, number: usize) -> String {
        self.hosts[number].spec.place.to_string()
    }

    fn of(&self, id: EndId) -> &Host {
        &self.hosts[self.spec.host_of(id)]
    }

    /// The numbers of the hosts of these ends.
    fn used(&self, ends: Ends) -> BTreeSet<usize> {
        EndId::all(ends).into_iter().map(|id| self.spec.host_of(id)).collect()
    }

    /// What runs on a host.
    fn ends_of(&self, number: usize, ends: Ends) -> Vec<String> {
        let ids = EndId::all(ends).into_iter().filter(|id| self.spec.host_of(*id) == number);
        ids.map(|id| id.name(ends)).collect()
    }

    /// The open channel to a host, opened again if it has ended.
    fn link(&self, number: usize, interrupted: &AtomicBool) -> Result<Arc<HostLink>, CaseError> {
        let host = &self.hosts[number];
        let Some(state) = &host.link else {
            return Err(CaseError::Failed(format!("{} has no channel", host.spec.place)));
        };
        let mut state = state.lock();
        if let Some(link) = &state.link {
            if link.end().is_none() && link.ask(&ToHost::Clock, ANSWER_WAIT).is_ok() {
                return Ok(Arc::clone(link));
            }
            state.link = None;
        }
        if state.failures >= FAILURES_MAX {
            let text = format!("not tried: {FAILURES_MAX} connections in a row failed: {}", state.reason);
            return Err(CaseError::Failed(text));
        }
        let opened = open(&host.spec.place, &self.reach, self.parcel.as_ref(), interrupted);
        let checked = opened.and_then(|(link, facts)| host.check(&facts).map(|()| link).map_err(Some));
        match checked {
            Ok(link) => {
                let link = Arc::new(link);
                state.failures = 0;
                state.link = Some(Arc::clone(&link));
                Ok(link)
            }
            Err(None) => Err(CaseError::Interrupted),
            Err(Some(reason)) => {
                state.failures += 1;
                state.reason.clone_from(&reason);
                Err(CaseError::Failed(reason))
            }
        }
    }

    /// Asks a host that is not this one.
    fn ask(&self, number: usize, question: &ToHost, patience: Duration) -> Result<FromHost, CaseError> {
        let never = AtomicBool::new(false);
        self.link(number, &never)?.ask(question, patience).map_err(CaseError::Failed)
    }
}

impl Host {
    fn shares_clock_of(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (!self.facts.clock.is_empty() && self.facts.clock == other.facts.clock)
    }

    /// Namespaces of one machine may have different clocks, which have the machine's name in front.
    fn is_machine_of(&self, other: &Self) -> bool {
        let [one, other] = [self, other].map(|host| host.facts.clock.split(' ').next().unwrap_or_default());
        !one.is_empty() && one == other
    }

    /// Whether the host is the one that the run began with.
    fn check(&self, facts: &HostFacts) -> Result<(), String> {
        let place = &self.spec.place;
        if facts.clock != self.facts.clock {
            return Err(format!("{place} has been restarted, or is another host now: run again"));
        }
        if !facts.interfaces.contains(&self.interface) {
            let HostInterface { name, address, .. } = &self.interface;
            return Err(format!("{place} has not got {address} on {name} any more: run again"));
        }
        Ok(())
    }
}

/// The ends of a case on a host. Dropping it ends them.
pub(crate) struct Booking {
    link: Arc<HostLink>,
    session: u32,
    ids: Vec<EndId>,
}

impl Booking {
    /// Whether this end is on the host.
    pub(crate) fn has(&self, id: EndId) -> bool {
        self.ids.contains(&id)
    }

    /// The name of the host.
    pub(crate) fn host(&self) -> &str {
        self.link.name()
    }

    /// Sends a message to an end.
    pub(crate) fn tell(&self, id: EndId, message: &ToAgent) -> Result<(), CaseError> {
        self.send(&ToHost::Tell { session: self.session, id, message: message.clone() })
    }

    fn send(&self, message: &ToHost) -> Result<(), CaseError> {
        self.link.send(message).map_err(CaseError::Failed)?;
        self.link.end().map_or(Ok(()), |reason| Err(CaseError::Failed(reason)))
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        self.link.unroute();
        if self.link.end().is_none() {
            // A host that is gone has ended them.
            let _ = self.link.send(&ToHost::End { session: self.session });
        }
    }
}

fn open(
    place: &Place,
    reach: &Reach,
    parcel: Option<&Arc<Parcel>>,
    interrupted: &AtomicBool,
) -> Result<(HostLink, HostFacts), Option<String>> {
    // Without an allocation, `srun` would ask for one per host and wait for it.
    if matches!(place, Place::Slurm(_)) && std::env::var_os("SLURM_JOB_ID").is_none() {
        return Err(Some(format!(
            "{place} is a node of a Slurm allocation, and there is none here: start weir inside one, as with \
             `salloc -N2 weir ...`"
        )));
    }
    let command = start::command(place, reach, parcel.map(Arc::as_ref));
    let opened = HostLink::open(place.to_string(), command, parcel.cloned(), interrupted);
    match (place, opened) {
        (Place::Namespace(_), Err(Some(reason))) => Err(Some(format!("{reason}; {}", start::namespaces()))),
        (_, opened) => opened,
    }
}

fn environment(link: Option<&HostLink>, interface: &str) -> Result<Environment, String> {
    let Some(link) = link else { return Ok(crate::host::environment(interface)) };
    match link.ask(&ToHost::Describe { interface: interface.to_owned() }, ANSWER_WAIT)? {
        FromHost::Environment { environment } => Ok(*environment),
        _ => Err(format!("{} sent a message out of turn", link.name())),
    }
}

/// How long a host may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(15);

/// So many failed attempts in a row, and a host is not tried any more.
const FAILURES_MAX: u32 = 3;
