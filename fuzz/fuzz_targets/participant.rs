//! A live participant between hostile datagrams and an honest peer.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::participant::run(data));
