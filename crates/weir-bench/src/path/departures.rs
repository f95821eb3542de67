//! When the packets of an emulated link leave it, if they are read later than they arrived.
//!
//! A thread that is late reads packets which should be gone by then. They leave late, and as far apart as the link
//! lets packets leave: together, they would be faster than the link.

/// The departures in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departures {
    /// When the last packet in order was to leave.
    planned_ns: u64,
    /// When it leaves.
    leaves_ns: u64,
}

/// What the link says about a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// When it is to leave.
    pub(super) at_ns: u64,
    /// How long the link takes to send it.
    pub(super) wire_ns: u64,
    /// Later ones may overtake it.
    pub(super) is_held: bool,
}

/// When a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) at_ns: u64,
    /// By how much this is later than planned.
    pub(super) late_ns: u64,
}

impl Departures {
    /// Returns when the next packet leaves: not before `soonest_ns`, and as far behind the one before as planned, or by
    /// its time on the link if that is less. A delay shrinks where the plan has gaps.
    pub(super) fn next(&mut self, planned: Planned, soonest_ns: u64) -> Departure {
        let Planned { at_ns: planned_ns, wire_ns, is_held } = planned;
        let earliest_ns = planned_ns.max(soonest_ns);
        let gap_ns = if is_held { 0 } else { planned_ns.saturating_sub(self.planned_ns).min(wire_ns) };
        let at_ns = earliest_ns.max(self.leaves_ns.saturating_add(gap_ns));
        if !is_held {
            *self = Self { planned_ns, leaves_ns: at_ns };
        }
        Departure { at_ns, late_ns: at_ns - planned_ns }
    }
}

/// When a packet of a batch arrived that was read at `now_ns`, after nothing was left at `since_ns`. Exact times are
/// unknown: the packets are spread evenly.
pub(super) fn arrived_ns(since_ns: u64, now_ns: u64, index: u64, count: u64) -> u64 {
    since_ns + now_ns.saturating_sub(since_ns) * (2 * index + 1) / (2 * count)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_netsim::{Link, LinkState, Rng, Verdict};

    use super::*;

    /// The departures of packets of 1500 bytes from a link with a delay of 1 ms, read in batches: since when, when, and
    /// how many.
    fn departures(link: Link, batches: &[(u64, u64, u64)]) -> Vec<Departure> {
        const DELAY_NS: u64 = 1_000_000;
        let mut state = LinkState::new(link.delay(Duration::from_nanos(DELAY_NS)), Rng::new(1));
        let mut departures = Departures::default();
        let packets =
            batches.iter().flat_map(|&(since, now, count)| (0..count).map(move |it| (since, now, it, count)));
        let mut leave = |(since, now, index, count)| {
            let arrived = Duration::from_nanos(arrived_ns(since, now, index, count));
            let wire_ns = state.wire_time(arrived, 1500).as_nanos() as u64;
            let Verdict::Arrives { at, is_held, .. } = state.offer(arrived, 1500) else { panic!("lost") };
            departures.next(Planned { at_ns: at.as_nanos() as u64, wire_ns, is_held }, now + DELAY_NS)
        };
        packets.map(&mut leave).collect()
    }

    #[test]
    fn a_packet_that_is_read_late_leaves_late_and_counts_so() {
        let found = departures(Link::new(), &[(0, 20_000_000, 1)]);
        assert_eq!(found, [Departure { at_ns: 21_000_000, late_ns: 10_000_000 }]);
    }

    #[test]
    fn packets_that_are_read_together_leave_at_the_rate_of_the_link() {
        const WIRE_NS: u64 = 240_000;
        // Some are read late, the next soon after them, and then at once.
        let batches = [(0, 20_000_000, 2), (20_000_000, 40_000_000, 50), (40_000_000, 40_050_000, 3)];
        let found = departures(Link::new().rate_bps(50_000_000), &batches);
        for pair in found.windows(2) {
            assert!(pair[1].at_ns >= pair[0].at_ns + WIRE_NS, "{pair:?}");
        }
        assert!(found[0].at_ns == 21_000_000 && found[2].at_ns == 41_000_000, "{found:?}");
    }

    #[test]
    fn a_delay_ends_where_the_plan_has_a_gap() {
        let link = Link::new().rate_bps(50_000_000);
        let found = departures(link, &[(0, 20_000_000, 40), (60_000_000, 60_000_000, 1)]);
        assert_eq!(found[39].late_ns, 9_370_000);
        assert_eq!(found[40], Departure { at_ns: 61_240_000, late_ns: 0 });
    }

    #[test]
    fn a_packet_that_is_held_back_delays_no_other() {
        let mut departures = Departures::default();
        let planned = |at_ns, is_held| Planned { at_ns, wire_ns: 10, is_held };
        let mut next = |at_ns, is_held| departures.next(planned(at_ns, is_held), 0).at_ns;
        assert_eq!([next(100, false), next(900, true), next(110, false)], [100, 900, 110]);
    }
}
