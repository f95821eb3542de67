//! What the host is and what it was doing during a run.
//!
//! Facts come from /proc, /sys and `getrusage(2)`; each parser is a pure function of text. Nothing is
//! ever changed on the host, and what the host does not say is left out rather than guessed.
//!
//! - `host_counters`: what the kernel counted about the host and this process; `cpu`, `memory`, `devices`, `cgroup`:
//!   the parts, each with the parser of its files; `host_reader`, `proc_file`: reading them again and again
//! - `sampler`: a thread that does so while a run lasts
//! - `inventory`: what the host is, once per run, and the doubts that follow from it; `interface`: its network interface
//! - `checkup`: what would spoil a measurement here, and what fixes it
//! - `loss_watch`: what was dropped while it looked: the evidence of `weir_results::attribute`
//! - `process`: what this process used
//! - `queues`: the queues of devices and what they dropped, by netlink
//! - `system_calls`: how many system calls it makes
//! - `udp_counters`: what the kernel counted about UDP; `udp_sockets`: about this process's sockets

mod cgroup;
mod checkup;
mod cpu;
mod devices;
mod host_counters;
mod host_reader;
mod interface;
mod inventory;
mod loss_watch;
mod memory;
mod proc_file;
mod process;
mod queues;
mod sampler;
mod system_calls;
mod udp_counters;
mod udp_sockets;

pub use cgroup::{Throttling, cpu_quota};
pub use checkup::{Facts, Finding, PathFacts, Purpose, examine, script};
pub use cpu::CpuTimes;
pub use devices::DeviceCounters;
pub use host_counters::HostCounters;
pub use host_reader::HostReader;
pub use inventory::{environment, host_warnings};
pub use loss_watch::LossWatch;
pub use memory::{Memory, Paging, Pressure};
pub use process::{process_figures, reset_peak_memory, thread_times};
pub use sampler::{Recorder, Sampler, SamplerOptions};
pub use system_calls::{SystemCallCounts, SystemCalls, SystemCallsError};
pub use udp_counters::{UdpCounters, UdpCountersError};
pub use weir_results::{
    Carried, DropCounters, Drops, LossAttribution, LossEvidence, SamplesPerBuffer, Telemetry, attribute,
};
