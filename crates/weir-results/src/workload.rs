//! What a workload measured: many topics at fixed rates between the nodes of several processes.

use serde::{Deserialize, Serialize};

use crate::latency::rounded;
use crate::{
    Discovery, Distribution, HistogramError, LatencyHistogram, ProcessFigures, Reliability, ScheduleLag,
};

/// The figures of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadFigures {
    /// Nodes, each a participant.
    pub nodes: u32,
    /// Topics.
    pub topics: u32,
    /// Writers of all topics.
    pub writers: u32,
    /// Readers of all topics.
    pub readers: u32,
    /// Processor time of all processes while it was measured, in percent of one processor.
    pub cpu_percent: f64,
    /// Until all endpoints had found their peers; `None` for engines without discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// The groups of topics, in the order of the file.
    pub groups: Vec<TopicGroupFigures>,
    /// The processes.
    pub processes: Vec<WorkloadProcess>,
}

/// The figures of topics of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicGroupFigures {
    /// Its name.
    pub name: String,
    /// Topics.
    pub topics: u32,
    /// Their writers.
    pub writers: u32,
    /// Their readers.
    pub readers: u32,
    /// Size of a sample in bytes.
    pub size_bytes: u64,
    /// Delivery guarantee.
    pub reliability: Reliability,
    /// Samples that writers and readers keep (KEEP_LAST); `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_last: Option<u32>,
    /// Instances of each writer; 0 if not keyed.
    pub instances: u32,
    /// How often each writer is due, per second.
    pub rate_hz: f64,
    /// Samples that it writes then.
    pub burst: u32,
    /// Samples per second of all writers that were due in the measured part.
    pub due_samples_per_s: f64,
    /// Samples per second of all writers that were written in it.
    pub sent_samples_per_s: f64,
    /// Samples that all readers together should have received.
    pub expected: u64,
    /// Samples that they received, without duplicates.
    pub received: u64,
    /// The rest.
    pub lost: u64,
    /// Samples that a reader received again.
    pub duplicates: u64,
    /// The ages of the received samples; `None`: none was received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_us: Option<AgeSummary>,
    /// The distribution of these ages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<LatencyHistogram>,
    /// How late the writers began to write; `None`: nothing was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_lag_us: Option<ScheduleLag>,
}

/// Ages of samples, from the time at which each was due to its arrival in the application, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AgeSummary {
    /// Samples.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// Maximum.
    pub max: f64,
}

/// A process of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadProcess {
    /// How many nodes of each kind run in it, e.g. `camera 2, planner 1`.
    pub nodes: String,
    /// Its resources while it was measured.
    pub figures: ProcessFigures,
    /// Its processor time, in percent of one processor.
    pub cpu_percent: f64,
}

impl TopicGroupFigures {
    /// Returns whether at least 99 % of what was due was written before the end.
    #[must_use]
    pub fn is_in_time(&self) -> bool {
        self.sent_samples_per_s >= COMPLETE * self.due_samples_per_s
    }
}

/// From this share on, a workload counts as carried.
const COMPLETE: f64 = 0.99;

impl WorkloadFigures {
    /// Returns whether at least 99 % of the samples of each group were written in time, and received. Otherwise, the
    /// processor time is that of less work.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_received = |it: &TopicGroupFigures| it.received as f64 >= COMPLETE * it.expected as f64;
        self.groups.iter().all(|it| it.is_in_time() && is_received(it))
    }

    /// Returns the sum of a count over the groups.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&TopicGroupFigures) -> u64) -> u64 {
        self.groups.iter().map(of).sum()
    }

    /// Returns the ages of all groups together.
    ///
    /// # Errors
    /// If a distribution is damaged.
    pub fn ages(&self) -> Result<Option<AgeSummary>, HistogramError> {
        AgeSummary::merged(self.groups.iter().filter_map(|group| group.histogram.as_ref()))
    }
}

impl AgeSummary {
    /// Summarises distributions together; `None` without any.
    ///
    /// # Errors
    /// If one is damaged.
    pub fn merged<'a>(
        histograms: impl IntoIterator<Item = &'a LatencyHistogram>,
    ) -> Result<Option<Self>, HistogramError> {
        let all = LatencyHistogram::merged(histograms)?;
        all.map(|all| Ok(Self::of(&all.decode()?))).transpose()
    }

    /// Summarises a distribution.
    #[must_use]
    pub fn of(ages: &Distribution) -> Self {
        let quantile = |share| rounded(ages.quantile_us(share));
        Self {
            count: ages.count(),
            p50: quantile(0.5),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max: quantile(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LatencyKind, LatencyRecorder};

    #[test]
    fn ages_of_several_distributions_are_summarised_together() {
        let of = |us: u64, count: u64| {
            let mut recorder = LatencyRecorder::new();
            (0..count).for_each(|_| recorder.record(us * 1_000));
            recorder.histogram(LatencyKind::OneWay).unwrap()
        };
        let (fast, slow) = (of(100, 990), of(5_000, 10));
        let ages = AgeSummary::merged([&fast, &slow]).unwrap().unwrap();
        let near = |found: f64, us: f64| (found / us - 1.0).abs() < 0.002;
        assert_eq!(ages.count, 1_000);
        assert!(near(ages.p50, 100.0) && near(ages.p99, 100.0), "{ages:?}");
        assert!(near(ages.p99_9, 5_000.0) && near(ages.max, 5_000.0), "{ages:?}");
        assert_eq!(AgeSummary::merged([]), Ok(None));
    }
}
