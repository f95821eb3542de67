//! A host of smoltcp at a TAP device: publishes numbers, and prints those that it receives, with the length of their
//! texts and whether these consist of `x`.
//!
//! ```sh
//! ip tuntap add name weir-tap0 mode tap && ip address add 10.78.0.1/24 dev weir-tap0 && ip link set weir-tap0 up
//! cargo run --manifest-path embedded/Cargo.toml --bin talker -- weir-tap0 10.78.0.2 10
//! ```

#![forbid(unsafe_code)]

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::time::Duration;

use smoltcp::phy::{Medium, TunTapInterface, wait};
use weir_cdr::DdsType;
use weir_embedded::{Host, SmoltcpDriver};
use weir_rtps::driver::Driver;
use weir_rtps::participant::{Interface, LocalEndpoint, ParticipantConfig};
use weir_rtps::ports;
use weir_rtps::qos::{History, Qos, Reliability};
use weir_rtps::reader::ReaderConfig;
use weir_rtps::station::Station;
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, WriterConfig};
use weir_wire::{EntityId, Guid, GuidPrefix, Timestamp};

/// The sample.
// The derive macro would find weir-dds, which only the test of this workspace uses.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final", crate = "weir_cdr")]
struct Number {
    value: u64,
    text: String,
}

const DOMAIN: u32 = 0;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "talker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: talker TAP-DEVICE ADDRESS SAMPLES, such as talker weir-tap0 10.78.0.2 10";
    let [device, address, count] = &words[..] else { return Err(usage.to_owned()) };
    let address: Ipv4Addr = address.parse().map_err(|_| usage)?;
    let count: u64 = count.parse().map_err(|_| usage)?;
    let tap = TunTapInterface::new(device, Medium::Ethernet);
    let tap =
        tap.map_err(|error| format!("cannot open the TAP device {device}: {error} (root is needed)"))?;
    let fd = tap.as_raw_fd();
    let started = std::time::Instant::now();
    let clock = move || Time(1_000_000_000 + started.elapsed().as_nanos() as u64);
    let port = |port: Option<u16>| port.ok_or("the domain has no ports");
    let ports = [
        port(ports::metatraffic_unicast_port(DOMAIN, 0))?,
        port(ports::metatraffic_multicast(DOMAIN).map(|group| group.port()))?,
        port(ports::user_unicast_port(DOMAIN, 0))?,
    ];
    let host = Host { hardware: [2, 0, 0, 0, 0, 2], address, prefix_len: 24, ports };
    let driver = SmoltcpDriver::new(tap, clock, host).map_err(|error| format!("{error:?}"))?;
    let mut station = station(driver, address, ports).map_err(|error| format!("{error:?}"))?;

    let (mut written, mut received, mut at) = (0, 0, None);
    let mut payload = Vec::new();
    while written < count || received < count || !is_acknowledged(&station) {
        let next = station.poll().map_err(|error| format!("{error:?}"))?;
        let mut failure = None;
        while station.take_next(0, |sample| match weir_cdr::from_payload::<Number>(sample.payload) {
            Ok(number) => {
                received += 1;
                let text = number.text;
                let is_intact = text.bytes().all(|byte| byte == b'x');
                let _ = writeln!(std::io::stdout(), "received {} {} {is_intact}", number.value, text.len());
            }
            Err(error) => failure = Some(format!("a sample cannot be decoded: {error}")),
        }) {}
        if let Some(failure) = failure {
            return Err(failure);
        }
        let now = station.driver_mut().now();
        let has_reader = station.writers()[0].matched() > 0;
        if has_reader && written < count && at.is_none_or(|at| now >= at) {
            at = Some(now + PERIOD);
            let number = Number { value: written, text: "from smoltcp".to_owned() };
            payload.clear();
            weir_cdr::to_payload(&number, &mut payload).map_err(|error| error.to_string())?;
            let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
            let timestamp = Some(Timestamp::from_unix_nanos(unix_nanos()));
            let written_now = station.write(0, timestamp, change).map_err(|error| format!("{error:?}"))?;
            written += u64::from(written_now.is_ok());
        }
        let until = next.into_iter().chain(at).min().unwrap_or(now + PERIOD).since(now).min(PERIOD);
        let idle = station.driver_mut().idle_time().unwrap_or(PERIOD).min(until);
        wait(fd, Some(idle.into())).map_err(|error| error.to_string())?;
    }
    station.close().map_err(|error| format!("{error:?}"))
}

fn is_acknowledged<D: Driver>(station: &Station<D, 1, 1>) -> bool {
    let writer = &station.writers()[0];
    writer.is_acknowledged(writer.last_sequence_number())
}

/// A participant that writes the topic `FromSmoltcp` and reads `ToSmoltcp`.
fn station<D: Driver>(
    driver: D,
    address: Ipv4Addr,
    ports: [u16; 3],
) -> Result<Station<D, 1, 1>, weir_rtps::station::StationError<D::Error>> {
    let mut prefix = [0; 12];
    // The vendor, and what no other participant has: here, the address and the process.
    prefix[..2].copy_from_slice(&[1, 0x57]);
    prefix[4..8].copy_from_slice(&address.octets());
    prefix[8..].copy_from_slice(&std::process::id().to_be_bytes());
    let mut config = ParticipantConfig::new(GuidPrefix(prefix), DOMAIN);
    config.metatraffic_unicast = vec![SocketAddrV4::new(address, ports[0])];
    config.default_unicast = vec![SocketAddrV4::new(address, ports[2])];
    config.interfaces = vec![Interface { address, netmask: Ipv4Addr::new(255, 255, 255, 0) }];
    config.entity_name = Some("talker".to_owned());
    let guid = |entity| Guid::new(config.guid_prefix, entity);
    let (writer, reader) = (EntityId::user_writer(1, false), EntityId::user_reader(1, false));
    let endpoint = |entity, topic: &str, qos| LocalEndpoint {
        entity,
        topic: topic.to_owned(),
        type_name: Number::TYPE_NAME.to_owned(),
        qos,
        unicast: Vec::new(),
        multicast: None,
    };
    let of_writer =
        WriterConfig { history: History::KeepAll, ..WriterConfig::new(guid(writer), Reliability::Reliable) };
    let of_reader =
        ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(guid(reader), Reliability::Reliable) };
    let writers = [(endpoint(writer, "FromSmoltcp", Qos::for_writer()), of_writer)];
    let reliable = Qos { reliability: Reliability::Reliable, ..Qos::for_reader() };
    let readers = [(endpoint(reader, "ToSmoltcp", reliable), of_reader)];
    Station::new(driver, config, writers, readers)
}

fn unix_nanos() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Between two samples, and the longest wait.
const PERIOD: Duration = Duration::from_millis(10);
