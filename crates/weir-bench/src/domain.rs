//! Measures a domain of many participants on this host: how long discovery takes, and what it costs.
//!
//! The participants are spread over several processes of this program, each of which runs [`part`]; `parts` has them.
//! They start together; then one of them leaves, and returns as another one. Each participant has as many writers as
//! readers, one of each on every topic, so that each endpoint matches one of every participant.
//!
//! Smaller domains are measured before, one after the other: only one of them exists at a time. Traffic is read from
//! the counters of the network namespace, so that other programs there count.

pub mod part;
mod parts;

use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_telemetry::Traffic;

use crate::outside::{UDP_SOCKETS, lists_port};
use part::PartPlan;
use parts::{Parts, Used};

/// What is measured.
#[derive(Clone, Debug)]
pub struct DomainPlan {
    /// Number of participants.
    pub participants: u32,
    /// Endpoints of each, half of them writers; at least 2.
    pub endpoints: u32,
    /// Processes that the participants are spread over.
    pub processes: u32,
    /// The DDS domain.
    pub domain_id: u32,
    /// The interface that they use.
    pub interface: String,
    /// How long the domain at rest is observed.
    pub rest: Duration,
    /// When a step counts as failed.
    pub patience: Duration,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DomainReport {
    /// Number of participants.
    pub participants: u32,
    /// Endpoints of each.
    pub endpoints: u32,
    /// Processes that the participants were spread over.
    pub processes: u32,
    /// Matches of all endpoints of a participant together, with its own included: `participants * endpoints`.
    pub matches_per_participant: f64,
    /// From the start of the first participant until all endpoints of all are matched, in ms.
    pub matched_ms: f64,
    /// Processor time until then, of all processes, in ms.
    pub matched_cpu_ms: f64,
    /// Datagrams sent until then.
    pub datagrams: u64,
    /// Bytes of their IP packets.
    pub bytes: u64,
    /// Datagrams that found a socket's buffer full.
    pub overran: u64,
    /// Resident memory of all processes when all were matched.
    pub resident_bytes: u64,
    /// What a process grows by that creates one participant, the only one of its domain.
    pub alone_bytes: u64,
    /// What a participant keeps for an endpoint of another one: records, matches, names and policies, and its share of
    /// what is kept for the other participant.
    ///
    /// The first process, with `n` of the `N` participants, is compared with one whose `n` participants are a domain of
    /// their own. In the large domain, each of them has learned `(N - n) * endpoints` more endpoints:
    ///
    /// `(growth in the large domain - growth in the small one) / (n * (N - n) * endpoints)`
    ///
    /// `None`: there are fewer of these than [`DomainPlan::LEAST_REMOTE_ENDPOINTS`], so other differences between the
    /// two processes would dominate.
    pub bytes_per_remote_endpoint: Option<f64>,
    /// Share of a processor that each participant takes at rest, in percent; `None` without a rest.
    pub rest_cpu_percent: Option<f64>,
    /// Datagrams sent at rest, per second, by all; `None` without a rest.
    pub rest_datagrams_per_s: Option<f64>,
    /// From the start of a participant that replaces another one until all its endpoints are matched, in ms.
    pub joined_ms: f64,
    /// The steps of that: until it knew all other participants, in ms.
    pub joined_discovered_ms: f64,
    /// Until all of them had acknowledged announcements of its endpoints, which shows that they know it, in ms.
    pub joined_answered_ms: f64,
    /// Until it knew all their endpoints, in ms.
    pub joined_endpoints_ms: f64,
    /// From the start of that participant until the others have matched all its endpoints, too, in ms.
    pub joined_everywhere_ms: f64,
    /// Datagrams that found a socket's buffer full between the end of the former participant and then.
    pub joined_overran: u64,
    /// Limits of the engine that were reached, each with the setting to change.
    pub limits: Vec<String>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum DomainError {
    /// A process could not be started, or its messages not be exchanged.
    #[error("a process with participants cannot be used: {0}")]
    Process(#[from] io::Error),
    /// A process has failed.
    #[error("{0}")]
    Part(String),
    /// There are other participants.
    #[error("domain {0} is in use by another program: choose another one with --domain")]
    InUse(u32),
    /// The counters of the namespace are missing.
    #[error("/proc/net lacks the counters of UDP and IP: mount /proc, or run on Linux")]
    Counters,
    /// The user has ended the measurement.
    #[error("interrupted")]
    Interrupted,
}

/// A request to a process with participants.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Request {
    /// Create the participants, and wait until all are matched with `participants`.
    Start,
    /// Report memory and processor time.
    Use,
    /// Replace the first participant, and wait until the new one is matched.
    Restart,
    /// Wait until all participants but a new one have matched one that has restarted.
    Renewed,
}

/// The time from the start of a participant to the end of each step, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Joined {
    discovered_ns: u64,
    answered_ns: u64,
    endpoints_ns: u64,
    matched_ns: u64,
}

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Answer {
    /// It waits for requests.
    Ready,
    /// What was requested took so long.
    Done { took_ns: u64 },
    /// The participant that has replaced another one is matched.
    Joined(Joined),
    /// What it uses.
    Used(Used),
    /// It has found participants of another program.
    InUse,
    /// It cannot go on.
    Failed(String),
}

impl DomainPlan {
    /// Time from the last match to the start of the rest. Participants send their first announcements at shorter
    /// intervals, which would count as traffic at rest.
    pub const SETTLE: Duration = Duration::from_secs(8);

    /// The fewest additional remote endpoints in a process from which their memory is computed.
    pub const LEAST_REMOTE_ENDPOINTS: u64 = 10_000;

    /// Returns how many participants each process has.
    fn shares(&self) -> Vec<u32> {
        let processes = self.processes.clamp(1, self.participants.max(1));
        let share = |index| self.participants / processes + u32::from(index < self.participants % processes);
        (0..processes).map(share).collect()
    }

    /// Returns how many endpoints more the participants of a process learn in the large domain than in one of their
    /// own; `None`: too few.
    fn additional_remote_endpoints(&self, share: u32) -> Option<u64> {
        let others = u64::from(self.participants.saturating_sub(share));
        let additional = u64::from(share) * others * u64::from(self.endpoints);
        (additional >= Self::LEAST_REMOTE_ENDPOINTS).then_some(additional)
    }

    /// Returns an error if a socket of this namespace receives announcements of the domain.
    fn check_unused(&self) -> Result<(), DomainError> {
        let port = u16::try_from(FIRST_PORT + PORTS_PER_DOMAIN * self.domain_id);
        let table = fs::read_to_string(UDP_SOCKETS).unwrap_or_default();
        let is_used = port.is_ok_and(|port| lists_port(&table, port));
        if is_used { Err(DomainError::InUse(self.domain_id)) } else { Ok(()) }
    }
}

/// Measures. `part` is the command of a process, without its plan, which is added as the last argument; `progress` is
/// called with each step. All processes have ended when this returns.
///
/// # Errors
/// A process fails, the participants do not match in time, other programs have participants in the domain, or
/// `interrupted` is set.
pub fn measure(
    plan: &DomainPlan,
    part: impl Fn() -> Command,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<DomainReport, DomainError> {
    plan.check_unused()?;
    let start = |shares: &[u32]| Parts::start(&part, plan, shares, interrupted);
    progress("measuring the memory of one participant");
    let alone_bytes = growth(start(&[1])?)?;
    let shares = plan.shares();
    let share = shares.first().copied().unwrap_or(0);
    let additional = plan.additional_remote_endpoints(share);
    let small_growth = match additional {
        Some(_) => {
            progress(&format!("measuring the memory of {share} participants in a domain of their own"));
            Some(growth(start(&[share])?)?)
        }
        None => None,
    };
    let processes = shares.len() as u32;
    progress(&format!("starting {} participants in {processes} processes", plan.participants));
    let mut parts = start(&shares)?;
    let matched = matched(&mut parts)?;
    progress(&format!("all matched after {:.2} s", matched.took.as_secs_f64()));
    let rest = match plan.rest {
        Duration::ZERO => None,
        rest => {
            progress(&format!("observing the domain at rest, from {} s on", DomainPlan::SETTLE.as_secs()));
            Some(at_rest(&mut parts, rest)?)
        }
    };
    progress("restarting one participant");
    let before = traffic()?;
    let (joined, joined_everywhere) = restart(&mut parts)?;
    let joined_overran = traffic()?.since(&before).receive_buffer_errors;
    let limits = sum(parts.used()?).limits;
    let of_each = |sum: f64| sum / f64::from(plan.participants);
    let bytes_per_remote_endpoint = small_growth
        .zip(additional)
        .and_then(|(small, additional)| bytes_each(matched.first_growth, small, additional));
    Ok(DomainReport {
        participants: plan.participants,
        endpoints: plan.endpoints,
        processes,
        matches_per_participant: of_each(matched.after.matches as f64),
        matched_ms: ms(matched.took),
        matched_cpu_ms: matched.cpu_ns as f64 / 1e6,
        datagrams: matched.sent.datagrams,
        bytes: matched.sent.bytes,
        overran: matched.sent.receive_buffer_errors,
        resident_bytes: matched.after.resident_bytes,
        alone_bytes,
        bytes_per_remote_endpoint,
        rest_cpu_percent: rest.as_ref().map(|rest| of_each(rest.processors * 100.0)),
        rest_datagrams_per_s: rest.as_ref().map(|rest| rest.datagrams_per_s),
        joined_ms: joined.matched_ns as f64 / 1e6,
        joined_discovered_ms: joined.discovered_ns as f64 / 1e6,
        joined_answered_ms: joined.answered_ns as f64 / 1e6,
        joined_endpoints_ms: joined.endpoints_ns as f64 / 1e6,
        joined_everywhere_ms: ms(joined_everywhere),
        joined_overran,
        limits,
    })
}

/// Returns by how much a process grows that has a domain of its own, and ends it.
fn growth(mut parts: Parts<'_>) -> Result<u64, DomainError> {
    let before = sum(parts.used()?).resident_bytes;
    parts.all(Request::Start)?;
    Ok(sum(parts.used()?).resident_bytes.saturating_sub(before))
}

/// What it took until all were matched.
struct Matched {
    took: Duration,
    cpu_ns: u64,
    sent: Traffic,
    /// What the first process has grown by.
    first_growth: u64,
    /// The use of all.
    after: Used,
}

/// Starts the participants of all processes, and waits until they are matched.
fn matched(parts: &mut Parts<'_>) -> Result<Matched, DomainError> {
    let (before, traffic) = (parts.used()?, traffic()?);
    let took = parts.all(Request::Start)?;
    let (sent, after) = (self::traffic()?.since(&traffic), parts.used()?);
    let resident = |uses: &[Used]| uses.first().map_or(0, |used| used.resident_bytes);
    let first_growth = resident(&after).saturating_sub(resident(&before));
    let (before, after) = (sum(before), sum(after));
    Ok(Matched { took, cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns), sent, first_growth, after })
}

/// What all participants use at rest.
struct Rest {
    processors: f64,
    datagrams_per_s: f64,
}

/// Observes the domain at rest.
fn at_rest(parts: &mut Parts<'_>, rest: Duration) -> Result<Rest, DomainError> {
    parts.rest(DomainPlan::SETTLE)?;
    let (before, traffic, began_at) = (sum(parts.used()?), traffic()?, Instant::now());
    parts.rest(rest)?;
    let (rested, sent) = (began_at.elapsed(), self::traffic()?.since(&traffic));
    let cpu_ns = sum(parts.used()?).cpu_ns.saturating_sub(before.cpu_ns);
    Ok(Rest {
        processors: cpu_ns as f64 / rested.as_nanos() as f64,
        datagrams_per_s: sent.datagrams as f64 / rested.as_secs_f64(),
    })
}

/// Replaces a participant. Returns the time until each step of the new one, and until the others have matched all.
fn restart(parts: &mut Parts<'_>) -> Result<(Joined, Duration), DomainError> {
    let began_at = Instant::now();
    let joined = parts.restart()?;
    // From the end of the former participant, which took time of its own.
    let before = began_at.elapsed().saturating_sub(Duration::from_nanos(joined.matched_ns));
    parts.all(Request::Renewed)?;
    Ok((joined, began_at.elapsed().saturating_sub(before)))
}

fn traffic() -> Result<Traffic, DomainError> {
    Traffic::now().ok_or(DomainError::Counters)
}

/// Returns the use of all processes together.
fn sum(uses: Vec<Used>) -> Used {
    let mut sum = Used::default();
    for used in uses {
        sum.resident_bytes += used.resident_bytes;
        sum.cpu_ns += used.cpu_ns;
        sum.matches += used.matches;
        sum.limits.extend(used.limits);
    }
    sum.limits.sort();
    sum.limits.dedup();
    sum
}

/// Returns the memory of each of the endpoints that a process knows in a large domain beside those of a small one;
/// `None` if the process is smaller there.
fn bytes_each(large_growth: u64, small_growth: u64, endpoints: u64) -> Option<f64> {
    large_growth.checked_sub(small_growth).map(|bytes| bytes as f64 / endpoints as f64)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The port to which participants of domain 0 send announcements by multicast (RTPS 2.5, 9.6.2.3).
const FIRST_PORT: u32 = 7400;
const PORTS_PER_DOMAIN: u32 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(participants: u32, endpoints: u32, processes: u32) -> DomainPlan {
        DomainPlan {
            participants,
            endpoints,
            processes,
            domain_id: 0,
            interface: "lo".to_owned(),
            rest: Duration::ZERO,
            patience: Duration::ZERO,
        }
    }

    #[test]
    fn participants_are_spread_evenly() {
        assert_eq!(plan(10, 2, 4).shares(), [3, 3, 2, 2]);
        assert_eq!(plan(2, 2, 4).shares(), [1, 1]);
        assert_eq!(plan(5, 2, 1).shares(), [5]);
    }

    #[test]
    fn additional_endpoints_are_those_of_other_processes_for_each_participant() {
        // 25 participants learn those of 75 others.
        assert_eq!(plan(100, 10, 4).additional_remote_endpoints(25), Some(25 * 75 * 10));
        assert_eq!(plan(20, 10, 4).additional_remote_endpoints(5), None, "too few");
        assert_eq!(plan(1000, 10, 1).additional_remote_endpoints(1000), None, "no others");
    }

    #[test]
    fn the_memory_of_an_endpoint_is_what_the_domains_differ_by() {
        // Of a process: 1 MB itself, 100 kB for each participant, 500 bytes for each remote endpoint.
        let growth = |participants: u64, of: u64| {
            1_000_000 + participants * 100_000 + participants * (of - 1) * 10 * 500
        };
        assert_eq!(bytes_each(growth(25, 100), growth(25, 25), 25 * 75 * 10), Some(500.0));
        assert_eq!(bytes_each(5, 6, 1), None);
    }

    #[test]
    fn uses_add_up_and_limits_are_named_once() {
        let used = |resident_bytes, limit: &str| Used {
            resident_bytes,
            cpu_ns: 1,
            matches: 6,
            limits: vec![limit.to_owned()],
        };
        let sum = sum(vec![used(5, "b"), used(7, "a"), used(1, "b")]);
        assert_eq!((sum.resident_bytes, sum.cpu_ns, sum.matches), (13, 3, 18));
        assert_eq!(sum.limits, ["a", "b"]);
    }

    #[test]
    fn a_domain_whose_port_is_taken_is_in_use() {
        let mut plan = plan(2, 2, 1);
        // Domains that tests with participants do not use.
        let (domain, _socket) = (200..=232)
            .find_map(|domain| {
                let port = u16::try_from(FIRST_PORT + PORTS_PER_DOMAIN * domain).unwrap();
                Some((domain, std::net::UdpSocket::bind(("127.0.0.1", port)).ok()?))
            })
            .unwrap();
        plan.domain_id = domain;
        let error = plan.check_unused().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("domain {domain} is in use by another program: choose another one with --domain")
        );
    }
}
