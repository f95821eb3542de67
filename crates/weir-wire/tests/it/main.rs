//! Tests of the message formats through the public API.

mod hostile;
mod reference_writer;
mod roundtrip;
mod values;
