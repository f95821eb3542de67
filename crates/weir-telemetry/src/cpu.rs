//! Processors: time by category, and frequencies.

use crate::counters::{Counters as _, counters};

counters! {
    /// A processor's time by category, in kernel ticks (usually 10 ms).
    CpuTimes {
        /// User mode, niced included.
        user,
        /// The kernel, interrupts included.
        system,
        /// Of `system`: serving interrupts.
        irq,
        /// Of `system`: deferred work of interrupts, which is most of the cost of receiving.
        softirq,
        /// Idle, or waiting for a block device.
        idle,
        /// Of `idle`: waiting for a block device.
        iowait,
        /// Taken by the hypervisor for other guests.
        steal,
    }
}

impl CpuTimes {
    /// Returns each category in percent of the total; idle if no time has passed.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = self.user + self.system + self.idle + self.steal;
        let times = if all == 0 { Self { idle: 1, ..Self::default() } } else { *self };
        times.named().map(move |(name, part)| (name, part as f64 * 100.0 / all.max(1) as f64))
    }
}

/// The content of `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) all_cpus: CpuTimes,
    /// Each processor that is online, with its number.
    pub(crate) cpus: Vec<(u32, CpuTimes)>,
    pub(crate) interrupts: u64,
    pub(crate) context_switches: u64,
}

/// Parses `/proc/stat`, proc_stat(5).
pub(crate) fn parse_stat(text: &str) -> Stat {
    let mut stat = Stat::default();
    for line in text.lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "cpu" => stat.all_cpus = parse_times(rest),
            "intr" => stat.interrupts = first_number(rest),
            "ctxt" => stat.context_switches = first_number(rest),
            _ => {
                if let Some(number) = name.strip_prefix("cpu").and_then(|number| number.parse().ok()) {
                    stat.cpus.push((number, parse_times(rest)));
                }
            }
        }
    }
    stat
}

/// Parses `user nice system idle iowait irq softirq steal ...`.
fn parse_times(text: &str) -> CpuTimes {
    let mut times = text.split_whitespace().map(|time| time.parse::<u64>().unwrap_or(0));
    let mut next = || times.next().unwrap_or(0);
    let (user, nice, system, idle, iowait, irq, softirq, steal) =
        (next(), next(), next(), next(), next(), next(), next(), next());
    CpuTimes {
        user: user + nice,
        system: system + irq + softirq,
        irq,
        softirq,
        idle: idle + iowait,
        iowait,
        steal,
    }
}

/// Returns the first number of a text, 0 without one.
pub(crate) fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  10 2 30 400 5 6 7 8 0 0
cpu0 5 1 15 200 2 3 3 4 0 0
cpu3 5 1 15 200 3 3 4 4 0 0
intr 12345 1 2 3
ctxt 678
btime 1
";

    #[test]
    fn times_are_summed_by_kind() {
        let stat = parse_stat(STAT);
        let expected = CpuTimes { user: 12, system: 43, irq: 6, softirq: 7, idle: 405, iowait: 5, steal: 8 };
        assert_eq!(stat.all_cpus, expected);
        assert_eq!(stat.cpus.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 3]);
        assert_eq!((stat.interrupts, stat.context_switches), (12345, 678));
        assert_eq!(parse_stat(""), Stat::default());
        assert_eq!(parse_stat("cpu\ncpux 1\nintr\n"), Stat::default());
    }

    #[test]
    fn any_number_of_processors() {
        let text: String = (0..300).map(|cpu| format!("cpu{cpu} {cpu} 0 0 0 0 0 0 0 0 0\n")).collect();
        let stat = parse_stat(&text);
        assert_eq!(stat.cpus.len(), 300);
        assert_eq!(stat.cpus[299], (299, CpuTimes { user: 299, ..CpuTimes::default() }));
    }

    #[test]
    fn shares_are_percent_of_all_time() {
        let times = CpuTimes { user: 1, system: 2, softirq: 1, idle: 1, ..CpuTimes::default() };
        let expected = [
            ("user", 25.0),
            ("system", 50.0),
            ("irq", 0.0),
            ("softirq", 25.0),
            ("idle", 25.0),
            ("iowait", 0.0),
            ("steal", 0.0),
        ];
        assert_eq!(times.shares().collect::<Vec<_>>(), expected);
        assert_eq!(CpuTimes::default().shares().nth(4), Some(("idle", 100.0)));
    }
}
