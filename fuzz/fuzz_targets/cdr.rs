//! Arbitrary bytes as samples of derived types.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::cdr::run(data));
