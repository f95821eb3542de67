//! Publishes and subscribes in one thread: the application's own `epoll` loop drives both participants, which start no
//! threads.
//!
//! ```sh
//! cargo run --release -p weir-dds --example event_loop -- 10
//! ```

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use weir_dds::{DataReaderQos, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings};

/// The sample.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final")]
struct Tick {
    number: u64,
}

/// What an event is about.
const PUBLISHER: u64 = 1;
const SUBSCRIBER: u64 = 2;
const TIMER: u64 = 3;
/// The application writes that often.
const PERIOD: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "event_loop: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the number of samples from the command line and the settings from the environment.
fn start() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).map_or(Ok(10), |text| text.parse());
    let count = count.map_err(|_| "invalid argument: give the number of samples, such as 10")?;
    let domain_id = weir_dds::domain_id_from_environment()?;
    let participant =
        || DomainParticipant::new(domain_id, ParticipantSettings::from_environment()?.without_threads());
    run([&participant()?, &participant()?], "Ticks", count, &mut std::io::stdout())
}

/// Exchanges `count` samples between two participants without threads.
pub(crate) fn run(
    [publisher, subscriber]: [&DomainParticipant; 2],
    topic: &str,
    count: u64,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let there = publisher.create_topic::<Tick>(topic)?;
    let writer =
        publisher.create_publisher()?.create_datawriter(&there, DataWriterQos::default().keep_all())?;
    let here = subscriber.create_topic::<Tick>(topic)?;
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader = subscriber.create_subscriber()?.create_datareader(&here, qos)?;

    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    let period = Timespec { tv_sec: 0, tv_nsec: PERIOD.as_nanos() as _ };
    let every = Itimerspec { it_interval: period, it_value: period };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every)?;
    let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    epoll::add(&events, publisher.poll_fd()?, epoll::EventData::new_u64(PUBLISHER), readable)?;
    epoll::add(&events, subscriber.poll_fd()?, epoll::EventData::new_u64(SUBSCRIBER), readable)?;
    epoll::add(&events, &timer, epoll::EventData::new_u64(TIMER), readable)?;

    let (mut written, mut received) = (0, 0);
    while received < count {
        let mut ready = Vec::with_capacity(8);
        epoll::wait(&events, rustix::buffer::spare_capacity(&mut ready), None)?;
        for event in ready {
            match event.data.u64() {
                PUBLISHER => _ = publisher.poll(Duration::ZERO)?,
                SUBSCRIBER => _ = subscriber.poll(Duration::ZERO)?,
                _ => {
                    rustix::io::read(&timer, &mut [0; 8])?;
                    // Written when there is a reader: later ones do not get earlier samples.
                    if written < count && writer.publication_matched_status().current_count > 0 {
                        writer.write(&Tick { number: written })?;
                        written += 1;
                    }
                }
            }
        }
        for sample in reader.take(16) {
            let Some(tick) = sample.data() else { continue };
            received += 1;
            writeln!(out, "Received: tick {}", tick.number)?;
        }
    }
    Ok(())
}
