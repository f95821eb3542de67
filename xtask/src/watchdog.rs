//! Decides when to kill a program: after a total time or, for tests, if no test has finished for a
//! long time.

use std::time::{Duration, Instant};

/// A limit on a running program. Time is an argument.
#[derive(Debug)]
pub(crate) struct Watchdog {
    limit: Duration,
    /// When the program started, or its last test finished.
    since: Instant,
    tests: Option<Tests>,
}

impl Watchdog {
    /// Limits the total time of a program.
    pub(crate) fn of_program(now: Instant, limit: Duration) -> Self {
        Self { limit, since: now, tests: None }
    }

    /// Limits each test of a program that runs libtest binaries, but not the total.
    ///
    /// A test that takes no longer than `limit` never trips it, however many there are: between two
    /// tests that finish, one is always running.
    pub(crate) fn of_tests(now: Instant, limit: Duration) -> Self {
        Self { tests: Some(Tests::default()), ..Self::of_program(now, limit) }
    }

    /// Processes more of the program's standard output.
    pub(crate) fn read(&mut self, now: Instant, output: &[u8]) {
        if self.tests.as_mut().is_some_and(|tests| tests.read(output)) {
            self.since = now;
        }
    }

    /// Returns how long the program may still run.
    pub(crate) fn remaining(&self, now: Instant) -> Duration {
        (self.since + self.limit).saturating_duration_since(now)
    }

    /// Returns why the program was killed.
    pub(crate) fn verdict(&self) -> String {
        let seconds = self.limit.as_secs();
        match self.tests.as_ref().map(Tests::running) {
            None => format!("killed after {seconds} s"),
            Some(names) if names.is_empty() => format!("killed: no test finished for {seconds} s"),
            Some(names) => {
                format!("killed: no test finished for {seconds} s; still running: {}", names.join(", "))
            }
        }
    }
}

/// The libtest output of one binary.
#[derive(Debug, Default)]
struct Tests {
    /// The last line, as far as it was printed.
    line: Vec<u8>,
    /// Tests that libtest reported as slow, and that have not finished.
    slow: Vec<String>,
}

impl Tests {
    /// Processes more output. Returns whether a test finished, or a binary started or ended.
    fn read(&mut self, output: &[u8]) -> bool {
        let mut has_advanced = false;
        for &byte in output {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                has_advanced |= self.read_line(&String::from_utf8_lossy(&line));
            } else {
                self.line.push(byte);
            }
        }
        has_advanced
    }

    fn read_line(&mut self, line: &str) -> bool {
        if line.starts_with("running ") || line.starts_with("test result: ") {
            self.slow.clear();
            return true;
        }
        let Some(rest) = line.strip_prefix("test ") else {
            return false;
        };
        if let Some((name, _)) = rest.split_once(SLOW) {
            self.slow.push(name.to_owned());
            return false;
        }
        let Some((name, _)) = finished(rest) else {
            return false;
        };
        self.slow.retain(|slow| slow != name);
        true
    }

    /// Returns the names of unfinished tests, as far as libtest has printed them: one by one with a
    /// single thread, otherwise after a minute.
    fn running(&self) -> Vec<String> {
        let line = String::from_utf8_lossy(&self.line);
        let started = line.strip_prefix("test ").and_then(finished).map(|(name, _)| name.to_owned());
        self.slow.iter().cloned().chain(started).collect()
    }
}

/// Parses name and result of `name ... ok`.
fn finished(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.rsplit_once(" ... ")?;
    Some((name.strip_suffix(" - should panic").unwrap_or(name), result))
}

const SLOW: &str = " has been running for over ";

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(600);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_program_has_one_limit_whatever_it_prints() {
        let start = Instant::now();
        let mut watchdog = Watchdog::of_program(start, LIMIT);
        watchdog.read(start + seconds(500), b"test a ... ok\n");
        assert_eq!(watchdog.remaining(start + seconds(500)), seconds(100));
        assert_eq!(watchdog.remaining(start + seconds(601)), Duration::ZERO);
        assert_eq!(watchdog.verdict(), "killed after 600 s");
    }

    #[test]
    fn every_test_has_the_whole_limit() {
        let start = Instant::now();
        let mut watchdog = Watchdog::of_tests(start, LIMIT);
        let mut now = start;
        for line in ["running 3 tests\n", "test a ... ok\n", "test b ... FAILED\n", "test c ... ignored\n"] {
            now += seconds(599);
            assert_eq!(watchdog.remaining(now), seconds(1));
            watchdog.read(now, line.as_bytes());
            assert_eq!(watchdog.remaining(now), LIMIT, "{line}");
        }
        // The end of a binary and the start of the next one count, too.
        watchdog.read(now + seconds(1), b"\ntest result: FAILED. 1 passed; 1 failed; 1 ignored\n");
        assert_eq!(watchdog.remaining(now + seconds(1)), LIMIT);
    }

    #[test]
    fn other_output_gives_a_hung_test_no_more_time() {
        let start = Instant::now();
        let mut watchdog = Watchdog::of_tests(start, LIMIT);
        let noise = "still here\n\ntest a has been running for over 60 seconds\ntest \ntesting ... ok\n";
        watchdog.read(start + seconds(60), noise.as_bytes());
        assert_eq!(watchdog.remaining(start + seconds(60)), seconds(540));
    }

    #[test]
    fn a_hung_test_is_named() {
        let start = Instant::now();
        let mut watchdog = Watchdog::of_tests(start, LIMIT);
        assert_eq!(watchdog.verdict(), "killed: no test finished for 600 s");
        // In pieces, as a pipe delivers them.
        for piece in [
            "running 4 tests\ntest peers::slow has been running for over 60 se",
            "conds\ntest peers::hung has been running for over 60 seconds\ntest pani",
            "cs has been running for over 60 seconds\ntest peers::slow ... ok\ntest panics - should panic ... ok\n",
        ] {
            watchdog.read(start, piece.as_bytes());
        }
        assert_eq!(watchdog.verdict(), "killed: no test finished for 600 s; still running: peers::hung");
        // The next binary has its own tests.
        watchdog.read(start, b"running 1 test\n");
        assert_eq!(watchdog.verdict(), "killed: no test finished for 600 s");
    }

    #[test]
    fn with_one_thread_the_test_of_the_unfinished_line_is_named() {
        let start = Instant::now();
        let mut watchdog = Watchdog::of_tests(start, LIMIT);
        watchdog.read(start, b"running 2 tests\ntest a ... ok\ntest b::hung ... ");
        assert_eq!(watchdog.verdict(), "killed: no test finished for 600 s; still running: b::hung");
    }
}
