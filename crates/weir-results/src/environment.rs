//! The host's properties that affect results, recorded once at the head of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::WakeUp;

/// The machine and the program of a run. `None`: not available.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version of Weir, e.g. `0.1.0`.
    pub weir_version: String,
    /// Start of the run in UTC, as in RFC 3339: `2026-11-21T20:00:00Z`.
    pub date: String,
    /// Name of the host.
    pub hostname: Option<String>,
    /// Kernel release, e.g. `6.18.44`.
    pub kernel: String,
    /// Model of the (first) processor, as the kernel names it.
    pub cpu_model: Option<String>,
    /// Logical processors that are online.
    pub logical_cpus: u32,
    /// Logical processors that this process may use.
    pub allowed_cpus: u32,
    /// Frequency governor; several are joined with commas if processors differ.
    pub cpu_governor: Option<String>,
    /// Physical memory in KiB.
    pub memory_kib: u64,
    /// Name of the hypervisor, if there is one; `unknown hypervisor` if its name is unknown.
    pub virtualised: Option<String>,
    /// Clock source of the kernel, e.g. `tsc`.
    pub clocksource: Option<String>,
    /// `net.core.rmem_max`: largest receive buffer that an unprivileged user may request, in bytes.
    pub rmem_max: Option<u64>,
    /// `net.core.wmem_max`: largest send buffer that an unprivileged user may request, in bytes.
    pub wmem_max: Option<u64>,
    /// `net.core.rmem_default`, bytes.
    pub rmem_default: Option<u64>,
    /// `net.core.wmem_default`, bytes.
    pub wmem_default: Option<u64>,
    /// Nominal or current frequency of the (first) processor, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u64>,
    /// Whether logical processors share cores (SMT).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<bool>,
    /// Whether processors may run above their nominal frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turbo: Option<bool>,
    /// The driver that puts idle processors to sleep, e.g. `intel_idle`; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_driver: Option<String>,
    /// What chooses among its idle states, e.g. `menu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_governor: Option<String>,
    /// The idle states of the first processor with their exit latencies in microseconds, e.g. `POLL 0, C1 2`; disabled
    /// ones are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_states: Option<String>,
    /// How long waiting threads took to wake up before the run, with idle states and without; empty if not measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wake_ups: Vec<WakeUp>,
    /// Processors excluded from scheduling, e.g. `2-5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated_cpus: Option<String>,
    /// Other available clock sources, separated by spaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocksources: Option<String>,
    /// The kind of container that this process is in, e.g. `docker`, if detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Processor quota of this process's control group, in percent of one processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_quota_percent: Option<u64>,
    /// Swap space, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_kib: Option<u64>,
    /// Swap space in use, KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_used_kib: Option<u64>,
    /// Kernel settings that affect how datagrams are handled, by their `sysctl` names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// The network interface that carried the samples.
    pub interface: Option<Interface>,
    /// The command line, argument by argument; empty if not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

/// A network interface's properties that affect results.
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
    /// Kind of its queueing discipline, e.g. `fq_codel`; `None` without a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queueing: Option<String>,
    /// Number of receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_queues: Option<u32>,
    /// Number of send queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_queues: Option<u32>,
    /// Offloads of the device, or of the kernel for it, by the names of `ethtool -k`: on or off.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, bool>,
    /// Interrupt coalescing, by the names of `ethtool -c`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coalescing: BTreeMap<String, String>,
}
