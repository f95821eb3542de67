//! Publishes or subscribes shapes with Weir, for tests that need a separate process: `shape_weir
//! publish|subscribe best-effort|reliable DOMAIN TOPIC COUNT`.
//!
//! The publisher waits for a reader and for a line on its input, writes COUNT samples, disposes the
//! instance, and leaves when its input ends. The subscriber prints a line for each sample, and
//! "disposed" when the instance is; then it stops. Both print "matched" after discovery.
#![expect(clippy::print_stdout, reason = "the tests read its output")]

use std::process::ExitCode;
use std::time::Duration;

use weir_dds::{
    DataReaderQos, DataWriterQos, DdsError, DomainParticipant, InstanceState, ParticipantSettings, Topic,
};
use weir_interop::shape::ShapeType;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let [verb, reliability, domain, topic, count] = words else {
        return Err("usage: shape_weir publish|subscribe best-effort|reliable DOMAIN TOPIC COUNT".into());
    };
    let is_reliable = *reliability == "reliable";
    let participant = DomainParticipant::new(domain.parse()?, ParticipantSettings::from_environment()?)?;
    let topic = participant.create_topic::<ShapeType>(topic)?;
    match *verb {
        "publish" => publish(&participant, &topic, is_reliable, count.parse()?)?,
        _ => subscribe(&participant, &topic, is_reliable)?,
    }
    Ok(())
}

fn publish(
    participant: &DomainParticipant,
    topic: &Topic<ShapeType>,
    is_reliable: bool,
    count: i32,
) -> Result<(), DdsError> {
    let qos = DataWriterQos::default().keep_all().max_blocking_time(LIMIT);
    let qos = if is_reliable { qos.reliable() } else { qos.best_effort() };
    let writer = participant.create_publisher()?.create_datawriter(topic, qos)?;
    writer.wait_for_subscriptions(1, LIMIT)?;
    println!("matched");
    // The end of the input counts as a line.
    let _ = std::io::stdin().read_line(&mut String::new());
    for x in 0..count {
        writer.write(&ShapeType::blue(x))?;
        if !is_reliable {
            // Best effort needs pacing.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    writer.dispose(&ShapeType::blue(0))?;
    if is_reliable {
        writer.wait_for_acknowledgments(LIMIT)?;
    }
    // The goodbye may overtake a best-effort sample, so it waits until the input ends.
    let _ = std::io::stdin().read_line(&mut String::new());
    Ok(())
}

fn subscribe(
    participant: &DomainParticipant,
    topic: &Topic<ShapeType>,
    is_reliable: bool,
) -> Result<(), DdsError> {
    let qos = DataReaderQos::default().keep_all();
    let qos = if is_reliable { qos.reliable() } else { qos.best_effort() };
    let reader = participant.create_subscriber()?.create_datareader(topic, qos)?;
    reader.wait_for_publications(1, LIMIT)?;
    println!("matched");
    let mut is_disposed = false;
    while !is_disposed && reader.wait_for_data(LIMIT).is_ok() {
        for sample in reader.take(usize::MAX) {
            is_disposed = sample.info.instance_state == InstanceState::NotAliveDisposed;
            if let Some(shape) = sample.data() {
                println!("{}", shape.line());
            }
        }
    }
    if is_disposed {
        println!("disposed");
    }
    Ok(())
}

const LIMIT: Duration = Duration::from_secs(120);
