//! Samples at a fixed rate over links that lose many packets, as in Open Robotics' experiment of 2020.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::path::Path;
use weir_rtps::qos::History;
use weir_rtps::time::Time;

use crate::harness::{Judge, Sim, medians};
use crate::links::ethernet;

/// Samples of a size, written 30 times per second over a link that loses a share of the packets each way.
pub(crate) struct Camera {
    pub(crate) size: fn(u64) -> usize,
    pub(crate) history: History,
    pub(crate) mbps: u64,
    pub(crate) delay: Duration,
    pub(crate) loss: f64,
}

impl Camera {
    /// Point clouds: 512 KiB.
    pub(crate) fn clouds(history: History, mbps: u64, delay: Duration, loss: f64) -> Self {
        Self { size: |_| 512 << 10, history, mbps, delay, loss }
    }

    fn sim(&self, seed: u64) -> Sim {
        let mut sim = Sim::unrecorded("camera", seed, Link::new());
        sim.set_steps_max(40_000_000);
        sim.add_writer(|setup| {
            setup.config.history = self.history;
            (setup.samples, setup.size, setup.gap) = (u64::MAX, self.size, CAMERA_GAP);
        });
        sim.add_reader(|setup| {
            setup.config.history = self.history;
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new()));
        });
        let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        let link = ethernet().delay(self.delay).rate_bps(self.mbps * 1_000_000).queue_bytes(1_500_000);
        let link = link.loss(Loss::random(self.loss));
        sim.network.set_link(writer, reader, link.clone());
        sim.network.set_link(reader, writer, link);
        sim.connect(0, 0);
        sim
    }

    /// Returns how many samples arrive in each of eight seconds.
    pub(crate) fn delivered(&self, seed: u64) -> Vec<usize> {
        let mut sim = self.sim(seed);
        let guid = sim.writers[0].config.guid;
        let mut of_second = |_| {
            let before = sim.readers[0].taken(guid).len();
            sim.run_for(Duration::from_secs(1));
            sim.readers[0].taken(guid).len() - before
        };
        (0..8).map(&mut of_second).collect()
    }

    /// Returns how old samples are when they arrive, in ms, from the first second on, sorted; and how many packets both
    /// hosts sent for each.
    pub(crate) fn ages(&self, seed: u64, time: Duration) -> (Vec<f64>, f64) {
        let mut sim = self.sim(seed);
        let guid = sim.writers[0].config.guid;
        let (mut ages, mut count) = (Vec::new(), 0);
        while sim.now < Time(time.as_nanos() as u64) {
            sim.run_for(Duration::from_micros(50));
            let taken = sim.readers[0].taken(guid);
            let new = &taken[count..];
            ages.extend(
                new.iter().filter(|number| **number > 30).map(|number| {
                    (sim.now.0 as f64 - (number - 1) as f64 * CAMERA_GAP.as_nanos() as f64) / 1e6
                }),
            );
            count = taken.len();
        }
        ages.sort_by(f64::total_cmp);
        let packets = sim.network.counters().sent as f64 / sim.writers[0].written as f64;
        (ages, packets)
    }

    /// Returns how many samples arrive per second; the median and the 99th percentile of their ages, in ms; and the
    /// packets for each.
    fn figures(&self, seed: u64, time: Duration) -> [f64; 4] {
        let (ages, packets) = self.ages(seed, time);
        let rate = ages.len() as f64 / (time.as_secs_f64() - 1.0);
        [rate, ages[ages.len() / 2], ages[ages.len() * 99 / 100], packets]
    }
}

/// The payload of UDP at an MTU of 1500.
const DATAGRAM_MAX: u16 = 1472;

/// Between two samples.
const CAMERA_GAP: Duration = Duration::from_micros(33_333);

#[test]
fn large_samples_pass_a_lossy_link_with_a_round_trip() {
    let mut judge = Judge::default();
    for (mbps, delay_ms, loss) in [(300, 20, 0.1), (1000, 20, 0.1), (1000, 20, 0.3), (300, 80, 0.1)] {
        let [later] = medians(3, |seed| {
            let taken =
                Camera::clouds(History::KeepAll, mbps, Duration::from_millis(delay_ms), loss).delivered(seed);
            // All of them, once the rate is known.
            [taken[3..].iter().sum::<usize>() as f64]
        });
        judge.check(later >= 135.0, format!("{mbps} Mbit/s, {delay_ms} ms, {loss}: {later} in five seconds"));
    }
    // Ten are kept besides those in transit. Repairs take three round trips or more.
    for (mbps, delay_ms, loss, least) in [
        (300, 0, 0.4, 28),
        (300, 20, 0.1, 28),
        (300, 20, 0.4, 27),
        (1000, 20, 0.3, 28),
        (300, 80, 0.1, 25),
        (1000, 80, 0.2, 25),
        (54, 0, 0.2, 8),
        (54, 20, 0.0, 11),
    ] {
        let delay = Duration::from_millis(delay_ms);
        let [later] = medians(3, |seed| {
            let taken = Camera::clouds(History::KeepLast(10), mbps, delay, loss).delivered(seed);
            [taken[4..].iter().sum::<usize>() as f64]
        });
        let shown = format!("{mbps} Mbit/s, {delay_ms} ms, {loss}: the last ten, {later} in four seconds");
        judge.check(later >= f64::from(4 * least), shown);
    }
    judge.end();
}

#[test]
fn small_samples_pass_a_lossy_link_soon() {
    let mut judge = Judge::default();
    // Samples per second, and the 99th percentile of their age. A sample that is lost costs two round trips at least.
    for (delay_us, loss, least, age_max) in
        [(70, 0.1, 29.9, 0.5), (70, 0.4, 29.9, 1.5), (20_000, 0.1, 29.5, 150.0), (20_000, 0.4, 28.5, 340.0)]
    {
        let delay = Duration::from_micros(delay_us);
        let camera = Camera { size: |_| 1024, history: History::KeepLast(10), mbps: 300, delay, loss };
        let time = Duration::from_secs(8);
        // At 40 % loss a seed delivers 27.5 to 29.9 per second.
        let [rate, _, age, packets] = medians(41, |seed| camera.figures(seed, time));
        let shown =
            format!("{delay_us} us, {loss}: {rate:.1} per second, {age:.2} ms, {packets:.1} packets each");
        judge.check(rate >= least && age <= age_max && packets <= 8.0, shown);
    }
    judge.end();
}

#[test]
fn point_clouds_pass_a_long_lossy_link() {
    let mut judge = Judge::default();
    // A cloud waits for the last of its 375 fragments. What is lost a second time is therefore repaired twice, so that
    // its repairs take four to six round trips, and not seven or more.
    for (delay_ms, loss, least, median_max) in
        [(20, 0.2, 29.0, 180.0), (20, 0.3, 29.0, 220.0), (20, 0.4, 27.0, 280.0), (80, 0.3, 25.0, 850.0)]
    {
        let delay = Duration::from_millis(delay_ms);
        let camera = Camera::clouds(History::KeepLast(10), 300, delay, loss);
        let [rate, median, ..] = medians(5, |seed| camera.figures(seed, Duration::from_secs(10)));
        let shown = format!("{delay_ms} ms, {loss}: {rate:.1} per second, {median:.1} ms");
        judge.check(rate >= least && median <= median_max, shown);
    }
    judge.end();
}

#[test]
fn point_clouds_pass_a_lossy_link_soon() {
    let mut judge = Judge::default();
    // Clouds take 15 ms without losses. Their repairs are not to wait for the queue that they leave behind. The demand
    // is twice that at 10 % loss, and five times at 40 %, for the 99th percentile.
    for (loss, median_max, age_max) in
        [(0.1, 20.0, 30.0), (0.2, 22.0, 30.0), (0.3, 27.0, 50.0), (0.4, 40.0, 75.0)]
    {
        let camera = Camera::clouds(History::KeepLast(10), 300, Duration::from_micros(70), loss);
        let [_, median, age, _] = medians(5, |seed| camera.figures(seed, Duration::from_secs(6)));
        judge.check(median <= median_max && age <= age_max, format!("{loss}: {median:.1} ms, {age:.1} ms"));
    }
    // They take 4.6 ms over 1 Gbit/s. If a repair and the answer to it are lost, the next one is not to wait for long.
    for (loss, age_max) in [(0.1, 9.2), (0.3, 15.0), (0.4, 23.0)] {
        let camera = Camera::clouds(History::KeepLast(10), 1000, Duration::from_micros(70), loss);
        let [.., age, _] = medians(11, |seed| camera.figures(seed, Duration::from_secs(6)));
        judge.check(age <= age_max, format!("1 Gbit/s, {loss}: {age:.1} ms"));
    }
    judge.end();
}
