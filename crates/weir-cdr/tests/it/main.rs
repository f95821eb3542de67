//! Tests of the encoding through the public API and the derive macro.

mod bulk;
mod golden;
mod hostile;
mod keys;
mod kinds;
mod payloads;
mod roundtrip;
mod runs;
mod types;
mod versions;
