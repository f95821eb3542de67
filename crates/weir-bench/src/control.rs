//! Messages between coordinator and agents: JSON lines over TCP.
//!
//! The coordinator listens; each agent connects and introduces itself. The order of messages is in
//! `coordinator.rs`. Every wait has a time-out; a closed connection means that the other process is
//! gone. While a case is measured, ends send only the few bytes of [`FromAgent::Live`], if a view asks for them.

use std::net::SocketAddrV4;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use weir_results::SocketBuffers;

use crate::breakdown::Trace;
use crate::case::CaseSpec;
use crate::latency::PingerOutcome;
use crate::live::LiveReport;
use crate::throughput::{PublisherOutcome, SubscriberOutcome};
use crate::watch::Watched;
use crate::workload::ProcessOutcome;

/// Version of these messages. Both sides must have the same one.
pub const SCHEMA: u32 = 13;

/// The version of the program, which must be the same as well: two versions would measure two things.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The environment variable that carries [`FromAgent::Hello::token`] to an agent.
pub const TOKEN_VARIABLE: &str = "WEIR_CONTROL_TOKEN";

/// Which end of a case an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends: publisher or pinger.
    Publisher,
    /// Receives: subscriber or ponger.
    Subscriber,
    /// Does both: a process of a workload.
    Process,
}

impl Role {
    /// The name on the command line and in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
            Self::Process => "process",
        }
    }

    /// The other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Publisher => Self::Subscriber,
            Self::Subscriber => Self::Publisher,
            Self::Process => Self::Process,
        }
    }
}

/// From an agent to the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum FromAgent {
    /// The first message.
    Hello {
        /// [`SCHEMA`].
        schema: u32,
        /// [`VERSION`].
        version: String,
        /// Which end it is.
        role: Role,
        /// Which of the ends of its kind, from 0.
        index: u32,
        /// The token that the coordinator gave to the process: other programs do not know it.
        token: String,
    },
    /// Sockets and entities are made.
    Prepared {
        /// Where the peer finds them, for engines without discovery.
        address: Option<SocketAddrV4>,
        /// Where the nodes of a workload are, by their numbers, for engines without discovery.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<(usize, SocketAddrV4)>,
    },
    /// The peer was found.
    Connected,
    /// The receiving end is about to receive.
    Started,
    /// The case is being measured.
    Live {
        /// What this end has measured so far.
        report: LiveReport,
    },
    /// The writers of a process have written all that was due.
    Sent {
        /// Each writer's number, and how many samples it wrote.
        sent: Vec<(usize, u64)>,
    },
    /// The case is over.
    Finished {
        /// What this end has to say.
        report: Box<AgentReport>,
    },
    /// The case cannot go on at this end.
    Failed {
        /// What kind of trouble it is.
        fault: AgentFault,
        /// What went wrong and what to do.
        reason: String,
    },
}

/// From the coordinator to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum ToAgent {
    /// What to measure.
    Case {
        /// [`SCHEMA`].
        schema: u32,
        /// [`VERSION`].
        version: String,
        /// The case.
        case: Box<CaseSpec>,
        /// The processor to run on.
        cpu: Option<usize>,
    },
    /// Both ends are prepared: find the peer.
    Connect {
        /// Where it is, for engines without discovery.
        peer: Option<SocketAddrV4>,
        /// Where all nodes of a workload are, for engines without discovery.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<SocketAddrV4>,
    },
    /// Start.
    Start {
        /// The start of the schedule, nanoseconds of the host's monotonic clock.
        at_ns: Option<u64>,
    },
    /// To a receiving end, or to a process of a workload: all sending ones are done.
    Finish {
        /// Publisher `i` sent the numbers `0..sent[i]`.
        sent: Vec<u64>,
    },
    /// Leave.
    Close,
}

/// What kind of trouble an agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentFault {
    /// The engine cannot do what the case asks.
    NotSupported,
    /// The host, the peer or the engine.
    Trouble,
}

/// What one end found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The measurement.
    pub outcome: Outcome,
    /// What the process used and the host did from the start of the case.
    pub watched: Watched,
    /// The end's socket buffers.
    pub buffers: SocketBuffers,
    /// When this end was opened and when it had found its peers; `None` for engines without discovery.
    pub joined: Option<Joined>,
    /// The timestamps of a ping-pong, when enabled.
    pub trace: Option<Trace>,
}

/// Moments of the host's monotonic clock, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The end began to open its sockets and entities.
    pub opened_ns: u64,
    /// It knew all of its peers.
    pub matched_ns: u64,
}

/// The measurement, by the kind of end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The sending end of a stream.
    Publisher(PublisherOutcome),
    /// The receiving end of a stream.
    Subscriber(SubscriberOutcome),
    /// The measuring end of a ping-pong.
    Pinger(PingerOutcome),
    /// The echoing end of a ping-pong.
    Ponger {
        /// Pings echoed.
        echoed: u64,
    },
    /// A process of a workload.
    Process(ProcessOutcome),
}

impl Outcome {
    /// Samples that this end sent or received, warm-up included; `None` when it can't say.
    #[must_use]
    pub fn samples(&self) -> Option<u64> {
        match self {
            Self::Publisher(outcome) => Some(outcome.sent),
            Self::Subscriber(outcome) => Some(outcome.arrivals),
            Self::Pinger(outcome) => Some(outcome.sent),
            // Engines that echo on threads of their own may not count.
            Self::Ponger { echoed } => (*echoed > 0).then_some(*echoed),
            Self::Process(_) => None,
        }
    }
}

/// The other side speaks another version.
#[derive(Debug, Error)]
#[error(
    "the other process is weir {found_version} with control messages {found_schema}, this one is \
     {VERSION} with {SCHEMA}: use the same version on both sides"
)]
pub struct VersionError {
    found_schema: u32,
    found_version: String,
}

/// Compares the version of the other side with this one.
pub fn check_version(schema: u32, version: &str) -> Result<(), VersionError> {
    if schema == SCHEMA && version == VERSION {
        return Ok(());
    }
    Err(VersionError { found_schema: schema, found_version: version.to_owned() })
}

/// The longest message; traces are far shorter.
pub const LINE_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use weir_measure::Message;
    use weir_results::{DropCounters, EngineCounts, Telemetry};

    use super::*;

    #[test]
    fn messages_are_lines_of_json_with_their_name() {
        let finish = ToAgent::Finish { sent: vec![7] };
        assert_eq!(finish.line(), r#"{"message":"finish","sent":[7]}"#);
        assert_eq!(ToAgent::parse(r#"{"message":"finish","sent":[7]}"#), Some(finish));
        assert_eq!(ToAgent::parse(r#"{"message":"start"}"#), Some(ToAgent::Start { at_ns: None }));
        for nonsense in [r#"{"message":"dance"}"#, "", "x"] {
            assert_eq!(ToAgent::parse(nonsense), None);
        }
    }

    #[test]
    fn reports_survive_the_channel() {
        let mut telemetry = Telemetry::new(100);
        telemetry.push(100, [("interrupts".to_owned(), 5.0)]);
        let report = AgentReport {
            outcome: Outcome::Publisher(PublisherOutcome {
                sent: 3,
                offered: 2,
                offered_in: std::time::Duration::from_nanos(1_000_000_001),
                datagrams: Some(2),
                sends: None,
                engine: EngineCounts::default(),
                flushed: true,
                lag: None,
            }),
            watched: Watched {
                drops: DropCounters { socket: Some(3), ..DropCounters::default() },
                telemetry: Some(telemetry),
                ..Watched::default()
            },
            buffers: SocketBuffers::default(),
            joined: Some(Joined { opened_ns: 1, matched_ns: 2 }),
            trace: Some(Trace::default()),
        };
        let message = FromAgent::Finished { report: Box::new(report) };
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<FromAgent>(&text).unwrap(), message);
    }

    #[test]
    fn another_version_is_refused_by_name() {
        assert!(check_version(SCHEMA, VERSION).is_ok());
        let error = check_version(SCHEMA + 1, VERSION).unwrap_err().to_string();
        assert!(error.contains("use the same version on both sides"), "{error}");
        assert!(check_version(SCHEMA, "0.0.0").is_err());
    }
}
