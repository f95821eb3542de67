//! eProsima Fast DDS 2; its settings are passed to the shim as lines of `name=value`.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Peer, PeerError, Setting};

use crate::foreign::FASTDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "fastdds",
    about: "eProsima Fast DDS, default configuration, UDP on one interface without data sharing and shared memory",
    settings: DEFAULT_SETTINGS,
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "fastdds-tuned",
    about: "eProsima Fast DDS with frequent heartbeats and large socket buffers",
    settings: TUNED_SETTINGS,
    ..BASE
};

pub(crate) const ASYNC: Peer = Peer {
    name: "fastdds-async",
    about: "fastdds-tuned, publishing asynchronously",
    settings: ASYNC_SETTINGS,
    ..BASE
};

const BASE: Peer =
    Peer { name: "", about: "", settings: &[], abilities: Abilities::DDS, calls: Calls { open, version } };

macro_rules! settings {
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
                about: "UDPv4TransportDescriptor.receiveBufferSize, bytes; 0: the system's default",
            },
            Setting {
                name: "socket_send_buffer",
                value: $buffer,
                about: "UDPv4TransportDescriptor.sendBufferSize, bytes; 0: the system's default",
            },
            Setting {
                name: "max_message_size",
                value: "65500",
                about: "UDPv4TransportDescriptor.maxMessageSize, bytes",
            },
            Setting {
                name: "max_samples",
                value: "5000",
                about: "ResourceLimitsQosPolicy.max_samples of both ends: limit of unacknowledged samples",
            },
        ]
    };
}

const DEFAULT_SETTINGS: &[Setting] = settings!("synchronous", "", "0");
const TUNED_SETTINGS: &[Setting] = settings!("synchronous", "10000", "4194304");
const ASYNC_SETTINGS: &[Setting] = settings!("asynchronous", "10000", "4194304");

fn version() -> String {
    FASTDDS.version()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    FASTDDS.open(options, &configuration(options)?, on_sample)
}

fn configuration(options: &NodeOptions) -> Result<String, PeerError> {
    let mut lines = format!("address={}\noctets={}\n", options.address, options.octets);
    if options.is_keyed {
        // Each instance has room for its share of the samples.
        let instances = options.instances.max(1);
        let share = (options.setting("max_samples")?.unwrap_or(5000_u32) / instances).max(1);
        lines += &format!("max_instances={instances}\nmax_samples_per_instance={share}\n");
    }
    for (name, value) in &options.settings {
        if name != "publish_mode" {
            // The shim reads numbers, and reads anything else as 0.
            options.setting::<i64>(name)?;
        }
        lines += &format!("{name}={value}\n");
    }
    Ok(lines)
}
