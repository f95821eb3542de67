//! The results format and the trackers through the public API.

mod file;
mod json_schema;
mod schema;
mod sequence;
