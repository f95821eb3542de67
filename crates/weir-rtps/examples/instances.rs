//! Measures the cost of a million instances for a writer and a reader, in bytes and in time,
//! without a network.
//!
//! `cargo run --release -p weir-rtps --example instances -- [INSTANCES]`

#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use core::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;

use weir_netsim::Rng;
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, SampleSelection, States, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_rtps::writer::{Stamp, WriterConfig, WriterCore};
use weir_wire::{Data, EntityId, Guid, GuidPrefix, Payload, SequenceNumber, Timestamp, VendorId};

const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, true));
/// Payload of a sample: the encapsulation header, the key, and 24 more bytes.
const PAYLOAD_BYTES: usize = 32;

fn main() {
    let instances = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    println!("{instances} instances, KEEP_LAST 1, payload of {PAYLOAD_BYTES} bytes");
    writer(instances);
    reader(instances);
}

fn writer(instances: u32) {
    let mut core = WriterCore::new(WriterConfig {
        history: History::KeepLast(1),
        durability: Durability::TransientLocal,
        ..WriterConfig::new(WRITER, Reliability::Reliable)
    });
    let mut write = |what: &str, count: u32, next: &mut dyn FnMut(u32) -> u32| {
        let (started, mut longest) = (Instant::now(), 0);
        for n in 0..count {
            let began = Instant::now();
            let id = next(n);
            let stamp = Stamp { timestamp: Timestamp { seconds: 1, fraction: 0 }, key: Some(key(id)) };
            let fill = |room: &mut [u8]| {
                room.fill(id as u8);
                Ok::<_, std::convert::Infallible>(())
            };
            let _ = core.write(Time(0), stamp, PAYLOAD_BYTES, fill);
            longest = longest.max(began.elapsed().as_micros());
        }
        report(&format!("writer: {what}"), started, count, longest, core.memory(), instances);
    };
    write("new instances", instances, &mut |n| n);
    write("the same in turn", 5 * instances, &mut |n| n % instances);
    let mut rng = Rng::new(1);
    write("random ones", 5 * instances, &mut |_| random(&mut rng, instances));
    write("one hot, one in 64 random", 10 * instances, &mut |_| hot(&mut rng, instances));
}

fn reader(instances: u32) {
    let mut core = ReaderCore::new(ReaderConfig {
        history: History::KeepLast(1),
        key_of: Some(|payload, _| Some(key(u32::from_be_bytes(*payload.get(4..)?.first_chunk()?)))),
        key_payload_of: Some(|payload, _| payload.get(..8).map(Box::from)),
        max_bytes: usize::MAX,
        ..ReaderConfig::new(READER, Reliability::BestEffort)
    });
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let proxy = WriterProxyConfig { guid: WRITER, reliable: false, destinations, vendor: VendorId::WEIR };
    core.match_writer(Time(0), proxy);
    let mut sn = 0;
    let mut receive = |core: &mut ReaderCore, what: &str, count: u32, next: &mut dyn FnMut(u32) -> u32| {
        let (started, mut longest) = (Instant::now(), 0);
        for n in 0..count {
            let began = Instant::now();
            let mut payload = [0; PAYLOAD_BYTES];
            payload[4..8].copy_from_slice(&next(n).to_be_bytes());
            sn += 1;
            let data = Data {
                reader: EntityId::UNKNOWN,
                writer: WRITER.entity,
                sequence_number: SequenceNumber(sn),
                inline_qos: None,
                payload: Payload::Data(&payload),
            };
            core.handle_data(Time(0), &WRITER, &data, None, None);
            longest = longest.max(began.elapsed().as_micros());
        }
        report(&format!("reader: {what}"), started, count, longest, core.memory(), instances);
    };
    receive(&mut core, "new instances", instances, &mut |n| n);
    receive(&mut core, "the same in turn", 5 * instances, &mut |n| n % instances);
    let mut rng = Rng::new(1);
    receive(&mut core, "random ones", 5 * instances, &mut |_| random(&mut rng, instances));
    receive(&mut core, "one hot, one in 64 random", 10 * instances, &mut |_| hot(&mut rng, instances));
    let (started, mut after, mut count) = (Instant::now(), None, 0);
    while let Some(instance) = core.next_instance(after, States::ANY) {
        let selection = SampleSelection { states: States::ANY, instance: Some(instance) };
        count += core.access(usize::MAX, selection, true, |sample| {
            after = sample.key_hash;
            true
        });
    }
    report("reader: take_next_instance, each", started, count as u32, 0, core.memory(), instances);
    receive(&mut core, "one sample each again", instances, &mut |n| n);
    let (started, mut count) = (Instant::now(), 0);
    while let Some(instance) = core.next_instance(None, States::ANY) {
        let selection = SampleSelection { states: States::ANY, instance: Some(instance) };
        count += core.access(1, selection, true, |_| true);
    }
    report("reader: take_next_instance, first", started, count as u32, 0, core.memory(), instances);
}

fn report(what: &str, started: Instant, count: u32, longest_us: u128, memory: usize, instances: u32) {
    let ns = started.elapsed().as_nanos() / u128::from(count.max(1));
    let each = memory / instances as usize;
    println!("{what:40} {ns:5} ns each, longest {longest_us:6} us, {each:4} bytes per instance");
}

fn key(id: u32) -> [u8; 16] {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&id.to_be_bytes());
    key
}

fn random(rng: &mut Rng, instances: u32) -> u32 {
    rng.below(u64::from(instances)) as u32
}

/// Instance 7, and another one once in 64 times.
fn hot(rng: &mut Rng, instances: u32) -> u32 {
    if rng.below(64) == 0 { random(rng, instances) } else { 7 }
}
