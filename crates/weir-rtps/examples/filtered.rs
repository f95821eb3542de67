//! What a content filter costs a reader: samples are handed to a reader core and taken, without a filter and with
//! several; and the evaluation alone.
//!
//! `cargo run --release -p weir-rtps --example filtered`

#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use core::net::{Ipv4Addr, SocketAddrV4};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use weir_cdr::{DdsType, Encoding};
use weir_filter::{Expression, Filter};
use weir_rtps::qos::Reliability;
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_wire::{Data, EntityId, Guid, GuidPrefix, Payload, SequenceNumber, VendorId};

#[derive(Default, DdsType)]
#[dds(extensibility = "final")]
struct Position {
    vehicle: u32,
    x: f64,
    y: f64,
    speed: f32,
}

#[derive(Default, DdsType)]
#[dds(extensibility = "appendable")]
struct Shape {
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));
const SAMPLES: i64 = 1_000_000;
const ROUNDS: usize = 5;

/// Nanoseconds per call, the best of several rounds.
fn best(mut call: impl FnMut(i64)) -> f64 {
    let mut number = 0;
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        for _ in 0..SAMPLES {
            number += 1;
            call(number);
        }
        start.elapsed().as_nanos() as f64 / SAMPLES as f64
    });
    rounds.fold(f64::INFINITY, f64::min)
}

fn reader(filter: Option<Arc<Filter>>) -> ReaderCore {
    let config =
        ReaderConfig { content_filter: filter, ..ReaderConfig::new(READER, Reliability::BestEffort) };
    let mut reader = ReaderCore::new(config);
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    reader.match_writer(
        Time(0),
        WriterProxyConfig { guid: WRITER, reliable: false, destinations, vendor: VendorId::WEIR },
    );
    reader
}

fn at_reader(payloads: &[Vec<u8>], filter: Option<Arc<Filter>>) -> f64 {
    let mut reader = reader(filter);
    best(|number| {
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(number),
            inline_qos: None,
            payload: Payload::Data(&payloads[number as usize % payloads.len()]),
        };
        reader.handle_data(Time(1), &WRITER, &data, None, None);
        reader.take_next(|sample| _ = black_box(sample.payload.len()));
    })
}

fn measure<T: DdsType>(name: &str, samples: &[T], encoding: Encoding, expressions: &[&str]) {
    let encode = |sample: &T| {
        let mut payload = Vec::new();
        weir_cdr::to_payload_in(sample, encoding, &mut payload).expect("a sample");
        payload
    };
    let payloads: Vec<_> = samples.iter().map(encode).collect();
    let without = at_reader(&payloads, None);
    println!("{name}, {encoding:?}: {without:.1} ns per sample without a filter");
    for text in expressions {
        let expression = Expression::filter(text).expect("an expression");
        let filter = Arc::new(Filter::new::<&str>(&expression, &T::DESCRIPTION, &[]).expect("a filter"));
        let alone = best(|number| {
            _ = black_box(filter.passes(black_box(&payloads[number as usize % payloads.len()])));
        });
        let with = at_reader(&payloads, Some(filter));
        println!("  {text}: {with:.1} ns at the reader ({:+.1}), {alone:.1} ns alone", with - without);
    }
}

fn main() {
    let positions: Vec<_> = (0..8)
        .map(|number| Position { vehicle: number, x: 1.0, y: 2.0, speed: number as f32 * 10.0 })
        .collect();
    let numeric = ["vehicle >= 0", "vehicle >= 4", "speed > 35.0", "x BETWEEN 0 AND 10 AND speed < 1000"];
    measure("Position", &positions, Encoding::Xcdr1, &numeric);
    let shapes: Vec<_> = (0..8)
        .map(|number| Shape {
            color: ["RED", "GREEN"][number as usize % 2].to_owned(),
            shapesize: number,
            ..Shape::default()
        })
        .collect();
    let texts = ["color = 'RED'", "shapesize <= 20", "color LIKE '%E%' AND shapesize > 100"];
    measure("Shape", &shapes, Encoding::Xcdr1, &texts);
    measure("Shape", &shapes, Encoding::Xcdr2, &texts);
}
