//! Samples the host's counters during a run.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use weir_results::Telemetry;

use crate::host_counters::HostCounters;
use crate::host_reader::HostReader;
use crate::process::thread_times;

/// Options of a [`Sampler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Time between two readings.
    pub period: Duration,
    /// The processors that it may use; empty: those of the thread that starts it. A program pinned
    /// to one processor leaves the others to the sampler, which then disturbs it least.
    pub cpus: Vec<usize>,
}

/// A thread that reads the counters of the host and of this process at a fixed period, from
/// [`Sampler::start`] to [`Sampler::stop`].
///
/// It runs with the lowest ordinary priority, keeps all files open, and records its own cost. Start
/// it on a thread in the network namespace whose devices and UDP counters are to be read.
#[derive(Debug)]
pub struct Sampler {
    stop: Sender<()>,
    thread: Option<JoinHandle<Telemetry>>,
}

impl Sampler {
    /// Starts sampling. If the system refuses a thread, the result is empty.
    #[must_use]
    pub fn start(options: SamplerOptions) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            yield_to_others(&options.cpus);
            let mut recorder = Recorder::new(options.period);
            let mut due = options.period;
            while let Err(RecvTimeoutError::Timeout) =
                stopped.recv_timeout(due.saturating_sub(recorder.begin.elapsed()))
            {
                recorder.look();
                let (next, missed) = next_due(due, recorder.period, recorder.begin.elapsed());
                due = next;
                recorder.missed += missed;
            }
            // The last row covers the time since the one before.
            recorder.look();
            recorder.telemetry()
        };
        let thread = thread::Builder::new().name("telemetry".to_owned()).spawn(run).ok();
        Self { stop, thread }
    }

    /// Stops sampling and returns the rows.
    #[must_use]
    pub fn stop(mut self) -> Telemetry {
        self.end()
    }

    fn end(&mut self) -> Telemetry {
        // Joining fails only if the thread has panicked, which it does not.
        let _ = self.stop.send(());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if self.thread.is_some() {
            drop(self.end());
        }
    }
}

/// Returns when the reading after the one of `due` is due, at `now`, and how many were missed.
/// Missed readings make one row longer; the next is on time again.
fn next_due(due: Duration, period: Duration, now: Duration) -> (Duration, u64) {
    let late_ns = now.saturating_sub(due).as_nanos();
    let missed = u32::try_from(late_ns / period.as_nanos().max(1)).unwrap_or(u32::MAX);
    (due.saturating_add(period).saturating_add(period.saturating_mul(missed)), missed.into())
}

/// Readings of the host's counters; each ends a row.
///
/// The user decides when ([`Sampler`] does periodically). The number of rows is bounded: at the
/// bound, every second boundary is removed, so that rows are twice as long. If rows do not follow
/// the clock, readings beyond the bound are not recorded.
#[derive(Debug)]
pub struct Recorder {
    reader: HostReader,
    begin: Instant,
    period: Duration,
    /// With the time of each.
    readings: Vec<(Duration, HostCounters)>,
    missed: u64,
    cpu_before: Duration,
}

impl Recorder {
    /// Maximum number of rows: at a tenth of a second each, about a hundred seconds.
    pub const ROWS_MAX: usize = 1024;

    /// The same if rows do not follow the clock.
    pub const FREE_ROWS_MAX: usize = 10_000;

    /// Takes the first reading, where the first row starts. `period` is the
    /// [`Telemetry::period_ms`] to record: zero if rows do not follow the clock.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        let cpu_before = thread_cpu();
        let mut reader = HostReader::new();
        let readings = vec![(Duration::ZERO, reader.read())];
        Self { reader, begin: Instant::now(), period, readings, missed: 0, cpu_before }
    }

    /// Ends a row.
    pub fn look(&mut self) {
        if self.period.is_zero() && self.readings.len() > Self::FREE_ROWS_MAX {
            return;
        }
        let counters = self.reader.read();
        self.readings.push((self.begin.elapsed(), counters));
        if !self.period.is_zero() && self.readings.len() > Self::ROWS_MAX {
            self.thin();
        }
    }

    /// Returns the rows so far. The cost is that of the calling thread since it created the
    /// recorder.
    #[must_use]
    pub fn telemetry(&self) -> Telemetry {
        let mut telemetry = Telemetry::new(millis(self.period));
        for pair in self.readings.windows(2) {
            let [(from, earlier), (to, now)] = pair else { continue };
            let seconds = to.saturating_sub(*from).as_secs_f64();
            telemetry.push(millis(*to), now.since(earlier).figures(seconds));
        }
        telemetry.missed = self.missed;
        telemetry.own_cpu_ms = thread_cpu().saturating_sub(self.cpu_before).as_secs_f64() * 1e3;
        telemetry
    }

    /// Removes every second boundary between rows.
    fn thin(&mut self) {
        let mut number = 0;
        self.readings.retain(|_| {
            number += 1;
            number % 2 == 1
        });
        self.period *= 2;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn thread_cpu() -> Duration {
    let (user, system) = thread_times();
    user + system
}

/// Lowers this thread's priority and restricts it to these processors, as far as the system allows.
pub fn yield_to_others(cpus: &[usize]) {
    // The lowest priority that still gets processor time on a busy processor.
    let _ = rustix::process::setpriority_process(Some(gettid()), 19);
    if !cpus.is_empty() {
        let mut set = CpuSet::new();
        cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sampler_has_rows_and_knows_its_cost() {
        let options = SamplerOptions { period: Duration::from_millis(1), cpus: vec![0, 9999] };
        let sampler = Sampler::start(options);
        // Until the process has some activity for rows to show.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let telemetry = sampler.stop();
        assert!(telemetry.rows() >= 1);
        assert_eq!(telemetry.period_ms, 1);
        assert!(telemetry.own_cpu_ms > 0.0);
        assert!(telemetry.value("cpu.idle_percent", 0).is_some());
        assert!(telemetry.value("lo.recv_packets", 0).is_some());
        let rows = (0..telemetry.rows()).map(|row| telemetry.at_ms(row).unwrap());
        assert!(rows.is_sorted());
    }

    #[test]
    fn a_sampler_that_is_forgotten_ends() {
        drop(Sampler::start(SamplerOptions { period: Duration::from_millis(100), cpus: Vec::new() }));
    }

    #[test]
    fn a_long_recording_keeps_its_sums_in_fewer_rows() {
        let mut recorder = Recorder::new(Duration::from_millis(100));
        let counters = |switches| HostCounters { context_switches: switches, ..HostCounters::default() };
        recorder.readings = (0..=8).map(|n| (Duration::from_millis(100 * n), counters(10 * n))).collect();
        recorder.thin();
        let telemetry = recorder.telemetry();
        assert_eq!((telemetry.rows(), telemetry.period_ms), (4, 200));
        assert_eq!(telemetry.values("context_switches").collect::<Vec<_>>(), [20.0; 4]);
        assert_eq!(telemetry.at_ms(0), Some(200));
    }

    #[test]
    fn looks_come_at_the_period_that_a_thinned_recording_has() {
        let ms = Duration::from_millis;
        assert_eq!(next_due(ms(100), ms(100), ms(101)), (ms(200), 0));
        assert_eq!(next_due(ms(100), ms(100), ms(350)), (ms(400), 2));
        assert_eq!(next_due(ms(100), ms(200), ms(100)), (ms(300), 0));
        let mut recorder = Recorder::new(ms(100));
        recorder.readings = vec![(Duration::ZERO, HostCounters::default()); Recorder::ROWS_MAX];
        recorder.look();
        // The newest boundary stays, so that the next row has the full new period.
        assert_eq!((recorder.period, recorder.readings.len()), (ms(200), Recorder::ROWS_MAX / 2 + 1));
        assert!(recorder.readings.last().unwrap().0 > Duration::ZERO);
    }

    #[test]
    fn rows_stay_within_bounds() {
        let reading = (Duration::ZERO, HostCounters::default());
        let mut recorder = Recorder::new(Duration::from_secs(1));
        recorder.readings = vec![reading.clone(); Recorder::ROWS_MAX + 1];
        recorder.look();
        assert!(recorder.readings.len() <= Recorder::ROWS_MAX);
        let mut free = Recorder::new(Duration::ZERO);
        free.readings = vec![reading; Recorder::FREE_ROWS_MAX + 1];
        free.look();
        assert_eq!(free.readings.len(), Recorder::FREE_ROWS_MAX + 1);
    }
}
