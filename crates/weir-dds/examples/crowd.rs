//! Starts many participants in one process, and reports how long discovery takes and what it costs.
//!
//! ```text
//! unshare --net sh -c 'ip link set lo up &&
//!     WEIR_INTERFACES=lo cargo run --release -p weir-dds --example crowd -- 119 10'
//! ```
//!
//! Arguments: the number of participants, and of topics. Each participant has a reliable writer and a reader of each
//! topic. A network namespace keeps other traffic out of the counts, which are those of its UDP (IPv4).

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings,
};

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
}

/// Counters of the network namespace and of this process.
struct Counters {
    at: Instant,
    sent: u64,
    overran: u64,
    cpu: Duration,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "crowd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut number = |usual| arguments.next().unwrap_or(Ok(usual));
    let (participants, topics) = (number(119)?, number(10)?);
    let domain = weir_dds::domain_id_from_environment()?;
    let before = Counters::now()?;
    let members: Vec<Member> =
        (0..participants).map(|_| Member::new(domain, topics)).collect::<Result<_, _>>()?;
    let created = Counters::now()?;
    while !members.iter().all(|member| member.is_matched(participants)) {
        if created.at.elapsed() > GIVE_UP {
            return Err(format!("not all are matched after {GIVE_UP:?}").into());
        }
        thread::sleep(LOOK_EVERY);
    }
    let matched = Counters::now()?;
    thread::sleep(SETTLE);
    let settled = Counters::now()?;
    thread::sleep(REST);
    let rested = Counters::now()?;
    let out = &mut std::io::stdout();
    writeln!(out, "{participants} participants, {topics} writers and {topics} readers each")?;
    writeln!(out, "created  {}", created.since(&before))?;
    writeln!(out, "matched  {}", matched.since(&before))?;
    writeln!(out, "settled  {}", settled.since(&matched))?;
    writeln!(out, "at rest  {}", rested.since(&settled))?;
    members.into_iter().for_each(|member| drop((member.writers, member.readers, member.participant)));
    Ok(())
}

impl Member {
    fn new(domain: u32, topics: usize) -> Result<Self, Box<dyn Error>> {
        let participant = DomainParticipant::new(domain, ParticipantSettings::from_environment()?)?;
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for topic in 0..topics {
            let topic = participant.create_topic::<Nothing>(&format!("Crowd{topic}"))?;
            let qos = DataWriterQos::default().reliable();
            writers.push(participant.create_publisher().create_datawriter(&topic, qos)?);
            let qos = DataReaderQos::default().reliable();
            readers.push(participant.create_subscriber().create_datareader(&topic, qos)?);
        }
        Ok(Self { participant, writers, readers })
    }

    /// Whether all endpoints have found those of all participants, this one included.
    fn is_matched(&self, participants: usize) -> bool {
        let participants = participants as u32;
        self.writers.iter().all(|it| it.publication_matched_status().current_count == participants)
            && self.readers.iter().all(|it| it.subscription_matched_status().current_count == participants)
    }
}

impl Counters {
    fn now() -> Result<Self, Box<dyn Error>> {
        let snmp = std::fs::read_to_string("/proc/net/snmp")?;
        let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let value = |name: &str| {
            let place = names.split(' ').position(|it| it == name)?;
            values.split(' ').nth(place)?.parse().ok()
        };
        let missing = "/proc/net/snmp lacks a counter of UDP";
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Ok(Self {
            at: Instant::now(),
            sent: value("OutDatagrams").ok_or(missing)?,
            overran: value("RcvbufErrors").ok_or(missing)?,
            cpu: Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32),
        })
    }

    /// Returns the change since an earlier time, as text.
    fn since(&self, earlier: &Self) -> String {
        let seconds = (self.at - earlier.at).as_secs_f64();
        let cpu = (self.cpu - earlier.cpu).as_secs_f64();
        format!(
            "{seconds:6.2} s, {} datagrams sent, {} overran, {cpu:.2} s of a processor ({:.1} %)",
            self.sent - earlier.sent,
            self.overran - earlier.overran,
            cpu / seconds * 100.0
        )
    }
}

/// How often it is checked whether all are matched.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// When it is given up.
const GIVE_UP: Duration = Duration::from_secs(120);
/// What discovery still sends after the last match is not counted as rest.
const SETTLE: Duration = Duration::from_secs(15);
/// How long the rest is observed.
const REST: Duration = Duration::from_secs(30);
