//! What the processes of a case and this host do right now, from `/proc`.

use std::fs;
use std::time::Instant;

/// Reads `/proc`, once in a while, and computes what happened since the reading before.
#[derive(Debug)]
pub(super) struct Activity {
    before: Option<(Instant, Reading)>,
    /// Clock ticks per second.
    ticks_per_s: f64,
}

/// Counters at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Reading {
    /// The ends that are child processes: role, process and processor time in ticks.
    ends: Vec<(String, u32, u64)>,
    /// Busy and all ticks of the host's processors.
    host: Option<(u64, u64)>,
    /// Of the network namespace of the first end.
    udp: Option<Udp>,
}

/// Counters of UDP of a network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Udp {
    sent: u64,
    received: u64,
    dropped: u64,
}

/// What happened between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates {
    /// Role and processor time in percent of one processor.
    pub(super) ends: Vec<(String, f64)>,
    /// Percent of all processors.
    pub(super) host_percent: Option<f64>,
    /// Datagrams sent, received and dropped by full sockets, per second.
    pub(super) udp_per_s: Option<[f64; 3]>,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { before: None, ticks_per_s: rustix::param::clock_ticks_per_second() as f64 }
    }

    /// Forgets the last reading, such as that of another case.
    pub(super) fn start(&mut self) {
        self.before = None;
    }

    /// Reads the counters, and returns what happened since the reading before; `None` at the first one.
    pub(super) fn read(&mut self) -> Option<Rates> {
        let now = (Instant::now(), Reading::now());
        let (before_at, before) = self.before.replace(now.clone())?;
        let elapsed_s = now.0.duration_since(before_at).as_secs_f64();
        (elapsed_s > 0.0).then(|| now.1.since(&before, elapsed_s, self.ticks_per_s))
    }
}

impl Reading {
    fn now() -> Self {
        let ends = children().into_iter().filter_map(|pid| {
            let role = role(&fs::read(format!("/proc/{pid}/cmdline")).ok()?)?;
            let ticks = ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
            Some((role, pid, ticks))
        });
        let ends: Vec<(String, u32, u64)> = ends.collect();
        let text = |path: String| fs::read_to_string(path).ok();
        let udp = ends.first().and_then(|(_, pid, _)| udp(&text(format!("/proc/{pid}/net/snmp"))?));
        Self { udp, host: text("/proc/stat".into()).and_then(|it| host(&it)), ends }
    }

    fn since(&self, before: &Self, elapsed_s: f64, ticks_per_s: f64) -> Rates {
        let ends = self.ends.iter().filter_map(|(role, pid, ticks)| {
            let (.., earlier) = before.ends.iter().find(|(_, known, _)| known == pid)?;
            Some((role.clone(), ticks.saturating_sub(*earlier) as f64 / ticks_per_s / elapsed_s * 100.0))
        });
        let host_percent = self.host.zip(before.host).and_then(|((busy, all), (busy_before, all_before))| {
            let all = all.saturating_sub(all_before);
            (all > 0).then(|| busy.saturating_sub(busy_before) as f64 / all as f64 * 100.0)
        });
        let udp_per_s = self.udp.zip(before.udp).map(|(now, before)| {
            [(now.sent, before.sent), (now.received, before.received), (now.dropped, before.dropped)]
                .map(|(now, before)| now.saturating_sub(before) as f64 / elapsed_s)
        });
        Rates { ends: ends.collect(), host_percent, udp_per_s }
    }
}

/// The child processes of all threads of this process.
fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    texts
        .flat_map(|text| text.split_ascii_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// The role of an agent, from its command line.
fn role(command_line: &[u8]) -> Option<String> {
    let mut arguments = command_line.split(|byte| *byte == 0).skip_while(|it| *it != b"--role");
    let role = std::str::from_utf8(arguments.nth(1)?).ok()?;
    (role.len() <= 16 && role.bytes().all(|it| it.is_ascii_lowercase())).then(|| role.to_owned())
}

/// Processor time in user and kernel mode, from `/proc/PID/stat` (proc_pid_stat(5), fields 14 and 15).
fn ticks(stat: &str) -> Option<u64> {
    // The name may contain anything, so fields are counted from its end.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Busy and all ticks, from `/proc/stat`.
fn host(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // Guest time is part of user time.
    let ticks: Vec<u64> = line.split_ascii_whitespace().take(8).filter_map(|it| it.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all - idle, all))
}

/// The counters of UDP, from `/proc/PID/net/snmp`.
fn udp(snmp: &str) -> Option<Udp> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let value = |name: &str| {
        let mut both = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        both.find(|(it, _)| *it == name)?.1.parse().ok()
    };
    Some(Udp {
        sent: value("OutDatagrams")?,
        received: value("InDatagrams")?,
        dropped: value("RcvbufErrors")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Icmp: InMsgs
Icmp: 3
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors
Udp: 1000 1 7 2000 5 0 0 0 0
UdpLite: InDatagrams
UdpLite: 0
";

    #[test]
    fn counters_are_read_from_the_kernels_texts() {
        assert_eq!(udp(SNMP), Some(Udp { sent: 2_000, received: 1_000, dropped: 5 }));
        assert_eq!(udp("Udp: InDatagrams\n"), None);
        assert_eq!(ticks("12 (a) (b c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0"), Some(300));
        assert_eq!(ticks("12 (a"), None);
        assert_eq!(host("cpu  10 20 30 40 50 6 7 8 9 9\ncpu0 1 2\n"), Some((81, 171)));
        assert_eq!(role(b"/bin/weir\0agent\0--role\0publisher\0--control\0x\0"), Some("publisher".into()));
        assert_eq!(role(b"ssh\0host\0"), None);
        assert_eq!(role(b"weir\0--role\0\x1b[2J\0"), None);
    }

    #[test]
    fn rates_are_differences_of_the_same_process() {
        let reading = |ticks: u64, pid, busy, sent| Reading {
            ends: vec![("publisher".into(), pid, ticks)],
            host: Some((busy, busy * 2)),
            udp: Some(Udp { sent, received: sent / 2, dropped: 0 }),
        };
        let rates = reading(150, 7, 300, 9_000).since(&reading(100, 7, 200, 1_000), 2.0, 100.0);
        assert_eq!(rates.ends, [("publisher".to_owned(), 25.0)]);
        assert_eq!((rates.host_percent, rates.udp_per_s), (Some(50.0), Some([4_000.0, 2_000.0, 0.0])));
        // Processes of another case are others, and counters of another namespace may be smaller.
        let rates = reading(5, 8, 300, 10).since(&reading(100, 7, 200, 1_000), 2.0, 100.0);
        assert_eq!((rates.ends, rates.udp_per_s), (vec![], Some([0.0; 3])));
    }
}
