//! The round-trip test: one datagram at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_baseline::{receive_one, send};
use weir_results::WaitStrategy;

use super::connection::Connection;
use super::control::Request;
use super::files::{ReportFile, Watch};
use crate::hpcbench::datagram::payload;
use crate::hpcbench::flow;
use crate::hpcbench::report;
use crate::hpcbench::settings::{Console, Settings};
use weir_measure::MeasureError;

/// The least length of a pass; the number of round trips is found by doubling.
const PASS: Duration = Duration::from_millis(200);
/// A datagram that takes longer is lost.
const LOST: Duration = Duration::from_secs(1);
/// Losses that the search for the number of round trips tolerates.
const SEARCHES: usize = 3;

pub(super) fn run(
    settings: &Settings,
    message_bytes: u64,
    halt: &AtomicBool,
    console: &mut Console<'_>,
) -> Result<(), MeasureError> {
    let connection = Connection::open(settings)?;
    let report = ReportFile::create(settings)?;
    let rows = Rows { report, console, trials: 0, times_us: Vec::new() };
    if settings.verbose {
        let text = report::verbose_heading(settings, &connection.heading);
        (rows.console)(&text).map_err(MeasureError::Console)?;
    }
    let message = payload(message_bytes as usize);
    let mut test = Test { settings, halt, connection, rows, watch: Watch::new(settings), message };
    let measured = test.measure();
    test.rows.end(measured, message_bytes)?;
    test.watch.write(&mut test.connection)
}

/// The rows of the trials, on the console and in the report.
struct Rows<'a, 'c> {
    report: ReportFile,
    console: &'a mut Console<'c>,
    /// How many have a row.
    trials: usize,
    /// The mean of each pass that was not spoilt, microseconds.
    times_us: Vec<f64>,
}

impl Rows<'_, '_> {
    /// Writes a line to the console and to the report.
    fn say(&mut self, text: &str) -> Result<(), MeasureError> {
        (self.console)(text).map_err(MeasureError::Console)?;
        self.report.write(&format!("{text}\n"))
    }

    /// Writes the row of a trial: its mean in microseconds, or what spoilt it.
    fn add(&mut self, time_us: Result<f64, &'static str>) -> Result<(), MeasureError> {
        self.trials += 1;
        let number = self.trials;
        let row = match time_us {
            Ok(time_us) => {
                self.times_us.push(time_us);
                report::round_trip_row(number, time_us)
            }
            Err(spoilt) => format!("UDP Round Trip Time ({number}) : {spoilt}"),
        };
        self.say(&row)
    }

    /// Keeps all rows, whatever ended the test; the first error is reported.
    fn end(&mut self, measured: Result<(), MeasureError>, message_bytes: u64) -> Result<(), MeasureError> {
        let trials = self.trials;
        if trials == 0 {
            return measured;
        }
        let tail = if self.times_us.is_empty() {
            Err(MeasureError::AllSpoilt { trials })
        } else {
            self.say(report::round_trip_tail(message_bytes, &self.times_us).trim_end())
        };
        let kept = self.report.finish();
        measured.and(tail).and(kept)
    }
}

struct Test<'a, 'c> {
    settings: &'a Settings,
    halt: &'a AtomicBool,
    connection: Connection,
    rows: Rows<'a, 'c>,
    watch: Watch<'a>,
    message: Vec<u8>,
}

impl Test<'_, '_> {
    fn measure(&mut self) -> Result<(), MeasureError> {
        self.watch.look(&mut self.connection)?;
        self.watch.idle(&mut self.connection, self.halt)?;
        flow::drain(&self.connection.socket);
        self.connection.expect_ready(&Request::Echo)?;
        let iterations = self.search()?;
        let (heading, bytes) = (&self.connection.heading, self.message.len() as u64);
        self.rows.report.write(&report::round_trip_heading(heading, bytes, iterations))?;
        for _ in 0..self.settings.repeat {
            let time = self.pass(iterations)?;
            self.rows.add(time.map(|time| time.as_secs_f64() * 1e6 / iterations as f64))?;
            self.watch.look(&mut self.connection)?;
        }
        self.connection.expect_ready(&Request::Sent)?;
        self.watch.idle(&mut self.connection, self.halt)
    }

    /// Finds the number of round trips of a pass.
    fn search(&mut self) -> Result<u64, MeasureError> {
        let (mut iterations, mut losses) = (2, 0);
        loop {
            match self.pass(iterations)? {
                Ok(time) if time >= PASS => return Ok(iterations),
                Ok(_) => iterations *= 2,
                Err(_) if losses + 1 == SEARCHES => {
                    return Err(MeasureError::NothingArrives { port: self.connection.heading.server_port });
                }
                Err(_) => losses += 1,
            }
        }
    }

    /// One pass: how long it took, or what spoilt it.
    fn pass(&mut self, iterations: u64) -> Result<Result<Duration, &'static str>, MeasureError> {
        let socket = &self.connection.socket;
        let mut answer = vec![0; self.message.len()];
        let start = Instant::now();
        for number in 0..iterations {
            if self.halt.load(Ordering::Relaxed) {
                return Err(MeasureError::Interrupted);
            }
            // As much of the number as fits distinguishes an answer from the previous one.
            for (byte, digit) in self.message.iter_mut().rev().zip(number.to_le_bytes()) {
                *byte = digit;
            }
            let answered = send(socket, None, &self.message)
                .and_then(|_| receive_one(socket, WaitStrategy::Block, LOST, &mut answer));
            let spoilt = match answered.map_err(MeasureError::Transfer)? {
                Some(count) if answer[..count] == self.message[..] => continue,
                Some(_) => "Packet disordered",
                None => "Packet lost",
            };
            // Lost, or is the server gone?
            self.connection.check()?;
            flow::drain(&self.connection.socket);
            return Ok(Err(spoilt));
        }
        Ok(Ok(start.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpcbench::settings::Mode;

    /// Ends a test with these trials: its result, the report, and the console.
    fn ended(
        trials: &[Result<f64, &'static str>],
        measured: Result<(), MeasureError>,
    ) -> (Result<(), MeasureError>, Option<String>, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report");
        let settings = Settings {
            output: Some(path.clone()),
            ..Settings::new("a", Mode::RoundTrip { message_bytes: 64 })
        };
        let mut shown = String::new();
        let mut console = |text: &str| {
            shown += text;
            Ok(())
        };
        let report = ReportFile::create(&settings).unwrap();
        let mut rows = Rows { report, console: &mut console, trials: 0, times_us: Vec::new() };
        trials.iter().for_each(|trial| rows.add(*trial).unwrap());
        let end = rows.end(measured, 64);
        (end, std::fs::read_to_string(path).ok(), shown)
    }

    #[test]
    fn a_test_whose_trials_are_all_spoilt_keeps_its_report_and_fails() {
        let (end, report, shown) = ended(&[Err("Packet lost"), Err("Packet disordered")], Ok(()));
        assert!(matches!(end, Err(MeasureError::AllSpoilt { trials: 2 })), "{end:?}");
        let report = report.unwrap();
        assert!(
            report.contains("(1) : Packet lost\n") && report.contains("(2) : Packet disordered\n"),
            "{report}"
        );
        assert!(!shown.contains("min/avg/max"), "{shown}");
    }

    #[test]
    fn an_interruption_is_reported_before_what_it_leaves() {
        let (end, report, _) = ended(&[Err("Packet lost")], Err(MeasureError::Interrupted));
        assert!(matches!(end, Err(MeasureError::Interrupted)) && report.is_some());
        let (end, report, _) = ended(&[], Err(MeasureError::Interrupted));
        assert!(matches!(end, Err(MeasureError::Interrupted)) && report.is_none());
        let (end, report, shown) = ended(&[Ok(20.0), Err("Packet lost")], Ok(()));
        assert!(end.is_ok() && report.unwrap().contains("min/avg/max") && shown.contains("Packet lost"));
    }
}
