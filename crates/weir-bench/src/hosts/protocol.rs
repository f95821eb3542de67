//! Messages between the coordinator and the program that it starts on another host: JSON lines.
//!
//! They travel over that program's standard input and output, for a remote host through SSH. The messages of agents
//! pass inside them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_baseline::ClockOffset;
use weir_results::Environment;

use crate::case::Ends;
use crate::control::{FromAgent, LINE_BYTES_MAX as AGENT_BYTES_MAX, ToAgent};
use crate::processes::EndId;

/// From the coordinator to a host.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum ToHost {
    /// Describe the host, with this interface as the one that carries the samples.
    Describe {
        /// Its name.
        interface: String,
    },
    /// Read the clock.
    Clock,
    /// Answer other hosts' questions for the time, at this address.
    AnswerClock {
        /// An address of the host.
        address: Ipv4Addr,
    },
    /// Compare the clock with that of another host.
    CompareClock {
        /// The address of this host to ask from.
        from: Ipv4Addr,
        /// Where the other host answers.
        to: SocketAddrV4,
    },
    /// Start these ends of a case.
    Begin {
        /// Distinguishes cases.
        session: u32,
        /// The ends on this host.
        ids: Vec<EndId>,
        /// All ends of the case.
        ends: Ends,
        /// Keep the processors out of idle states until the case ends.
        keep_awake: bool,
    },
    /// Pass this to an end.
    Tell {
        /// The case.
        session: u32,
        /// The end.
        id: EndId,
        /// The message.
        message: ToAgent,
    },
    /// End what is left of a case.
    End {
        /// The case.
        session: u32,
    },
}

/// From a host to the coordinator.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum FromHost {
    /// The first message.
    Hello {
        /// [`crate::control::SCHEMA`].
        schema: u32,
        /// [`crate::control::VERSION`].
        version: String,
        /// What the coordinator has to know.
        facts: Box<HostFacts>,
    },
    /// The answer to [`ToHost::Describe`].
    Environment {
        /// The host.
        environment: Box<Environment>,
    },
    /// The answer to [`ToHost::Clock`].
    Clock {
        /// Nanoseconds of the host's monotonic clock.
        now_ns: u64,
    },
    /// The answer to [`ToHost::AnswerClock`].
    AnswersClock {
        /// Where.
        address: SocketAddrV4,
    },
    /// The answer to [`ToHost::CompareClock`].
    Compared {
        /// How far the other clock is ahead; `None`: it did not answer.
        offset: Option<ClockOffset>,
    },
    /// The host cannot do what was asked.
    Refused {
        /// Why.
        reason: String,
    },
    /// All ends of the case have introduced themselves.
    Begun {
        /// The case.
        session: u32,
        /// How the processors are kept out of idle states; `None`: they are not.
        awake: Option<String>,
    },
    /// The ends of the case cannot start.
    NotBegun {
        /// The case.
        session: u32,
        /// Why.
        reason: String,
    },
    /// An end says this.
    Said {
        /// The case.
        session: u32,
        /// The end.
        id: EndId,
        /// The message.
        message: FromAgent,
    },
    /// An end is gone.
    Gone {
        /// The case.
        session: u32,
        /// The end.
        id: EndId,
        /// Why, as far as is known.
        reason: String,
    },
}

/// What the coordinator has to know of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostFacts {
    /// Its IPv4 interfaces that are up.
    pub(crate) interfaces: Vec<HostInterface>,
    /// Processors that processes may use there.
    pub(crate) cpus: Vec<usize>,
    /// Names its clock; empty if that is not known.
    pub(crate) clock: String,
    /// Names its network namespace; empty if that is not known.
    #[serde(default)]
    pub(crate) network: String,
    /// The host's address that SSH was connected to, and that it was connected from.
    pub(crate) reached: Option<(Ipv4Addr, Ipv4Addr)>,
}

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostInterface {
    /// The interface.
    pub(crate) name: String,
    /// The address.
    pub(crate) address: Ipv4Addr,
    /// Bits of the network part.
    pub(crate) prefix: u32,
    /// Whether it is a loopback interface.
    pub(crate) is_loopback: bool,
}

/// The longest line: the longest of an agent, and what surrounds it.
pub(crate) const LINE_BYTES_MAX: usize = AGENT_BYTES_MAX + 4096;

/// How long a host waits for the next message while nothing is measured.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(15 * 60);

/// Starts the line that a host prints before its messages: a login shell may have printed something before.
pub(crate) const READY: &str = "weir-host-ready";
