//! Encoding and decoding.

use std::hint::black_box;

use weir_cdr::{DdsType, Encoding};

use crate::measured;

/// A sample like RTI Perftest's: 28 bytes of header, then a byte sequence.
#[derive(DdsType, Clone, Debug, Default)]
#[dds(extensibility = "final", name = "TestData_t")]
pub(crate) struct TestData {
    pub(crate) key: [u8; 4],
    pub(crate) entity_id: i32,
    pub(crate) seq_num: u32,
    pub(crate) ts_sec: i32,
    pub(crate) ts_usec: u32,
    pub(crate) latency_ping: i32,
    pub(crate) bin_data: Vec<u8>,
}

/// The same with a key.
#[derive(DdsType, Clone, Debug, Default)]
#[dds(extensibility = "final", name = "TestDataKeyed_t")]
pub(crate) struct TestDataKeyed {
    #[dds(key)]
    pub(crate) key: [u8; 4],
    pub(crate) entity_id: i32,
    pub(crate) seq_num: u32,
    pub(crate) ts_sec: i32,
    pub(crate) ts_usec: u32,
    pub(crate) latency_ping: i32,
    pub(crate) bin_data: Vec<u8>,
}

const SAMPLES: u32 = 20_000;
const HEADER_BYTES: usize = 28;

impl TestData {
    /// A sample of `size_bytes` without the encapsulation header.
    pub(crate) fn of(size_bytes: usize) -> Self {
        Self { latency_ping: -1, bin_data: vec![7; size_bytes - HEADER_BYTES], ..Self::default() }
    }
}

/// Encodes into existing memory.
pub(crate) fn encode(size_bytes: usize) -> u32 {
    let mut sample = TestData::of(size_bytes);
    let mut out = vec![0; weir_cdr::payload_len_in(&sample, Encoding::Xcdr1)];
    let mut run = |count| {
        for number in 0..count {
            sample.seq_num = number;
            let len = weir_cdr::payload_len_in(black_box(&sample), Encoding::Xcdr1);
            weir_cdr::encode_payload_in(&sample, Encoding::Xcdr1, black_box(&mut out[..len])).unwrap();
        }
    };
    run(1);
    measured(|| run(SAMPLES));
    SAMPLES
}

/// Decodes into an existing value.
pub(crate) fn decode(size_bytes: usize) -> u32 {
    let mut payload = Vec::new();
    weir_cdr::to_payload(&TestData::of(size_bytes), &mut payload).unwrap();
    let mut value = TestData::default();
    let mut run = |count| {
        for _ in 0..count {
            weir_cdr::from_payload_into(black_box(&payload), black_box(&mut value)).unwrap();
        }
    };
    run(1);
    measured(|| run(SAMPLES));
    SAMPLES
}
