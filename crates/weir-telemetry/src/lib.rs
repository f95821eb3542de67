//! Records what the host is, and its activity during a run.
//!
//! Facts come from /proc, /sys and `getrusage(2)`; each parser is a pure function of text. The host
//! is never changed. Unavailable values are left out rather than guessed.
//!
//! - `host_counters`: the kernel's counters of the host and this process; `cpu`, `memory`,
//!   `devices`, `cgroup`: the parts, each with the parser of its files; `counters`: differences;
//!   `host_reader`, `proc_file`: repeated reading
//! - `sampler`: a thread that reads them during a run
//! - `inventory`: the host, once per run, and the warnings that follow from it; `interface`: its
//!   network interface
//! - `checkup`: what would spoil a measurement here, and how to fix it
//! - `loss_watch`: drops during a run: the evidence of `weir_results::attribute`
//! - `process`: resource use of this process
//! - `queues`: the queues of devices and their drops, by netlink
//! - `system_calls`: counts the process's system calls
//! - `udp_counters`: the kernel's counters of UDP; `udp_sockets`: of this process's sockets; `traffic`: what was sent;
//!   `names_and_values`: the tables that have them

mod cgroup;
mod checkup;
mod counters;
mod cpu;
mod devices;
mod host_counters;
mod host_reader;
mod interface;
mod inventory;
mod loss_watch;
mod memory;
mod names_and_values;
mod proc_file;
mod process;
mod queues;
mod sampler;
mod system_calls;
mod traffic;
mod udp_counters;
mod udp_sockets;

pub use checkup::{Facts, Finding, PathFacts, Purpose, examine, script};
pub use inventory::{environment, host_warnings};
pub use loss_watch::LossWatch;
pub use process::{process_figures, process_time, reset_peak_memory, resident_bytes, thread_times};
pub use sampler::{Recorder, Sampler, SamplerOptions, yield_to_others};
pub use system_calls::{SystemCallCounts, SystemCalls, SystemCallsError};
pub use traffic::Traffic;
pub use weir_results::{
    Carried, DropCounters, Drops, EngineCounts, LossAttribution, LossEvidence, SamplesPerBuffer, Telemetry,
    attribute,
};
