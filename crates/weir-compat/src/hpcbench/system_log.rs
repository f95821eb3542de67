//! The hosts' activity in the form of hpcbench's system logs.

use std::time::Duration;

use weir_telemetry::Recorder;

/// Reads this host's counters; each reading but the first ends an entry of the log.
#[derive(Debug, Default)]
pub(crate) struct SystemLog(Option<Recorder>);

impl SystemLog {
    /// Reads the counters.
    pub(crate) fn watch(&mut self) {
        match &mut self.0 {
            Some(recorder) => recorder.look(),
            None => self.0 = Some(Recorder::new(Duration::ZERO)),
        }
    }

    /// The log as text.
    pub(crate) fn text(&self, host: &str, date: &str) -> String {
        self.0.as_ref().map(Recorder::telemetry).unwrap_or_default().hpcbench_log(host, date)
    }
}

/// The name of this host.
pub(super) fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_look_but_the_first_is_an_entry() {
        let mut log = SystemLog::default();
        assert!(log.text("mk1", "today").contains("# Watch times: 0\n"));
        (0..3).for_each(|_| log.watch());
        let text = log.text("mk1", "Tue Jul 13 23:50:45 2004");
        assert!(text.starts_with("# mk1 syslog -- Tue Jul 13 23:50:45 2004\n# Watch times: 2\n"), "{text}");
        assert!(text.contains("statistics of network interface <loop> and its interrupts"), "{text}");
        let rows = |text: &str| text.lines().filter(|line| line.starts_with("1  ")).count();
        // One for each device and one for each processor.
        assert!(rows(&text) >= 2, "{text}");
    }
}
