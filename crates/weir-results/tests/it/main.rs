//! The results format and the trackers through the public API.

mod file;
mod schema;
mod sequence;
