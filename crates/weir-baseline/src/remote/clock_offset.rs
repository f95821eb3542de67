//! How the clocks of two hosts relate: the same one, or an offset with an error bound.

use std::fs;

use serde::{Deserialize, Serialize};
use weir_measure::rounded;
use weir_results::ClockRelation;

/// Names the clock of this process: equal names mean the same clock. Empty if the kernel does not
/// identify it.
#[must_use]
pub fn name() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // Processes of one host may have different clocks (time_namespaces(7)).
    let namespace = fs::read_link("/proc/self/ns/time").map(|link| link.display().to_string());
    match (boot.trim(), namespace) {
        ("", _) => String::new(),
        (boot, Ok(namespace)) => format!("{boot} {namespace}"),
        (boot, Err(_)) => boot.to_owned(),
    }
}

/// One exchange of times, nanoseconds of the clock of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The client sent the question.
    pub asked_ns: u64,
    /// The server received it.
    pub heard_ns: u64,
    /// The server sent the answer.
    pub answered_ns: u64,
    /// The client received it.
    pub got_ns: u64,
}

/// How far the server's clock is ahead of the client's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Nanoseconds to be added to a time of the client.
    pub offset_ns: i64,
    /// The bound of its error.
    pub error_ns: u64,
}

impl Offset {
    /// Takes the shortest exchange: half of its time, without the server's part, bounds the error.
    #[must_use]
    pub fn of(exchanges: &[Exchange]) -> Option<Self> {
        let way_ns = |one: &Exchange| {
            let away = one.got_ns.saturating_sub(one.asked_ns);
            away.saturating_sub(one.answered_ns.saturating_sub(one.heard_ns))
        };
        let best = exchanges.iter().min_by_key(|one| way_ns(one))?;
        let between = |from: u64, to: u64| i128::from(to) - i128::from(from);
        let twice = between(best.asked_ns, best.heard_ns) + between(best.got_ns, best.answered_ns);
        Some(Self {
            offset_ns: i64::try_from(twice / 2).ok()?,
            // Division may have truncated.
            error_ns: way_ns(best).div_ceil(2) + 1,
        })
    }
}

/// The relation by two estimates, before and after a measurement whose times were corrected by the
/// first.
#[must_use]
pub fn relation(before: Offset, after: Offset) -> ClockRelation {
    let drift_ns = after.offset_ns.saturating_sub(before.offset_ns);
    let error_ns = before.error_ns.max(after.error_ns).saturating_add(drift_ns.unsigned_abs());
    let us = |ns: f64| rounded(ns / 1e3);
    ClockRelation {
        shared: false,
        offset_us: us(before.offset_ns as f64),
        error_us: us(error_ns as f64),
        drift_us: us(drift_ns as f64),
    }
}

/// The relation of a clock to itself.
pub(crate) fn shared() -> ClockRelation {
    ClockRelation { shared: true, ..ClockRelation::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exchange with a server whose clock is ahead by `ahead`, with these one-way delays.
    fn exchange(ahead: u64, to: u64, work: u64, back: u64) -> Exchange {
        let asked_ns = 1_000_000;
        Exchange {
            asked_ns,
            heard_ns: asked_ns + to + ahead,
            answered_ns: asked_ns + to + work + ahead,
            got_ns: asked_ns + to + work + back,
        }
    }

    #[test]
    fn the_truth_lies_within_the_error_however_uneven_the_ways_are() {
        for (to, back) in [(10, 10), (0, 1001), (5000, 1), (77, 0)] {
            let offset = Offset::of(&[exchange(1 << 40, to, 300, back)]).unwrap();
            assert!(offset.offset_ns.abs_diff(1 << 40) <= offset.error_ns, "{to} {back}: {offset:?}");
            assert!(offset.error_ns <= (to + back) / 2 + 2);
        }
    }

    #[test]
    fn the_shortest_exchange_counts_and_clocks_may_be_behind() {
        let offset = Offset::of(&[exchange(9, 900, 0, 100), exchange(9, 10, 5000, 10)]).unwrap();
        assert_eq!((offset.offset_ns, offset.error_ns), (9, 11));
        let behind = Exchange { asked_ns: 500, heard_ns: 110, answered_ns: 110, got_ns: 520 };
        assert_eq!(Offset::of(&[behind]).unwrap().offset_ns, -400);
        assert_eq!(Offset::of(&[]), None);
    }

    #[test]
    fn drift_adds_to_the_error() {
        let before = Offset { offset_ns: 5_000, error_ns: 100 };
        let after = Offset { offset_ns: 4_000, error_ns: 300 };
        let found = relation(before, after);
        assert_eq!((found.offset_us, found.drift_us, found.error_us), (5.0, -1.0, 1.3));
        assert!(!found.shared && shared().shared);
    }

    #[test]
    fn this_process_has_one_clock() {
        assert_eq!(name(), name());
    }
}
