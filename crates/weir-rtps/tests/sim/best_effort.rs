//! Best-effort writers that ask their readers what has arrived learn what the path carries.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::path::Path;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::time::Time;

use crate::harness::{Answers, Busy, Judge, Sim, medians};
use crate::links::{DATAGRAM_MAX, JITTER_MIN, ethernet, needed, queue_max};

/// A link to the reader.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    rate_bps: u64,
    round_trip: Duration,
    jitter: Duration,
    /// The queue holds the bytes of this time.
    queue: Duration,
    loss: f64,
}

impl Conditions {
    const fn new(mbps: u64, round_trip_ms: u64, queue_ms: u64, loss: f64) -> Self {
        let [round_trip, queue] = [Duration::from_millis(round_trip_ms), Duration::from_millis(queue_ms)];
        Self { rate_bps: mbps * 1_000_000, round_trip, jitter: JITTER_MIN, queue, loss }
    }

    /// Returns the links there and back.
    fn links(&self) -> [Link; 2] {
        let back = ethernet().delay(self.round_trip / 2);
        let queue_bytes = (self.rate_bps as f64 / 8.0 * self.queue.as_secs_f64()) as usize;
        let there = back.clone().jitter(self.jitter).rate_bps(self.rate_bps).queue_bytes(queue_bytes);
        [there.loss(Loss::random(self.loss)), back]
    }
}

/// What is written.
#[derive(Debug, Clone, Copy)]
struct Written {
    size: fn(u64) -> usize,
    gap: Duration,
}

impl Written {
    const fn every(gap_us: u64, size: fn(u64) -> usize) -> Self {
        Self { size, gap: Duration::from_micros(gap_us) }
    }

    /// Returns the bits per second that it takes.
    fn rate_bps(&self) -> f64 {
        needed((self.size)(1), DATAGRAM_MAX) as f64 * 8.0 / self.gap.as_secs_f64()
    }
}

fn set_up_unmet(seed: u64, written: &Written, conditions: &Conditions, answers: Answers) -> Sim {
    let mut sim = Sim::unrecorded("best-effort", seed, Link::new());
    sim.set_steps_max(40_000_000);
    sim.add_writer(|setup| {
        (setup.config.reliability, setup.config.history) = (Reliability::BestEffort, History::KeepLast(10));
        (setup.samples, setup.size, setup.gap) = (u64::MAX, written.size, written.gap);
    });
    sim.add_reader(|setup| {
        setup.config.reliability = Reliability::BestEffort;
        (setup.segment_max, setup.path, setup.answers) = (DATAGRAM_MAX, Some(Path::new()), answers);
    });
    let [writer, reader] = [*sim.writers[0].address.ip(), *sim.readers[0].address.ip()];
    let [there, back] = conditions.links();
    sim.network.set_link(writer, reader, there);
    sim.network.set_link(reader, writer, back);
    sim
}

fn set_up_at_once(seed: u64, written: &Written, conditions: &Conditions, answers: Answers) -> Sim {
    let mut sim = set_up_unmet(seed, written, conditions, answers);
    sim.connect(0, 0);
    sim
}

/// The same with an application that writes when the reader has answered.
fn set_up(seed: u64, written: &Written, conditions: &Conditions, answers: Answers) -> Sim {
    let mut sim = set_up_at_once(seed, written, conditions, answers);
    sim.writers[0].samples = 0;
    sim.run_for(conditions.round_trip * 2 + Duration::from_micros(37) * seed as u32);
    sim.writers[0].samples = u64::MAX;
    sim
}

/// Returns, from the second second on: the share of what the link carries, or of what is written if that is less, that
/// arrives as whole samples; the share of the bytes sent that finds no room in the queue; the mean queue, as a share of
/// the longest one allowed; and the age of the samples that arrive in ms, the 99th percentile.
fn run(seed: u64, written: &Written, conditions: &Conditions, answers: Answers) -> [f64; 4] {
    measure(set_up(seed, written, conditions, answers), written, conditions)
}

fn measure(mut sim: Sim, written: &Written, conditions: &Conditions) -> [f64; 4] {
    const SECONDS: u64 = 5;
    let began = sim.now;
    let guid = sim.writers[0].config.guid;
    let [writer, reader] = [*sim.writers[0].address.ip(), *sim.readers[0].address.ip()];
    sim.run_for(Duration::from_secs(1));
    let (mut ages, mut count) = (Vec::new(), sim.readers[0].taken(guid).len());
    let (first, before) = (count, sim.network.traffic(writer, reader));
    while sim.now < began + Duration::from_secs(1 + SECONDS) {
        sim.run_for(Duration::from_millis(1));
        let taken = sim.readers[0].taken(guid);
        let written_at = |number: &u64| began + written.gap * (*number - 1) as u32;
        ages.extend(
            taken[count..].iter().map(|number| sim.now.since(written_at(number)).as_secs_f64() * 1e3),
        );
        count = taken.len();
    }
    let after = sim.network.traffic(writer, reader);
    let got = (count - first) as f64 * needed((written.size)(1), DATAGRAM_MAX) as f64 * 8.0 / SECONDS as f64;
    let possible = written.rate_bps().min(conditions.rate_bps as f64);
    let offered = (after.offered.bytes - before.offered.bytes) as f64;
    let refused = (after.queue_full.bytes - before.queue_full.bytes) as f64;
    let queue_ns = after.queue.mean_bytes() * 8.0 / conditions.rate_bps as f64;
    ages.sort_by(f64::total_cmp);
    let age = ages.get(ages.len() * 99 / 100).copied().unwrap_or(f64::INFINITY);
    [got / possible, refused / offered, queue_ns / queue_max(conditions.round_trip).as_secs_f64(), age]
}

const SMALL: fn(u64) -> usize = |_| 1024;
const MEDIUM: fn(u64) -> usize = |_| 63_000;
const IMAGE: fn(u64) -> usize = |_| 1 << 20;

/// Without answers, the queues overflow: of samples of 63 000 bytes and more, not one arrives.
#[test]
fn a_best_effort_stream_takes_what_the_path_carries_and_fills_no_queue() {
    let mut judge = Judge::default();
    let links = [
        Conditions::new(100, 1, 10, 0.0),
        Conditions::new(50, 4, 40, 0.0),
        Conditions::new(20, 60, 400, 0.0),
        Conditions::new(5, 60, 400, 0.0),
        Conditions::new(200, 80, 80, 0.0),
    ];
    // Images of 30 Hz, and streams as fast as possible.
    for written in [Written::every(20, SMALL), Written::every(200, MEDIUM), Written::every(33_333, IMAGE)] {
        for conditions in links {
            let [share, refused, queue, age] =
                medians(3, |seed| run(seed, &written, &conditions, Answers::AtOnce));
            let shown = format!(
                "{} B every {:?}, {conditions:?}: {share:.3} of what is possible, refused {refused:.3}, \
                 queue {queue:.2}, age {age:.1} ms",
                (written.size)(1),
                written.gap
            );
            judge.check(share >= 0.85 && refused <= 0.01 && queue <= 1.0, shown);
        }
    }
    judge.end();
}

/// The first answer has not arrived. A queue that is full from the beginning would seem to be the path's round trip.
#[test]
fn an_application_that_writes_at_once_fills_no_queue() {
    let mut judge = Judge::default();
    for written in [Written::every(2, SMALL), Written::every(50, MEDIUM)] {
        for conditions in [Conditions::new(100, 1, 10, 0.0), Conditions::new(20, 60, 400, 0.0)] {
            let [share, refused, queue, _] = medians(3, |seed| {
                let sim = set_up_at_once(seed, &written, &conditions, Answers::AtOnce);
                measure(sim, &written, &conditions)
            });
            let size = (written.size)(1);
            let shown =
                format!("{size} B, {conditions:?}: {share:.3}, refused {refused:.3}, queue {queue:.2}");
            judge.check(share >= 0.85 && refused <= 0.01 && queue <= 1.0, shown);
        }
    }
    judge.end();
}

#[test]
fn random_losses_do_not_slow_a_best_effort_stream_down() {
    let mut judge = Judge::default();
    for (loss, written) in [(0.02, SMALL), (0.1, SMALL), (0.02, MEDIUM)] {
        let written = Written::every(200, written);
        let conditions = Conditions::new(20, 20, 100, loss);
        let [share, refused, queue, _] = medians(3, |seed| run(seed, &written, &conditions, Answers::AtOnce));
        let packets = needed((written.size)(1), DATAGRAM_MAX).div_ceil(1500);
        let possible = (1.0 - loss).powi(packets as i32);
        let shown = format!(
            "{} B, {loss}: {share:.3} of {possible:.3}, refused {refused:.3}, queue {queue:.2}",
            (written.size)(1)
        );
        judge.check(share >= 0.85 * possible && refused <= 0.01 && queue <= 1.0, shown);
    }
    judge.end();
}

#[test]
fn a_stream_that_the_path_carries_is_sent_as_it_is_written() {
    let mut judge = Judge::default();
    for written in
        [Written::every(10_000, SMALL), Written::every(1000, SMALL), Written::every(100_000, MEDIUM)]
    {
        let conditions = Conditions::new(50, 20, 100, 0.0);
        let [share, refused, _, age] = medians(3, |seed| run(seed, &written, &conditions, Answers::AtOnce));
        let shown = format!("{} B every {:?}: {share:.3}, {age:.1} ms", (written.size)(1), written.gap);
        let bits = needed((written.size)(1), DATAGRAM_MAX) as f64 * 8.0;
        let alone = conditions.round_trip.as_secs_f64() / 2.0 + bits / conditions.rate_bps as f64;
        let is_young = age <= alone * 1e3 + 2.0;
        judge.check(share >= 0.99 && refused == 0.0 && is_young, shown);
    }
    judge.end();
}

#[test]
fn a_reader_that_does_not_answer_is_sent_everything() {
    for written in [Written::every(1000, SMALL), Written::every(10_000, MEDIUM)] {
        let conditions = Conditions::new(100, 4, 40, 0.0);
        let [share, refused, ..] = run(1, &written, &conditions, Answers::Never);
        assert!(share >= 0.99 && refused == 0.0, "{written:?}: {share} {refused}");
    }
}

#[test]
fn a_reader_that_falls_silent_is_not_flooded_and_gets_samples_again_when_it_answers() {
    let (written, conditions) = (Written::every(200, MEDIUM), Conditions::new(20, 20, 100, 0.0));
    let mut sim = set_up(1, &written, &conditions, Answers::AtOnce);
    let guid = sim.writers[0].config.guid;
    let [writer, reader] = [*sim.writers[0].address.ip(), *sim.readers[0].address.ip()];
    sim.run_for(Duration::from_secs(3));
    sim.readers[0].answers = Answers::Never;
    let before = sim.network.traffic(writer, reader).offered.bytes;
    sim.run_for(Duration::from_secs(5));
    let offered = sim.network.traffic(writer, reader).offered.bytes - before;
    assert!(offered * 8 / 5 < conditions.rate_bps * 5 / 4, "{offered} B in five seconds");
    sim.readers[0].answers = Answers::AtOnce;
    sim.run_for(Duration::from_secs(2));
    let taken = sim.readers[0].taken(guid).len();
    sim.run_for(Duration::from_secs(3));
    let got = (sim.readers[0].taken(guid).len() - taken) * needed(63_000, DATAGRAM_MAX) * 8 / 3;
    assert!(got as f64 > 0.8 * conditions.rate_bps as f64, "{got} bit/s");
}

/// A stream of 1 KiB over a fast link to a reader whose thread takes 40 us for each datagram.
fn set_up_busy(gap_us: u64) -> Sim {
    let written = Written::every(gap_us, SMALL);
    let mut sim = set_up_at_once(1, &written, &Conditions::new(1000, 1, 10, 0.0), Answers::AtOnce);
    sim.readers[0].busy = Some(Busy::new(Duration::from_micros(40), 4 << 20));
    sim
}

/// What waits in the socket, and is dropped there, would look like a full queue of the link.
#[test]
fn the_socket_of_a_busy_reader_is_no_bottleneck_of_its_path() {
    let mut sim = set_up_busy(10);
    let guid = sim.writers[0].config.guid;
    sim.run_for(Duration::from_secs(2));
    let before = sim.readers[0].taken(guid).len();
    sim.run_for(Duration::from_secs(2));
    let got = sim.readers[0].taken(guid).len() - before;
    let path = sim.readers[0].path.as_ref().unwrap().report();
    assert!(got >= 49_000, "{got} of the 50000 that it has time for: {path:?}");
    assert_eq!((path.rate, path.lost_bytes), (None, 0), "{path:?}");
}

#[test]
fn a_reader_that_does_not_run_for_a_while_does_not_slow_its_path_down() {
    let mut sim = set_up_busy(100);
    let guid = sim.writers[0].config.guid;
    for pause_ms in [11, 30, 100, 300] {
        sim.run_for(Duration::from_millis(500));
        let until = sim.now + Duration::from_millis(pause_ms);
        sim.readers[0].busy.as_mut().unwrap().pause(until);
        sim.run_for(Duration::from_millis(500 + pause_ms));
        let path = sim.readers[0].path.as_ref().unwrap().report();
        assert_eq!(path.rate, None, "after {pause_ms} ms: {path:?}");
    }
    let (taken, written) = (sim.readers[0].taken(guid).len() as u64, sim.writers[0].written);
    assert!(written - taken <= 30, "{taken} of {written}");
}

#[test]
fn a_reader_that_moves_is_served_at_what_its_new_path_carries() {
    let (written, conditions) = (Written::every(200, MEDIUM), Conditions::new(50, 4, 40, 0.0));
    let mut sim = set_up(1, &written, &conditions, Answers::AtOnce);
    let guid = sim.writers[0].config.guid;
    sim.run_for(Duration::from_secs(2));
    let moved = crate::harness::address(50);
    let to = Conditions::new(5, 60, 200, 0.0);
    let [there, back] = to.links();
    let writer = *sim.writers[0].address.ip();
    sim.network.set_link(writer, *moved.ip(), there);
    sim.network.set_link(*moved.ip(), writer, back);
    sim.move_reader(0, moved);
    sim.tell_writer_of_move(0, 0, DATAGRAM_MAX, Path::new());
    sim.run_for(Duration::from_secs(3));
    let (taken, before) = (sim.readers[0].taken(guid).len(), sim.network.traffic(writer, *moved.ip()));
    sim.run_for(Duration::from_secs(5));
    let got = (sim.readers[0].taken(guid).len() - taken) * needed(63_000, DATAGRAM_MAX) * 8 / 5;
    let after = sim.network.traffic(writer, *moved.ip());
    let refused = after.queue_full.bytes - before.queue_full.bytes;
    assert!(got as f64 > 0.8 * to.rate_bps as f64 && refused == 0, "{got} bit/s, {refused} B refused");
}

/// Returns the share of the link that whole samples take, and the share of the bytes sent that its queue refuses.
fn share_and_refused(sim: &mut Sim, written: &Written, conditions: &Conditions, time: Duration) -> [f64; 2] {
    let guid = sim.writers[0].config.guid;
    let [writer, reader] = [*sim.writers[0].address.ip(), *sim.readers[0].address.ip()];
    let (taken, before) = (sim.readers[0].taken(guid).len(), sim.network.traffic(writer, reader));
    sim.run_for(time);
    let after = sim.network.traffic(writer, reader);
    let got = (sim.readers[0].taken(guid).len() - taken) * needed((written.size)(1), DATAGRAM_MAX);
    let refused = (after.queue_full.bytes - before.queue_full.bytes) as f64;
    let offered = (after.offered.bytes - before.offered.bytes) as f64;
    [got as f64 * 8.0 / (conditions.rate_bps as f64 * time.as_secs_f64()), refused / offered]
}

/// A path without a bottleneck, which becomes long and slow while its questions are asked every few milliseconds.
///
/// Each question was forgotten before its answer came, so that the stream went on as over the path before.
#[test]
fn a_path_that_becomes_long_and_slow_is_not_flooded() {
    let mut judge = Judge::default();
    for (mbps, round_trip_ms) in [(10, 200), (10, 600), (50, 100)] {
        let [share, refused] = medians(3, |seed| {
            let (written, conditions) = (Written::every(100, SMALL), Conditions::new(1000, 1, 10, 0.0));
            let mut sim = set_up(seed, &written, &conditions, Answers::AtOnce);
            sim.run_for(Duration::from_secs(1));
            assert_eq!(sim.readers[0].path.as_ref().unwrap().report().rate, None);
            let [writer, reader] = [*sim.writers[0].address.ip(), *sim.readers[0].address.ip()];
            let to = Conditions::new(mbps, round_trip_ms, round_trip_ms, 0.0);
            let [there, back] = to.links();
            sim.network.set_link(writer, reader, there);
            sim.network.set_link(reader, writer, back);
            // In ten round trips it is followed down, and in thirty it finds the rate of the longer path.
            sim.run_for(to.round_trip * 40);
            share_and_refused(&mut sim, &written, &to, Duration::from_secs(5))
        });
        let shown =
            format!("{mbps} Mbit/s, {round_trip_ms} ms: {share:.3} of the link, refused {refused:.4}");
        judge.check(share >= 0.8 && refused <= 0.05, shown);
    }
    judge.end();
}

#[test]
fn a_reliable_reader_that_joins_and_leaves_does_not_stop_the_stream() {
    let (written, conditions) = (Written::every(1000, SMALL), Conditions::new(50, 4, 40, 0.0));
    let mut sim = Sim::unrecorded("best-effort-mixed", 1, Link::new());
    sim.set_steps_max(10_000_000);
    sim.add_writer(|setup| {
        setup.config.history = History::KeepLast(10);
        (setup.samples, setup.size, setup.gap) = (u64::MAX, written.size, written.gap);
    });
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        sim.add_reader(|setup| {
            setup.config.reliability = reliability;
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new()));
        });
    }
    let writer = *sim.writers[0].address.ip();
    for reader in [0, 1] {
        let [there, back] = conditions.links();
        let reader = *sim.readers[reader].address.ip();
        sim.network.set_link(writer, reader, there);
        sim.network.set_link(reader, writer, back);
    }
    let guid = sim.writers[0].config.guid;
    sim.connect(0, 0);
    let mut before = 0;
    for _ in 0..4 {
        sim.run_for(Duration::from_secs(1));
        sim.connect(0, 1);
        sim.run_for(Duration::from_secs(1));
        sim.disconnect(0, 1);
        let taken = sim.readers[0].taken(guid).len();
        assert!(taken - before > 1950, "{} in two seconds", taken - before);
        before = taken;
    }
    assert!(sim.now >= Time(8_000_000_000));
}

/// A satellite link. A reader discovers a writer after the writer has discovered it, here after so many ms.
///
/// Of the first questions, the writer had forgotten each before it was answered. What was sent at once when no answer
/// came seemed to have arrived by the answers that came later: the path was measured as 1600 Mbit/s and more.
#[test]
fn a_reader_far_away_that_discovers_the_writer_late_is_not_flooded() {
    let conditions = Conditions::new(10, 600, 629, 0.005);
    let mut judge = Judge::default();
    // The writer knows how long discovery took, or does not and has sent everything meanwhile.
    for (late_ms, is_known) in [(0, false), (500, false), (1500, true), (4000, false)] {
        for written in [Written::every(20, SMALL), Written::every(10_000, MEDIUM)] {
            let [share, refused] = medians(3, |seed| {
                let mut sim = set_up_unmet(seed, &written, &conditions, Answers::AtOnce);
                if is_known {
                    sim.readers[0].path.as_ref().unwrap().note_answer_time(conditions.round_trip);
                }
                sim.tell_writer(0, 0);
                sim.run_for(Duration::from_millis(late_ms));
                sim.tell_reader(0, 0);
                if late_ms == 4000 {
                    sim.run_for(conditions.round_trip * 2);
                }
                sim.run_for(Duration::from_secs(8));
                share_and_refused(&mut sim, &written, &conditions, Duration::from_secs(8))
            });
            let size = (written.size)(1);
            let shown =
                format!("{size} B, {late_ms} ms, {is_known}: {share:.3} of the link, refused {refused:.4}");
            judge.check(share >= 0.6 && refused <= 0.01, shown);
        }
    }
    judge.end();
}
