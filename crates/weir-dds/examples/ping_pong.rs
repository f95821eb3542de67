//! Measures round trips: one participant sends, the listener of another one sends back.
//!
//! ```text
//! WEIR_INTERFACES=lo cargo run --release -p weir-dds --example ping_pong -- 10000
//! WEIR_INTERFACES=lo WEIR_WAIT=spin cargo run --release -p weir-dds --example ping_pong -- 10000
//! ```
//!
//! Both participants are in this process. `weir bench` measures two processes, with checks and
//! statistics.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant,
    ParticipantSettings, Sample,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The sample.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Ball {
    number: u64,
}

/// Sends every sample back.
struct Player {
    back: DataWriter<Ball>,
}

impl DataReaderListener<Ball> for Player {
    fn on_data_available(&self, reader: &DataReader<Ball>) {
        let mut sample = Sample::default();
        while reader.take_next_sample(&mut sample) {
            // The sender of the sample notices if it does not return.
            let _ = sample.data().map(|ball| self.back.write(ball));
        }
    }
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "ping_pong: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the number of samples from the command line and the settings from the environment.
fn start() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(10_000), |text| text.parse());
    let count = count.map_err(|_| "invalid argument: give the number of round trips, such as 10000")?;
    let (settings, domain_id) =
        (ParticipantSettings::from_environment()?, weir_dds::domain_id_from_environment()?);
    let near = DomainParticipant::new(domain_id, settings.clone())?;
    let far = DomainParticipant::new(domain_id, settings)?;
    run(&near, &far, "PingPong", count, &mut std::io::stdout())
}

/// Makes `count` round trips and prints their times.
pub(crate) fn run(
    near: &DomainParticipant,
    far: &DomainParticipant,
    topic: &str,
    count: u64,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let (ping, pong) = (format!("{topic} ping"), format!("{topic} pong"));
    let (write, read) = (DataWriterQos::default().keep_all(), DataReaderQos::default().reliable().keep_all());

    let back = far.create_publisher()?.create_datawriter(&far.create_topic(&pong)?, write.clone())?;
    let player = Player { back: back.clone() };
    let far_reader = far.create_subscriber()?.create_datareader_with_listener(
        &far.create_topic(&ping)?,
        read.clone(),
        player,
    )?;
    let writer = near.create_publisher()?.create_datawriter(&near.create_topic::<Ball>(&ping)?, write)?;
    let reader = near.create_subscriber()?.create_datareader(&near.create_topic::<Ball>(&pong)?, read)?;
    writer.wait_for_subscriptions(1, PATIENCE)?;
    back.wait_for_subscriptions(1, PATIENCE)?;
    reader.wait_for_publications(1, PATIENCE)?;
    far_reader.wait_for_publications(1, PATIENCE)?;

    let mut times = Vec::new();
    let mut ball = Sample::default();
    for number in 0..count {
        let sent = Instant::now();
        writer.write(&Ball { number })?;
        while !reader.take_next_sample(&mut ball) {
            if reader.wait_for_data(PATIENCE).is_err() {
                return Err(format!("sample {number} did not return").into());
            }
        }
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    if let (Some(least), Some(median)) = (times.first(), times.get(times.len() / 2)) {
        writeln!(out, "{count} round trips: median {median:?}, least {least:?}")?;
    }
    Ok(())
}
