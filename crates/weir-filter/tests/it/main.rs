//! Tests of expressions: mistakes, examples, and a reference evaluator.

mod evaluation;
mod mistakes;
mod reference;
mod sample;
