//! What shares the link with a case: a stream of the same engine between two more processes, or a TCP connection.
//!
//! It starts together with the case, after the same warm-up it is measured as long. The other processes are in the same
//! namespaces, so that both streams share both directions of the link, and in another DDS domain, so that they do not
//! discover each other.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use weir_measure::{mbps, rounded, seconds};
use weir_results::{Test, UnitError, parse_size};

use crate::case::{CaseError, CaseSpec, Method, Place};
use crate::control::{AgentReport, Outcome};
use crate::coordinator::{self, RunOptions};
use crate::outside::TcpFlow;
use crate::session::Session;

/// What `--beside` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// The case has the link for itself.
    #[default]
    Nothing,
    /// A TCP connection with CUBIC, which sends as much as it can: iperf3.
    Tcp,
    /// Samples of this size by the same engine, as many as it can send.
    Samples(u64),
}

impl Beside {
    /// The text in results; `None`: nothing.
    #[must_use]
    pub fn name(self) -> Option<String> {
        (self != Self::Nothing).then(|| self.to_string())
    }
}

impl FromStr for Beside {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text {
            "none" => Ok(Self::Nothing),
            "tcp" => Ok(Self::Tcp),
            _ => parse_size(text).map(Self::Samples),
        }
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Tcp => f.write_str("tcp"),
            Self::Samples(bytes) => bytes.fmt(f),
        }
    }
}

/// The other traffic, ready to start.
pub(crate) enum Neighbour<'a> {
    /// Two more processes, which have found each other.
    Stream(Box<(Session<'a>, CaseSpec)>),
    /// A server that listens, and its client.
    Tcp(Box<TcpFlow>, &'a AtomicBool),
}

impl<'a> Neighbour<'a> {
    /// Starts the processes of what shall be beside `case`; `None`: nothing.
    pub(crate) fn prepare(case: &CaseSpec, options: &RunOptions<'a>) -> Result<Option<Self>, CaseError> {
        let interrupted = options.interrupted;
        let path = || options.path.ok_or_else(|| CaseError::Failed("--beside needs --link".to_owned()));
        match case.method.beside {
            Beside::Nothing => Ok(None),
            Beside::Tcp => Ok(Some(Self::Tcp(Box::new(TcpFlow::prepare(path()?, case)?), interrupted))),
            Beside::Samples(bytes) => {
                let stream = stream(case, bytes);
                path()?;
                let mut session = Session::start(options.agent, &stream, None, interrupted)?;
                coordinator::prepare(&mut session, &stream, options)?;
                Ok(Some(Self::Stream(Box::new((session, stream)))))
            }
        }
    }

    /// Runs to the end, and returns the payload that arrived, in Mbit/s.
    pub(crate) fn run(self) -> Result<f64, CaseError> {
        let measured = match self {
            Self::Tcp(flow, interrupted) => flow.run(interrupted),
            Self::Stream(stream) => {
                let (mut session, case) = *stream;
                let (_, subscribers, _) = coordinator::run_ends(&mut session, &case, None, &mut |_, _| {})?;
                session.close();
                Ok(received_mbps(&case, &subscribers))
            }
        };
        measured.map(rounded)
    }
}

/// The stream beside a case: of the same engine with the same settings, as fast as possible.
fn stream(case: &CaseSpec, bytes: u64) -> CaseSpec {
    let method = Method {
        path: case.method.path.clone(),
        lab_link: case.method.lab_link.clone(),
        telemetry_period: None,
        live_period: None,
        // The case's own session does it.
        keep_awake: false,
        ..Method::default()
    };
    // One that the case's participants do not look at.
    let place = Place { domain: (case.place.domain + 1) % DOMAINS, ..case.place.clone() };
    let size_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    CaseSpec { test: Test::Throughput, size_bytes, batch_bytes: 0, method, place, ..case.clone() }
}

/// The rate of the first subscriber.
fn received_mbps(case: &CaseSpec, subscribers: &[AgentReport]) -> f64 {
    let Some(Outcome::Subscriber(received)) = subscribers.first().map(|report| &report.outcome) else {
        return 0.0;
    };
    let time_s = seconds(received.received_in);
    if time_s > 0.0 { mbps(received.counts.received as f64 / time_s, case.size_bytes as u64) } else { 0.0 }
}

/// Domains that have ports (RTPS 2.5, 9.6.2.3).
const DOMAINS: u32 = 233;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::rate::Rate;

    #[test]
    fn neighbours_are_read_and_named() {
        let check = |text: &str, beside: Beside, name: Option<&str>| {
            assert_eq!(text.parse(), Ok(beside));
            assert_eq!(beside.name().as_deref(), name);
        };
        check("none", Beside::Nothing, None);
        check("tcp", Beside::Tcp, Some("tcp"));
        check("1M", Beside::Samples(1 << 20), Some("1048576"));
        assert!("udp".parse::<Beside>().is_err());
    }

    #[test]
    fn the_stream_beside_a_schedule_has_none_and_does_not_meet_it() {
        let mut main = case("mock", Test::Latency);
        (main.method.rate, main.method.samples_per_s) = (Some(Rate::PerSecond(100)), Some(100.0));
        (main.method.path, main.place.domain) = (Some("tun".to_owned()), 232);
        let beside = stream(&main, 4096);
        assert_eq!((beside.test, beside.size_bytes, beside.place.domain), (Test::Throughput, 4096, 0));
        assert_eq!((beside.method.samples_per_s, beside.method.path), (None, main.method.path.clone()));
        assert_eq!(
            (beside.duration, beside.warmup, beside.engine),
            (main.duration, main.warmup, main.engine)
        );
    }
}
