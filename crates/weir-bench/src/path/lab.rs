//! A lab: hosts that are network namespaces of this machine, and stay until they are removed.

use crate::hosts::HostsSpec;

/// The network namespace of a host of the lab.
pub(crate) fn namespace(host: &str) -> String {
    format!("{PREFIX}{host}")
}

/// The link of the lab, if all hosts of a run are in it.
#[must_use]
pub fn link_of(_hosts: &HostsSpec) -> Option<String> {
    None
}

/// Begins the names of all namespaces of the lab.
const PREFIX: &str = "weir-lab-";
