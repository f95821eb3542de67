//! One process of a measured domain: some of its participants.

use std::io::{self, BufRead, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DdsType, DomainParticipant,
    ParticipantSettings,
};

use super::parts::Used;
use super::{Answer, Joined, Request};

/// The part of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartPlan {
    /// Its participants.
    pub participants: u32,
    /// Participants of the whole domain.
    pub of: u32,
    /// Endpoints of each, half of them writers.
    pub endpoints: u32,
    /// The DDS domain.
    pub domain_id: u32,
    /// The interface that they use.
    pub interface: String,
    /// When a step counts as failed.
    pub patience: Duration,
}

impl PartPlan {
    /// Returns the argument of a process for this part.
    pub(super) fn to_argument(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    /// Returns the plan of such an argument; `None`: it is none.
    pub fn parse(argument: &str) -> Option<Self> {
        serde_json::from_str(argument).ok()
    }
}

/// A sample that is never written.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Nothing {
    number: u32,
}

/// One participant with its endpoints.
struct Member {
    participant: DomainParticipant,
    writers: Vec<DataWriter<Nothing>>,
    readers: Vec<DataReader<Nothing>>,
    /// It has replaced another one.
    is_new: bool,
}

/// Does what standard input requests, until it ends.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(plan: &PartPlan) -> io::Result<()> {
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(request) = serde_json::from_str::<Request>(&line) else { break };
            if sender.send(request).is_err() {
                break;
            }
        }
        // The process that has started this one is gone, whatever this one waits for.
        std::process::exit(0);
    });
    answer(&Answer::Ready)?;
    let mut members = Vec::new();
    for request in requests {
        let began_at = Instant::now();
        let done = match request {
            Request::Start => start(plan, &mut members),
            Request::Restart => {
                answer(&restart(plan, &mut members).map_or_else(|failed| failed, Answer::Joined))?;
                continue;
            }
            Request::Renewed => until(plan, &members, 1, |_| ()),
            Request::Use => {
                answer(&Answer::Used(used(&members)))?;
                continue;
            }
        };
        answer(&match done {
            Ok(()) => Answer::Done { took_ns: ns_since(began_at) },
            Err(failed) => failed,
        })?;
    }
    Ok(())
}

/// Creates the participants, and waits until all are matched.
fn start(plan: &PartPlan, members: &mut Vec<Member>) -> Result<(), Answer> {
    for _ in 0..plan.participants {
        members.push(Member::new(plan)?);
    }
    until(plan, members, 0, |_| ())?;
    // Without endpoints that match, they only count in the figures.
    let others = plan.of.saturating_sub(1) as usize;
    let knows_more = |member: &Member| member.participant.discovered_participants().len() > others;
    if members.iter().any(knows_more) { Err(Answer::InUse) } else { Ok(()) }
}

/// Replaces the first participant. Returns how long the new one took for each step.
fn restart(plan: &PartPlan, members: &mut Vec<Member>) -> Result<Joined, Answer> {
    if !members.is_empty() {
        members.remove(0);
    }
    let began_at = Instant::now();
    members.insert(0, Member { is_new: true, ..Member::new(plan)? });
    let others = plan.of.saturating_sub(1) as usize;
    let mut steps = [None; 3];
    until(plan, &members[..1], 0, |members| {
        let progress = members[0].participant.discovery_progress();
        let endpoints = progress.endpoints / plan.endpoints.max(1) as usize;
        for (at_ns, done) in steps.iter_mut().zip([progress.participants, progress.answering, endpoints]) {
            if at_ns.is_none() && done >= others {
                *at_ns = Some(ns_since(began_at));
            }
        }
    })?;
    let matched_ns = ns_since(began_at);
    // What is matched has done all steps; the last of them may have been between two looks.
    let [discovered_ns, answered_ns, endpoints_ns] = steps.map(|at_ns| at_ns.unwrap_or(matched_ns));
    Ok(Joined { discovered_ns, answered_ns, endpoints_ns, matched_ns })
}

fn ns_since(began_at: Instant) -> u64 {
    u64::try_from(began_at.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until all are matched with all participants of the domain, after so many restarts. Calls `look` before each
/// check.
fn until(
    plan: &PartPlan,
    members: &[Member],
    restarts: u32,
    mut look: impl FnMut(&[Member]),
) -> Result<(), Answer> {
    let deadline = Instant::now().checked_add(plan.patience);
    let mut waiting: Vec<_> = members.iter().collect();
    loop {
        look(members);
        waiting.retain(|member| !member.is_matched(plan.of, restarts));
        if waiting.is_empty() {
            return Ok(());
        }
        // One that restarts may be known twice for a while.
        let is_first = |member: &Member| restarts == 0 && !member.is_new;
        if waiting.iter().any(|member| is_first(member) && member.has_more_matches(plan.of)) {
            return Err(Answer::InUse);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Answer::Failed(overdue(
                waiting.len(),
                members.len(),
                plan.patience,
                &limits(members),
            )));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Returns the error for participants that are not matched in time.
fn overdue(waiting: usize, members: usize, patience: Duration, limits: &[String]) -> String {
    let mut text = format!(
        "{waiting} of {members} participants of a process are not matched after {patience:?}: use fewer, or a longer \
         --timeout"
    );
    for limit in limits {
        text.push_str("; limit reached: ");
        text.push_str(limit);
    }
    text
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(answer)?)?;
    out.flush()
}

fn used(members: &[Member]) -> Used {
    Used {
        resident_bytes: weir_telemetry::resident_bytes().unwrap_or(0),
        cpu_ns: u64::try_from(weir_telemetry::process_time().as_nanos()).unwrap_or(u64::MAX),
        matches: members.iter().flat_map(Member::matches).map(|(current, _)| current).sum(),
        limits: limits(members),
    }
}

/// Returns the limits that the participants have reached.
fn limits(members: &[Member]) -> Vec<String> {
    let mut reached: Vec<_> = members.iter().flat_map(|it| it.participant.limits_reached()).collect();
    reached.sort_by_key(|limit| limit.what);
    reached.dedup_by_key(|limit| limit.what);
    reached.iter().map(|limit| format!("{}: {}", limit.what, limit.advice)).collect()
}

impl Member {
    fn new(plan: &PartPlan) -> Result<Self, Answer> {
        Self::create(plan).map_err(|error| Answer::Failed(error.to_string()))
    }

    fn create(plan: &PartPlan) -> Result<Self, DdsError> {
        let settings = ParticipantSettings::default().interface(&plan.interface);
        let participant = DomainParticipant::new(plan.domain_id, settings)?;
        let (publisher, subscriber) = (participant.create_publisher()?, participant.create_subscriber()?);
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for topic in 0..plan.endpoints / 2 {
            let topic = participant.create_topic::<Nothing>(&format!("Domain{topic}"))?;
            writers.push(publisher.create_datawriter(&topic, DataWriterQos::default().reliable())?);
            readers.push(subscriber.create_datareader(&topic, DataReaderQos::default().reliable())?);
        }
        Ok(Self { participant, writers, readers, is_new: false })
    }

    /// Returns the matches of each endpoint: now, and since it exists.
    fn matches(&self) -> impl Iterator<Item = (u64, u64)> {
        let writers = self.writers.iter().map(|writer| {
            let status = writer.publication_matched_status();
            (status.current_count, status.total_count)
        });
        let readers = self.readers.iter().map(|reader| {
            let status = reader.subscription_matched_status();
            (status.current_count, status.total_count)
        });
        writers.chain(readers)
    }

    /// Whether all endpoints have matched those of all participants, this one included.
    fn is_matched(&self, participants: u32, restarts: u32) -> bool {
        let participants = u64::from(participants);
        let total_least = participants + if self.is_new { 0 } else { restarts.into() };
        self.matches().all(|(current, total)| current == participants && total >= total_least)
    }

    /// Whether an endpoint has matched those of more participants.
    fn has_more_matches(&self, participants: u32) -> bool {
        self.matches().any(|(current, _)| current > participants.into())
    }
}

/// How often it is checked whether all are matched.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_read_as_it_was_written() {
        let plan = PartPlan {
            participants: 3,
            of: 7,
            endpoints: 4,
            domain_id: 9,
            interface: "lo".to_owned(),
            patience: Duration::from_millis(1500),
        };
        let argument = plan.to_argument().unwrap();
        assert_eq!(PartPlan::parse(&argument), Some(plan));
        assert_eq!(PartPlan::parse(&argument[1..]), None);
    }

    #[test]
    fn limits_follow_what_is_overdue() {
        let of = |limits: &[String]| overdue(2, 3, Duration::from_secs(120), limits);
        let text =
            "2 of 3 participants of a process are not matched after 120s: use fewer, or a longer --timeout";
        assert_eq!(of(&[]), text);
        let limit = "remote endpoints: use several domains".to_owned();
        assert_eq!(of(&[limit]), format!("{text}; limit reached: remote endpoints: use several domains"));
    }
}
