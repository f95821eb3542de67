//! Cost against the parameter N of a workload: plots and compact tables.

use std::fmt::Write as _;

use weir_results::{Case, Run, Test};

use crate::compact::three_digits;
use crate::group::{Point, rank};
use crate::plot::{Axis, Chart, Line, Plot, chart_svg, hues, mark};
use crate::workload::age_p99;

/// A workload with a parameter, measured with several of its values.
struct Scaled<'a> {
    /// Its name without the value.
    name: &'a str,
    kept_awake: bool,
    /// The engines in their order, each with its repeats by value.
    engines: Vec<(&'a str, Values<'a>)>,
}

/// The repeats by value.
type Values<'a> = Vec<(u32, Vec<&'a Case>)>;

/// A figure against N: the word in the name of its plot, its title, and the figure itself.
type Figure = (&'static str, &'static str, fn(&Case) -> Option<f64>);

/// Returns the plots of all workloads with a parameter, both axes logarithmic, one colour per engine: processor time,
/// age, discovery and memory against N. Of several repeats the median is drawn, with whiskers.
#[must_use]
pub fn scaling_plots(run: &Run) -> Vec<Plot> {
    let scaled = scaled(run);
    scaled.iter().flat_map(|workload| workload.figures().filter_map(|figure| workload.plot(figure))).collect()
}

/// Returns tables of the same figures, with a row for each engine and a column for each N.
pub(crate) fn scaling_tables(run: &Run) -> Vec<String> {
    let scaled = scaled(run);
    scaled
        .iter()
        .flat_map(|workload| workload.figures().filter_map(|figure| workload.table(figure)))
        .collect()
}

fn scaled(run: &Run) -> Vec<Scaled<'_>> {
    let mut all: Vec<Scaled<'_>> = Vec::new();
    for case in run.cases.iter().filter(|case| case.point.test == Test::Workload) {
        let conditions = &case.conditions;
        let Some((n, name)) = conditions.workload_n.zip(conditions.workload_name.as_deref()) else {
            continue;
        };
        let name = name.strip_suffix(&format!("-{n}")).unwrap_or(name);
        let key = (name, conditions.kept_awake);
        let at = all.iter().position(|it| (it.name, it.kept_awake) == key).unwrap_or_else(|| {
            all.push(Scaled { name, kept_awake: key.1, engines: Vec::new() });
            all.len() - 1
        });
        let values = entry(&mut all[at].engines, case.point.engine.as_str());
        entry(values, n).push(case);
    }
    for workload in &mut all {
        workload.engines.sort_by_key(|(engine, _)| rank(engine));
        for (_, values) in &mut workload.engines {
            values.sort_by_key(|(n, _)| *n);
        }
    }
    all
}

/// Returns what is listed for a key, which is added if it is new.
fn entry<K: PartialEq, V>(list: &mut Vec<(K, Vec<V>)>, key: K) -> &mut Vec<V> {
    let at = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, Vec::new()));
        list.len() - 1
    });
    &mut list[at].1
}

impl<'a> Scaled<'a> {
    fn cases(&self) -> impl Iterator<Item = &'a Case> {
        self.engines.iter().flat_map(|(_, values)| values).flat_map(|(_, repeats)| repeats).copied()
    }

    /// The figures: what N participants cost is the time of each, what anything else costs is that of a sample.
    fn figures(&self) -> impl Iterator<Item = Figure> {
        let is_of_nodes = |case: &Case| {
            let nodes = case.figures.workload.as_ref().map(|it| it.nodes);
            nodes.is_none_or(|nodes| case.conditions.workload_n == Some(nodes))
        };
        let first = if self.cases().all(is_of_nodes) { CPU_OF_NODE } else { CPU_OF_SAMPLE };
        std::iter::once(first).chain(OTHERS)
    }

    fn points(&self, engine: usize) -> impl Iterator<Item = (u32, Point<'a>)> {
        let (name, values) = &self.engines[engine];
        values.iter().map(|(n, repeats)| {
            let engine = (*name).to_owned();
            (*n, Point { engine, size_bytes: u64::from(*n), load: None, repeats: repeats.clone() })
        })
    }

    fn plot(&self, (word, title, figure): Figure) -> Option<Plot> {
        let names = self.engines.iter().map(|(engine, _)| *engine).collect();
        let line = |(number, (engine, hue))| {
            let marks = self.points(number).filter_map(|(_, point)| mark(&point, figure)).collect();
            Line { engine: str::to_owned(engine), figure: "", hue, dashed: false, marks }
        };
        let lines: Vec<Line> = hues(names).into_iter().enumerate().map(line).collect();
        let lines: Vec<Line> = lines.into_iter().filter(|line| !line.marks.is_empty()).collect();
        (!lines.is_empty()).then(|| Plot {
            name: format!("scaling-{}{}-{word}", self.name, if self.kept_awake { "-awake" } else { "" }),
            svg: chart_svg(&Chart {
                title: format!("{title}, by N"),
                conditions: self.conditions(),
                axis: Axis::Count,
                lines,
            }),
        })
    }

    fn table(&self, (_, title, figure): Figure) -> Option<String> {
        let mut counts: Vec<u32> =
            self.engines.iter().flat_map(|(_, values)| values).map(|(n, _)| *n).collect();
        counts.sort_unstable();
        counts.dedup();
        let mut rows = String::new();
        for (number, (engine, _)) in self.engines.iter().enumerate() {
            let cell = |n: &u32| {
                let point = self.points(number).find(|(of, _)| of == n);
                let spread = point.and_then(|(_, point)| point.spread(figure));
                spread.map_or_else(String::new, |spread| three_digits(spread.median))
            };
            let cells: Vec<String> = counts.iter().map(cell).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                _ = writeln!(rows, "| {engine} | {} |", cells.join(" | "));
            }
        }
        let heads: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let rule = "---:|".repeat(counts.len());
        (!rows.is_empty()).then(|| {
            format!("{title}, {}:\n\n| N | {} |\n|---|{rule}\n{rows}", self.conditions(), heads.join(" | "))
        })
    }

    fn conditions(&self) -> String {
        format!("workload {}{}", self.name, if self.kept_awake { ", processors kept awake" } else { "" })
    }
}

const CPU_OF_SAMPLE: Figure = ("processor", "Processor time per received sample, microseconds", |case| {
    let figures = case.figures.workload.as_ref()?;
    let received = Some(figures.sum(|it| it.received)).filter(|received| *received > 0)?;
    // Who delivers less has less to do.
    let processors = case.headline()? / 100.0;
    Some(processors * case.figures.duration_s? * 1e6 / received as f64)
});

const CPU_OF_NODE: Figure =
    ("processor", "Processor time of each participant, percent of one processor", |case| {
        Some(case.headline()? / f64::from(case.figures.workload.as_ref()?.nodes.max(1)))
    });

const OTHERS: [Figure; 3] = [
    ("age", "99th percentile of the ages of samples, microseconds", age_p99),
    ("discovery", "Time until all endpoints are matched, milliseconds", |case| {
        Some(case.figures.workload.as_ref()?.discovery?.from_first_ms)
    }),
    ("memory", "Resident memory of all processes, MiB", |case| {
        let processes = &case.figures.workload.as_ref()?.processes;
        Some(processes.iter().map(|it| it.figures.max_rss_kib as f64).sum::<f64>() / 1024.0)
    }),
];

#[cfg(test)]
mod tests {
    use weir_results::{Discovery, Environment};

    use super::*;
    use crate::workload::tests::case;

    /// Two repeats of two engines with three values; the second engine lost samples with the largest.
    fn run(name: &str, nodes: impl Fn(u32) -> u32) -> Run {
        let mut run = Run::new(Environment::default());
        for repeat in [1, 2] {
            for n in [100, 1, 10] {
                for (engine, times) in [("cyclonedds", 3.0), ("weir", 1.0)] {
                    run.cases.push(case(engine, repeat, times * f64::from(n), 100).with(|it| {
                        it.conditions.workload_name = Some(format!("{name}-{n}"));
                        it.conditions.workload_n = Some(n);
                        let figures = it.figures.workload.as_mut().unwrap();
                        figures.nodes = nodes(n);
                        let from_first_ms = f64::from(n);
                        figures.discovery = Some(Discovery { from_first_ms, ..Discovery::default() });
                        if engine == "cyclonedds" && n == 100 {
                            figures.groups[0].expected *= 2;
                        }
                    }));
                }
            }
        }
        run
    }

    #[test]
    fn each_figure_has_a_row_for_each_engine_and_a_column_for_each_value() {
        let tables = scaling_tables(&run("readers", |_| 2));
        assert_eq!(tables.len(), 4);
        // 1 % of a processor for 2 s are 20 ms, for 2000 samples.
        let expected = "Processor time per received sample, microseconds, workload readers:\n\n\
                        | N | 1 | 10 | 100 |\n|---|---:|---:|---:|\n\
                        | weir | 10 | 100 | 1000 |\n| cyclonedds | 30 | 300 |  |\n";
        assert_eq!(tables[0], expected);
        assert!(tables[2].contains("| cyclonedds | 1 | 10 | 100 |"), "{}", tables[2]);
    }

    #[test]
    fn participants_cost_what_each_of_them_takes() {
        let tables = scaling_tables(&run("participants", |n| n));
        assert!(tables[0].starts_with("Processor time of each participant, percent of one processor"));
        assert!(tables[0].contains("| weir | 1 | 1 | 1 |"), "{}", tables[0]);
    }

    #[test]
    fn each_figure_has_a_plot_with_a_line_for_each_engine() {
        let plots = scaling_plots(&run("readers", |_| 2));
        let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
        let expected =
            ["processor", "age", "discovery", "memory"].map(|word| format!("scaling-readers-{word}"));
        assert_eq!(names, expected);
        for text in ["by N", "workload readers", "weir", "cyclonedds", "100"] {
            assert!(plots[0].svg.contains(text), "{text}: {}", plots[0].svg);
        }
    }

    #[test]
    fn workloads_without_a_parameter_have_none() {
        let run = Run { cases: vec![case("weir", 1, 1.0, 1)], ..Run::new(Environment::default()) };
        assert!(scaling_tables(&run).is_empty() && scaling_plots(&run).is_empty());
    }
}
