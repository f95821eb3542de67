//! Latency from `write` to `take` on one thread, beside plain UDP: what the engine adds to the
//! kernel, without wake-ups and without a second processor. Differences that two processors hide in
//! noise show here.
//!
//! Prints medians and minima over the given number of rounds, in nanoseconds.
//!
//! ```text
//! cargo run --release -p weir-bench --example one_thread -- [DOMAIN] [ROUNDS]
//! ```

#![expect(clippy::print_stdout, reason = "printing is what this program is for")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use weir_dds::{
    Coalescing, DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsType, DomainParticipant,
    ParticipantSettings, WaitStrategy,
};
use weir_udp::{SocketOptions, UdpSocket, Wait, affinity};

/// As RTI Perftest's type.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(extensibility = "final", name = "Sample")]
struct Sample {
    key: [u8; 4],
    numbers: [i32; 5],
    payload: Vec<u8>,
}

/// Bytes of a sample before its payload.
const HEADER_BYTES: usize = 28;
/// Samples of a round.
const SAMPLES: u32 = 4_000;
const SIZES: [usize; 3] = [32, 1024, 8192];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let domain = arguments.next().map_or(Ok(77), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(30), |text| text.parse())?;
    if let Some(cpu) = affinity::allowed_cpus()?.last() {
        affinity::pin_current_thread(*cpu)?;
    }
    let engines = [false, true].map(|reliable| Engine::new(domain, reliable));
    let [best_effort, reliable] = engines;
    let (mut best_effort, mut reliable) = (best_effort?, reliable?);
    for size in SIZES {
        let mut baseline = Baseline::new(size)?;
        let mut times = [const { Vec::new() }; 3];
        for round in 0..=rounds {
            let round_times =
                [time(|| baseline.turn())?, time(|| best_effort.turn(size))?, time(|| reliable.turn(size))?];
            // The first warms up.
            if round > 0 {
                times.iter_mut().zip(round_times).for_each(|(times, time)| times.push(time));
            }
        }
        for (name, times) in ["udp", "best effort", "reliable"].iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            println!("{size:5} {name:12} {:7.1} least {:7.1}", times[times.len() / 2], times[0]);
        }
    }
    Ok(())
}

/// Nanoseconds per turn.
fn time(mut turn: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    for _ in 0..SAMPLES {
        turn()?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(SAMPLES))
}

/// A socket that sends to another one.
struct Baseline {
    from: UdpSocket,
    to: UdpSocket,
    datagram: Vec<u8>,
}

impl Baseline {
    fn new(size: usize) -> Result<Self, Box<dyn Error>> {
        let options = SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
        let (from, to) = (UdpSocket::bind(&options)?, UdpSocket::bind(&options)?);
        from.connect(to.local_addr())?;
        Ok(Self { from, to, datagram: vec![0; size] })
    }

    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        self.from.send(&self.datagram)?;
        self.to.recv(&mut self.datagram, Wait::DontWait)?;
        Ok(())
    }
}

/// A writer and its reader.
struct Engine {
    _participant: DomainParticipant,
    writer: DataWriter<Sample>,
    reader: DataReader<Sample>,
    sample: Sample,
    taken: weir_dds::Sample<Sample>,
}

impl Engine {
    fn new(domain: u32, reliable: bool) -> Result<Self, Box<dyn Error>> {
        let settings = ParticipantSettings::default().wait(WaitStrategy::Spin);
        let participant = DomainParticipant::new(domain, settings.interface("lo"))?;
        let topic = participant.create_topic(if reliable { "reliable" } else { "best effort" })?;
        let (writer, reader) = (DataWriterQos::default().keep_all(), DataReaderQos::default().keep_all());
        let (writer, reader) = if reliable {
            (writer.reliable(), reader.reliable())
        } else {
            (writer.best_effort(), reader.best_effort())
        };
        // What follows quickly here would be taken for a burst.
        let writer = writer.coalescing(Coalescing::Off);
        let writer = participant.create_publisher()?.create_datawriter(&topic, writer)?;
        let reader = participant.create_subscriber()?.create_datareader(&topic, reader)?;
        writer.wait_for_subscriptions(1, Duration::from_secs(10))?;
        reader.wait_for_publications(1, Duration::from_secs(10))?;
        let (sample, taken) = (Sample::default(), weir_dds::Sample::default());
        Ok(Self { _participant: participant, writer, reader, sample, taken })
    }

    fn turn(&mut self, size: usize) -> Result<(), Box<dyn Error>> {
        self.sample.payload.resize(size.saturating_sub(HEADER_BYTES), 0);
        self.writer.write(&self.sample)?;
        while !self.reader.take_next_sample(&mut self.taken) {
            if self.reader.wait_for_data(Duration::from_secs(1)).is_err() {
                return Err("a sample was lost".into());
            }
        }
        Ok(())
    }
}
