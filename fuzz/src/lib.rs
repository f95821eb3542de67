//! The fuzz targets as plain functions, so that a normal test can run them over the committed
//! corpus.
//!
//! - [`attack`]: a live participant with endpoints, an honest peer, and an attacker that sends
//!   plausible messages.
//! - [`cdr`]: arbitrary bytes as samples of derived types.
//! - [`corpus`]: the committed inputs, made by our own emitters.
//! - [`endpoints`]: a reliable writer and reader with a hostile network between them.
//! - [`filter`]: arbitrary texts as content filters, and bytes as the samples that they evaluate.
//! - [`message`]: arbitrary bytes as an RTPS message.
//! - [`parameter_list`]: arbitrary bytes as a parameter list.
//! - [`participant`]: a live participant between hostile datagrams and an honest peer.
//! - [`udp_control`]: a server of UDP tests and arbitrary bytes of a client.
//!
//! Each function takes arbitrary bytes and panics if the crates under test violate an invariant.
#![forbid(unsafe_code)]

pub mod attack;
pub mod cdr;
pub mod corpus;
pub mod endpoints;
pub mod filter;
pub mod message;
pub mod parameter_list;
pub mod participant;
pub mod udp_control;

mod input;

// The tests of an instrumented build call the functions of libFuzzer that record coverage.
#[cfg(all(test, fuzzing))]
extern crate libfuzzer_sys as _;
