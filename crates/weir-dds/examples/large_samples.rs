//! Images without user-space copies of their pixels: filled in the send memory, read in the receive
//! memory.
//!
//! ```text
//! WEIR_INTERFACES=lo cargo run --release -p weir-dds --example large_samples -- 200
//! ```
//!
//! A camera and a viewer, each with its own participant, run on two threads of this process.

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use weir_dds::{
    Bytes, DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DdsType, DomainParticipant,
    ParticipantSettings, Sample,
};

const PATIENCE: Duration = Duration::from_secs(10);
const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;

/// An image. Its last member is a byte sequence, so its samples can be loaned. The member is
/// `Bytes` rather than `Vec<u8>`, so it is not copied when it is read.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Image {
    number: u32,
    width: u32,
    height: u32,
    pixels: Bytes,
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "large_samples: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the number of images from the command line and the settings from the environment.
fn start() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(200), |text| text.parse());
    let count = count.map_err(|_| "invalid argument: give the number of images, such as 200")?;
    let (settings, domain_id) =
        (ParticipantSettings::from_environment()?, weir_dds::domain_id_from_environment()?);
    let near = DomainParticipant::new(domain_id, settings.clone())?;
    let far = DomainParticipant::new(domain_id, settings)?;
    run(&near, &far, "Images", count, &mut std::io::stdout())
}

/// Transfers `count` images and prints the throughput.
pub(crate) fn run(
    near: &DomainParticipant,
    far: &DomainParticipant,
    topic: &str,
    count: u32,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let writer = near.create_publisher()?.create_datawriter(
        &near.create_topic::<Image>(topic)?,
        DataWriterQos::default().reliable().keep_all().max_blocking_time(PATIENCE),
    )?;
    let reader = far.create_subscriber()?.create_datareader(
        &far.create_topic::<Image>(topic)?,
        DataReaderQos::default().reliable().keep_all(),
    )?;
    writer.wait_for_subscriptions(1, PATIENCE)?;
    reader.wait_for_publications(1, PATIENCE)?;

    let begin = Instant::now();
    let (recorded, viewed) = std::thread::scope(|scope| {
        let camera = scope.spawn(|| record(&writer, count));
        let viewed = view(&reader, count);
        (camera.join(), viewed)
    });
    recorded.map_err(|_| "the camera panicked")??;
    let viewed = viewed?;
    let took = begin.elapsed();
    let gigabits = viewed as f64 * 8.0 / 1e9;
    writeln!(
        out,
        "{count} images, {gigabits:.2} Gbit in {took:.2?}: {:.1} Gbit/s",
        gigabits / took.as_secs_f64()
    )?;
    Ok(())
}

/// Writes the images.
fn record(writer: &DataWriter<Image>, count: u32) -> Result<(), DdsError> {
    for number in 0..count {
        let mut loan = writer.loan((WIDTH * HEIGHT * 3) as usize)?;
        // As a camera would do it: directly into the memory that is sent from.
        loan.fill(number as u8);
        (loan.sample.number, loan.sample.width, loan.sample.height) = (number, WIDTH, HEIGHT);
        loan.write()?;
    }
    writer.wait_for_acknowledgments(PATIENCE)
}

/// Reads the images. Returns the number of pixel bytes received.
fn view(reader: &DataReader<Image>, count: u32) -> Result<usize, String> {
    let (mut received, mut expected) = (0, 0);
    while expected < count {
        if reader.wait_for_data(PATIENCE).is_err() {
            return Err(format!("image {expected} did not arrive"));
        }
        // An image can be kept indefinitely and sent to other threads. Its memory is reused when
        // the last part of it is dropped.
        for image in reader.take(1).into_iter().filter_map(Sample::into_data) {
            let pixels = &image.pixels;
            let is_right = pixels.first() == pixels.last() && pixels.first() == Some(&(expected as u8));
            if image.number != expected || !is_right {
                return Err(format!("image {expected} is not the one that was sent"));
            }
            expected += 1;
            received += pixels.len();
        }
    }
    Ok(received)
}
