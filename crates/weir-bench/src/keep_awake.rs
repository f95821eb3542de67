//! Keeps processors out of idle states during a run.
//!
//! An idle processor sleeps. On virtual machines, waking it can take longer than everything else
//! that a sample passes through. Figures with idle states show the machine as it is; figures
//! without them are closer to the differences between engines. The latter are measured on request
//! only, and marked in each result.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_udp::affinity;

/// Keeps the processors of this process awake until it is dropped.
#[derive(Debug)]
pub struct KeepAwake {
    stop: Arc<AtomicBool>,
    spinners: Vec<JoinHandle<()>>,
    /// The request holds while the file is open.
    latency: io::Result<File>,
}

impl KeepAwake {
    /// Starts a spinning thread on each processor of this process, at the lowest priority
    /// (`SCHED_IDLE`), so that it yields to all other work. Also asks the kernel for processor
    /// states without wake-up latency (`/dev/cpu_dma_latency`), if permitted.
    ///
    /// # Errors
    /// When threads cannot be started with that priority: they would take time from the
    /// measurement.
    pub fn start() -> io::Result<Self> {
        let mut awake =
            Self { stop: Arc::new(AtomicBool::new(false)), spinners: Vec::new(), latency: no_latency() };
        for cpu in affinity::allowed_cpus()? {
            let stop = Arc::clone(&awake.stop);
            let (sender, ready) = std::sync::mpsc::sync_channel(1);
            let spin = move || {
                let placed = affinity::set_idle_priority().and_then(|()| affinity::pin_current_thread(cpu));
                // Otherwise a sleep takes 50 us longer.
                let _ = affinity::set_timer_slack_ns(1);
                let may_spin = placed.is_ok();
                // The starting thread waits for the answer.
                let _ = sender.send(placed);
                while may_spin && !stop.load(Ordering::Relaxed) {
                    spin(&stop);
                    thread::sleep(GAP);
                }
            };
            awake.spinners.push(thread::Builder::new().name(format!("awake {cpu}")).spawn(spin)?);
            ready.recv().map_err(io::Error::other)??;
        }
        Ok(awake)
    }

    /// A description for the results.
    #[must_use]
    pub fn description(&self) -> String {
        let latency = match &self.latency {
            Ok(_) => "0 in /dev/cpu_dma_latency".to_owned(),
            Err(error) => format!("/dev/cpu_dma_latency not used: {error}"),
        };
        format!("SCHED_IDLE spinners on {} processors, {latency}", self.spinners.len())
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for spinner in self.spinners.drain(..) {
            // A spinner has nothing to panic about.
            let _ = spinner.join();
        }
    }
}

/// Spins for [`TURN`].
fn spin(stop: &AtomicBool) {
    let start = Instant::now();
    while start.elapsed() < TURN && !stop.load(Ordering::Relaxed) {
        (0..SPINS).for_each(|_| std::hint::spin_loop());
    }
}

/// Between turns, a spinner sleeps for a moment. With the scheduler's `autogroup`, each session of processes is a group
/// that shares processors fairly with others. Linux 6.18 did not run other groups at all while one consisted of a
/// spinner and of threads that block often: terminals, remote shells and the view stood still until the case ended.
const TURN: Duration = Duration::from_millis(10);
/// After 5 us the other groups still stood still. It is half a percent of the time.
const GAP: Duration = Duration::from_micros(50);
/// A clock read after each spin would use the processor more than waiting does.
const SPINS: usize = 100;

/// Microseconds: 32 bits in native byte order.
fn no_latency() -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_spinner_for_each_processor_and_they_end() {
        let count = affinity::allowed_cpus().unwrap().len();
        let awake = KeepAwake::start().unwrap();
        assert!(awake.description().starts_with(&format!("SCHED_IDLE spinners on {count} processors")));
        assert_eq!(awake.spinners.len(), count);
        drop(awake);
    }

    #[test]
    fn a_turn_of_a_spinner_ends_by_itself() {
        let start = Instant::now();
        spin(&AtomicBool::new(false));
        assert!(start.elapsed() >= TURN, "otherwise it would sleep most of the time");
    }
}
