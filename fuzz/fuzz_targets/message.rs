//! Arbitrary bytes as an RTPS message.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::message::run(data));
