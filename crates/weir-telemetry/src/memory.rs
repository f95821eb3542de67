//! Memory, paging and pressure.

use crate::counters::counters;
use crate::cpu::first_number;

/// Memory now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Total memory, in KiB.
    pub(crate) total_kib: u64,
    /// Memory available to new processes, in KiB.
    pub(crate) available_kib: u64,
}

impl Memory {
    /// Returns the memory that is not available to new processes, in percent.
    pub(crate) fn used_percent(&self) -> f64 {
        if self.total_kib == 0 {
            return 0.0;
        }
        let used = self.total_kib.saturating_sub(self.available_kib);
        used as f64 * 100.0 / self.total_kib as f64
    }
}

counters! {
    /// Paging since the system started.
    Paging {
        /// KiB read from block devices.
        in_kib,
        /// KiB written to block devices.
        out_kib,
        /// Page faults, served from memory or not.
        faults,
        /// Page faults that waited for a block device.
        major_faults,
    }
}

counters! {
    /// Swapping since the system started.
    Swapping {
        /// Pages swapped in.
        in_pages,
        /// Pages swapped out.
        out_pages,
    }
}

counters! {
    /// Time that processes waited for a resource (PSI) since the system started, in microseconds.
    Pressure {
        /// At least one process waited.
        some_us,
        /// All processes waited at once; always 0 for processors.
        full_us,
    }
}

/// Parses `/proc/meminfo`; `None` if a value is missing.
pub(crate) fn parse_memory(text: &str) -> Option<Memory> {
    let value = |name: &str| {
        text.lines().find_map(|line| Some(first_number(line.strip_prefix(name)?.strip_prefix(':')?)))
    };
    Some(Memory { total_kib: value("MemTotal")?, available_kib: value("MemAvailable")? })
}

/// Parses `/proc/vmstat`.
pub(crate) fn parse_paging(text: &str) -> (Paging, Swapping) {
    let (mut paging, mut swapping) = (Paging::default(), Swapping::default());
    for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
        let count = match name {
            "pgpgin" => &mut paging.in_kib,
            "pgpgout" => &mut paging.out_kib,
            "pswpin" => &mut swapping.in_pages,
            "pswpout" => &mut swapping.out_pages,
            "pgfault" => &mut paging.faults,
            "pgmajfault" => &mut paging.major_faults,
            _ => continue,
        };
        *count = first_number(value);
    }
    (paging, swapping)
}

/// Parses a file of `/proc/pressure`; `None` if the kernel does not count.
pub(crate) fn parse_pressure(text: &str) -> Option<Pressure> {
    let total = |kind: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(kind))?;
        line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
    };
    Some(Pressure { some_us: total("some ")?, full_us: total("full ").unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters as _;

    #[test]
    fn memory_that_is_not_available_is_used() {
        let memory = parse_memory("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n").unwrap();
        assert_eq!(memory, Memory { total_kib: 1000, available_kib: 250 });
        assert_eq!(memory.used_percent(), 75.0);
        assert_eq!(parse_memory(""), None);
        assert_eq!(Memory::default().used_percent(), 0.0);
    }

    #[test]
    fn paging_is_found_by_name() {
        let text = "nr_free 1\npgpgin 3\npgpgout 4\npswpin 5\npswpout 6\npgfault 7\npgmajfault 8\nodd\n";
        let paging = Paging { in_kib: 3, out_kib: 4, faults: 7, major_faults: 8 };
        assert_eq!(parse_paging(text), (paging, Swapping { in_pages: 5, out_pages: 6 }));
        assert_eq!(paging.since(&paging), Paging::default());
    }

    #[test]
    fn pressure_may_have_one_line_or_two_or_none() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n";
        assert_eq!(parse_pressure(text), Some(Pressure { some_us: 5, full_us: 3 }));
        assert_eq!(parse_pressure("some avg10=1.00 total=9\n"), Some(Pressure { some_us: 9, full_us: 0 }));
        assert_eq!(parse_pressure(""), None);
    }
}
