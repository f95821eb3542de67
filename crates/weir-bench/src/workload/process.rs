//! One process of a workload.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddrV4;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use weir_measure::{clock, nanos};
use weir_results::{LatencyHistogram, LatencyKind, LatencyRecorder};

use super::deliveries::{Delivered, Deliveries};
use super::layout::{Layout, PlacedWriter};
use super::timetable::Timetable;
use super::{TopicGroup, Workload};
use crate::case::CaseSpec;
use crate::endpoint::{EndpointError, Engine, TopicReader, TopicSetup, TopicWriter, WorkloadNode};
use crate::payload::SampleHeader;

/// What a process found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessOutcome {
    /// Its readers, by kind of topics.
    pub delivered: Vec<Delivered>,
    /// Its writers.
    pub written: Vec<Written>,
    /// How late they began to write in the measured part, by kind of topics.
    pub lags: Vec<Option<LatencyHistogram>>,
}

/// What a writer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Its number.
    pub writer: usize,
    /// Samples written: their numbers are `0..sent`.
    pub sent: u64,
    /// Those written before the end.
    pub in_time: u64,
}

/// A process with its nodes.
pub(crate) struct Process {
    case: CaseSpec,
    workload: Workload,
    layout: Layout,
    nodes: Vec<Node>,
    deliveries: Deliveries,
    lags: Vec<Mutex<LatencyRecorder>>,
}

struct Node {
    node: Box<dyn WorkloadNode>,
    writers: Vec<NodeWriter>,
    /// Each with the number of writers that it waits for.
    readers: Vec<(u32, Box<dyn TopicReader>)>,
}

struct NodeWriter {
    number: usize,
    placed: PlacedWriter,
    writer: Box<dyn TopicWriter>,
    /// Samples written, and those of them before the end.
    next: u64,
    in_time: u64,
}

impl Process {
    /// Opens the nodes of the process that the case names, with all of their endpoints.
    pub(crate) fn open(engine: &dyn Engine, case: &CaseSpec) -> Result<Self, EndpointError> {
        let missing = || EndpointError::Engine("the case has no workload".to_owned());
        let workload = case.workload.clone().ok_or_else(missing)?;
        let layout = Layout::new(&workload).map_err(|(_, cause)| EndpointError::Engine(cause))?;
        let lags = workload.topics.iter().map(|_| Mutex::new(LatencyRecorder::new())).collect();
        let deliveries = Deliveries::new(workload.topics.len());
        // What the engine is opened with: the nodes are its business, the workload is not. Sockets are shared by all
        // topics, so they have room for the largest sample.
        let of_node = CaseSpec { workload: None, size_bytes: workload.size_bytes_max(), ..case.clone() };
        let mut process = Self { case: of_node, workload, layout, nodes: Vec::new(), deliveries, lags };
        let numbers: Vec<usize> = (0..process.layout.nodes.len()).collect();
        for number in numbers {
            if process.layout.nodes[number].process == case.ends.entity_id {
                process.open_node(engine, number)?;
            }
        }
        Ok(process)
    }

    /// Where its nodes are, by their numbers, for engines without discovery.
    pub(crate) fn addresses(&self) -> Vec<(usize, SocketAddrV4)> {
        let here = |number: &usize| self.layout.nodes[*number].process == self.case.ends.entity_id;
        let numbers = (0..self.layout.nodes.len()).filter(here);
        numbers.zip(&self.nodes).filter_map(|(number, node)| Some((number, node.node.address()?))).collect()
    }

    /// Waits until all endpoints have found their peers.
    pub(crate) fn connect(&mut self, nodes: &[SocketAddrV4], timeout: Duration) -> Result<(), EndpointError> {
        if !nodes.is_empty() {
            self.nodes.iter_mut().try_for_each(|node| node.node.connect(nodes))?;
        }
        let deadline = Instant::now() + timeout;
        loop {
            let (matched, wanted) = self.matches();
            if matched >= wanted {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(EndpointError::NoPeer(format!(
                    "{matched} of {wanted} matches of writers and readers after {timeout:?}"
                )));
            }
            thread::sleep(MATCH_PAUSE);
        }
    }

    /// The matches of its endpoints so far, and of how many there should be.
    fn matches(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        let mut add = |matched: u32, wanted: u32| {
            sums.0 += u64::from(matched.min(wanted));
            sums.1 += u64::from(wanted);
        };
        for node in &self.nodes {
            for it in &node.writers {
                add(it.writer.matched(), self.workload.topics[it.placed.group].readers);
            }
            node.readers.iter().for_each(|(wanted, reader)| add(reader.matched(), *wanted));
        }
        sums
    }

    /// Follows the schedules from `start_ns` on until they end. `measured` is called when the measured part begins, and
    /// what it returned when that part ends.
    pub(crate) fn run<M, R>(
        &mut self,
        start_ns: u64,
        begin: impl FnOnce() -> M,
        end: impl FnOnce(M) -> R,
    ) -> Result<R, EndpointError> {
        let (workload, layout, case) = (&self.workload, &self.layout, &self.case);
        let timetable = |number: usize| {
            let topics = &workload.topics[layout.writers[number].group];
            Timetable::new(topics, number, start_ns, case.warmup, case.duration)
        };
        self.deliveries.begin(timetable);
        let measured_ns = start_ns.saturating_add(nanos(case.warmup));
        check_begun(measured_ns)?;
        let end_ns = measured_ns.saturating_add(nanos(case.duration));
        let follow = Follow { topics: &workload.topics, lags: &self.lags, end_ns };
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for node in self.nodes.iter_mut().filter(|node| !node.writers.is_empty()) {
                let builder = thread::Builder::new().name("schedule".to_owned());
                let follow = &follow;
                let run = move || follow.run(&mut node.writers, timetable);
                let thread = builder.spawn_scoped(scope, run);
                threads
                    .push(thread.map_err(|error| EndpointError::Environment(format!("no thread: {error}")))?);
            }
            // The threads follow their schedules anyway.
            let begun = check_begun(measured_ns);
            sleep_until(measured_ns);
            let measured = begin();
            sleep_until(end_ns);
            let result = end(measured);
            for thread in threads {
                let panicked =
                    |_| EndpointError::Engine("a thread that follows a schedule panicked".to_owned());
                thread.join().map_err(panicked)??;
            }
            begun.map(|()| result)
        })
    }

    /// What its writers did.
    pub(crate) fn written(&self) -> Vec<Written> {
        let of = |it: &NodeWriter| Written { writer: it.number, sent: it.next, in_time: it.in_time };
        self.nodes.iter().flat_map(|node| &node.writers).map(of).collect()
    }

    /// Waits until everything has arrived that writers sent, or nothing arrives any more.
    pub(crate) fn drain(&self, sent: &[u64]) {
        let start = Instant::now();
        let mut last = (self.deliveries.arrivals(), start);
        while start.elapsed() < DRAIN_WAIT {
            let quiet = match self.deliveries.missing(sent) {
                (0, 0) => return,
                (0, _) => QUIET_BEST_EFFORT,
                _ => QUIET_RELIABLE,
            };
            let arrivals = self.deliveries.arrivals();
            if arrivals != last.0 {
                last = (arrivals, Instant::now());
            } else if last.1.elapsed() >= quiet {
                return;
            }
            thread::sleep(DRAIN_PAUSE);
        }
    }

    /// What the process found.
    pub(crate) fn finish(&self, sent: &[u64]) -> ProcessOutcome {
        let lag = |recorder: &Mutex<LatencyRecorder>| recorder.lock().histogram(LatencyKind::OneWay);
        ProcessOutcome {
            delivered: self.deliveries.finish(sent),
            written: self.written(),
            lags: self.lags.iter().map(lag).collect(),
        }
    }

    fn open_node(&mut self, engine: &dyn Engine, number: usize) -> Result<(), EndpointError> {
        let mut node = engine.open_node(&self.case)?;
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for &placed in self.layout.readers.iter().filter(|it| it.node == number) {
            let topics = &self.workload.topics[placed.group];
            let log = self.deliveries.add(placed, topics.reliability);
            let setup = self.setup(topics, placed.group, placed.topic);
            let on_sample = Box::new(move |header: &SampleHeader| log.arrived(header));
            readers.push((placed.writers, node.open_reader(&setup, on_sample)?));
        }
        for (number, &placed) in self.layout.writers.iter().enumerate().filter(|(_, it)| it.node == number) {
            let setup = self.setup(&self.workload.topics[placed.group], placed.group, placed.topic);
            writers.push(NodeWriter {
                number,
                placed,
                writer: node.open_writer(&setup)?,
                next: 0,
                in_time: 0,
            });
        }
        self.nodes.push(Node { node, writers, readers });
        Ok(())
    }

    fn setup(&self, topics: &TopicGroup, group: usize, topic: u32) -> TopicSetup {
        let is_its = |its_group: usize, its_topic: u32| (its_group, its_topic) == (group, topic);
        let first = self.layout.writers.iter().position(|it| is_its(it.group, it.topic)).unwrap_or(0);
        let readers = self.layout.readers.iter().filter(|it| is_its(it.group, it.topic)).map(|it| it.node);
        TopicSetup {
            name: format!("weir_{}_{}_{}", self.case.place.run_id, topics.name, topic),
            size_bytes: topics.size_bytes,
            reliability: topics.reliability,
            keep_last: topics.keep_last,
            instances: topics.instances.saturating_mul(topics.writers),
            writers: first..first + topics.writers as usize,
            readers: readers.collect(),
        }
    }
}

/// What the threads of a process need to follow the schedules of its writers.
struct Follow<'a> {
    topics: &'a [TopicGroup],
    lags: &'a [Mutex<LatencyRecorder>],
    end_ns: u64,
}

impl Follow<'_> {
    /// Writes what is due until the end, the earliest first, and what is late for [`GRACE_NS`] after it: samples that
    /// are left out would have no age. What cannot be written by then is not written.
    fn run(
        &self,
        writers: &mut [NodeWriter],
        timetable: impl Fn(usize) -> Timetable,
    ) -> Result<(), EndpointError> {
        // Otherwise the kernel wakes a thread up to 50 us late. Without it, all engines are later by the same.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let timetables: Vec<Timetable> = writers.iter().map(|it| timetable(it.number)).collect();
        let mut due = BinaryHeap::new();
        for (place, timetable) in timetables.iter().enumerate().filter(|(_, it)| it.count() > 0) {
            due.push(Reverse((timetable.due_ns(0), place)));
        }
        while let Some(Reverse((due_ns, place))) = due.pop() {
            sleep_until(due_ns);
            let now_ns = clock::now_ns();
            if now_ns >= self.end_ns + GRACE_NS {
                return Ok(());
            }
            let (it, timetable) = (&mut writers[place], &timetables[place]);
            if it.next >= timetable.measured_from() {
                self.lags[it.placed.group].lock().record(now_ns.saturating_sub(due_ns));
            }
            self.write_burst(it)?;
            if it.next < timetable.count() {
                due.push(Reverse((timetable.due_ns(it.next), place)));
            }
        }
        Ok(())
    }

    fn write_burst(&self, it: &mut NodeWriter) -> Result<(), EndpointError> {
        let topics = &self.topics[it.placed.group];
        for _ in 0..topics.burst {
            let header = header(topics, it.number, it.next);
            while !it.writer.write(&header)? {
                if clock::now_ns() >= self.end_ns + GRACE_NS {
                    return Ok(());
                }
            }
            it.next += 1;
        }
        if clock::now_ns() < self.end_ns {
            it.in_time = it.next;
        }
        Ok(())
    }
}

/// What precedes the payload of a sample. Writers of a topic have instances of their own.
fn header(topics: &TopicGroup, writer: usize, sample: u64) -> SampleHeader {
    let number = u32::try_from(writer).unwrap_or(u32::MAX);
    let header = SampleHeader::data(sample, 0).by(number);
    if topics.instances == 0 {
        return header;
    }
    let key =
        number.wrapping_mul(topics.instances).wrapping_add((sample % u64::from(topics.instances)) as u32);
    SampleHeader { key: key.to_le_bytes(), ..header }
}

/// Refuses a measured part that was to begin at `measured_ns` and is over in part: its figures would lack that part.
fn check_begun(measured_ns: u64) -> Result<(), EndpointError> {
    let late_ns = clock::now_ns().saturating_sub(measured_ns);
    if late_ns == 0 {
        return Ok(());
    }
    let late_ms = late_ns.div_ceil(1_000_000);
    Err(EndpointError::Environment(format!(
        "the process started {late_ms} ms after the measured part was to begin, the host is too busy: stop other \
         programs, or use a longer --warmup"
    )))
}

fn sleep_until(until_ns: u64) {
    loop {
        let now_ns = clock::now_ns();
        if now_ns >= until_ns {
            return;
        }
        thread::sleep(Duration::from_nanos(until_ns - now_ns));
    }
}

/// So long after the end, samples are written that were due before it, nanoseconds.
const GRACE_NS: u64 = 1_000_000_000;

/// How often a process checks whether its endpoints are matched: seldom, as there are many.
const MATCH_PAUSE: Duration = Duration::from_millis(20);

/// How long a process waits for samples after the last one was written.
const DRAIN_WAIT: Duration = Duration::from_secs(30);

/// Silence after the last write that means that nothing will arrive, if only best-effort samples are missing.
const QUIET_BEST_EFFORT: Duration = Duration::from_millis(300);

/// The same if reliable ones are missing: some engines' heartbeats are 3 s apart.
const QUIET_RELIABLE: Duration = Duration::from_secs(4);

/// How often a process checks whether everything has arrived.
const DRAIN_PAUSE: Duration = Duration::from_millis(10);

/// How long all readers of a workload may take to drain, with the last wait.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(35);

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;
    use crate::engine;
    use crate::workload::examples::PAIR;

    /// The process of the readers, over raw UDP.
    fn readers() -> Process {
        let case = case("udp", Test::Workload).with(|case| {
            case.workload = Some(Workload::parse("pair.toml", PAIR).unwrap());
            case.ends.entity_id = 1;
        });
        Process::open(engine::find("udp").unwrap(), &case).unwrap()
    }

    #[test]
    fn a_process_that_begins_late_measures_nothing() {
        let mut process = readers();
        let start_ns = clock::now_ns() - 20_000_000_000;
        let begin = || panic!("measured");
        let error = process.run(start_ns, begin, |()| ()).unwrap_err();
        assert!(matches!(error, EndpointError::Environment(_)), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("ms after the measured part was to begin") && text.contains("--warmup"),
            "{text}"
        );
    }

    #[test]
    fn sockets_have_room_for_the_largest_sample() {
        assert_eq!(readers().case.size_bytes, 64);
    }
}
