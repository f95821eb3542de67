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
    if settings.verbose {
        let text = report::verbose_heading(settings, &connection.heading);
        console(&text).map_err(MeasureError::Console)?;
    }
    let message = payload(message_bytes as usize);
    let (watch, times_us) = (Watch::new(settings), Vec::new());
    let mut test = Test { settings, halt, connection, report, watch, message, times_us, console };
    let measured = test.measure();
    if test.times_us.is_empty() {
        return measured;
    }
    // What was measured is kept whatever ended the test; the first error is reported.
    let tail = test.say(report::round_trip_tail(message_bytes, &test.times_us).trim_end());
    let kept = test.report.finish();
    measured.and(tail).and(kept).and_then(|()| test.watch.write(&mut test.connection))
}

struct Test<'a, 'c> {
    settings: &'a Settings,
    halt: &'a AtomicBool,
    connection: Connection,
    report: ReportFile,
    watch: Watch<'a>,
    message: Vec<u8>,
    /// The mean of each pass, microseconds.
    times_us: Vec<f64>,
    console: &'a mut Console<'c>,
}

impl Test<'_, '_> {
    /// Writes a line to the console and to the report.
    fn say(&mut self, text: &str) -> Result<(), MeasureError> {
        (self.console)(text).map_err(MeasureError::Console)?;
        self.report.write(&format!("{text}\n"))
    }

    fn measure(&mut self) -> Result<(), MeasureError> {
        self.watch.look(&mut self.connection)?;
        self.watch.idle(&mut self.connection, self.halt)?;
        flow::drain(&self.connection.socket);
        self.connection.expect_ready(&Request::Echo)?;
        let iterations = self.search()?;
        let (heading, bytes) = (&self.connection.heading, self.message.len() as u64);
        self.report.write(&report::round_trip_heading(heading, bytes, iterations))?;
        for number in 1..=self.settings.repeat as usize {
            let row = match self.pass(iterations)? {
                Ok(time) => {
                    let time_us = time.as_secs_f64() * 1e6 / iterations as f64;
                    self.times_us.push(time_us);
                    report::round_trip_row(number, time_us)
                }
                Err(spoilt) => format!("UDP Round Trip Time ({number}) : {spoilt}"),
            };
            self.say(&row)?;
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
