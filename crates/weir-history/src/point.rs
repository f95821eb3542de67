//! What cases measured, without their repeats, and how that changed.

use weir_results::{Better, Case, Interval, Spread, Test, format_size};

use crate::run::RunEntry;

/// What repeats of a case have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointKey {
    /// The engine.
    pub engine: String,
    /// `latency`, `throughput` or `workload`.
    pub test: String,
    /// Size of a sample in bytes.
    pub size_bytes: u64,
    /// All else, in words.
    pub conditions: String,
    /// The host that measured.
    pub host: String,
}

/// A point over time.
#[derive(Debug, Clone, PartialEq)]
pub struct PointHistory {
    /// What is measured.
    pub key: PointKey,
    /// The runs that have it, in order of time.
    pub runs: Vec<PointOfRun>,
}

/// The repeats of a point in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct PointOfRun {
    /// The run.
    pub run: RunEntry,
    /// The figure that decides, of each repeat: median latency in microseconds, received samples per second, or
    /// processor time of a workload in percent.
    pub values: Vec<f64>,
    /// Samples lost in all repeats.
    pub lost: u64,
}

impl PointHistory {
    /// Returns the better direction.
    #[must_use]
    pub fn better(&self) -> Better {
        if self.key.test == Test::Throughput.name() { Better::More } else { Better::Less }
    }
}

impl PointOfRun {
    /// Returns the median over the repeats.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        Spread::of(self.values.iter().copied()).map(|it| it.median)
    }

    /// Returns the 95 % interval of the median; `None` with too few repeats.
    #[must_use]
    pub fn interval(&self) -> Option<Interval> {
        Interval::of_median(&self.values)
    }

    /// Returns the median divided by that of another run, and the 95 % interval of that ratio; `None` for the interval
    /// with too few repeats on either side.
    #[must_use]
    pub fn ratio(&self, other: &Self) -> Option<(f64, Option<Interval>)> {
        let (own, other_median) = (self.median()?, other.median().filter(|it| *it > 0.0)?);
        Some((own / other_median, Interval::of_ratio_at(&self.values, &other.values, 0.95)))
    }
}

/// Returns the conditions of a case in words, without engine, test and size. Cases of the same point have the same.
#[must_use]
pub fn conditions(case: &Case) -> String {
    let (point, conditions) = (&case.point, &case.conditions);
    let mut words = vec![point.reliability.to_string()];
    if let Some(name) = &conditions.workload_name {
        // Of one name, there may be several contents over time.
        words = vec![
            [name.as_str(), conditions.workload_digest.as_deref().unwrap_or_default()]
                .join(" ")
                .trim()
                .to_owned(),
        ];
    }
    let mut add = |is_so: bool, text: String| {
        if is_so {
            words.push(text);
        }
    };
    add(point.keyed, format!("keyed, {} instances", point.instances));
    add(point.batch_bytes > 0, format!("batches of {}", format_size(point.batch_bytes)));
    add(
        (point.publishers, point.subscribers) != (1, 1),
        format!("{}:{}", point.publishers, point.subscribers),
    );
    add(point.multicast, "multicast".into());
    add(point.loans, "loans".into());
    add(true, conditions.wait.to_string());
    add(conditions.kept_awake, "kept awake".into());
    if let Some(path) = &conditions.path {
        add(true, path.clone());
    }
    if let Some(beside) = &conditions.beside {
        add(true, format!("beside {beside}"));
    }
    match (conditions.load_percent, conditions.rate_samples_per_s) {
        (Some(percent), _) => add(true, format!("{percent} % of the maximum")),
        (None, Some(rate)) => add(true, format!("{rate} samples/s")),
        (None, None) => {}
    }
    if let Some(depth) = conditions.keep_last {
        add(true, format!("keep last {depth}"));
    }
    if let Some(coalescing) = conditions.coalescing {
        add(true, format!("coalescing {coalescing}"));
    }
    if let Some(udp) = &case.figures.udp {
        add(true, format!("{} flows {} {}", udp.mode, udp.flows, udp.direction));
        add(udp.duplex, "duplex".into());
        add(udp.connected, "connected".into());
        add(udp.gro, "gro".into());
        add(udp.ip_version == 6, "IPv6".into());
        if let Some(dscp) = udp.dscp {
            add(true, format!("dscp {dscp}"));
        }
        if let Some(group) = &udp.multicast {
            add(true, format!("group {group}"));
        }
    }
    words.join(", ")
}

/// Returns the samples that a case lost.
pub(crate) fn lost(case: &Case) -> u64 {
    let figures = &case.figures;
    let of_workload = figures.workload.as_ref().map_or(0, |it| it.sum(|topics| topics.lost));
    figures.latency_us.map_or(0, |it| it.lost) + figures.throughput.map_or(0, |it| it.lost) + of_workload
}

#[cfg(test)]
mod tests {
    use weir_results::{Coalescing, Direction, Reliability, UdpFigures, UdpMode, WaitStrategy};

    use super::*;

    /// A change of a case.
    type Change = fn(&mut Case);

    /// What makes another point, apart from engine, test and size.
    const OF_ALL: &[Change] = &[
        |it| it.point.reliability = Reliability::BestEffort,
        |it| it.point.keyed = false,
        |it| it.point.instances = 7,
        |it| it.point.batch_bytes = 8192,
        |it| it.point.publishers = 2,
        |it| it.point.subscribers = 2,
        |it| it.point.multicast = true,
        |it| it.point.loans = true,
        |it| it.conditions.wait = WaitStrategy::Spin,
        |it| it.conditions.path = Some("veth".to_owned()),
        |it| it.conditions.kept_awake = true,
        |it| it.conditions.rate_samples_per_s = Some(10.0),
        |it| it.conditions.load_percent = Some(10.0),
        |it| it.conditions.keep_last = Some(1),
        |it| it.conditions.beside = Some("tcp".to_owned()),
        |it| it.conditions.workload_name = Some("robot".to_owned()),
        |it| it.conditions.workload_digest = Some("12ab".to_owned()),
        |it| it.conditions.coalescing = Some(Coalescing::Off),
    ];

    const OF_UDP: &[fn(&mut UdpFigures)] = &[
        |it| it.mode = UdpMode::Gso,
        |it| it.flows = 2,
        |it| it.direction = Direction::Reverse,
        |it| it.duplex = true,
        |it| it.connected = true,
        |it| it.gro = true,
        |it| it.ip_version = 6,
        |it| it.dscp = Some(46),
        |it| it.multicast = Some("239.1.2.3".to_owned()),
    ];

    #[test]
    fn what_makes_another_point_is_in_its_conditions() {
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
            (it.point.keyed, it.point.instances) = (true, 5);
            it.conditions.workload_name = Some("trading".to_owned());
        });
        let udp = case.clone().with(|it| {
            it.figures.udp = Some(UdpFigures { flows: 1, ip_version: 4, ..UdpFigures::default() });
        });
        let plain = case.clone().with(|it| it.conditions.workload_name = None);
        let changed = OF_ALL.iter().map(|change| {
            let base =
                if plain.clone().with(change).conditions.workload_digest.is_some() { &case } else { &plain };
            (base.clone(), base.clone().with(change))
        });
        let of_udp = OF_UDP.iter().map(|change| {
            (udp.clone(), udp.clone().with(|it| it.figures.udp.as_mut().into_iter().for_each(change)))
        });
        for (place, (base, changed)) in changed.chain(of_udp).enumerate() {
            assert!(!base.same_point(&changed), "change {place}");
            assert_ne!(conditions(&base), conditions(&changed), "change {place}");
        }
    }

    #[test]
    fn contents_of_a_workload_are_part_of_its_point() {
        let of = |digest: Option<&str>| {
            conditions(&Case::new("weir", Test::Workload, Reliability::None, 0).with(|it| {
                it.conditions.workload_name = Some("robot".to_owned());
                it.conditions.workload_digest = digest.map(str::to_owned);
            }))
        };
        assert_eq!(of(Some("12ab")), "robot 12ab, block");
        assert_eq!(of(None), "robot, block");
    }
}
