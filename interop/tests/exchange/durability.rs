//! What a late-joining reader receives of the history of a writer on the other side.

use weir_dds::{DataReaderQos, DataWriterQos, InstanceHandle, InstanceState, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds;
use crate::peer::Peer;
use crate::types::{Blob, Numbered, ShapeType};
use crate::weir::{LIMIT, Run, await_state, take_exactly};

/// The written samples, and those that a late-joining reader receives.
#[derive(Clone, Copy)]
pub(crate) struct History {
    /// Number of samples written before the reader joins.
    pub(crate) written: u32,
    pub(crate) size: u32,
    pub(crate) instances: u32,
    /// Number of samples that are kept, per instance if there is a depth.
    pub(crate) depth: Option<u32>,
}

impl History {
    pub(crate) const KEYED: Self = Self { written: 300, size: 10, instances: 3, depth: None };
    pub(crate) const UNKEYED: Self = Self { instances: 1, ..Self::KEYED };
    const LARGE: Self = Self { written: 5, size: 200_000, ..Self::UNKEYED };

    /// Keeps the last two of each instance.
    pub(crate) const fn last_two(self) -> Self {
        Self { depth: Some(2), ..self }
    }

    fn kept(self) -> u32 {
        self.depth.map_or(self.written, |depth| depth * self.instances)
    }

    fn qos(self) -> DataWriterQos {
        let qos = DataWriterQos::default().reliable().transient_local().max_blocking_time(LIMIT);
        self.depth.map_or(qos.clone().keep_all(), |depth| qos.keep_last(depth))
    }

    fn options(self) -> String {
        let depth = self.depth.map_or(String::new(), |depth| format!(" keep-last={depth}"));
        format!(" transient-local{depth}")
    }

    fn arguments(self, first: u32, count: u32) -> String {
        format!("{first} {count} {} {}", self.size, self.instances)
    }
}

/// Weir writes before the other side joins.
pub(crate) fn weir_to_other<T: Numbered>(name: &str, it: History, start: impl Fn(&Run) -> Peer) {
    let run = Run::new(name);
    let writer = run.writer_with_qos::<T>(it.qos());
    let write = |number| writer.write(&T::make(number, it.size, it.instances)).unwrap();
    (0..it.written).for_each(write);
    let mut peer = start(&run);
    peer.ask(&(run.command::<T>("reader", Reliability::Reliable) + " transient-local"));
    peer.ask(&format!("read {}", it.arguments(it.written - it.kept(), it.kept())));
    // New samples follow the history.
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.tell(&format!("read {}", it.arguments(it.written, it.kept())));
    (it.written..it.written + it.kept()).for_each(write);
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    peer.answer();
    peer.quit();
}

/// The other side writes before readers of Weir join, one of which is volatile.
pub(crate) fn other_to_weir<T: Numbered>(name: &str, it: History, start: impl Fn(&Run) -> Peer) {
    let run = Run::new(name);
    let mut peer = start(&run);
    peer.ask(&(run.command::<T>("writer", Reliability::Reliable) + &it.options()));
    peer.ask(&format!("write {}", it.arguments(0, it.written)));
    let qos = DataReaderQos::default().reliable().keep_all();
    let volatile = run.reader_with_qos::<T>(qos.clone());
    let late = run.another().reader_with_qos::<T>(qos.transient_local());
    take_exactly(&late, it.written - it.kept(), it.kept(), it.size, it.instances);
    peer.ask("matched 2");
    // It only learns that it has everything: no old samples.
    peer.ask("acknowledged");
    peer.ask(&format!("write {}", it.arguments(it.written, it.kept())));
    take_exactly(&late, it.written, it.kept(), it.size, it.instances);
    take_exactly(&volatile, it.written, it.kept(), it.size, it.instances);
    assert_eq!(late.sample_lost_status().total_count, 0);
    assert_eq!(volatile.sample_lost_status().total_count, 0);
    peer.ask("acknowledged");
    peer.quit();
}

fn start(run: &Run) -> Peer {
    cyclonedds::start(run, "")
}

fn weir_to_cyclone<T: Numbered>(name: &str, history: History) {
    if Requirement::CycloneDds.is_met() {
        weir_to_other::<T>(name, history, start);
    }
}

fn cyclone_to_weir<T: Numbered>(name: &str, history: History) {
    if Requirement::CycloneDds.is_met() {
        other_to_weir::<T>(name, history, start);
    }
}

#[test]
fn cyclone_gets_everything_of_a_writer_that_keeps_all() {
    weir_to_cyclone::<ShapeType>("all_to_cyclone", History::KEYED);
    weir_to_cyclone::<Blob>("all_blobs_to_cyclone", History::UNKEYED);
}

#[test]
fn cyclone_gets_the_last_samples_of_each_instance() {
    weir_to_cyclone::<ShapeType>("last_to_cyclone", History::KEYED.last_two());
    weir_to_cyclone::<Blob>("last_blobs_to_cyclone", History::UNKEYED.last_two());
}

#[test]
fn cyclone_gets_a_history_in_fragments() {
    weir_to_cyclone::<Blob>("large_to_cyclone", History::LARGE);
}

#[test]
fn weir_gets_everything_of_a_writer_that_keeps_all() {
    cyclone_to_weir::<ShapeType>("all_to_weir", History::KEYED);
    cyclone_to_weir::<Blob>("all_blobs_to_weir", History::UNKEYED);
}

#[test]
fn weir_gets_the_last_samples_of_each_instance() {
    cyclone_to_weir::<ShapeType>("last_to_weir", History::KEYED.last_two());
    cyclone_to_weir::<Blob>("last_blobs_to_weir", History::UNKEYED.last_two());
}

#[test]
fn weir_gets_a_history_in_fragments() {
    cyclone_to_weir::<Blob>("large_to_weir", History::LARGE);
}

#[test]
fn late_readers_see_that_an_instance_has_ended() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("ended_to_cyclone");
    let writer = run.writer_with_qos::<ShapeType>(History::KEYED.qos());
    let shape = |number| ShapeType::make(number, 10, 3);
    (0..3).for_each(|number| writer.write(&shape(number)).unwrap());
    writer.dispose(&shape(0)).unwrap();
    let mut peer = start(&run);
    peer.ask(&(run.command::<ShapeType>("reader", Reliability::Reliable) + " transient-local"));
    peer.ask("state 0 disposed");
    peer.quit();

    let run = Run::new("ended_to_weir");
    let mut peer = start(&run);
    peer.ask(&(run.command::<ShapeType>("writer", Reliability::Reliable) + " transient-local"));
    peer.ask("write 0 3 10 3");
    peer.ask("dispose 0 3");
    let late =
        run.reader_with_qos::<ShapeType>(DataReaderQos::default().reliable().keep_all().transient_local());
    let instance = InstanceHandle::of(&shape(0)).unwrap();
    await_state(&late, instance, InstanceState::NotAliveDisposed);
    peer.quit();
}

#[test]
fn a_volatile_reader_gets_everything_from_the_moment_on_that_its_writer_knows_it() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    // The writer may match before the reader does, so its participant may receive data for an
    // unmatched writer.
    let run = Run::new("at_once_to_weir");
    let mut peer = start(&run);
    peer.ask(&(run.command::<Blob>("writer", Reliability::Reliable) + " transient-local"));
    peer.ask("write 0 100 10 1");
    for round in 1..=10 {
        let other = run.another();
        let reader = other.reader_with_qos::<Blob>(DataReaderQos::default().reliable().keep_all());
        peer.ask("matched 1");
        peer.ask(&format!("write {} 100 10 1", 100 * round));
        take_exactly(&reader, 100 * round, 100, 10, 1);
        drop((reader, other));
        peer.ask("matched 0");
    }
    peer.quit();
}
