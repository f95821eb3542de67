//! A proxy's life: every way, up to a bound, in which a writer and a reader lose each other and
//! meet again.
//!
//! Either side may forget the other at any time, because a lease ended or a goodbye arrived, and
//! may match it again at any time, noticed by the other side or not. Every datagram between them
//! may be lost. The search lets all these things happen in all orders to the real cores, a few
//! steps deep, from several beginnings. From every state that it reaches, it then runs on without
//! losses, with the sides that are missing matched at once, or after half a minute, in either
//! order. Whatever happened before, the reader must then have what is meant for it, once and in
//! order; one more sample must arrive; and both ends must become silent.
//!
//! The cores are neither cloned nor hashed: a state is the list of actions that leads to it, which
//! are repeated from the beginning, and two states are the same if the cores print the same. A
//! library for model checking (`stateright`) requires states that can be cloned, and would bring
//! little more than the queue and the set below.
//!
//! `WEIR_SIM_DEPTH=n` searches `n` steps deep. Each step takes about four times as long as all
//! before.

mod pair;
mod record;

use core::hash::{Hash, Hasher};
use core::time::Duration;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;

use weir_rtps::qos::{Durability, History, Reliability};

use pair::{Action, Outcome, Pair, Policies};

use crate::profile;

/// Steps of a normal test run. In the small profile, every pair reserves its memory anew, and the orders are the same.
const DEPTH: usize = if profile::IS_SMALL { 4 } else { 5 };
/// Samples that the search writes, besides those of the beginning.
const WRITES: u64 = 2;

/// What happened before the search.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    /// Nothing.
    Unmatched,
    /// Both sides have matched.
    Matched,
    /// Two samples were delivered and acknowledged.
    Acknowledged,
    /// The same, and a third is in flight.
    InFlight,
}

const BEGINNINGS: [Beginning; 4] =
    [Beginning::Unmatched, Beginning::Matched, Beginning::Acknowledged, Beginning::InFlight];

impl Beginning {
    fn writes(self) -> u64 {
        match self {
            Self::Unmatched | Self::Matched => 0,
            Self::Acknowledged => 2,
            Self::InFlight => 3,
        }
    }

    fn of(self, policies: Policies) -> Result<Pair, String> {
        let mut pair = Pair::new(policies);
        if matches!(self, Self::Unmatched) {
            return Ok(pair);
        }
        pair.step(Action::WriterMatches)?;
        pair.step(Action::ReaderMatches)?;
        pair.run_for(SETTLE)?;
        for number in 1..=self.writes() {
            pair.step(Action::Write)?;
            if number <= 2 {
                pair.run_for(SETTLE)?;
            }
        }
        Ok(pair)
    }
}

/// What follows a state.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// Each side that is missing matches at once.
    AtOnce,
    /// First the writer's side runs without the other, then the other one matches.
    WriterFirst,
    ReaderFirst,
}

impl Ending {
    /// Runs on without losses, and checks what is promised then.
    fn follow(self, mut pair: Pair) -> Outcome {
        let (first, second) = match self {
            Self::AtOnce | Self::WriterFirst => (Action::WriterMatches, Action::ReaderMatches),
            Self::ReaderFirst => (Action::ReaderMatches, Action::WriterMatches),
        };
        let is_missing = |pair: &Pair, action| match action {
            Action::WriterMatches => !pair.is_reader_known,
            _ => !pair.is_writer_known,
        };
        if is_missing(&pair, first) {
            pair.step(first)?;
        }
        if !matches!(self, Self::AtOnce) {
            pair.run_for(APART)?;
        }
        if is_missing(&pair, second) {
            pair.step(second)?;
        }
        settle(&mut pair)?;
        pair.check()?;
        pair.step(Action::Write)?;
        settle(&mut pair)?;
        pair.check()?;
        let last = pair.record.written;
        if pair.record.has(last) {
            Ok(())
        } else {
            Err(format!("sample {last}, the last one, never arrived"))
        }
    }
}

fn settle(pair: &mut Pair) -> Outcome {
    if pair.run_for(SETTLE)? { Ok(()) } else { Err(format!("still sending after {SETTLE:?}")) }
}

/// A path to a state, and what can follow.
struct State {
    path: Vec<Action>,
    actions: Vec<Action>,
}

/// The search of one pair of policies from one beginning.
struct Search {
    policies: Policies,
    beginning: Beginning,
    seen: HashSet<u64>,
}

impl Search {
    /// Searches to a depth, and returns the number of states.
    fn run(&mut self, depth: usize) -> usize {
        let start = self.at(&[]);
        let writes_max = self.beginning.writes() + WRITES;
        self.seen.insert(digest(&start));
        let mut level = vec![State { path: Vec::new(), actions: start.actions(writes_max) }];
        self.end(&[], &start);
        for _ in 0..depth {
            let mut next = Vec::new();
            for State { path, actions } in level {
                for action in actions {
                    let path = [&path[..], &[action]].concat();
                    let pair = self.at(&path);
                    if self.seen.insert(digest(&pair)) {
                        self.end(&path, &pair);
                        next.push(State { path, actions: pair.actions(writes_max) });
                    }
                }
            }
            level = next;
        }
        self.seen.len()
    }

    /// The state at the end of a path.
    fn at(&self, path: &[Action]) -> Pair {
        let reached = self.beginning.of(self.policies).and_then(|mut pair| {
            path.iter().try_for_each(|action| pair.step(*action))?;
            Ok(pair)
        });
        reached.unwrap_or_else(|wrong| panic!("{wrong}: {}", self.describe(path)))
    }

    /// Follows a state to its ends.
    fn end(&self, path: &[Action], pair: &Pair) {
        let endings = match (pair.is_reader_known, pair.is_writer_known) {
            (true, true) => &[Ending::AtOnce][..],
            // The side that knows the other stays alone for a while.
            (true, false) => &[Ending::AtOnce, Ending::WriterFirst],
            (false, true) => &[Ending::AtOnce, Ending::ReaderFirst],
            (false, false) => &[Ending::AtOnce, Ending::WriterFirst, Ending::ReaderFirst],
        };
        for ending in endings {
            if let Err(wrong) = ending.follow(self.at(path)) {
                panic!("{wrong}: {} and then {ending:?}", self.describe(path));
            }
        }
    }

    fn describe(&self, path: &[Action]) -> String {
        format!("{:?} from {:?} after {path:?}", self.policies, self.beginning)
    }
}

fn digest(pair: &Pair) -> u64 {
    let mut hasher = DefaultHasher::new();
    pair.describe().hash(&mut hasher);
    hasher.finish()
}

/// Searches all beginnings of all histories, of pairs on two hosts.
fn search(writer: (Reliability, Durability), reader: (Reliability, Durability)) {
    search_at(writer, reader, false);
}

fn search_at(writer: (Reliability, Durability), reader: (Reliability, Durability), are_near: bool) {
    let depth = std::env::var("WEIR_SIM_DEPTH").ok();
    let depth = depth.map_or(DEPTH, |depth| depth.parse().expect("WEIR_SIM_DEPTH is a number"));
    for history in [History::KeepAll, History::KeepLast(1), History::KeepLast(2)] {
        for beginning in BEGINNINGS {
            let policies = Policies { writer, reader, history, are_near };
            let states = Search { policies, beginning, seen: HashSet::new() }.run(depth);
            assert!(states > depth, "the search has found no more than a line of states");
        }
    }
}

const RELIABLE: Reliability = Reliability::Reliable;
const LOOSE: Reliability = Reliability::BestEffort;
const DURABLE: Durability = Durability::TransientLocal;
const VOLATILE: Durability = Durability::Volatile;

#[test]
fn a_durable_pair_that_meets_again_has_everything_once_and_is_silent() {
    search((RELIABLE, DURABLE), (RELIABLE, DURABLE));
}

#[test]
fn a_volatile_pair_that_meets_again_goes_on_or_reports_what_is_lost() {
    search((RELIABLE, VOLATILE), (RELIABLE, VOLATILE));
}

#[test]
fn a_volatile_reader_of_a_durable_writer_goes_on_or_reports_what_is_lost() {
    search((RELIABLE, DURABLE), (RELIABLE, VOLATILE));
}

#[test]
fn volatile_readers_on_the_host_of_their_writer_go_on_or_report_what_is_lost() {
    search_at((RELIABLE, VOLATILE), (RELIABLE, VOLATILE), true);
    search_at((RELIABLE, DURABLE), (RELIABLE, VOLATILE), true);
}

#[test]
fn best_effort_pairs_that_meet_again_go_on_and_are_silent() {
    for writer in [(RELIABLE, DURABLE), (RELIABLE, VOLATILE), (LOOSE, VOLATILE), (LOOSE, DURABLE)] {
        search(writer, (LOOSE, VOLATILE));
    }
    search((RELIABLE, DURABLE), (LOOSE, DURABLE));
    search((LOOSE, DURABLE), (LOOSE, DURABLE));
}

/// The writer's goodbye to a silent reader was wrong, and the HEARTBEAT that says where it goes on is
/// lost: the reader asks for the sample that was not meant for it, and gets a GAP.
#[test]
fn a_sample_written_while_a_volatile_reader_was_forgotten_is_reported_lost() {
    let (writer, reader) = ((RELIABLE, VOLATILE), (RELIABLE, VOLATILE));
    let policies = Policies { writer, reader, history: History::KeepAll, are_near: false };
    let search = Search { policies, beginning: Beginning::Acknowledged, seen: HashSet::new() };
    let path = [Action::WriterForgets, Action::Write, Action::WriterMatches, Action::LoseToReader];
    search.end(&path, &search.at(&path));
}

/// The reader, which has matched the writer again, holds back the first of two samples when the first
/// HEARTBEAT says that the writer has neither.
#[test]
fn a_sample_skipped_behind_one_that_a_resumed_reader_holds_back_is_reported_lost() {
    let (writer, reader) = ((RELIABLE, VOLATILE), (RELIABLE, VOLATILE));
    let policies = Policies { writer, reader, history: History::KeepAll, are_near: false };
    let search = Search { policies, beginning: Beginning::InFlight, seen: HashSet::new() };
    let path = [
        Action::LoseToReader,
        Action::ReaderForgets,
        Action::ReaderMatches,
        Action::Write,
        Action::WriterForgets,
        Action::Write,
    ];
    search.end(&path, &search.at(&path));
}

/// Samples are replaced before they have arrived. A pair on one host has exchanged nothing before the first one.
#[test]
fn a_pair_on_one_host_gets_and_counts_the_same_samples_as_one_on_two() {
    let outcome = |are_near, depth, lost: u32| {
        let (writer, reader) = ((RELIABLE, VOLATILE), (RELIABLE, VOLATILE));
        let policies = Policies { writer, reader, history: History::KeepLast(depth), are_near };
        let mut pair = Beginning::Matched.of(policies)?;
        for number in 0..4 {
            pair.step(Action::Write)?;
            pair.step(if lost & (1 << number) == 0 { Action::ToReader } else { Action::LoseToReader })?;
        }
        settle(&mut pair)?;
        let taken: Vec<u64> = (1..=4).filter(|number| pair.record.has(*number)).collect();
        Ok::<_, String>((taken, pair.lost()))
    };
    for (depth, lost) in [1, 2].into_iter().flat_map(|depth| (0..16).map(move |lost| (depth, lost))) {
        assert_eq!(
            outcome(true, depth, lost),
            outcome(false, depth, lost),
            "the last {depth}, {lost:b} lost"
        );
    }
    assert_eq!(outcome(true, 1, 0b1111), Ok((vec![4], 3)));
}

/// More than any back-off.
const SETTLE: Duration = Duration::from_secs(300);
/// How long one side waits for the other to match: longer than it asks.
const APART: Duration = Duration::from_secs(30);
