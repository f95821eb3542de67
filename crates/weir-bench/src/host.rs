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

/// The share of all processors that this process uses.
#[derive(Clone, Copy, Debug)]
pub struct CpuMeter {
    start_ns: u64,
    used_s: f64,
    processors: f64,
}

impl CpuMeter {
    /// Begins now.
    #[must_use]
    pub fn start() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        Self { start_ns: weir_measure::clock::now_ns(), used_s: used_s(), processors }
    }

    /// Percent of all processors that this process may use, since the start.
    #[must_use]
    pub fn percent(&self) -> f64 {
        let elapsed_s = weir_measure::clock::now_ns().saturating_sub(self.start_ns) as f64 / 1e9;
        if elapsed_s > 0.0 { (used_s() - self.used_s) / (elapsed_s * self.processors) * 100.0 } else { 0.0 }
    }
}

fn used_s() -> f64 {
    let figures = weir_telemetry::process_figures();
    figures.cpu_user_s + figures.cpu_system_s
}

fn allowed_cpus() -> Result<Vec<usize>, HostError> {
    weir_udp::affinity::allowed_cpus().map_err(|source| HostError::Unknown { what: "processors", source })
}

#[cfg(test)]
mod tests {
    use super::*;

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
