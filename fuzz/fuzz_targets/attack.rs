//! A live participant between an honest peer and somebody who says plausible things.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::attack::run(data));
