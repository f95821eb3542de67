//! Arbitrary texts as content filters.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::filter::run(data));
