//! Two readers in one task of an executor.
//!
//! ```sh
//! cargo run -p weir-dds --example streams
//! ```
//!
//! Any executor does: tasks are woken by the participant's own thread. Here it is that of the crate `futures`.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use futures::executor::block_on;
use futures::{StreamExt, stream};
use weir_dds::{DataReaderQos, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings};

/// The sample type.
#[derive(DdsType, Debug, Clone, PartialEq, Default)]
#[dds(extensibility = "final")]
struct Reading {
    value: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = ParticipantSettings::from_environment()?.interface("lo");
    let participant = DomainParticipant::new(weir_dds::domain_id_from_environment()?, settings)?;
    run(&participant, ["Pressures", "Temperatures"], &mut std::io::stdout())
}

/// Writes to two topics, and reads both in one task.
pub(crate) fn run(
    participant: &DomainParticipant,
    topics: [&str; 2],
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let (publisher, subscriber) = (participant.create_publisher()?, participant.create_subscriber()?);
    let mut streams = Vec::new();
    for (name, first) in topics.into_iter().zip([100, 200]) {
        let topic = participant.create_topic::<Reading>(name)?;
        let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable().keep_all())?;
        let writer = publisher.create_datawriter(&topic, DataWriterQos::default().keep_all())?;
        writer.wait_for_subscriptions(1, Duration::from_secs(10))?;
        (0..3).try_for_each(|number| writer.write(&Reading { value: first + number }))?;
        writer.wait_for_acknowledgments(Duration::from_secs(10))?;
        streams.push(reader.stream().filter_map(|sample| std::future::ready(sample.into_data())));
    }
    let mut values = block_on(async {
        let readings = stream::select_all(streams.into_iter().map(Box::pin));
        readings.take(6).map(|reading| reading.value).collect::<Vec<_>>().await
    });
    values.sort_unstable();
    writeln!(out, "Received {values:?}")?;
    Ok(())
}
