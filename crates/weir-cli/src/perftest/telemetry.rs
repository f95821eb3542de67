//! `-telemetryFile`: host telemetry of the runs, in the format of `weir report --telemetry csv`.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use weir_bench::host::HostWatch;
use weir_compat::perftest::NodeSettings;
use weir_results::{Case, Environment, Reliability, Run, Test, write_whole};

use super::append;
use crate::exit::Failure;

/// The file and the runs so far.
pub(super) struct TelemetryFile {
    path: PathBuf,
    run: Run,
}

impl TelemetryFile {
    /// Creates the file, so that an unwritable path fails before the measurement.
    pub(super) fn create(path: PathBuf) -> Result<Self, Failure> {
        // What is there stays until there is something to replace it with.
        append("-telemetryFile", &path)?;
        Ok(Self { path, run: Run::new(Environment::default()) })
    }

    /// Starts sampling if there is a file.
    pub(super) fn watch(file: Option<&Self>) -> Option<HostWatch> {
        file.map(|_| HostWatch::start(PERIOD))
    }

    /// Adds a run of the publisher or the subscriber and writes the file.
    pub(super) fn keep(
        &mut self,
        mut case: Case,
        is_publisher: bool,
        watch: HostWatch,
    ) -> Result<(), Failure> {
        let telemetry = Some(watch.stop());
        if is_publisher {
            case.evidence.publisher_telemetry = telemetry;
        } else {
            case.evidence.subscriber_telemetry = telemetry;
        }
        case.conditions.repeat = u32::try_from(self.run.cases.len() + 1).unwrap_or(u32::MAX);
        self.run.cases.push(case);
        // The whole file is rewritten, since a later run may add columns. The new file replaces the old one only when
        // it is complete, so that a full disk does not lose earlier runs.
        let table = weir_report::telemetry_csv(&self.run);
        let written = write_whole(&self.path, |file| file.write_all(table.as_bytes()));
        let complaint = || format!("-telemetryFile {}", self.path.display());
        written.with_context(complaint).map_err(Failure::environment)
    }
}

/// The case that the rows belong to.
pub(super) fn case(node: &NodeSettings, latency_test: bool, data_len: usize) -> Case {
    let (engine, reliability) = match (&node.raw, node.reliable) {
        (Some(_), _) => ("udp", Reliability::None),
        (None, true) => ("weir", Reliability::Reliable),
        (None, false) => ("weir", Reliability::BestEffort),
    };
    let test = if latency_test { Test::Latency } else { Test::Throughput };
    Case::new(engine, test, reliability, data_len as u64).with(|it| it.point.keyed = node.keyed)
}

/// Ten samples per second.
const PERIOD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_runs_are_in_the_file_and_a_missing_folder_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.csv");
        let mut file = TelemetryFile::create(path.clone()).unwrap();
        for size in [32, 64] {
            let watch = TelemetryFile::watch(Some(&file)).unwrap();
            let case = Case::new("weir", Test::Latency, Reliability::Reliable, size);
            file.keep(case, true, watch).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("case,engine,test,"), "{text}");
        assert!(text.contains("\n1,weir,latency,reliable,32,1,publisher,"), "{text}");
        assert!(text.contains("\n2,weir,latency,reliable,64,2,publisher,"), "{text}");
        assert!(TelemetryFile::watch(None).is_none());
        // A run that is interrupted destroys nothing.
        TelemetryFile::create(path.clone()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let error = TelemetryFile::create(folder.path().join("no/host.csv")).err().unwrap();
        assert!(error.error.to_string().contains("-telemetryFile"));
    }
}
