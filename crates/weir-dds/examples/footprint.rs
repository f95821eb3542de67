//! The memory of a small system: one writer and one reader of 1 KiB samples, with a history of 32 samples each, in a
//! participant without threads and with small socket buffers.
//!
//! ```sh
//! cargo run --release -p weir-dds --example footprint
//! ```
//!
//! Prints the resident memory of this process (`/proc/self/status`) before the participant exists, with it, and after
//! a thousand samples. `RssFile` is the program and the C library, in memory that other processes share. Socket
//! buffers are memory of the kernel and are not counted: at most twice the sizes below, and only while datagrams wait.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings, Sample};

/// The sample.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Block {
    number: u32,
    bytes: Vec<u8>,
}

/// Bytes of a sample.
const SAMPLE_BYTES: usize = 1024;
/// Samples in each history.
const DEPTH: u32 = 32;
/// Bytes of each socket buffer.
const SOCKET_BUFFER: usize = 64 << 10;
/// When a wait gives up.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "footprint: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the number of samples from the command line and the settings from the environment.
fn start() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse());
    let count = count.map_err(|_| "invalid argument: give the number of samples, such as 1000")?;
    let mut settings = ParticipantSettings::from_environment()?.without_threads();
    (settings.receive_buffer, settings.send_buffer) = (SOCKET_BUFFER, SOCKET_BUFFER);
    let domain_id = weir_dds::domain_id_from_environment()?;
    let participant = || Ok(DomainParticipant::new(domain_id, settings)?);
    run(participant, "Footprint", count, &mut std::io::stdout())
}

/// Exchanges `count` samples, and prints the memory.
pub(crate) fn run(
    participant: impl FnOnce() -> Result<DomainParticipant, Box<dyn Error>>,
    topic: &str,
    count: u32,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    print_memory("before the participant", out)?;
    let participant = participant()?;
    let topic = participant.create_topic::<Block>(topic)?;
    let qos = DataReaderQos::default().reliable().keep_last(DEPTH);
    let reader = participant.create_subscriber()?.create_datareader(&topic, qos)?;
    let qos = DataWriterQos::default().reliable().keep_last(DEPTH);
    let writer = participant.create_publisher()?.create_datawriter(&topic, qos)?;
    writer.wait_for_subscriptions(1, LIMIT)?;
    reader.wait_for_publications(1, LIMIT)?;
    print_memory("with a writer and a reader", out)?;
    let mut block = Block { number: 0, bytes: vec![0; SAMPLE_BYTES - size_of::<u32>() * 2] };
    let mut received = Sample::<Block>::default();
    for number in 0..count {
        block.number = number;
        writer.write(&block)?;
        // A full history: the reader takes when all samples of it have arrived.
        if number % DEPTH == DEPTH - 1 || number + 1 == count {
            writer.wait_for_acknowledgments(LIMIT)?;
            while reader.take_next_sample(&mut received) {}
        }
    }
    let last = received.data().map(|block| block.number);
    writeln!(out, "The last sample is number {last:?} of {count}.")?;
    print_memory("after the samples", out)
}

/// Prints the resident memory of this process.
fn print_memory(when: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("unknown", str::trim)
    };
    writeln!(
        out,
        "{when}: {} resident (RssAnon {}, RssFile {})",
        kib("VmRSS"),
        kib("RssAnon"),
        kib("RssFile")
    )?;
    Ok(())
}
