//! What the host is, as far as it decides a result: written once at the head of a run.

use serde::{Deserialize, Serialize};

/// The machine and the program that a run was made with. `None` means that the host does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version of Weir that measured, e.g. `0.1.0`.
    pub weir_version: String,
    /// When the run began, UTC, as RFC 3339 writes it: `2026-11-21T20:00:00Z`.
    pub date: String,
    /// Name of the host.
    pub hostname: Option<String>,
    /// Kernel release, e.g. `6.18.44`.
    pub kernel: String,
    /// Model of the (first) processor, as the kernel names it.
    pub cpu_model: Option<String>,
    /// Logical processors that are online.
    pub logical_cpus: u32,
    /// Logical processors that this process is allowed to run on.
    pub allowed_cpus: u32,
    /// Frequency governor; several are joined with commas when processors differ.
    pub cpu_governor: Option<String>,
    /// Physical memory in KiB.
    pub memory_kib: u64,
    /// Whether a hypervisor runs this machine; its name where it is known, else `unknown hypervisor`.
    pub virtualised: Option<String>,
    /// Clock source of the kernel, e.g. `tsc`.
    pub clocksource: Option<String>,
    /// `net.core.rmem_max`: largest receive buffer that an ordinary user may ask for, bytes.
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`: largest send buffer that an ordinary user may ask for, bytes.
    pub wmem_max: Option<u64>,
    /// `net.core.rmem_default`, bytes.
    pub rmem_default: Option<u64>,
    /// `net.core.wmem_default`, bytes.
    pub wmem_default: Option<u64>,
    /// The network interface that carried the samples.
    pub interface: Option<Interface>,
    /// The command that was typed, argument by argument; empty when not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// A network interface as a result depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Name, e.g. `lo`.
    pub name: String,
    /// Largest IP packet, bytes.
    pub mtu: Option<u32>,
    /// Link speed in Mbit/s; `None` for virtual links.
    pub speed_mbps: Option<u32>,
    /// Kernel driver, e.g. `virtio_net`; `None` for devices without one.
    pub driver: Option<String>,
}
