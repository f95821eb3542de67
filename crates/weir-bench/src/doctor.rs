//! What would spoil a measurement: the checkup of the host, and the way to the other one.

pub use crate::way::{UnknownHost, default_interface, way_to};
pub use weir_telemetry::{Facts, Finding, PathFacts, Purpose, examine, script};
