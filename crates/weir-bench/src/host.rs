//! Where a run can take place: interfaces and processors.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use thiserror::Error;
use weir_results::{Environment, Telemetry};
use weir_telemetry::{Sampler, SamplerOptions};

use crate::case::CpuPair;

/// Why a run cannot take place there.
#[derive(Debug, Error)]
pub enum HostError {
    /// No such interface, or it has no IPv4 address, or it is down.
    #[error("`{name}` is no network interface that is up and has an IPv4 address; --interface takes {known}")]
    NoInterface {
        /// The requested one.
        name: String,
        /// The available ones.
        known: String,
    },
    /// This process may not run there.
    #[error("this process may not run on processor {cpu}; --cpus takes two of {allowed:?}, or none")]
    NoCpu {
        /// The requested one.
        cpu: usize,
        /// The available ones.
        allowed: Vec<usize>,
    },
    /// The system did not say.
    #[error("{what} cannot be listed: {source}")]
    Unknown {
        /// What was asked.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Describes this host, with `interface` as the one that carries the samples.
#[must_use]
pub fn environment(interface: &str) -> Environment {
    weir_telemetry::environment(Some(interface))
}

/// Samples this host, for runs outside the coordinator.
#[derive(Debug)]
pub struct HostWatch(Sampler);

impl HostWatch {
    /// Starts sampling every `period`, on the processors that this process may use now.
    #[must_use]
    pub fn start(period: Duration) -> Self {
        let cpus = weir_udp::affinity::allowed_cpus().unwrap_or_default();
        Self(Sampler::start(SamplerOptions { period, cpus }))
    }

    /// Stops, and returns the samples.
    #[must_use]
    pub fn stop(self) -> Telemetry {
        self.0.stop()
    }
}

/// The IPv4 address of a network interface.
pub fn interface_address(name: &str) -> Result<Ipv4Addr, HostError> {
    let interfaces =
        weir_udp::interfaces().map_err(|source| HostError::Unknown { what: "network interfaces", source })?;
    let usable = || interfaces.iter().filter(|interface| interface.is_up);
    usable().find(|interface| interface.name == name).map(|interface| interface.address).ok_or_else(|| {
        let mut known: Vec<&str> = usable().map(|interface| interface.name.as_str()).collect();
        known.dedup();
        HostError::NoInterface { name: name.to_owned(), known: known.join(", ") }
    })
}

/// Two different processors where this process may run; none when it may use only one.
pub fn default_cpus() -> Result<Option<CpuPair>, HostError> {
    Ok(match allowed_cpus()?[..] {
        // The first processor serves most interrupts: the sender, which needs more time, gets the
        // other one.
        [subscriber, publisher, ..] => Some(CpuPair { publisher, subscriber }),
        _ => None,
    })
}

/// Checks that this process may run on both processors.
pub fn check_cpus(cpus: CpuPair) -> Result<(), HostError> {
    let allowed = allowed_cpus()?;
    match [cpus.publisher, cpus.subscriber].into_iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(HostError::NoCpu { cpu, allowed }),
        None => Ok(()),
    }
}

/// The processor time of this process at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuReading {
    /// The moment.
    pub at_ns: u64,
    /// Since the process started.
    pub used: Duration,
}

impl CpuReading {
    /// Of this moment.
    #[must_use]
    pub fn now() -> Self {
        Self { at_ns: weir_measure::clock::now_ns(), used: weir_telemetry::process_time() }
    }

    /// Processors that were busy since an earlier reading, on average.
    fn busy_since(self, earlier: Self) -> f64 {
        let elapsed_s = self.at_ns.saturating_sub(earlier.at_ns) as f64 / 1e9;
        let used_s = self.used.saturating_sub(earlier.used).as_secs_f64();
        if elapsed_s > 0.0 { used_s / elapsed_s } else { 0.0 }
    }
}

/// The share of all processors that this process uses, in percent.
pub struct CpuMeter {
    read: Box<dyn Fn() -> CpuReading>,
    /// Processors that this process may use.
    processors: f64,
    start: CpuReading,
    /// The end of the last interval.
    last: CpuReading,
    last_percent: Option<f64>,
}

/// Rows that follow each other faster than this, as those of echoes, show the share of the last interval.
const CPU_INTERVAL: Duration = Duration::from_millis(100);

impl CpuMeter {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(Box::new(CpuReading::now), processors)
    }

    /// The same for other readings.
    #[must_use]
    pub fn of(read: Box<dyn Fn() -> CpuReading>, processors: usize) -> Self {
        let start = read();
        Self { read, processors: processors as f64, start, last: start, last_percent: None }
    }

    /// Begins again: what was used before does not count.
    pub fn restart(&mut self) {
        self.start = (self.read)();
        (self.last, self.last_percent) = (self.start, None);
    }

    /// The share since the last interval, which ends now unless it is very short.
    pub fn interval(&mut self) -> f64 {
        let now = (self.read)();
        let is_long = now.at_ns.saturating_sub(self.last.at_ns) >= CPU_INTERVAL.as_nanos() as u64;
        if let Some(percent) = self.last_percent.filter(|_| !is_long) {
            return percent;
        }
        let percent = now.busy_since(self.last) / self.processors * 100.0;
        if is_long {
            (self.last, self.last_percent) = (now, Some(percent));
        }
        percent
    }

    /// The share since the beginning.
    #[must_use]
    pub fn average(&self) -> f64 {
        (self.read)().busy_since(self.start) / self.processors * 100.0
    }
}

fn allowed_cpus() -> Result<Vec<usize>, HostError> {
    weir_udp::affinity::allowed_cpus().map_err(|source| HostError::Unknown { what: "processors", source })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn processor_time_counts_from_the_beginning_and_by_interval() {
        let moment = Rc::new(Cell::new(CpuReading::default()));
        let pass = |ms: u64, used_ms: u64| {
            let CpuReading { at_ns, used } = moment.get();
            moment.set(CpuReading {
                at_ns: at_ns + ms * 1_000_000,
                used: used + Duration::from_millis(used_ms),
            });
        };
        let read = Rc::clone(&moment);
        let mut meter = CpuMeter::of(Box::new(move || read.get()), 2);
        let mut figures = || [meter.interval(), meter.average()].map(|percent| percent.round() as u64);
        assert_eq!(figures(), [0, 0]);
        pass(1000, 2000);
        assert_eq!(figures(), [100, 100]);
        pass(1000, 0);
        assert_eq!(figures(), [0, 50]);
        // Too short for a figure of its own.
        pass(10, 20);
        assert_eq!(figures()[0], 0);
        pass(990, 980);
        assert_eq!(figures(), [50, 50]);
        meter.restart();
        pass(1000, 200);
        assert_eq!([meter.interval(), meter.average()].map(|percent| percent.round() as u64), [10, 10]);
    }

    #[test]
    fn the_loopback_interface_has_its_address() {
        assert_eq!(interface_address("lo").unwrap(), Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn an_unknown_interface_is_answered_with_the_known_ones() {
        let error = interface_address("nope0").unwrap_err().to_string();
        assert!(error.starts_with("`nope0` is no network interface") && error.contains("lo"), "{error}");
    }

    #[test]
    fn default_processors_differ_and_are_allowed() {
        if let Some(cpus) = default_cpus().unwrap() {
            assert_ne!(cpus.publisher, cpus.subscriber);
            check_cpus(cpus).unwrap();
        }
        let error = check_cpus(CpuPair { publisher: 100_000, subscriber: 100_000 }).unwrap_err();
        assert!(error.to_string().contains("processor 100000"), "{error}");
    }
}
