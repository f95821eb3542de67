//! Measures encoding, decoding and key extraction of the sample that the benchmarks send.
//!
//! Run with `cargo run --release -p weir-cdr --example encode_speed`.
#![expect(clippy::print_stdout, reason = "the output is what this example is for")]

use std::hint::black_box;
use std::time::Instant;

use weir_cdr::{CdrError, CdrReader, CdrValue, CdrWriter, DdsType, Encoding, Endianness, payload_reader};

/// 28 bytes and a byte sequence.
#[derive(Clone, Debug, Default, DdsType)]
#[dds(extensibility = "final")]
struct Sample {
    #[dds(key)]
    key: [u8; 4],
    entity_id: i32,
    seq_num: u32,
    ts_sec: i32,
    ts_usec: u32,
    latency_ping: i32,
    bin_data: Vec<u8>,
}

fn main() -> Result<(), CdrError> {
    println!(
        "{:>8}  {:>10}  {:>14}  {:>12}  {:>12}",
        "bytes", "encode ns", "decode_into ns", "size ns", "copy_key ns"
    );
    for size in [32, 128, 1024, 8192, 65536] {
        let sample = Sample { bin_data: vec![7; size - 28], ..Sample::default() };
        let mut payload = Vec::new();
        weir_cdr::to_payload(&sample, &mut payload)?;

        let mut out = vec![0; size];
        let encode = nanoseconds(size, || encode(black_box(&sample), black_box(&mut out)));
        let mut decoded = Sample::default();
        let decode = nanoseconds(size, || decode_into(black_box(&payload), black_box(&mut decoded)));
        let size_of = nanoseconds(size, || {
            black_box(black_box(&sample).serialized_size(Encoding::Xcdr1));
            Ok(())
        });
        let mut key = [0; 4];
        let copy_key = nanoseconds(size, || copy_key(black_box(&payload), black_box(&mut key)));
        println!("{size:>8}  {encode:>10.2}  {decode:>14.2}  {size_of:>12.2}  {copy_key:>12.2}");
    }
    Ok(())
}

#[inline(never)]
fn encode(sample: &Sample, out: &mut [u8]) -> Result<(), CdrError> {
    sample.encode(&mut CdrWriter::new(out, Endianness::Little, Encoding::Xcdr1))
}

#[inline(never)]
fn decode_into(payload: &[u8], sample: &mut Sample) -> Result<(), CdrError> {
    weir_cdr::from_payload_into(payload, sample)
}

#[inline(never)]
fn copy_key(payload: &[u8], key: &mut [u8]) -> Result<(), CdrError> {
    let mut reader: CdrReader<'_> = payload_reader(payload)?;
    Sample::copy_key(&mut reader, &mut CdrWriter::new(key, Endianness::Big, Encoding::Xcdr1))
}

/// Returns the time of one call of `action`: the minimum of several rounds, since other load only
/// adds.
fn nanoseconds(size: usize, mut action: impl FnMut() -> Result<(), CdrError>) -> f64 {
    let calls = if size > 1024 { 50_000_u32 } else { 2_000_000 };
    (0..7)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                assert!(action().is_ok(), "the sample is valid and the buffers are large enough");
            }
            start.elapsed().as_nanos() as f64 / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min)
}
