//! Publishes a number of greetings reliably.
//!
//! Run in two terminals, in any order, or on two hosts of a network:
//!
//! ```text
//! cargo run --release -p weir-dds --example hello_subscriber
//! cargo run --release -p weir-dds --example hello_publisher
//! ```
//!
//! The argument of each is the number of samples. Both read their settings from the environment,
//! such as `WEIR_INTERFACES=lo`, `WEIR_DOMAIN_ID=7`, `WEIR_PEERS=192.168.1.20`.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use weir_dds::{DataWriterQos, DdsType, DomainParticipant, ParticipantSettings};

/// The sample. The publisher and the subscriber have the same type: same name, same members.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "hello_publisher: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the number of samples from the command line and the settings from the environment.
fn start() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(10), |text| text.parse());
    let count = count.map_err(|_| "invalid argument: give the number of greetings, such as 10")?;
    let settings = ParticipantSettings::from_environment()?;
    let participant = DomainParticipant::new(weir_dds::domain_id_from_environment()?, settings)?;
    run(&participant, "Greetings", count, &mut std::io::stdout())
}

/// Waits for a subscriber and publishes `count` greetings.
pub(crate) fn run(
    participant: &DomainParticipant,
    topic: &str,
    count: u32,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>(topic)?;
    let qos = DataWriterQos::default().keep_all();
    let writer = participant.create_publisher()?.create_datawriter(&topic, qos)?;

    writeln!(out, "Waiting for a subscriber in domain {}.", participant.domain_id())?;
    writer.wait_for_subscriptions(1, Duration::MAX)?;

    for number in 1..=count {
        let greeting = Greeting { number, text: "Hello, world".to_owned() };
        writer.write(&greeting)?;
        writeln!(out, "Said:  {} ({number} of {count})", greeting.text)?;
    }

    writer.wait_for_acknowledgments(Duration::from_secs(10))?;
    writeln!(out, "All {count} were acknowledged.")?;
    Ok(())
}
