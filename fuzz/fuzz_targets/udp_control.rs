//! Arbitrary bytes from a client to a server of UDP tests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::udp_control::run(data));
