//! Receives the greetings of `hello_publisher`; see there.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use weir_dds::{DataReaderQos, DdsType, DomainParticipant, ParticipantSettings};

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
            let _ = writeln!(std::io::stderr(), "hello_subscriber: {error}");
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

/// Waits until `count` greetings are received.
pub(crate) fn run(
    participant: &DomainParticipant,
    topic: &str,
    count: usize,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let topic = participant.create_topic::<Greeting>(topic)?;
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader = participant.create_subscriber()?.create_datareader(&topic, qos)?;

    writeln!(out, "Waiting for {count} greetings in domain {}.", participant.domain_id())?;
    let mut heard = 0;
    while heard < count {
        reader.wait_for_data(Duration::MAX)?;
        for sample in reader.take(count - heard) {
            let Some(greeting) = sample.data() else { continue };
            heard += 1;
            writeln!(out, "Received: {} (number {} of its publisher)", greeting.text, greeting.number)?;
        }
    }
    Ok(())
}
