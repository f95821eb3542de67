//! A live participant between an honest peer and an attacker that sends plausible messages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::attack::run(data));
