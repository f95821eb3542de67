//! One process of a measured domain: some of its participants.

use std::io::{self, BufRead, Write};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DdsType, DomainParticipant,
    ParticipantSettings,
};

use super::{Answer, DomainPlan, Request};

/// The part of a process.
#[derive(Clone, Debug)]
pub struct PartPlan {
    /// Its participants.
    pub participants: u32,
    /// Participants of the whole domain.
    pub of: u32,
    /// The domain.
    pub plan: DomainPlan,
}

impl PartPlan {
    /// Returns the arguments of a process for this part, in the order of the fields of [`PartPlan::parse`].
    pub fn arguments(&self) -> Vec<String> {
        let plan = &self.plan;
        vec![
            self.participants.to_string(),
            self.of.to_string(),
            plan.endpoints.to_string(),
            plan.domain_id.to_string(),
            plan.patience.as_millis().to_string(),
            plan.interface.clone(),
        ]
    }

    /// Returns the plan of these arguments; `None`: they are none.
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let [participants, of, endpoints, domain_id, patience_ms, interface] = arguments else { return None };
        let plan = DomainPlan {
            participants: of.parse().ok()?,
            endpoints: endpoints.parse().ok()?,
            processes: 0,
            domain_id: domain_id.parse().ok()?,
            interface: interface.clone(),
            rest: Duration::ZERO,
            patience: Duration::from_millis(patience_ms.parse().ok()?),
        };
        Some(Self { participants: participants.parse().ok()?, of: plan.participants, plan })
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
            Request::Restart => restart(plan, &mut members),
            Request::Renewed => until(plan, &members, 1),
            Request::Use => {
                answer(&used(&members)?)?;
                continue;
            }
        };
        answer(&match done {
            Ok(began) => {
                let took = began.unwrap_or(began_at).elapsed();
                Answer::Done { took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) }
            }
            Err(error) => Answer::Failed(error),
        })?;
    }
    Ok(())
}

type Done = Result<Option<Instant>, String>;

fn start(plan: &PartPlan, members: &mut Vec<Member>) -> Done {
    for _ in 0..plan.participants {
        members.push(Member::new(plan).map_err(|error| error.to_string())?);
    }
    until(plan, members, 0)
}

/// Replaces the first participant. Returns when the new one began.
fn restart(plan: &PartPlan, members: &mut Vec<Member>) -> Done {
    if !members.is_empty() {
        members.remove(0);
    }
    let began_at = Instant::now();
    let new = Member { is_new: true, ..Member::new(plan).map_err(|error| error.to_string())? };
    members.insert(0, new);
    until(plan, &members[..1], 0).map(|_| Some(began_at))
}

/// Waits until all are matched with all participants of the domain, after so many restarts.
fn until(plan: &PartPlan, members: &[Member], restarts: u32) -> Done {
    let deadline = Instant::now() + plan.plan.patience;
    let mut waiting: Vec<_> = members.iter().collect();
    loop {
        waiting.retain(|member| !member.is_matched(plan.of, restarts));
        if waiting.is_empty() {
            return Ok(None);
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{} of {} participants of a process are not matched after {:?}: use fewer, or a longer --timeout; {}",
                waiting.len(),
                members.len(),
                plan.plan.patience,
                limits(members).join(", ")
            ));
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn answer(answer: &Answer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(answer)?)?;
    out.flush()
}

fn used(members: &[Member]) -> io::Result<Answer> {
    let status = procfs::process::Process::myself().and_then(|me| me.status()).map_err(io::Error::other)?;
    let resident_bytes = status.vmrss.unwrap_or(0) * 1024;
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu_ns = Duration::new(cpu.tv_sec.unsigned_abs(), cpu.tv_nsec as u32).as_nanos();
    let cpu_ns = u64::try_from(cpu_ns).unwrap_or(u64::MAX);
    Ok(Answer::Used { resident_bytes, cpu_ns, limits: limits(members) })
}

/// Returns the limits that the participants have reached.
fn limits(members: &[Member]) -> Vec<String> {
    let mut reached: Vec<_> = members.iter().flat_map(|it| it.participant.limits_reached()).collect();
    reached.sort_by_key(|limit| limit.what);
    reached.dedup_by_key(|limit| limit.what);
    reached.iter().map(|limit| format!("{}: {}", limit.what, limit.advice)).collect()
}

impl Member {
    fn new(plan: &PartPlan) -> Result<Self, DdsError> {
        let settings = ParticipantSettings::default().interface(&plan.plan.interface);
        let participant = DomainParticipant::new(plan.plan.domain_id, settings)?;
        let (publisher, subscriber) = (participant.create_publisher(), participant.create_subscriber());
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for topic in 0..plan.plan.endpoints / 2 {
            let topic = participant.create_topic::<Nothing>(&format!("Domain{topic}"))?;
            writers.push(publisher.create_datawriter(&topic, DataWriterQos::default().reliable())?);
            readers.push(subscriber.create_datareader(&topic, DataReaderQos::default().reliable())?);
        }
        Ok(Self { participant, writers, readers, is_new: false })
    }

    /// Whether all endpoints have matched those of all participants, this one included.
    fn is_matched(&self, participants: u32, restarts: u32) -> bool {
        let total = participants + if self.is_new { 0 } else { restarts };
        let is_all = |current: u32, matches: u32| current == participants && matches >= total;
        self.writers
            .iter()
            .map(|it| it.publication_matched_status())
            .all(|it| is_all(it.current_count, it.total_count))
            && self
                .readers
                .iter()
                .map(|it| it.subscription_matched_status())
                .all(|it| is_all(it.current_count, it.total_count))
    }
}

/// How often it is checked whether all are matched.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_they_were_written() {
        let plan = DomainPlan {
            participants: 7,
            endpoints: 4,
            processes: 2,
            domain_id: 9,
            interface: "lo".to_owned(),
            rest: Duration::ZERO,
            patience: Duration::from_secs(3),
        };
        let part = PartPlan { participants: 3, of: 7, plan };
        let read = PartPlan::parse(&part.arguments()).unwrap();
        assert_eq!((read.participants, read.of, read.plan.endpoints), (3, 7, 4));
        assert_eq!((read.plan.domain_id, read.plan.interface.as_str()), (9, "lo"));
        assert_eq!(read.plan.patience, Duration::from_secs(3));
        assert!(PartPlan::parse(&part.arguments()[1..]).is_none());
    }
}
