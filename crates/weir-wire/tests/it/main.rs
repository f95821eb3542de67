//! Tests of the message formats through the public API.

mod hostile;
mod octets;
mod roundtrip;
mod values;
