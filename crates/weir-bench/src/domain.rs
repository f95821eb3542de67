//! Measures a domain of many participants on this host: how long discovery takes, and what it costs.
//!
//! The participants are spread over several processes of this program, each of which runs [`part`]. They start
//! together; then one of them leaves, and returns as another one. Each participant has as many writers as readers, one
//! of each on every topic, so that each endpoint matches one of every participant.
//!
//! Traffic is read from the counters of the network namespace, so that other programs there count.

mod counters;
pub mod part;

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use counters::Traffic;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DomainReport {
    /// Number of participants.
    pub participants: u32,
    /// Endpoints of each.
    pub endpoints: u32,
    /// Processes that the participants were spread over.
    pub processes: u32,
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
    /// What one participant takes that knows only one other.
    pub alone_bytes: u64,
    /// What each participant has beyond that for each endpoint of the others: records, matches, names and policies.
    pub bytes_per_remote_endpoint: f64,
    /// Share of a processor that each participant takes at rest, in percent.
    pub rest_cpu_percent: f64,
    /// Datagrams sent at rest, per second, by all.
    pub rest_datagrams_per_s: f64,
    /// From the start of a participant that replaces another one until all its endpoints are matched, in ms.
    pub joined_ms: f64,
    /// The same until the others know all its endpoints, too.
    pub joined_everywhere_ms: f64,
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
    /// The counters of the namespace are missing.
    #[error("/proc/net lacks the counters of UDP and IP: mount /proc, or run on Linux")]
    Counters,
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

/// What it answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Answer {
    /// It waits for requests.
    Ready,
    /// What was requested took so long.
    Done { took_ns: u64 },
    /// Its memory and its processor time since it started.
    Used { resident_bytes: u64, cpu_ns: u64, limits: Vec<String> },
    /// It cannot go on.
    Failed(String),
}

/// Measures. `part` is the command of a process, without the arguments of [`part::PartPlan::arguments`]; `progress` is
/// called with each step.
///
/// # Errors
/// A process fails, or the participants do not match in time.
pub fn measure(
    plan: &DomainPlan,
    part: impl Fn() -> Command,
    progress: &mut dyn FnMut(&str),
) -> Result<DomainReport, DomainError> {
    let start = |participants: u32, of: u32| {
        let plan = part::PartPlan { participants, of, plan: plan.clone() };
        Process::start(part(), &plan)
    };
    progress("the memory of one participant");
    // What the process itself takes is in both.
    let (one, two) = (created(&mut start(1, 1)?)?, created(&mut start(2, 2)?)?);
    let alone_bytes = two.saturating_sub(one);
    let processes = plan.processes.clamp(1, plan.participants);
    let shares = (0..processes).map(|index| share(plan.participants, processes, index));
    let mut parts: Vec<_> =
        shares.map(|participants| start(participants, plan.participants)).collect::<Result<_, _>>()?;
    let before = used(&mut parts)?;
    progress(&format!("{} participants in {processes} processes start", plan.participants));
    let traffic = Traffic::now().ok_or(DomainError::Counters)?;
    let matched = all(&mut parts, Request::Start)?;
    let sent = Traffic::now().ok_or(DomainError::Counters)?.since(&traffic);
    let after = used(&mut parts)?;
    progress(&format!("all matched after {:.2} s; they settle", matched.as_secs_f64()));
    thread::sleep(SETTLE);
    let (traffic, begin) = (Traffic::now().ok_or(DomainError::Counters)?, used(&mut parts)?);
    let began_at = Instant::now();
    thread::sleep(plan.rest);
    let (rested, end) = (began_at.elapsed(), used(&mut parts)?);
    let at_rest = Traffic::now().ok_or(DomainError::Counters)?.since(&traffic);
    progress("one participant restarts");
    let (joined, joined_everywhere) = restart(&mut parts)?;
    let last = used(&mut parts)?;
    let remote = f64::from(plan.participants) * f64::from(plan.participants - 1) * f64::from(plan.endpoints);
    let grown = (after.resident_bytes.saturating_sub(before.resident_bytes)) as f64;
    let of_others = grown - f64::from(plan.participants) * alone_bytes as f64;
    let rest_cpu = (end.cpu_ns - begin.cpu_ns) as f64 / rested.as_nanos() as f64;
    Ok(DomainReport {
        participants: plan.participants,
        endpoints: plan.endpoints,
        processes,
        matched_ms: ms(matched),
        matched_cpu_ms: (after.cpu_ns - before.cpu_ns) as f64 / 1e6,
        datagrams: sent.datagrams,
        bytes: sent.bytes,
        overran: sent.overran,
        resident_bytes: after.resident_bytes,
        alone_bytes,
        bytes_per_remote_endpoint: if remote > 0.0 { of_others.max(0.0) / remote } else { 0.0 },
        rest_cpu_percent: rest_cpu * 100.0 / f64::from(plan.participants),
        rest_datagrams_per_s: at_rest.datagrams as f64 / rested.as_secs_f64(),
        joined_ms: ms(joined),
        joined_everywhere_ms: ms(joined_everywhere),
        limits: last.limits,
    })
}

/// Returns by how much the participants of a process make it grow.
fn created(part: &mut Process) -> Result<u64, DomainError> {
    let parts = std::slice::from_mut(part);
    let before = used(parts)?.resident_bytes;
    all(parts, Request::Start)?;
    Ok(used(parts)?.resident_bytes.saturating_sub(before))
}

/// Replaces a participant. Returns the time until the new one, and until the others have matched all.
fn restart(parts: &mut [Process]) -> Result<(Duration, Duration), DomainError> {
    let Some(first) = parts.first_mut() else { return Ok((Duration::ZERO, Duration::ZERO)) };
    let began_at = Instant::now();
    first.ask(Request::Restart)?;
    let joined = first.done()?;
    // From the end of the former participant, which took no time of its own.
    let before = began_at.elapsed().saturating_sub(joined);
    all(parts, Request::Renewed)?;
    Ok((joined, began_at.elapsed() - before))
}

/// The use of all processes together.
#[derive(Default)]
struct Use {
    resident_bytes: u64,
    cpu_ns: u64,
    limits: Vec<String>,
}

fn used(parts: &mut [Process]) -> Result<Use, DomainError> {
    let mut sum = Use::default();
    for part in parts {
        part.ask(Request::Use)?;
        match part.answer()? {
            Answer::Used { resident_bytes, cpu_ns, limits } => {
                sum.resident_bytes += resident_bytes;
                sum.cpu_ns += cpu_ns;
                sum.limits.extend(limits);
            }
            other => return Err(unexpected(&other)),
        }
    }
    sum.limits.sort();
    sum.limits.dedup();
    Ok(sum)
}

/// Has all processes do something. Returns the time until the last has done it.
fn all(parts: &mut [Process], request: Request) -> Result<Duration, DomainError> {
    let began_at = Instant::now();
    parts.iter_mut().try_for_each(|part| part.ask(request))?;
    parts.iter_mut().try_for_each(|part| part.done().map(drop))?;
    Ok(began_at.elapsed())
}

/// A process with participants. Ends when it is dropped.
struct Process {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    fn start(mut command: Command, plan: &part::PartPlan) -> Result<Self, DomainError> {
        command.args(plan.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err(DomainError::Process(io::ErrorKind::BrokenPipe.into()));
        };
        let mut process = Self { child, requests, answers: BufReader::new(answers) };
        match process.answer()? {
            Answer::Ready => Ok(process),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, request: Request) -> Result<(), DomainError> {
        let line = serde_json::to_string(&request).map_err(io::Error::from)?;
        writeln!(self.requests, "{line}")?;
        Ok(self.requests.flush()?)
    }

    fn answer(&mut self) -> Result<Answer, DomainError> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(DomainError::Part("a process with participants ended early".to_owned()));
        }
        match serde_json::from_str(&line).map_err(io::Error::from)? {
            Answer::Failed(error) => Err(DomainError::Part(error)),
            answer => Ok(answer),
        }
    }

    fn done(&mut self) -> Result<Duration, DomainError> {
        match self.answer()? {
            Answer::Done { took_ns } => Ok(Duration::from_nanos(took_ns)),
            other => Err(unexpected(&other)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails only when the process has ended. The others need no goodbye: all end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unexpected(answer: &Answer) -> DomainError {
    DomainError::Part(format!("a process with participants gave an unexpected answer: {answer:?}"))
}

/// Returns how many of the participants a process has.
fn share(participants: u32, processes: u32, index: u32) -> u32 {
    participants / processes + u32::from(index < participants % processes)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What discovery still sends after the last match is not counted as rest: the first announcements of a participant
/// are closer together.
const SETTLE: Duration = Duration::from_secs(8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_are_spread_evenly() {
        let shares: Vec<_> = (0..4).map(|index| share(10, 4, index)).collect();
        assert_eq!(shares, [3, 3, 2, 2]);
    }
}
