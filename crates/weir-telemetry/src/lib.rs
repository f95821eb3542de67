//! What the host is and what it was doing during a run.
//!
//! Facts come from /proc, /sys and `getrusage(2)`; each parser is a pure function of text. Nothing is
//! ever changed on the host, and what the host does not say is left out rather than guessed.
//!
//! - `host_counters`: what the kernel counted about processors, memory, interrupts and network devices
//! - `inventory`: what the host is, once per run, and the doubts that follow from it
//! - `loss_watch`: what was dropped while it looked: the evidence of `weir_results::attribute`
//! - `process`: what this process used
//! - `queue_drops`: what the queues of devices dropped, by netlink
//! - `system_calls`: how many system calls it makes
//! - `udp_counters`: what the kernel counted about UDP; `udp_sockets`: about this process's sockets

mod host_counters;
mod inventory;
mod loss_watch;
mod process;
mod queue_drops;
mod system_calls;
mod udp_counters;
mod udp_sockets;

pub use host_counters::{CpuTimes, DeviceCounters, HostCounters};
pub use inventory::{environment, host_warnings};
pub use loss_watch::LossWatch;
pub use process::{process_figures, reset_peak_memory, thread_times};
pub use system_calls::{SystemCalls, SystemCallsError};
pub use udp_counters::{UdpCounters, UdpCountersError};
pub use weir_results::{
    Carried, DropCounters, Drops, LossAttribution, LossEvidence, SamplesPerBuffer, attribute,
};
