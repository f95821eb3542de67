//! A swarm that lives for many cycles.

use core::time::Duration;

use weir_netsim::{Link, Loss, Rng};
use weir_rtps::qos::{Durability, History, Qos, Reliability};

use super::fragmenter::Fragmenter;
use super::participants::{Member, Swarm};

/// Participants that are disturbed again and again.
pub(crate) struct Cycles {
    swarm: Swarm,
    rng: Rng,
    /// Writers keep all samples for late readers: their participants are replaced after each cycle,
    /// or their histories would grow.
    grows: bool,
    /// So far, in all cycles.
    pub(crate) faults: u64,
    pub(crate) taken: u64,
}

impl Cycles {
    /// Three participants, of which two write and two read.
    pub(crate) fn new(seed: u64, reliability: Reliability, durability: Durability, history: History) -> Self {
        let qos = Qos { reliability, durability, history, ..Qos::for_reader() };
        let mut swarm = Swarm::new(seed, (DELAY, 0.0), LEASE, (qos.clone(), qos));
        swarm.add(1, Some(GAP), None, 212_992);
        swarm.add(2, Some(GAP), None, 212_992);
        swarm.add(3, None, Some(Fragmenter::default()), 100_000);
        let grows = durability == Durability::TransientLocal && history == History::KeepAll;
        Self { swarm, rng: Rng::new(seed), grows, faults: 0, taken: 0 }
    }

    /// Disturbs the participants, checks that nothing is lost, and leaves them at rest.
    pub(crate) fn run_one(&mut self) {
        let Self { swarm, rng, .. } = self;
        swarm.losses = [0.0, 0.02, 0.1][rng.below(3) as usize];
        swarm.network.set_default_link(Link::new().delay(DELAY).loss(Loss::random(swarm.losses)));
        let now = swarm.now;
        swarm.sources.iter_mut().for_each(|source| (source.gap, source.next_at) = (GAP, now));
        swarm.run_for(Duration::from_secs(1));
        for _ in 0..=rng.below(4) {
            swarm.disturb(rng);
        }
        swarm.end_well();
        self.replace_writers();
        let swarm = &mut self.swarm;
        swarm.run_for(REST);
        self.forget_the_past();
    }

    /// Ends the participants whose writers have written enough, and starts new ones in their place.
    fn replace_writers(&mut self) {
        for member in 0..self.swarm.members.len() {
            let mut sources = self.swarm.sources.iter().filter(|it| it.member == member && !it.is_gone);
            if sources.any(|source| self.grows || source.is_blurred) {
                self.swarm.restart(member, false, true, Duration::from_millis(500));
            }
        }
    }

    /// Counts what has happened, and forgets it: writers and readers that are gone, and all samples taken
    /// but the last of each.
    fn forget_the_past(&mut self) {
        let Swarm { sources, members, taken, faults, .. } = &mut self.swarm;
        self.faults += faults.len() as u64;
        self.taken += taken.values().map(|taken| taken.len() as u64).sum::<u64>();
        faults.clear();
        members.iter_mut().for_each(|member| member.node.unmatched.clear());
        sources.retain(|source| !source.is_gone);
        taken.retain(|(reader, process, writer), _| {
            let is_its = |it: &Member| it.node.prefix == reader.prefix && it.processes == *process;
            members.iter().any(is_its) && sources.iter().any(|source| source.guid == *writer)
        });
        for taken in taken.values_mut() {
            *taken = taken.split_off(taken.len().saturating_sub(1));
        }
        // They will be counted again.
        self.taken -= taken.len() as u64;
    }

    /// How long the participants have lived.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_nanos(self.swarm.now.0)
    }
}

/// Between two hosts.
const DELAY: Duration = Duration::from_millis(2);
const LEASE: Duration = Duration::from_secs(10);
/// Between two samples of a writer.
const GAP: Duration = Duration::from_millis(50);
/// Longer than all leases.
const REST: Duration = Duration::from_secs(60);
