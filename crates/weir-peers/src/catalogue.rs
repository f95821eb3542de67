//! The engines that the project knows, built in or not.

use crate::node::{Node, NodeOptions, OnSample, PeerError};
use crate::settings::{Setting, Settings, effective};

/// Another engine, with one set of settings.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The Cargo feature that builds it in.
    pub feature: &'static str,
    /// What can be tuned, and the values that it is measured with.
    pub settings: &'static [Setting],
    /// What it can do.
    pub abilities: Abilities,
    /// `None` when it is not built in.
    calls: Option<Calls>,
}

/// What a peer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It is a DDS; the others are listed apart.
    pub is_dds: bool,
    /// Best effort.
    pub best_effort: bool,
    /// Reliable.
    pub reliable: bool,
    /// Instances.
    pub keyed: bool,
    /// Gathers samples into messages on request.
    pub batching: bool,
    /// Several publishers and subscribers find each other.
    pub many: bool,
    /// Its receiving thread never sleeps if that is asked for; those of the others block whatever is asked.
    pub spinning: bool,
    /// The largest sample, bytes, its header included.
    pub size_bytes_max: usize,
}

type Open = fn(&NodeOptions, OnSample) -> Result<Box<dyn Node>, PeerError>;

#[derive(Clone, Copy, Debug)]
struct Calls {
    open: Open,
    version: fn() -> String,
}

impl Peer {
    /// Whether this build has it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        self.calls.is_some()
    }

    /// The version of the engine; `None` when it is not built in.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.calls.map(|calls| (calls.version)())
    }

    /// Opens a node; what arrives goes to `on_sample` on the engine's own thread.
    ///
    /// # Errors
    /// When it is not built in, and what the engine says.
    pub fn open(&self, options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
        let Some(calls) = self.calls else {
            return Err(PeerError::NotBuilt { name: self.name, advice: self.advice() });
        };
        let settings = effective(self.settings, &options.settings);
        (calls.open)(&NodeOptions { settings, ..options.clone() }, on_sample)
    }

    /// The values that it is measured with when these are chosen.
    #[must_use]
    pub fn effective(&self, chosen: &Settings) -> Settings {
        effective(self.settings, chosen)
    }

    /// How to get it.
    #[must_use]
    pub fn advice(&self) -> String {
        format!("build with `cargo xtask peers`, or with the feature `{}`", self.feature)
    }
}

/// The calls of an engine's module, where its feature is on.
macro_rules! calls {
    ($feature:literal, $($module:ident)::+) => {{
        #[cfg(feature = $feature)]
        let calls = Some(Calls { open: crate::$($module)::+::open, version: crate::$($module)::+::version });
        #[cfg(not(feature = $feature))]
        let calls = None;
        calls
    }};
}

/// All engines, in the order in which tables show them.
pub static PEERS: &[Peer] = &[
    Peer {
        name: "cyclonedds",
        about: "Eclipse Cyclone DDS as it comes, on the one interface; its write batching where samples are batched",
        settings: CYCLONEDDS_DEFAULT,
        ..CYCLONEDDS
    },
    Peer {
        name: "cyclonedds-tuned",
        about: "Eclipse Cyclone DDS with large messages, a higher writer watermark and large socket buffers",
        settings: CYCLONEDDS_TUNED,
        ..CYCLONEDDS
    },
    Peer {
        name: "fastdds",
        about: "eProsima Fast DDS as it comes, UDP on the one interface, data sharing and shared memory off",
        settings: FASTDDS_DEFAULT,
        ..FASTDDS
    },
    Peer {
        name: "fastdds-tuned",
        about: "eProsima Fast DDS with frequent heartbeats and large socket buffers",
        settings: FASTDDS_TUNED,
        ..FASTDDS
    },
    Peer {
        name: "fastdds-async",
        about: "the same, publishing asynchronously",
        settings: FASTDDS_ASYNC,
        ..FASTDDS
    },
    Peer {
        name: "dust_dds",
        about: "dust_dds, a DDS in Rust; UDP on the one interface, taken in a WaitSet",
        feature: "dust_dds",
        settings: DUST_DDS_SETTINGS,
        abilities: DDS,
        calls: calls!("dust_dds", dust_dds),
    },
    Peer {
        name: "rustdds",
        about: "RustDDS, a DDS in Rust; UDP on the one interface, taken from its asynchronous stream",
        feature: "rustdds",
        settings: RUSTDDS_SETTINGS,
        abilities: Abilities { keyed: false, many: false, ..DDS },
        calls: calls!("rustdds", rustdds),
    },
    Peer {
        name: "int2dds",
        about: "int2dds, a DDS in Rust, as it comes; UDP, taken in a listener",
        settings: INT2DDS_DEFAULT,
        ..INT2DDS
    },
    Peer {
        name: "int2dds-tuned",
        about: "the same with a limit to what is unacknowledged and large socket buffers",
        settings: INT2DDS_TUNED,
        ..INT2DDS
    },
    Peer {
        name: "zeromq",
        about: "ZeroMQ, PUSH to PULL over TCP: no DDS, and not UDP, but what some would take instead",
        feature: "zeromq",
        settings: ZEROMQ_SETTINGS,
        abilities: Abilities { is_dds: false, best_effort: false, many: false, ..DDS },
        calls: calls!("zeromq", zeromq),
    },
    Peer {
        name: "zenoh-udp",
        about: "Zenoh, peer to peer over UDP: no DDS, and what is lost is not sent again",
        abilities: Abilities { is_dds: false, reliable: false, many: false, ..DDS },
        calls: calls!("zenoh", zenoh::udp),
        ..ZENOH
    },
    Peer {
        name: "zenoh-tcp",
        about: "Zenoh, peer to peer over TCP: no DDS, and not UDP",
        abilities: Abilities { is_dds: false, best_effort: false, many: false, ..DDS },
        calls: calls!("zenoh", zenoh::tcp),
        ..ZENOH
    },
    Peer {
        name: "aeron",
        about: "Aeron over UDP as it comes, its media driver embedded: no DDS; with --wait spin it never sleeps",
        settings: AERON_DEFAULT,
        ..AERON
    },
    Peer {
        name: "aeron-tuned",
        about: "the same with datagrams of 64 kB, a larger window and large socket buffers",
        settings: AERON_TUNED,
        ..AERON
    },
];

/// The one of this name, built in or not.
#[must_use]
pub fn find(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}

const DDS: Abilities = Abilities {
    is_dds: true,
    best_effort: true,
    reliable: true,
    keyed: true,
    batching: false,
    many: true,
    spinning: false,
    size_bytes_max: 1 << 30,
};

const CYCLONEDDS: Peer = Peer {
    name: "",
    about: "",
    feature: "cyclonedds",
    settings: &[],
    abilities: Abilities { batching: true, ..DDS },
    calls: calls!("cyclonedds", cyclonedds),
};

macro_rules! cyclonedds_settings {
    ($message:literal, $fragment:literal, $receive:literal, $send:literal, $high:literal, $init:literal) => {
        &[
            Setting {
                name: "max_message_size",
                value: $message,
                about: "General/MaxMessageSize: the largest datagram; also what a batch grows to",
            },
            Setting {
                name: "fragment_size",
                value: $fragment,
                about: "General/FragmentSize: larger samples are sent in fragments of it",
            },
            Setting {
                name: "socket_receive_buffer",
                value: $receive,
                about: "Internal/SocketReceiveBufferSize[@max]; empty: what Cyclone DDS asks for",
            },
            Setting {
                name: "socket_send_buffer",
                value: $send,
                about: "Internal/SocketSendBufferSize[@max]; empty: what Cyclone DDS asks for",
            },
            Setting {
                name: "whc_high",
                value: $high,
                about: "Internal/Watermarks/WhcHigh: a writer with so much unacknowledged waits",
            },
            Setting {
                name: "whc_high_init",
                value: $init,
                about: "Internal/Watermarks/WhcHighInit: where the adaptive watermark begins",
            },
            Setting { name: "whc_adaptive", value: "true", about: "Internal/Watermarks/WhcAdaptive" },
            Setting { name: "internal_xml", value: "", about: "more elements of Internal" },
            Setting { name: "domain_xml", value: "", about: "more elements of Domain" },
        ]
    };
}

const CYCLONEDDS_DEFAULT: &[Setting] = cyclonedds_settings!("14720B", "1344B", "", "", "500kB", "30kB");
const CYCLONEDDS_TUNED: &[Setting] = cyclonedds_settings!("65500B", "65000B", "4MB", "4MB", "2MB", "500kB");

const FASTDDS: Peer = Peer {
    name: "",
    about: "",
    feature: "fastdds",
    settings: &[],
    abilities: DDS,
    calls: calls!("fastdds", fastdds),
};

macro_rules! fastdds_settings {
    ($mode:literal, $heartbeat:literal, $buffer:literal) => {
        &[
            Setting {
                name: "publish_mode",
                value: $mode,
                about: "PublishModeQosPolicy: synchronous or asynchronous",
            },
            Setting {
                name: "heartbeat_period_us",
                value: $heartbeat,
                about: "RTPSReliableWriterQos.times.heartbeatPeriod, microseconds; empty: 3 seconds",
            },
            Setting {
                name: "socket_receive_buffer",
                value: $buffer,
                about: "UDPv4TransportDescriptor.receiveBufferSize, bytes; 0: the system's",
            },
            Setting {
                name: "socket_send_buffer",
                value: $buffer,
                about: "UDPv4TransportDescriptor.sendBufferSize, bytes; 0: the system's",
            },
            Setting {
                name: "max_message_size",
                value: "65500",
                about: "UDPv4TransportDescriptor.maxMessageSize, bytes",
            },
            Setting {
                name: "max_samples",
                value: "5000",
                about: "ResourceLimitsQosPolicy.max_samples of both ends: what may be unacknowledged",
            },
        ]
    };
}

const FASTDDS_DEFAULT: &[Setting] = fastdds_settings!("synchronous", "", "0");
const FASTDDS_TUNED: &[Setting] = fastdds_settings!("synchronous", "10000", "4194304");
const FASTDDS_ASYNC: &[Setting] = fastdds_settings!("asynchronous", "10000", "4194304");

const DUST_DDS_SETTINGS: &[Setting] = &[
    Setting { name: "fragment_size", value: "64000", about: "set_fragment_size, bytes" },
    Setting {
        name: "socket_receive_buffer",
        value: "4194304",
        about: "set_udp_receive_buffer_size, bytes; empty: the system's",
    },
];

const RUSTDDS_SETTINGS: &[Setting] = &[
    Setting {
        name: "socket_receive_buffer",
        value: "",
        about: "socket_receive_buffer_size, bytes; empty: what RustDDS asks for (8 MiB)",
    },
    Setting {
        name: "socket_send_buffer",
        value: "",
        about: "socket_send_buffer_size, bytes; empty: what RustDDS asks for (8 MiB)",
    },
    Setting {
        name: "max_samples",
        value: "",
        about: "ResourceLimits.max_samples of both ends; empty: none given, and RustDDS keeps 64",
    },
];

const INT2DDS: Peer = Peer {
    name: "",
    about: "",
    feature: "int2dds",
    settings: &[],
    abilities: DDS,
    calls: calls!("int2dds", int2dds),
};

macro_rules! int2dds_settings {
    ($samples:literal, $strict:literal, $buffer:literal) => {
        &[
            Setting {
                name: "max_samples",
                value: $samples,
                about: "ResourceLimitsQosPolicy.max_samples of the writer of a stream; empty: unlimited",
            },
            Setting {
                name: "history_strict",
                value: $strict,
                about: "HistoryQosPolicy.strict: whether a KEEP_ALL writer keeps what all readers have acknowledged",
            },
            Setting {
                name: "socket_buffer",
                value: $buffer,
                about: "INT2DDS_UDP_SOCKET_BUFFER, bytes; empty: what int2dds asks for (1 MiB to receive)",
            },
        ]
    };
}

const INT2DDS_DEFAULT: &[Setting] = int2dds_settings!("", "true", "");
const INT2DDS_TUNED: &[Setting] = int2dds_settings!("1000", "false", "4194304");

const ZENOH: Peer = Peer {
    name: "",
    about: "",
    feature: "zenoh",
    settings: &[
        Setting {
            name: "express",
            value: "",
            about: "express of the publisher: no message waits for others; empty: true for pings, false for streams",
        },
        Setting {
            name: "lowlatency",
            value: "false",
            about: "transport/unicast/lowlatency: another transport, without batches and fragments",
        },
    ],
    abilities: DDS,
    calls: None,
};

const AERON: Peer = Peer {
    name: "",
    about: "",
    feature: "aeron",
    settings: &[],
    // A message is at most an eighth of a term buffer.
    abilities: Abilities {
        is_dds: false,
        best_effort: false,
        many: false,
        spinning: true,
        size_bytes_max: 2 << 20,
        ..DDS
    },
    calls: calls!("aeron", aeron),
};

macro_rules! aeron_settings {
    ($mtu:literal, $window:literal, $buffer:literal) => {
        &[
            Setting {
                name: "mtu_length",
                value: $mtu,
                about: "aeron.mtu.length, bytes: the largest datagram; messages are gathered into it. Empty: 1408",
            },
            Setting {
                name: "rcv_initial_window_length",
                value: $window,
                about: "aeron.rcv.initial.window.length, bytes; empty: 128 KiB",
            },
            Setting {
                name: "socket_receive_buffer",
                value: $buffer,
                about: "aeron.socket.so_rcvbuf, bytes; empty: 128 KiB",
            },
            Setting {
                name: "socket_send_buffer",
                value: $buffer,
                about: "aeron.socket.so_sndbuf, bytes; empty: the system's",
            },
            Setting {
                name: "term_buffer_length",
                value: "16777216",
                about: "aeron.term.buffer.length, bytes",
            },
            Setting {
                name: "idle_strategy",
                value: "",
                about: "what driver and poller do without work: spin, yield or backoff; empty: by --wait, backoff or spin",
            },
            Setting {
                name: "duty_cycle_offers",
                value: "256",
                about: "a writer runs the driver itself after so many samples",
            },
        ]
    };
}

const AERON_DEFAULT: &[Setting] = aeron_settings!("", "", "");
const AERON_TUNED: &[Setting] = aeron_settings!("65472", "2097152", "4194304");

const ZEROMQ_SETTINGS: &[Setting] = &[
    Setting { name: "high_water_mark", value: "", about: "ZMQ_SNDHWM and ZMQ_RCVHWM, messages; empty: 1000" },
    Setting {
        name: "socket_buffer",
        value: "",
        about: "ZMQ_SNDBUF and ZMQ_RCVBUF, bytes; empty: the system's",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_settings_are_told_apart() {
        let names: BTreeSet<_> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
        for peer in PEERS {
            let settings: BTreeSet<_> = peer.settings.iter().map(|setting| setting.name).collect();
            assert_eq!(settings.len(), peer.settings.len(), "{}", peer.name);
            assert!(peer.version().is_some() == peer.is_built() && !peer.about.is_empty(), "{}", peer.name);
        }
    }
}
