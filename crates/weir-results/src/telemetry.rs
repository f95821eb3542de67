//! The host's activity during a run: rows of figures at a fixed period.
//!
//! Names of columns are the results format, units last: `cpu.user_percent`, `cpu3.softirq_percent`,
//! `eth0.recv_packets`, `eth0.cpu0_interrupts`, `memory.available_kib`,
//! `udp.receive_buffer_errors`, `process.rss_kib`, `pressure.cpu_some_percent`,
//! `cgroup.throttled_percent`. Counts and percentages cover the row's own time; sizes are as of its
//! end.

mod hpcbench;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::latency::rounded;

/// The figures of one end's host, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Compact", try_from = "Compact")]
pub struct Telemetry {
    /// Time between two rows in milliseconds; longer than requested if a long run was thinned. 0:
    /// rows do not follow the clock.
    pub period_ms: u64,
    /// Processor time of the recording itself, in milliseconds.
    pub own_cpu_ms: f64,
    /// Rows that were not taken in time because the host was too busy; the next one is longer.
    pub missed: u64,
    /// End of each row, in milliseconds since the start of the recording.
    at_ms: Vec<u64>,
    columns: BTreeMap<String, Vec<Option<f64>>>,
}

impl Telemetry {
    /// Creates telemetry without rows.
    #[must_use]
    pub fn new(period_ms: u64) -> Self {
        Self { period_ms, ..Self::default() }
    }

    /// Adds a row that ends `at_ms` after the start. Figures that it lacks are unknown for it.
    pub fn push(&mut self, at_ms: u64, figures: impl IntoIterator<Item = (String, f64)>) {
        let rows = self.at_ms.len();
        for (name, value) in figures {
            let column = self.columns.entry(name).or_default();
            column.resize(rows, None);
            // Three decimals suffice, and none of them should be infinite or NaN.
            column.push(value.is_finite().then(|| (value * 1e3).round() / 1e3));
        }
        self.at_ms.push(at_ms);
        self.columns.values_mut().for_each(|column| column.resize(rows + 1, None));
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.at_ms.len()
    }

    /// Returns the end of a row, in milliseconds since the start of the recording.
    #[must_use]
    pub fn at_ms(&self, row: usize) -> Option<u64> {
        self.at_ms.get(row).copied()
    }

    /// Returns the names of all columns, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }

    /// Returns a figure; `None` if it is unknown.
    #[must_use]
    pub fn value(&self, name: &str, row: usize) -> Option<f64> {
        *self.columns.get(name)?.get(row)?
    }

    /// Returns the known figures of a column, in order.
    pub fn values(&self, name: &str) -> impl Iterator<Item = f64> {
        self.columns.get(name).into_iter().flatten().filter_map(|value| *value)
    }
}

impl Telemetry {
    /// Returns the processor time of the end's process in steps of `step_ms` from `from_ms` on, in percent of one
    /// processor: the mean of the rows that end in each step, or `None`. Empty if it was not recorded at all.
    #[must_use]
    pub fn processor_percent(&self, from_ms: f64, step_ms: f64, steps: usize) -> Vec<Option<f64>> {
        let columns = ["process.user_percent", "process.system_percent"];
        if !columns.iter().all(|name| self.columns.contains_key(*name)) || step_ms <= 0.0 {
            return Vec::new();
        }
        let mut sums = vec![(0.0, 0_u32); steps];
        for row in 0..self.rows() {
            let shares = columns.map(|name| self.value(name, row));
            let step =
                self.at_ms(row).map(|at_ms| (at_ms as f64 - from_ms) / step_ms).filter(|step| *step > 0.0);
            if let ([Some(user), Some(system)], Some(step)) = (shares, step)
                && let Some((sum, count)) = sums.get_mut(step.ceil() as usize - 1)
            {
                (*sum, *count) = (*sum + user + system, *count + 1);
            }
        }
        sums.iter().map(|(sum, count)| (*count > 0).then(|| rounded(sum / f64::from(*count)))).collect()
    }
}

/// The form in the file: constant columns are stored once.
#[derive(Clone, Serialize, Deserialize)]
struct Compact {
    period_ms: u64,
    own_cpu_ms: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    missed: u64,
    at_ms: Vec<u64>,
    #[serde(default)]
    constant: BTreeMap<String, Option<Number>>,
    #[serde(default)]
    columns: BTreeMap<String, Vec<Option<Number>>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "called by serde")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The number in the file, without `.0` if it is whole: most are counts.
fn number(value: f64) -> Option<Number> {
    // Whole numbers up to here are exact in both types.
    const EXACT: f64 = 9.0e15;
    let is_whole = value.fract() == 0.0 && value.abs() < EXACT;
    if is_whole { Some(Number::from(value as i64)) } else { Number::from_f64(value) }
}

impl From<Telemetry> for Compact {
    fn from(telemetry: Telemetry) -> Self {
        let mut constant = BTreeMap::new();
        let mut columns = BTreeMap::new();
        for (name, values) in telemetry.columns {
            let same = values.first().filter(|first| values.iter().all(|value| value == *first)).copied();
            if let Some(value) = same {
                constant.insert(name, value.and_then(number));
            } else {
                columns.insert(name, values.into_iter().map(|value| value.and_then(number)).collect());
            }
        }
        Self {
            period_ms: telemetry.period_ms,
            own_cpu_ms: (telemetry.own_cpu_ms * 1e3).round() / 1e3,
            missed: telemetry.missed,
            at_ms: telemetry.at_ms,
            constant,
            columns,
        }
    }
}

/// Maximum number of figures read: a thousand rows with some thousand columns. Limits the memory
/// for a peer's short message, as a constant column is stored once.
const FIGURES_MAX: usize = 8 << 20;

impl TryFrom<Compact> for Telemetry {
    type Error = String;

    fn try_from(compact: Compact) -> Result<Self, String> {
        let rows = compact.at_ms.len();
        let names = compact.constant.len() + compact.columns.len();
        if rows.saturating_mul(names) > FIGURES_MAX {
            return Err(format!("too much telemetry: {rows} rows and {names} columns"));
        }
        let mut columns = BTreeMap::new();
        for (name, value) in compact.constant {
            columns.insert(name, vec![value.and_then(|value| value.as_f64()); rows]);
        }
        for (name, values) in compact.columns {
            let mut values: Vec<Option<f64>> = values.into_iter().map(|value| value?.as_f64()).collect();
            // As many values as rows, whatever the file contains.
            values.resize(rows, None);
            columns.insert(name, values);
        }
        Ok(Self {
            period_ms: compact.period_ms,
            own_cpu_ms: compact.own_cpu_ms,
            missed: compact.missed,
            at_ms: compact.at_ms,
            columns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figures: &[(&str, f64)]) -> Vec<(String, f64)> {
        figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn some() -> Telemetry {
        let mut telemetry = Telemetry { own_cpu_ms: 0.25, ..Telemetry::new(100) };
        telemetry.push(100, row(&[("cpu.user_percent", 12.34567), ("context_switches", 7.0), ("swap", 0.0)]));
        telemetry.push(200, row(&[("cpu.user_percent", 50.0), ("context_switches", 9.0), ("swap", 0.0)]));
        telemetry
            .push(300, row(&[("cpu.user_percent", f64::NAN), ("eth1.recv_packets", 4.0), ("swap", 0.0)]));
        telemetry
    }

    #[test]
    fn columns_come_and_go_and_rows_stay_rows() {
        let telemetry = some();
        assert_eq!(telemetry.rows(), 3);
        assert_eq!(telemetry.value("cpu.user_percent", 0), Some(12.346));
        assert_eq!(telemetry.value("cpu.user_percent", 2), None);
        assert_eq!(telemetry.value("context_switches", 2), None);
        assert_eq!(
            (telemetry.value("eth1.recv_packets", 0), telemetry.value("eth1.recv_packets", 2)),
            (None, Some(4.0))
        );
        assert_eq!(telemetry.value("nothing", 0), None);
        assert_eq!(telemetry.values("context_switches").collect::<Vec<_>>(), [7.0, 9.0]);
        assert_eq!(telemetry.at_ms(2), Some(300));
    }

    #[test]
    fn the_processor_time_of_a_step_is_the_mean_of_its_rows() {
        let mut telemetry = Telemetry::new(100);
        for at_ms in [100, 200, 300, 400, 600] {
            let user = at_ms as f64 / 10.0;
            telemetry.push(at_ms, row(&[("process.user_percent", user), ("process.system_percent", 1.0)]));
        }
        let percent = telemetry.processor_percent(150.0, 150.0, 4);
        assert_eq!(percent, [Some(26.0), Some(41.0), Some(61.0), None]);
        assert_eq!(some().processor_percent(0.0, 100.0, 3), []);
    }

    #[test]
    fn the_file_holds_constants_once_and_whole_numbers_whole() {
        let text = serde_json::to_string(&some()).unwrap();
        assert_eq!(
            text,
            "{\"period_ms\":100,\"own_cpu_ms\":0.25,\"at_ms\":[100,200,300],\"constant\":{\"swap\":0},\
             \"columns\":{\"context_switches\":[7,9,null],\"cpu.user_percent\":[12.346,50,null],\
             \"eth1.recv_packets\":[null,null,4]}}"
        );
        assert_eq!(serde_json::from_str::<Telemetry>(&text).unwrap(), some());
    }

    #[test]
    fn a_file_of_somebody_else_is_read_without_trust() {
        let text = "{\"period_ms\":1,\"own_cpu_ms\":0,\"at_ms\":[1],\"columns\":{\"a\":[1,2,3],\"b\":[]}}";
        let telemetry: Telemetry = serde_json::from_str(text).unwrap();
        assert_eq!(
            (telemetry.value("a", 0), telemetry.value("a", 1), telemetry.value("b", 0)),
            (Some(1.0), None, None)
        );
    }

    #[test]
    fn a_short_message_cannot_become_huge() {
        let read = |rows: usize, columns: usize| {
            let constant: Vec<String> = (0..columns).map(|column| format!("\"{column}\":0")).collect();
            let rows = vec!["1"; rows].join(",");
            let text = format!(
                r#"{{"period_ms":1,"own_cpu_ms":0,"at_ms":[{rows}],"constant":{{{}}}}}"#,
                constant.join(",")
            );
            serde_json::from_str::<Telemetry>(&text)
        };
        assert_eq!(read(1024, 100).unwrap().rows(), 1024);
        let refused = read(10_000, 10_000).unwrap_err().to_string();
        assert!(refused.contains("too much telemetry: 10000 rows and 10000 columns"), "{refused}");
    }
}
