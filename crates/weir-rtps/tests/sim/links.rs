//! Links with a rate, a round trip and losses: a saturated writer uses them and does not flood them. In virtual time,
//! with the links that `weir bench --link` emulates.

use core::time::Duration;

use weir_netsim::{Direction, Link, LinkPair, Traffic};
use weir_rtps::path::{Path, PathReport};
use weir_rtps::qos::History;

use crate::harness::Sim;

/// The payload of UDP at an MTU of 1500.
const DATAGRAM_MAX: u16 = 1472;
/// IP, UDP and RTPS headers of a sample in one datagram.
const HEADERS: usize = 28 + 56;
/// The same of a fragment, and its payload.
const FRAGMENT_HEADERS: usize = 28 + 68;
const FRAGMENT: usize = 1400;

/// What a run has shown.
struct Outcome {
    /// Share of the payload delivered that the link could carry, after the first seconds.
    goodput: f64,
    /// IP bytes offered to the link, per byte that it needs for the payload delivered without loss.
    offered: f64,
    traffic: Traffic,
    report: PathReport,
}

/// Sends samples of `size` bytes as fast as the link allows: for as long as `warm_up`, and then as `time`.
fn saturate(
    name: &str,
    way: &Direction,
    ways: [Link; 2],
    size: fn(u64) -> usize,
    time: [Duration; 2],
) -> Outcome {
    let mut sim = Sim::unrecorded(name, 1, Link::new());
    sim.set_steps_max(40_000_000);
    sim.add_writer(|setup| {
        setup.samples = u64::MAX;
        setup.size = size;
        setup.gap = Duration::from_micros(2);
    });
    let path = Path::new();
    sim.add_reader(|setup| {
        setup.segment_max = DATAGRAM_MAX;
        setup.path = Some(path.clone());
    });
    let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
    let [there, back] = ways;
    sim.network.set_link(writer, reader, there);
    sim.network.set_link(reader, writer, back);
    sim.connect(0, 0);
    let guid = sim.writers[0].config.guid;
    sim.run_for(time[0]);
    let before = sim.readers[0].taken(guid).len() as u64;
    sim.run_for(time[1]);
    let samples = sim.readers[0].taken(guid).len() as u64;
    let len = size(1);
    let needed = if len + HEADERS + 32 <= 1500 {
        len + HEADERS
    } else {
        len + len.div_ceil(FRAGMENT) * FRAGMENT_HEADERS
    };
    let rate = way.first_rate_bps().expect("a preset has a rate") as f64;
    let carried = rate / 8.0 * time[1].as_secs_f64() / needed as f64;
    let traffic = sim.network.traffic(writer, reader);
    Outcome {
        goodput: (samples - before) as f64 / carried,
        offered: traffic.offered.bytes as f64 / samples as f64 / needed as f64,
        traffic,
        report: path.report(),
    }
}

/// Links, with the least goodput, and the most bytes offered per byte needed.
const LINKS: [(&str, bool, f64, f64); 7] = [
    ("lan1g", true, 0.96, 1.04),
    ("lan100", true, 0.96, 1.03),
    ("wifi", true, 0.88, 1.08),
    ("lte", true, 0.92, 1.04),
    ("lte", false, 0.90, 1.06),
    ("wan", true, 0.90, 1.04),
    ("satellite", true, 0.85, 1.06),
];

#[test]
fn a_link_is_used_and_not_flooded() {
    for (name, is_down, goodput_min, offered_max) in LINKS {
        let pair: LinkPair = name.parse().expect("a preset");
        let [down, up] = pair.links();
        let (way, ways) = if is_down { (&pair.down, [down, up]) } else { (&pair.up, [up, down]) };
        let rate = way.first_rate_bps().expect("a preset has a rate");
        let round_trip = way.delay * 2;
        // As many bytes for each link, but not less than a hundred round trips.
        let time = Duration::from_secs_f64(40e6 * 8.0 / rate as f64).max(round_trip * 100);
        let time = [time / 4, time.min(Duration::from_secs(30))];
        let sizes: [fn(u64) -> usize; 2] = [|_| 1024, |_| 63_000];
        for size in sizes {
            let Outcome { goodput, offered, traffic, report } = saturate(name, way, ways.clone(), size, time);
            let mean = traffic.queue.mean_wait();
            let shown = format!(
                "{name} {is_down} {}: goodput {goodput:.3}, offered {offered:.3}, queue {mean:?}, {report:?}",
                size(1)
            );
            assert!(goodput >= goodput_min, "{shown}");
            assert!(offered <= offered_max, "{shown}");
            assert!(mean <= Duration::from_millis(5).max(round_trip / 4), "{shown}");
        }
    }
}

#[test]
fn a_path_without_a_bottleneck_stays_open() {
    let link = || Link::new().delay(Duration::from_micros(50));
    let way = Direction { rate: vec![(Duration::ZERO, 40_000_000_000)], ..Direction::new() };
    for size in [(|_| 1024) as fn(u64) -> usize, |_| 63_000] {
        let second = Duration::from_millis(50);
        let outcome = saturate("open", &way, [link(), link()], size, [second, second]);
        assert_eq!((outcome.report.rate, outcome.report.waits), (None, 0), "{:?}", outcome.report);
    }
}

/// The down link of a preset, and its way back.
fn ways(name: &str) -> [Link; 2] {
    name.parse::<LinkPair>().expect("a preset").links()
}

#[test]
fn a_writer_that_keeps_the_last_sample_replaces_what_has_not_left() {
    let mut sim = Sim::unrecorded("last", 1, Link::new());
    sim.set_steps_max(10_000_000);
    sim.add_writer(|setup| {
        setup.config.history = History::KeepLast(1);
        // Twice what the link carries, for ten seconds.
        (setup.samples, setup.size, setup.gap) = (50_000, |_| 1024, Duration::from_micros(200));
    });
    let path = Path::new();
    sim.add_reader(|setup| {
        setup.config.history = History::KeepLast(1);
        (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone()));
    });
    let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
    let [there, back] = ways("lte");
    sim.network.set_link(writer, reader, there);
    sim.network.set_link(reader, writer, back);
    sim.connect(0, 0);
    sim.run_until(|sim| sim.writers[0].is_done());
    let written_at = sim.now;
    assert_eq!((sim.writers[0].refused, sim.writers[0].core.kept()), (0, 1), "{sim}");
    sim.run_until(Sim::is_delivered);
    let late = sim.readers[0].last_taken_at.since(written_at);
    assert!(late < Duration::from_millis(250), "the last sample came {late:?} after it was written: {sim}");
    // What was replaced is a hole, which the next HEARTBEAT closes: most of what arrives is replaced by then.
    let arrived = sim.readers[0].core.counters().samples_received;
    assert!(arrived > 20_000, "{arrived} of 50000 samples: {sim}");
    // Without a window, the queue is long until the path is known.
    let report = path.report();
    let queue = report.round_trip.zip(report.round_trip_min).map(|(last, least)| last - least);
    assert!(queue.is_some_and(|queue| queue < Duration::from_millis(25)), "{report:?}: {sim}");
}

#[test]
fn a_writer_goes_at_the_rate_of_the_slowest_reader() {
    let mut sim = Sim::unrecorded("slowest", 1, Link::new());
    sim.set_steps_max(10_000_000);
    sim.add_writer(|setup| {
        (setup.samples, setup.size, setup.gap) = (u64::MAX, |_| 1024, Duration::from_micros(2));
    });
    for name in ["lan100", "lte"] {
        let reader =
            sim.add_reader(|setup| (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new())));
        let (writer, host) = (*sim.writers[0].address.ip(), *sim.readers[reader].address.ip());
        let [there, back] = ways(name);
        sim.network.set_link(writer, host, there);
        sim.network.set_link(host, writer, back);
        sim.connect(0, reader);
    }
    sim.run_for(Duration::from_secs(3));
    let guid = sim.writers[0].config.guid;
    let before = sim.readers[1].taken(guid).len();
    sim.run_for(Duration::from_secs(10));
    // What lte carries.
    let carried = 20e6 / 8.0 * 10.0 / (1024 + HEADERS) as f64;
    let share = (sim.readers[1].taken(guid).len() - before) as f64 / carried;
    assert!(share > 0.85, "{share} of what the slower link carries: {sim}");
    for (reader, most) in [(0, 5), (1, 15)] {
        let (writer, host) = (*sim.writers[0].address.ip(), *sim.readers[reader].address.ip());
        let mean = sim.network.traffic(writer, host).queue.mean_wait();
        assert!(mean < Duration::from_millis(most), "link {reader} had a queue of {mean:?}: {sim}");
    }
}
