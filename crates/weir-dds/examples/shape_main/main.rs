//! `shape_main`: the application of the OMG's DDS interoperability suite
//! (<https://github.com/omg-dds/dds-rtps>).
//!
//! Publishes or subscribes coloured shapes. The options and the output are those of the suite's own program, since its
//! driver reads them. All behaviour comes from the engine: this program only sets QoS, writes, reads and prints. How to
//! run the suite: `docs/reference/interoperability.md`.
//!
//! ```sh
//! cargo run -p weir-dds --example shape_main -- -P -t Square -c BLUE
//! cargo run -p weir-dds --example shape_main -- -S -t Square
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the driver of the suite reads the output")]

mod listeners;
mod options;
mod publisher;
mod shape;
mod subscriber;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_dds::{DomainParticipant, ParticipantSettings, Topic};

use options::{Options, USAGE};
use shape::ShapeType;

/// Why the program ends early, with the exit code of the suite's own program.
enum Failure {
    /// The options are wrong: 1.
    Options(String),
    /// An entity could not be created: 2.
    Initializing(String),
    /// A call failed: 3.
    Running(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (text, code) = match run(&arguments) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Options(text)) => (format!("{text}\n{USAGE}"), 1),
        Err(Failure::Initializing(text)) => (text, 2),
        Err(Failure::Running(text)) => (text, 3),
    };
    println!("{text}");
    ExitCode::from(code)
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments).map_err(Failure::Options)?;
    if options.asks_for_help {
        println!("{USAGE}");
        return Ok(());
    }
    options.warnings().iter().for_each(|warning| println!("warning: {warning}"));
    let stop = Stop::on_interrupt().map_err(Failure::Initializing)?;
    let (participant, topics) = start(&options)?;
    if options.publish {
        publisher::run(&participant, &topics, &options, &stop)?;
    } else {
        subscriber::run(&participant, &topics, &options, &stop)?;
    }
    println!("Done.");
    Ok(())
}

/// Creates the participant and the topics: `Square`, `Square1`, `Square2`, ...
fn start(options: &Options) -> Result<(DomainParticipant, Vec<Topic<ShapeType>>), Failure> {
    let settings = ParticipantSettings::from_environment().map_err(initializing)?;
    let participant = DomainParticipant::new(options.domain_id, settings).map_err(initializing)?;
    let topics = (0..options.num_topics).map(|number| {
        let name = numbered(&options.topic, number);
        println!("Create topic: {name}");
        let topic = participant.create_topic::<ShapeType>(&name).map_err(initializing)?;
        topic.set_listener(Some(Arc::new(listeners::Topics)));
        Ok(topic)
    });
    let topics = topics.collect::<Result<_, Failure>>()?;
    Ok((participant, topics))
}

fn initializing(error: impl std::fmt::Display) -> Failure {
    Failure::Initializing(error.to_string())
}

fn running(error: impl std::fmt::Display) -> Failure {
    Failure::Running(error.to_string())
}

/// The name of topic or instance `number`: the first has the given name, the others a number behind it.
fn numbered(name: &str, number: u32) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}{number}") }
}

/// Set by SIGINT, or after the last iteration.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn on_interrupt() -> Result<Self, String> {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag))
            .map_err(|error| format!("cannot handle SIGINT: {error}"))?;
        Ok(Self(flag))
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits for `period`, or until the program is interrupted.
    fn pause(&self, period: Duration) {
        let end = Instant::now() + period;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(INTERRUPT_LATENCY));
        }
    }
}

/// How long an interrupt may take to be noticed.
const INTERRUPT_LATENCY: Duration = Duration::from_millis(100);
