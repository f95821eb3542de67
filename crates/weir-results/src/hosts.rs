//! The hosts of a run whose ends are on several.

use serde::{Deserialize, Serialize};

use crate::Environment;

/// A host of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostRecord {
    /// What the command called it, e.g. `local`, `netns:a` or `user@beta`.
    pub name: String,
    /// The ends that ran there, e.g. `publisher`, or `subscriber 2 of 3`.
    pub ends: Vec<String>,
    /// The interface that carried the samples.
    pub interface: String,
    /// Its address.
    pub address: String,
    /// The host and the program there.
    pub environment: Environment,
}
