//! Arbitrary bytes as a parameter list.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::parameter_list::run(data));
