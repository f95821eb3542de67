//! Readers that lie about what has arrived. They cannot make a writer exceed the configured rate of their path, or
//! what they have proven to receive, nor slow down what goes to others.

use core::time::Duration;

use weir_netsim::{Link, Rng};
use weir_rtps::config;
use weir_rtps::path::Path;
use weir_wire::{AckNack, Header, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push};

use crate::harness::{Answers, Judge, Sim, figures, medians};
use crate::links::{DATAGRAM_MAX, ways};

/// What a reader says, a thousand times per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Everything that was sent has arrived at once.
    AllArrived,
    /// ... and what was not sent as well.
    MoreArrived,
    /// Nothing has arrived, and the first 256 samples are wanted again.
    AllLost,
    /// Everything has arrived but for the last 256 samples, which are wanted again.
    LastLost,
    /// Everything has arrived, but for one of two samples.
    HalfLost,
    /// In turn one half of the last 256 samples is wanted again, and the other half.
    HalvesLost,
    /// The last 32 samples are wanted again, each by a message of its own.
    EachLost,
    /// What had arrived some time ago, up to half a second.
    Late,
    /// Everything has arrived 20 ms after it was sent: losses and queues are hidden.
    Hidden,
    /// In turn: a sample from before the match is missing, which a GAP answers; and all that was sent by then arrived.
    GapFirst,
    /// Nothing.
    Silent,
}

const LIES: [Lie; 11] = [
    Lie::AllArrived,
    Lie::MoreArrived,
    Lie::AllLost,
    Lie::LastLost,
    Lie::HalfLost,
    Lie::HalvesLost,
    Lie::EachLost,
    Lie::Late,
    Lie::Hidden,
    Lie::GapFirst,
    Lie::Silent,
];

/// A saturated writer with a reader that lies, at the end of a link, and another writer of the same participant with an
/// honest reader on another host.
struct Scene {
    sim: Sim,
    lie: Lie,
    rng: Rng,
    count: u32,
    /// The samples sent at each of the last milliseconds.
    sent: Vec<i64>,
}

impl Scene {
    fn new(seed: u64, link: &str, size: fn(u64) -> usize, lie: Lie, path: &Path) -> Self {
        Self::with_paths(seed, link, size, lie, &[path.clone(), Path::new()])
    }

    /// Without another writer.
    fn alone(seed: u64, link: &str, size: fn(u64) -> usize, lie: Lie, path: &Path) -> Self {
        Self::with_paths(seed, link, size, lie, core::slice::from_ref(path))
    }

    fn with_paths(seed: u64, link: &str, size: fn(u64) -> usize, lie: Lie, paths: &[Path]) -> Self {
        let mut sim = Sim::unrecorded("liars", seed, Link::new());
        sim.set_steps_max(60_000_000);
        for (index, path) in paths.iter().cloned().enumerate() {
            sim.add_writer(|setup| setup.saturate(size));
            sim.add_reader(|setup| {
                (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path));
                setup.answers = if index == 0 { Answers::Never } else { Answers::AtOnce };
            });
            let (from, to) = (*sim.writers[index].address.ip(), *sim.readers[index].address.ip());
            let [there, back] = ways(link);
            sim.network.set_link(from, to, there);
            // Lies have no way to go.
            sim.network.set_link(to, from, if index == 0 { Link::new() } else { back });
            sim.connect(index, index);
        }
        // Nothing random happens to lies, but seeds begin at other times.
        sim.run_for(Duration::from_micros(137) * (seed as u32 - 1));
        Self { sim, lie, rng: Rng::new(seed), count: 0, sent: Vec::new() }
    }

    /// Runs for some time. Returns the bytes per second offered to the liar, and the samples that the other reader got.
    fn run_for(&mut self, time: Duration) -> (f64, usize) {
        let others = |sim: &Sim| {
            let honest = sim.writers.get(1).map(|writer| writer.config.guid);
            honest.map_or(0, |guid| sim.readers[1].taken(guid).len())
        };
        let before = (self.offered(), others(&self.sim));
        for _ in 0..time.as_millis() {
            self.sim.run_for(Duration::from_millis(1));
            self.lie();
        }
        let offered = (self.offered() - before.0) as f64 / time.as_secs_f64();
        (offered, others(&self.sim) - before.1)
    }

    fn offered(&mut self) -> u64 {
        let (from, to) = (*self.sim.writers[0].address.ip(), *self.sim.readers[0].address.ip());
        self.sim.network.traffic(from, to).offered.bytes
    }

    fn lie(&mut self) {
        let writer = &self.sim.writers[0];
        // A liar knows about as much by HEARTBEATs.
        let sent = writer.samples_sent.min(writer.written) as i64;
        self.sent.push(sent);
        let ago = |time: usize| self.sent.len().checked_sub(time + 1).map_or(0, |at| self.sent[at]);
        let all = ((sent - 255).max(1), (sent - 255..=sent).collect::<Vec<_>>());
        let every_other = |(base, wanted): (i64, Vec<i64>), rest: i64| {
            (base, wanted.into_iter().filter(|sn| sn % 2 == rest).collect())
        };
        let (base, wanted): (i64, Vec<i64>) = match self.lie {
            Lie::AllArrived => (sent + 1, Vec::new()),
            Lie::MoreArrived => (sent + 1 + self.rng.below(1000) as i64, Vec::new()),
            Lie::AllLost => (1, (1..=256).collect()),
            Lie::LastLost => all,
            Lie::HalfLost => every_other(all, (sent - 255) % 2),
            Lie::HalvesLost => every_other(all, i64::from(self.count) % 2),
            Lie::EachLost => {
                // All of one count: the base of the first one acknowledges what is before it.
                self.count += 1;
                (sent - 31..=sent).for_each(|sn| self.tell(sn.max(1), [sn]));
                return;
            }
            Lie::Late => (ago(self.rng.below(500) as usize) + 1, Vec::new()),
            Lie::Hidden => (ago(20) + 1, Vec::new()),
            Lie::GapFirst if self.count.is_multiple_of(2) => (1, vec![1]),
            Lie::GapFirst => (ago(1) + 1, Vec::new()),
            Lie::Silent => return,
        };
        self.count += 1;
        self.tell(base, wanted);
    }

    /// Sends an ACKNACK.
    fn tell(&mut self, base: i64, wanted: impl IntoIterator<Item = i64>) {
        let mut state = SequenceNumberSet::new(SequenceNumber(base));
        wanted.into_iter().filter(|sn| *sn >= base).for_each(|sn| _ = state.insert(SequenceNumber(sn)));
        let (reader, count) = (self.sim.readers[0].config.guid, self.count);
        let mut message = Vec::new();
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: reader.prefix };
        push(&mut message, &header);
        let writer = self.sim.writers[0].config.guid.entity;
        push(&mut message, &AckNack { reader: reader.entity, writer, state, count, is_final: true });
        let (from, to) = (self.sim.readers[0].address, self.sim.writers[0].address);
        let now = Duration::from_nanos(self.sim.now.0);
        self.sim.network.send(now, from, to, &message).expect("it fits a datagram");
    }
}

#[test]
fn a_reader_that_lies_gets_no_more_than_the_configured_rate_and_slows_nobody_down() {
    const RATE: u64 = 1_000_000;
    let mut judge = Judge::default();
    for (link, seeds, seconds) in [("lan100", 3, 2), ("lte", 5, 5)] {
        for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
            let time = Duration::from_secs(seconds);
            let run = |lie: Lie| {
                figures(seeds, |seed| {
                    let mut scene = Scene::new(seed, link, size, lie, &Path::with_rate_max(RATE));
                    let (offered, others) = scene.run_for(time);
                    [offered, others as f64]
                })
            };
            let [_, alone] = run(Lie::Silent).medians();
            for lie in LIES {
                let runs = run(lie);
                let ([most, _], [_, others]) = (runs.most(), runs.medians());
                let shown =
                    format!("{link} {} B {lie:?}: {most:.0} B/s, others {others} of {alone}", size(1));
                // What is lost of the others differs from run to run.
                judge.check(most < 1.05 * RATE as f64 && others > alone * 0.98, shown);
            }
        }
    }
    judge.end();
}

#[test]
fn a_reader_that_lies_does_not_make_a_writer_keep_any_number_of_samples() {
    for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
        for lie in LIES {
            let mut scene = Scene::alone(1, "lte", size, lie, &Path::new());
            let (offered, _) = scene.run_for(Duration::from_secs(2));
            let (window, in_flight) = scene.sim.writers[0].core.window();
            let shown =
                format!("{} B {lie:?}: {offered:.0} B/s, window {window}, {in_flight} in flight", size(1));
            assert!(window.max(in_flight) <= config::WINDOW_PATH_MAX_BYTES * 17 / 16, "{shown}");
        }
    }
}

#[test]
fn a_reader_that_lies_is_held_at_what_it_has_proven() {
    let mut judge = Judge::default();
    for link in ["lan100", "lte"] {
        for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
            for lie in LIES {
                let runs = figures(3, |seed| {
                    let path = Path::new();
                    let mut scene = Scene::alone(seed, link, size, lie, &path);
                    let [first, later] = [3, 5].map(|seconds| scene.run_for(Duration::from_secs(seconds)).0);
                    let report = path.report();
                    assert!(
                        report.lost_bytes <= report.sent_bytes,
                        "{link} {} B {lie:?}: {report:?}",
                        size(1)
                    );
                    // A reader that hides what is lost has shown nothing to be proven.
                    let is_caught = report.lies > 0 && report.held_rate.is_some();
                    [first, later, f64::from(u8::from(is_caught))]
                });
                let ([_, later, _], [first, ..], [.., is_caught]) =
                    (runs.medians(), runs.most(), runs.least());
                let shown =
                    format!("{link} {} B {lie:?}: {first:.0}, {later:.0} B/s, caught {is_caught}", size(1));
                let is_lie = !matches!(
                    lie,
                    Lie::Silent
                        | Lie::AllLost
                        | Lie::LastLost
                        | Lie::HalfLost
                        | Lie::HalvesLost
                        | Lie::EachLost
                );
                // One that requests everything again is found out by its fourth request. One that requests one half and
                // then the other is lucky in every other test at first.
                let first_max = if lie == Lie::HalvesLost { 4_000_000.0 } else { 2_500_000.0 };
                let is_held = first < first_max && later < 300_000.0;
                judge.check(is_held && (is_caught > 0.0 || !is_lie), shown);
            }
        }
    }
    judge.end();
}

#[test]
fn a_reader_that_begins_to_lie_is_held_at_what_it_has_proven() {
    for lie in [Lie::AllArrived, Lie::Late, Lie::Hidden] {
        let path = Path::new();
        let mut scene = Scene::alone(1, "lte", |_| 1024, Lie::Silent, &path);
        // Honest for some seconds.
        scene.sim.readers[0].answers = Answers::AtOnce;
        let [there, back] = ways("lte");
        let (from, to) = (*scene.sim.writers[0].address.ip(), *scene.sim.readers[0].address.ip());
        scene.sim.network.set_link(from, to, there);
        scene.sim.network.set_link(to, from, back);
        let honest = scene.run_for(Duration::from_secs(5)).0;
        assert!(honest > 1.5e6 && path.report().lies == 0, "{honest} {:?}", path.report());
        scene.sim.readers[0].answers = Answers::Never;
        // Its counts go on from those of the honest reader.
        (scene.lie, scene.count) = (lie, 1 << 20);
        let [first, later] = [3, 5].map(|seconds| scene.run_for(Duration::from_secs(seconds)).0);
        let shown = format!("{lie:?}: {honest:.0}, {first:.0}, {later:.0} B/s, {:?}", path.report());
        // Delays look like a queue, so that the rate falls without a test.
        let is_held = path.report().lies > 0 || lie == Lie::Late;
        assert!(first < 3.0 * honest && later < 300_000.0 && is_held, "{shown}");
    }
}

#[test]
fn a_flood_of_requests_does_not_leave_a_path_slow() {
    let [share, lost] = medians(3, |seed| {
        let path = Path::new();
        let mut scene = Scene::alone(seed, "lte", |_| 1024, Lie::AllLost, &path);
        scene.sim.readers[0].answers = Answers::AtOnce;
        let guid = scene.sim.writers[0].config.guid;
        let taken = |scene: &Scene| scene.sim.readers[0].taken(guid).len();
        scene.sim.run_for(Duration::from_secs(5));
        let before = taken(&scene);
        // A forger requests everything in the name of the reader, whose own answers count as old meanwhile.
        scene.count = 1 << 20;
        _ = scene.run_for(Duration::from_secs(1));
        scene.sim.run_for(Duration::from_secs(3));
        let between = taken(&scene);
        scene.sim.run_for(Duration::from_secs(5));
        let report = path.report();
        let share = (taken(&scene) - between) as f64 / before as f64;
        [share, report.lost_bytes as f64 / report.sent_bytes as f64]
    });
    assert!(share > 0.9 && lost < 0.05, "{share:.3} of what was received before, {lost:.3} lost");
}
