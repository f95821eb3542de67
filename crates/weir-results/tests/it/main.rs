//! The results format and the trackers from outside.

mod file;
mod json_schema;
mod schema;
mod sequence;
