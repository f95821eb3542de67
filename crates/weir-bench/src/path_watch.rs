//! Reads what an engine knows of its paths to other hosts while a case runs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_results::{PathFigures, PathReading};

/// Returns what an engine knows of each of its paths, by the address of the host.
pub type PathProbe = Box<dyn Fn() -> Vec<(Ipv4Addr, PathReading)> + Send>;

/// A thread that reads paths at equal distances; dropping it ends the thread.
pub(crate) struct PathWatch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<PathFigures>>,
}

impl PathWatch {
    /// Starts to read. `None` if there is no path to another host, or no thread.
    pub(crate) fn start(probe: PathProbe) -> Option<Self> {
        let first = probe();
        if first.is_empty() {
            return None;
        }
        let (stop, stopped) = mpsc::channel();
        let body = move || watch(&probe, &stopped, first);
        let thread = thread::Builder::new().name("paths".to_owned()).spawn(body).ok()?;
        Some(Self { stop, thread })
    }

    /// Reads a last time, and returns the figures of all paths.
    pub(crate) fn stop(self) -> Vec<PathFigures> {
        drop(self.stop);
        // Joining fails only if the thread has panicked, which it does not.
        self.thread.join().unwrap_or_default()
    }
}

fn watch(probe: &PathProbe, stopped: &Receiver<()>, first: Vec<(Ipv4Addr, PathReading)>) -> Vec<PathFigures> {
    let begin = Instant::now();
    let mut series = Series::new(first);
    // A reading that is late is followed by the next at once, so that its number gives its time.
    while let Err(RecvTimeoutError::Timeout) =
        stopped.recv_timeout(series.next_due().saturating_sub(begin.elapsed()))
    {
        series.push(probe());
    }
    series.figures(&probe())
}

/// Readings at equal distances.
struct Series {
    step: Duration,
    readings: Vec<Vec<(Ipv4Addr, PathReading)>>,
}

impl Series {
    fn new(first: Vec<(Ipv4Addr, PathReading)>) -> Self {
        Self { step: STEP, readings: vec![first] }
    }

    /// The time of the next reading, from the first one on.
    fn next_due(&self) -> Duration {
        self.step * u32::try_from(self.readings.len()).unwrap_or(u32::MAX)
    }

    /// Adds a reading. At the bound, every second one is removed, so that the distances double.
    fn push(&mut self, reading: Vec<(Ipv4Addr, PathReading)>) {
        self.readings.push(reading);
        if self.readings.len() > READINGS_MAX {
            let mut number = 0;
            self.readings.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.step *= 2;
        }
    }

    /// Returns the figures of each path, with the last reading.
    fn figures(&self, last: &[(Ipv4Addr, PathReading)]) -> Vec<PathFigures> {
        let mut by_host: BTreeMap<Ipv4Addr, Vec<PathReading>> = BTreeMap::new();
        for (host, reading) in self.readings.iter().flatten() {
            by_host.entry(*host).or_default().push(*reading);
        }
        let figures = |(host, readings): (Ipv4Addr, Vec<PathReading>)| {
            // Without its readers a path ends early.
            let last = last.iter().find(|(of, _)| *of == host).map(|(_, reading)| reading);
            last.or(readings.last()).map(|last| PathFigures::new(host, self.step, &readings, last))
        };
        by_host.into_iter().filter_map(figures).collect()
    }
}

/// The distance of readings at first.
const STEP: Duration = Duration::from_millis(25);

/// An even number: then the last one stays when half of them are removed.
const READINGS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn reading(sent_bytes: u64) -> Vec<(Ipv4Addr, PathReading)> {
        vec![(HOST, PathReading { in_flight_bytes: sent_bytes, sent_bytes, ..PathReading::default() })]
    }

    #[test]
    fn many_readings_become_fewer_at_the_same_times() {
        let mut series = Series::new(reading(0));
        for _ in 0..300 {
            let steps = series.next_due().as_nanos() / STEP.as_nanos();
            series.push(reading(steps as u64));
        }
        assert_eq!(series.step, STEP * 4);
        let figures = series.figures(&reading(777));
        assert_eq!((figures.len(), figures[0].sent_bytes), (1, 777));
        let kept = &figures[0].series.in_flight_bytes;
        assert!(kept.len() <= READINGS_MAX);
        assert_eq!((kept[..4].to_vec(), kept.last()), (vec![0, 4, 8, 12], Some(&400)));
    }

    #[test]
    fn a_path_that_has_ended_keeps_its_last_counts() {
        let mut series = Series::new(reading(0));
        series.push(reading(5));
        assert_eq!(series.figures(&[])[0].sent_bytes, 5);
    }

    #[test]
    fn without_a_path_nothing_is_read() {
        assert!(PathWatch::start(Box::new(Vec::new)).is_none());
        let figures = PathWatch::start(Box::new(|| reading(3))).unwrap().stop();
        assert_eq!((figures[0].host, figures[0].sent_bytes), (HOST, 3));
    }
}
