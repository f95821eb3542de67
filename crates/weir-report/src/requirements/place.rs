//! All cases of a run that requirements may be about, each with what it is compared with.

use weir_results::{Case, NotMeasured, Run};

use crate::baseline::beaten_baseline;
use crate::group::{Group, Load, Point, conditions_of, groups, is_raw_udp};
use crate::loss::{has_failed, lost};
use crate::udp::udp_points;
use crate::workload::workload_points;

/// The cases of a run: those in groups, UDP tests, and workloads.
pub(super) struct Places<'r> {
    groups: Vec<Group<'r>>,
    /// UDP tests and workloads with their conditions.
    others: Vec<(String, Point<'r>)>,
}

/// The repeats of a case.
pub(super) struct Place<'p, 'r> {
    pub(super) point: &'p Point<'r>,
    /// All of its conditions in words, but for the test.
    conditions: String,
    /// `None`: a UDP test or a workload.
    group: Option<&'p Group<'r>>,
}

impl<'r> Places<'r> {
    pub(super) fn of(run: &'r Run) -> Self {
        let udp = udp_points(run).into_iter().map(|it| (it.title, it.point));
        Self { groups: groups(run), others: udp.chain(workload_points(run)).collect() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Place<'_, 'r>> {
        let grouped = self.groups.iter().flat_map(|group| {
            let conditions = group.key.conditions();
            group.points.iter().map(move |point| Place {
                point,
                conditions: conditions_of(&conditions, point),
                group: Some(group),
            })
        });
        let others = self.others.iter();
        grouped.chain(others.map(|(conditions, point)| Place {
            point,
            conditions: conditions.clone(),
            group: None,
        }))
    }

    /// Returns the repeats of the engine `name` under the same conditions as a place of this run.
    pub(super) fn base<'p>(&'p self, place: &Place<'p, 'r>, name: &str) -> Option<&'p Point<'r>> {
        if let Some(group) = place.group {
            return group.base(place.point, name);
        }
        let own = place.case()?;
        let is_base = |other: &&Case| {
            let mut own = own.clone();
            own.point.engine.clone_from(&other.point.engine);
            if let (Some(udp), Some(of)) = (&mut own.figures.udp, &other.figures.udp) {
                udp.mode = of.mode;
            }
            other.point.engine == name && own.same_point(other)
        };
        let mut others = self.others.iter().map(|(_, point)| point);
        others.find(|point| point.repeats.first().is_some_and(is_base))
    }

    /// Returns the same case of a stored run.
    pub(super) fn stored(&self, place: &Place<'_, '_>) -> Option<Place<'_, 'r>> {
        let test = |place: &Place<'_, '_>| place.case().map(|case| case.point.test);
        self.all().find(|other| {
            test(other) == test(place)
                && (&other.point.engine, other.point.size_bytes)
                    == (&place.point.engine, place.point.size_bytes)
                && other.conditions == place.conditions
        })
    }
}

impl Place<'_, '_> {
    /// Returns the first repeat.
    pub(super) fn case(&self) -> Option<&Case> {
        self.point.repeats.first().copied()
    }

    /// Returns whether it was measured at a share of its own maximum, which is another rate for each engine.
    pub(super) fn is_at_share(&self) -> bool {
        self.case().is_some_and(|case| case.conditions.load_percent.is_some())
    }

    /// Returns why its ratio to the baseline is doubtful.
    pub(super) fn doubt(&self) -> Option<String> {
        beaten_baseline(self.group?, self.point).map(|warning| warning.to_string())
    }

    /// Returns lost and received samples or pings of all repeats; `None` without figures.
    pub(super) fn losses(&self) -> Option<(u64, u64)> {
        let received =
            |case: &Case| match (&case.figures.workload, case.figures.throughput, case.figures.latency_us) {
                (Some(workload), ..) => Some(workload.sum(|it| it.received)),
                (None, Some(throughput), _) => Some(throughput.total_samples),
                (None, None, Some(latency)) => Some(latency.count),
                (None, None, None) => None,
            };
        let of = |case: &&Case| Some((lost(case), received(case)?));
        self.point.repeats.iter().filter_map(of).reduce(|(lost, received), (more_lost, more_received)| {
            (lost + more_lost, received + more_received)
        })
    }

    /// Returns whether some repeat failed, so that its losses are not known.
    pub(super) fn has_failed_repeat(&self) -> bool {
        self.point.repeats.iter().any(|case| has_failed(case))
    }

    /// Returns why there is no figure.
    pub(super) fn why_not(&self) -> String {
        let reason = self.point.repeats.iter().find_map(|case| case.evidence.not_measured.as_ref());
        reason.map_or_else(|| "no figures".to_owned(), NotMeasured::to_string)
    }

    /// Returns the case in words, e.g. `weir 1024 B throughput, reliable, batches of 8192 B`, with its path if there
    /// are several.
    pub(super) fn name(&self, has_paths: bool) -> String {
        let point = self.point;
        let Some(case) = self.case() else { return point.engine.clone() };
        if self.group.is_none() {
            let size = match point.size_bytes {
                0 => String::new(),
                bytes => format!(" {bytes} B"),
            };
            return format!("{}{size} {} ({})", point.engine, case.point.test, self.conditions);
        }
        let mut text = format!("{} {} B {}", point.engine, point.size_bytes, case.point.test);
        if !is_raw_udp(&case.point.engine) {
            text.push_str(&format!(", {}", case.point.reliability));
        }
        if case.point.batch_bytes > 0 {
            text.push_str(&format!(", batches of {} B", case.point.batch_bytes));
        }
        match point.load {
            Some(Load::Percent(bits)) => text.push_str(&format!(", load {} %", f64::from_bits(bits))),
            Some(Load::Rate(bits)) => text.push_str(&format!(", {} samples/s", f64::from_bits(bits))),
            None => {}
        }
        if case.conditions.kept_awake {
            text.push_str(", processors kept awake");
        }
        if let Some(path) = case.conditions.path.as_ref().filter(|_| has_paths) {
            text.push_str(&format!(", {path}"));
        }
        text
    }
}
