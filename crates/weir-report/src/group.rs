//! Groups the cases of a table or plot.
//!
//! A group holds comparable cases: the same test under the same conditions, by size and engine. Raw
//! UDP, plain and with segmentation offload, has no reliability, keys or batches. It is the
//! baseline of every group with the same test, wait strategy and sizes.

use std::collections::BTreeMap;

use weir_results::{Case, Coalescing, LatencyKind, Reliability, Run, Spread, Test, WaitStrategy};

use crate::published::PublishedPoint;

/// Name of the baseline's engine: UDP without middleware.
pub(crate) const FLOOR: &str = "udp";

/// Raw UDP with segmentation offload: what the kernel can do at best.
pub(crate) const GSO: &str = "udp-gso";

/// Raw UDP from and into memory that is in no cache.
pub(crate) const FRESH: &str = "udp-fresh";

/// Raw UDP in all of its forms.
const BASELINES: [&str; 3] = [FLOOR, GSO, FRESH];

/// The conditions of all cases of a group; ordered as groups are shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub(crate) test: Test,
    pub(crate) kind: LatencyKind,
    pub(crate) keyed: bool,
    pub(crate) instances: u64,
    pub(crate) reliability: Reliability,
    pub(crate) batch_bytes: u64,
    pub(crate) publishers: u32,
    pub(crate) subscribers: u32,
    pub(crate) multicast: bool,
    /// Not DDS: has no baseline and is compared with nothing.
    pub(crate) apart: bool,
    pub(crate) wait: WaitStrategy,
    /// Whether the processors were kept out of idle states.
    pub(crate) kept_awake: bool,
    /// The network between the ends.
    pub(crate) path: Option<String>,
    /// What shared it.
    pub(crate) beside: Option<String>,
    /// Scheduled samples per second, as bits so that keys can be ordered.
    rate_bits: Option<u64>,
}

/// Comparable cases.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) key: GroupKey,
    /// By size, then the baselines, then Weir, then the others by name.
    pub(crate) points: Vec<Point<'a>>,
    /// Published figures beside them, by table and size.
    pub(crate) published: Vec<PublishedPoint<'a>>,
}

/// All repeats of one engine and size.
#[derive(Debug, Clone)]
pub(crate) struct Point<'a> {
    pub(crate) engine: String,
    pub(crate) size_bytes: u64,
    /// The load of an open loop: its percent of the maximum or its rate, as bits.
    pub(crate) load: Option<Load>,
    pub(crate) repeats: Vec<&'a Case>,
}

/// Percent of the maximum, or samples per second, as bits so that they can be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Load {
    Percent(u64),
    Rate(u64),
}

/// Returns whether samples were sent by a schedule and their latencies measured.
fn is_open_loop(case: &Case) -> bool {
    case.point.test == Test::Latency
        && (case.conditions.rate_samples_per_s.is_some() || case.conditions.load_percent.is_some())
}

fn load(case: &Case) -> Option<Load> {
    let rate = || case.conditions.rate_samples_per_s.map(|rate| Load::Rate(rate.to_bits()));
    let percent = case.conditions.load_percent.map(|percent| Load::Percent(percent.to_bits()));
    percent.or_else(rate).filter(|_| is_open_loop(case))
}

impl GroupKey {
    /// Returns the key of a case; one without figures counts as kind `otherwise`.
    pub(crate) fn of(case: &Case, otherwise: LatencyKind) -> Self {
        Self {
            test: case.point.test,
            kind: if is_open_loop(case) {
                LatencyKind::OneWay
            } else {
                case.figures.latency_us.map_or(otherwise, |latency| latency.kind)
            },
            keyed: case.point.keyed,
            instances: case.point.instances,
            reliability: case.point.reliability,
            batch_bytes: case.point.batch_bytes,
            publishers: case.point.publishers,
            subscribers: case.point.subscribers,
            multicast: case.point.multicast,
            apart: case.conditions.apart,
            wait: case.conditions.wait,
            kept_awake: case.conditions.kept_awake,
            path: case.conditions.path.clone(),
            beside: case.conditions.beside.clone(),
            // The loads of a sweep are in one table.
            rate_bits: case.conditions.rate_samples_per_s.filter(|_| !is_open_loop(case)).map(f64::to_bits),
        }
    }

    /// Returns whether a baseline with key `floor` is the baseline of this group.
    fn stands_on(&self, floor: &Self) -> bool {
        !self.apart
            && self.test == floor.test
            && self.kind == floor.kind
            && self.wait == floor.wait
            && self.path == floor.path
            && self.beside == floor.beside
            && self.kept_awake == floor.kept_awake
            && self.rate_bits == floor.rate_bits
    }

    /// Returns whether samples are sent at a given rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.rate_bits.is_some()
    }

    /// Returns whether there is more than one publisher or subscriber.
    pub(crate) fn is_many(&self) -> bool {
        self.publishers > 1 || self.subscribers > 1
    }

    /// Returns the conditions as text, e.g. `reliable, keyed (1000 instances), wait: block`.
    pub(crate) fn conditions(&self) -> String {
        self.words()
            .into_iter()
            .map(|(text, _)| text)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the conditions as part of a file name, e.g. `latency-reliable-unkeyed-block`.
    pub(crate) fn file_stem(&self) -> String {
        let kind = match (self.test, self.kind) {
            (Test::Latency, LatencyKind::Rtt) => Some("rtt".to_owned()),
            (Test::Latency, LatencyKind::OneWay) => Some("open-loop".to_owned()),
            _ => None,
        };
        let mut words = vec![self.test.name().to_owned()];
        words.extend(kind);
        words.extend(self.words().into_iter().map(|(_, word)| word).filter(|word| !word.is_empty()));
        file_stem(words.join("-"))
    }

    /// Each condition as text and as a word of a file name; empty where that leaves it out.
    fn words(&self) -> Vec<(String, String)> {
        let reliability = match self.reliability {
            Reliability::None => "no delivery guarantee",
            Reliability::BestEffort => "best effort",
            Reliability::Reliable => "reliable",
        };
        let mut words = vec![(reliability.to_owned(), self.reliability.name().to_owned())];
        words.push(match (self.keyed, self.instances) {
            (false, _) => ("unkeyed".to_owned(), "unkeyed".to_owned()),
            (true, 0) => ("keyed".to_owned(), "keyed0".to_owned()),
            (true, instances) => (format!("keyed ({instances} instances)"), format!("keyed{instances}")),
        });
        if self.batch_bytes > 0 {
            words.push((format!("batches of {} B", self.batch_bytes), format!("batch{}", self.batch_bytes)));
        } else if self.test == Test::Throughput {
            words.push(("no batching".to_owned(), String::new()));
        }
        if self.is_many() {
            let (publishers, subscribers) = (self.publishers, self.subscribers);
            words.push((
                format!("{} to {}", counted(publishers, "publisher"), counted(subscribers, "subscriber")),
                format!("{publishers}to{subscribers}"),
            ));
        }
        words.extend(self.multicast.then(|| ("multicast".to_owned(), "multicast".to_owned())));
        words.extend(self.apart.then(|| ("no DDS".to_owned(), "apart".to_owned())));
        words.push((format!("wait: {}", self.wait), self.wait.to_string().replace(':', "")));
        words.extend(self.kept_awake.then(|| ("processors kept awake".to_owned(), "awake".to_owned())));
        let path = self.path.as_ref();
        words.extend(path.map(|path| (format!("path: {path}"), path.replace([',', '=', '%'], ""))));
        let beside = self.beside.as_ref();
        words.extend(
            beside.map(|beside| (format!("beside {}", beside_name(beside)), format!("beside{beside}"))),
        );
        let rate = self.rate_bits.map(f64::from_bits);
        words.extend(rate.map(|rate| (format!("at {rate} samples/s"), format!("rate{rate}"))));
        words
    }
}

/// A text as part of a file name: without separators of folders, and with a length that all file systems have.
pub(crate) fn file_stem(text: String) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.+:".contains(letter);
    let mut plain: String = text.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    if plain.len() > STEM_BYTES_MAX {
        // Names with the same beginning stay different.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        plain.truncate(STEM_BYTES_MAX - 17);
        plain += &format!("-{hash:016x}");
    }
    plain
}

/// File systems allow 255 bytes, of which what stands before and after takes some.
const STEM_BYTES_MAX: usize = 180;

/// What shared a link, in words.
fn beside_name(beside: &str) -> String {
    if beside == "tcp" { "TCP (CUBIC)".to_owned() } else { format!("samples of {beside} B") }
}

impl Point<'_> {
    /// Returns median, minimum and maximum of a figure over the repeats; `None` if no repeat has
    /// it.
    pub(crate) fn spread(&self, figure: impl Fn(&Case) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.repeats.iter().filter_map(|case| figure(case)))
    }
}

impl<'a> Group<'a> {
    /// Returns the point that another one is compared with: the engine `name` in its default mode,
    /// at the same size.
    pub(crate) fn base(&self, point: &Point<'_>, name: &str) -> Option<&Point<'a>> {
        self.points.iter().find(|base| {
            base.engine == name && base.size_bytes == point.size_bytes && base.load == point.load
        })
    }

    /// Returns whether any point was measured more than once.
    pub(crate) fn has_repeats(&self) -> bool {
        self.points.iter().any(|point| point.repeats.len() > 1)
    }

    /// Returns the engines in order of first appearance within a size.
    pub(crate) fn engines(&self) -> Vec<&str> {
        let mut engines: Vec<&str> = self.points.iter().map(|point| point.engine.as_str()).collect();
        engines.sort_by_key(|engine| rank(engine));
        engines.dedup();
        engines
    }
}

/// Returns the conditions of a point: those of its group, and its load.
pub(crate) fn conditions_of(conditions: &str, point: &Point<'_>) -> String {
    match point.load {
        Some(Load::Percent(bits)) => format!("{conditions}, load {} %", f64::from_bits(bits)),
        Some(Load::Rate(bits)) => format!("{conditions}, {} samples/s", f64::from_bits(bits)),
        None => conditions.to_owned(),
    }
}

pub(crate) fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Divides the cases of a run into groups. UDP tests and workloads have their own tables.
pub(crate) fn groups(run: &Run) -> Vec<Group<'_>> {
    let has_group = |case: &&Case| case.figures.udp.is_none() && case.point.test != Test::Workload;
    let cases = || run.cases.iter().filter(has_group);
    let closed = cases().filter(|case| !is_open_loop(case));
    let kind =
        closed.filter_map(|case| case.figures.latency_us).next().map_or(LatencyKind::HalfRtt, |l| l.kind);
    let (floors, others): (Vec<&Case>, Vec<&Case>) = cases().partition(|case| is_baseline(case));
    let mut by_key: BTreeMap<GroupKey, Vec<&Case>> = BTreeMap::new();
    for case in others {
        by_key.entry(GroupKey::of(case, kind)).or_default().push(case);
    }
    let mut alone: BTreeMap<GroupKey, Vec<&Case>> = BTreeMap::new();
    for case in floors {
        let floor = GroupKey::of(case, kind);
        let mut used = false;
        for (_, cases) in by_key.iter_mut().filter(|(key, _)| key.stands_on(&floor)) {
            // A baseline of a size without other engines would only be repeated.
            if cases
                .iter()
                .any(|other| !is_baseline(other) && other.point.size_bytes == case.point.size_bytes)
            {
                cases.push(case);
                used = true;
            }
        }
        if !used {
            alone.entry(floor).or_default().push(case);
        }
    }
    for (key, cases) in alone {
        by_key.entry(key).or_default().extend(cases);
    }
    by_key
        .into_iter()
        .map(|(key, cases)| Group { key, points: points(cases), published: Vec::new() })
        .collect()
}

fn is_baseline(case: &Case) -> bool {
    is_raw_udp(&case.point.engine)
}

/// Returns whether an engine is raw UDP.
pub(crate) fn is_raw_udp(engine: &str) -> bool {
    BASELINES.contains(&engine)
}

/// Returns the engine's name, with its differences from its default mode.
pub(crate) fn engine_label(case: &Case) -> String {
    let is_alone = case.conditions.coalescing == Some(Coalescing::Off) && !is_baseline(case);
    let differences: Vec<&str> = [(is_alone, "one send per sample"), (case.point.loans, "loans")]
        .into_iter()
        .filter_map(|(is_so, words)| is_so.then_some(words))
        .collect();
    if differences.is_empty() {
        return case.point.engine.clone();
    }
    format!("{} ({})", case.point.engine, differences.join(", "))
}

fn points(cases: Vec<&Case>) -> Vec<Point<'_>> {
    // By size, engine and load.
    type Place = (u64, (u8, String), Option<Load>);
    let mut points: BTreeMap<Place, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        points.entry((case.point.size_bytes, rank(&engine_label(case)), load(case))).or_default().push(case);
    }
    points
        .into_iter()
        .map(|((size_bytes, (_, engine), load), repeats)| Point { engine, size_bytes, load, repeats })
        .collect()
}

/// The order of engines: the baselines, Weir, then the others by name.
pub(crate) fn rank(engine: &str) -> (u8, String) {
    let class = match engine {
        FLOOR | GSO | FRESH => 0,
        _ if engine.starts_with("weir") => 1,
        _ => 2,
    };
    (class, engine.to_owned())
}

#[cfg(test)]
mod tests {
    use weir_results::Environment;

    use super::*;

    fn case(engine: &str, reliability: Reliability, size_bytes: u64) -> Case {
        Case::new(engine, Test::Latency, reliability, size_bytes)
    }

    /// Each group as its reliability and its points.
    fn shape(cases: Vec<Case>) -> Vec<(Reliability, Vec<String>)> {
        let run = Run { cases, ..Run::new(Environment::default()) };
        groups(&run)
            .iter()
            .map(|group| {
                let point = |point: &Point<'_>| format!("{} {}", point.engine, point.size_bytes);
                (group.key.reliability, group.points.iter().map(point).collect())
            })
            .collect()
    }

    #[track_caller]
    fn check(cases: Vec<Case>, expected: &[(Reliability, &[&str])]) {
        let expected: Vec<(Reliability, Vec<String>)> = expected
            .iter()
            .map(|(reliability, points)| (*reliability, points.iter().map(ToString::to_string).collect()))
            .collect();
        assert_eq!(shape(cases), expected);
    }

    #[test]
    fn the_floor_stands_under_every_reliability_and_before_the_engines() {
        let (none, best_effort, reliable) =
            (Reliability::None, Reliability::BestEffort, Reliability::Reliable);
        check(
            vec![
                case("weir", reliable, 32),
                case("aaa", reliable, 32),
                case("weir", best_effort, 32),
                case(FLOOR, none, 32),
                case("weir", reliable, 8),
            ],
            &[(best_effort, &["udp 32", "weir 32"]), (reliable, &["weir 8", "udp 32", "weir 32", "aaa 32"])],
        );
    }

    #[test]
    fn segmentation_offload_stands_beside_plain_udp_under_every_reliability() {
        let (none, best_effort, reliable) =
            (Reliability::None, Reliability::BestEffort, Reliability::Reliable);
        let cases = vec![
            case("weir", reliable, 32),
            case("weir", best_effort, 32),
            case(FLOOR, none, 32),
            case(GSO, none, 32),
        ];
        let rows: &[&str] = &["udp 32", "udp-gso 32", "weir 32"];
        check(cases, &[(best_effort, rows), (reliable, rows)]);
    }

    #[test]
    fn a_floor_that_nothing_stands_on_is_shown_alone() {
        let (none, reliable) = (Reliability::None, Reliability::Reliable);
        let spinning = case(FLOOR, none, 32).with(|it| it.conditions.wait = WaitStrategy::Spin);
        check(
            vec![case("weir", reliable, 32), spinning, case(FLOOR, none, 64)],
            &[(none, &["udp 64"]), (none, &["udp 32"]), (reliable, &["weir 32"])],
        );
    }

    #[test]
    fn repeats_are_one_point_and_other_conditions_are_not() {
        let reliable = Reliability::Reliable;
        let weir = case("weir", reliable, 32);
        check(
            vec![
                weir.clone(),
                weir.clone().with(|it| it.conditions.repeat = 2),
                weir.clone().with(|it| it.point.batch_bytes = 8192),
                weir.clone().with(|it| it.point.subscribers = 2),
                weir.clone().with(|it| it.point.publishers = 2),
                weir.clone().with(|it| it.point.multicast = true),
                weir.clone().with(|it| it.conditions.rate_samples_per_s = Some(1000.0)),
                weir.clone().with(|it| it.conditions.coalescing = Some(Coalescing::Off)),
                weir.with(|it| it.point.loans = true),
            ],
            &[
                (reliable, &["weir 32", "weir (loans) 32", "weir (one send per sample) 32"]),
                (reliable, &["weir 32"]),
                (reliable, &["weir 32"]),
                (reliable, &["weir 32"]),
                (reliable, &["weir 32"]),
                (reliable, &["weir 32"]),
            ],
        );
    }

    #[test]
    fn what_is_no_dds_stands_apart_and_on_no_floor() {
        let apart = case("zeromq", Reliability::Reliable, 32).with(|it| it.conditions.apart = true);
        let cases = vec![case("udp", Reliability::None, 32), case("weir", Reliability::Reliable, 32), apart];
        assert_eq!(
            shape(cases),
            [
                (Reliability::Reliable, vec!["udp 32".to_owned(), "weir 32".to_owned()]),
                (Reliability::Reliable, vec!["zeromq 32".to_owned()]),
            ]
        );
    }

    #[test]
    fn several_ends_and_multicast_are_conditions_in_words() {
        let many = case("weir", Reliability::Reliable, 32).with(|it| {
            it.point.publishers = 2;
            it.point.subscribers = 3;
            it.point.multicast = true;
        });
        let key = GroupKey::of(&many, LatencyKind::HalfRtt);
        assert_eq!(
            key.conditions(),
            "reliable, unkeyed, 2 publishers to 3 subscribers, multicast, wait: block"
        );
        assert_eq!(key.file_stem(), "latency-reliable-unkeyed-2to3-multicast-block");
        let between = |sub: &str| {
            let path = Some(format!("hosts pub=lab:alpha/a,sub=ssh://{sub}"));
            GroupKey { path, ..key.clone() }.file_stem()
        };
        let name = between("user@beta");
        assert!(name.contains("hosts-publab:alpha-a") && !name.contains(['/', ' ']), "{name}");
        let [one, other] = ["x", "y"].map(|end| between(&format!("{}{end}", "long".repeat(80))));
        assert!(one.len() <= 180 && other.len() <= 180 && one != other, "{one}");
    }

    #[test]
    fn a_case_without_figures_stays_with_its_kind() {
        let mut round_trip = case("weir", Reliability::Reliable, 32);
        round_trip.figures.latency_us =
            Some(weir_results::LatencySummary { kind: LatencyKind::Rtt, ..Default::default() });
        check(
            vec![round_trip, case("other", Reliability::Reliable, 32)],
            &[(Reliability::Reliable, &["weir 32", "other 32"])],
        );
    }
}
