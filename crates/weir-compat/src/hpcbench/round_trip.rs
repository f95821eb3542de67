//! The round-trip test: one datagram at a time.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_baseline::{receive_one, send};
use weir_results::WaitStrategy;
use weir_udp::UdpSocket;

use super::Console;
use super::connection::Connection;
use super::files::{ReportFile, Watch};
use crate::hpcbench::datagram::payload;
use crate::hpcbench::flow;
use crate::hpcbench::report;
use crate::hpcbench::settings::Settings;
use weir_measure::MeasureError;

/// The least length of a pass; the number of round trips is found by doubling.
const PASS: Duration = Duration::from_millis(200);
/// A datagram that takes longer is lost.
const LOST: Duration = Duration::from_secs(1);
/// Losses that the search for the number of round trips tolerates.
const SEARCHES: usize = 3;

/// Why a pass has no result.
#[derive(Debug)]
enum Spoilt {
    Lost,
    Disordered,
    Interrupted,
    Failed(io::Error),
}

impl fmt::Display for Spoilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("Packet lost"),
            Self::Disordered => f.write_str("Packet disordered"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

pub(super) fn run(
    settings: &Settings,
    message_bytes: u64,
    halt: &AtomicBool,
    console: &mut Console<'_>,
) -> Result<(), MeasureError> {
    let mut connection = Connection::open(settings)?;
    let mut report = ReportFile::create(settings)?;
    let mut watch = Watch::new(settings);
    let mut times_us = Vec::new();
    if settings.verbose {
        let text = report::verbose_heading(settings, &connection.heading);
        console(&text).map_err(MeasureError::Console)?;
    }
    let mut say = |text: &str, report: &mut ReportFile| {
        console(text).map_err(MeasureError::Console)?;
        report.write(&format!("{text}\n"))
    };
    let measured =
        measure(settings, message_bytes, halt, &mut connection, &mut watch, &mut |event| match event {
            Event::Iterations(heading) => report.write(&heading),
            Event::Spoilt(text) => say(&text, &mut report),
            Event::Time(number, time_us) => {
                times_us.push(time_us);
                say(&report::round_trip_row(number, time_us), &mut report)
            }
        });
    if !times_us.is_empty() {
        say(report::round_trip_tail(message_bytes, &times_us).trim_end(), &mut report)?;
        measured.and_then(|()| watch.write(&mut connection))
    } else {
        measured
    }
}

/// Progress of a measurement.
enum Event {
    /// The heading, once the number of round trips in a pass is known.
    Iterations(String),
    /// A pass without a time.
    Spoilt(String),
    /// The mean of a pass in microseconds.
    Time(usize, f64),
}

fn measure(
    settings: &Settings,
    message_bytes: u64,
    halt: &AtomicBool,
    connection: &mut Connection,
    watch: &mut Watch<'_>,
    tell: &mut dyn FnMut(Event) -> Result<(), MeasureError>,
) -> Result<(), MeasureError> {
    let mut message = payload(message_bytes as usize);
    watch.look(connection)?;
    watch.idle(connection, halt)?;
    connection.start_echo()?;
    let iterations = search(connection, &mut message, halt)?;
    tell(Event::Iterations(report::round_trip_heading(&connection.heading, message_bytes, iterations)))?;
    for number in 1..=settings.repeat as usize {
        let text = match pass(&connection.socket, &mut message, iterations, halt) {
            Ok(time) => {
                tell(Event::Time(number, time.as_secs_f64() * 1e6 / iterations as f64))?;
                watch.look(connection)?;
                continue;
            }
            Err(Spoilt::Interrupted) => return Err(MeasureError::Interrupted),
            Err(Spoilt::Failed(error)) => return Err(MeasureError::Transfer(error)),
            Err(spoilt) => format!("UDP Round Trip Time ({number}) : {spoilt}"),
        };
        // Lost, or is the server gone?
        connection.check()?;
        tell(Event::Spoilt(text))?;
        flow::drain(&connection.socket);
        watch.look(connection)?;
    }
    connection.end_echo()?;
    watch.idle(connection, halt)
}

/// Finds the number of round trips of a pass.
fn search(connection: &mut Connection, message: &mut [u8], halt: &AtomicBool) -> Result<u64, MeasureError> {
    let (mut iterations, mut losses) = (2, 0);
    loop {
        match pass(&connection.socket, message, iterations, halt) {
            Ok(time) if time >= PASS => return Ok(iterations),
            Ok(_) => iterations *= 2,
            Err(Spoilt::Interrupted) => return Err(MeasureError::Interrupted),
            Err(Spoilt::Failed(error)) => return Err(MeasureError::Transfer(error)),
            Err(Spoilt::Lost | Spoilt::Disordered) => {
                connection.check()?;
                losses += 1;
                if losses == SEARCHES {
                    return Err(MeasureError::NothingArrives { port: connection.heading.server_port });
                }
                flow::drain(&connection.socket);
            }
        }
    }
}

/// One pass.
fn pass(
    socket: &UdpSocket,
    message: &mut [u8],
    iterations: u64,
    halt: &AtomicBool,
) -> Result<Duration, Spoilt> {
    let mut answer = vec![0; message.len()];
    let start = Instant::now();
    for number in 0..iterations {
        if halt.load(Ordering::Relaxed) {
            return Err(Spoilt::Interrupted);
        }
        // As much of the number as fits distinguishes an answer from the previous one.
        for (octet, digit) in message.iter_mut().rev().zip(number.to_le_bytes()) {
            *octet = digit;
        }
        let answered = send(socket, None, message)
            .and_then(|_| receive_one(socket, WaitStrategy::Block, LOST, &mut answer));
        match answered {
            Ok(Some(count)) if answer[..count] == *message => {}
            Ok(Some(_)) => return Err(Spoilt::Disordered),
            Ok(None) => return Err(Spoilt::Lost),
            Err(error) => return Err(Spoilt::Failed(error)),
        }
    }
    Ok(start.elapsed())
}
