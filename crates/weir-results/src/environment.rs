//! What the host is, as far as it decides a result: written once at the head of a run.

use std::collections::BTreeMap;

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
    /// Nominal or present frequency of the (first) processor, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u64>,
    /// Whether two logical processors may share a core (SMT) and do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<bool>,
    /// Whether processors may run above their nominal frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// Who puts idle processors to sleep, e.g. `intel_idle`; `None` where nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_driver: Option<String>,
    /// Processors that the scheduler leaves alone, e.g. `2-5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated_cpus: Option<String>,
    /// Clock sources that there are besides, separated by blanks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksources: Option<String>,
    /// The kind of container that this process is in, e.g. `docker`, as far as it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Processor time that the control group of this process may use, percent of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota_percent: Option<u64>,
    /// Swap space, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_kib: Option<u64>,
    /// Swap space in use, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_kib: Option<u64>,
    /// Kernel settings that decide how datagrams are handled, by their names of `sysctl`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
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
    /// `full` or `half`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplex: Option<String>,
    /// Kind of its queueing discipline, e.g. `fq_codel`; `None` where nothing queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing: Option<String>,
    /// Queues that packets arrive in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_queues: Option<u32>,
    /// Queues that packets leave by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_queues: Option<u32>,
    /// What the device, or the kernel for it, does with packets, by the names of `ethtool -k`: on or off.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, bool>,
    /// How interrupts are held back, by the names of `ethtool -c`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coalescing: BTreeMap<String, String>,
}
