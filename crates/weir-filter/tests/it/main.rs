//! Tests of expressions: mistakes, examples, and a reference evaluator.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod evaluation;
mod mistakes;
mod reference;
mod sample;
