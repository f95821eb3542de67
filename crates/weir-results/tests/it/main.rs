//! The results format and the trackers from outside.

mod file;
mod schema;
mod sequence;
