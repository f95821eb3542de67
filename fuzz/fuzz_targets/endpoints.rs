//! A reliable writer and reader with a hostile network between them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::endpoints::run(data));
