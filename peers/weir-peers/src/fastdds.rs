//! eProsima Fast DDS 2; its settings are passed to the shim as lines of `name=value`.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Peer, PeerError, Setting};

use crate::foreign::FASTDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "fastdds",
    about: "eProsima Fast DDS, default configuration, UDP on one interface without data sharing and shared memory",
    settings: &settings("synchronous", "", "0"),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "fastdds-tuned",
    about: "eProsima Fast DDS with frequent heartbeats and large socket buffers",
    settings: &settings("synchronous", "10000", "4194304"),
    ..BASE
};

pub(crate) const ASYNC: Peer = Peer {
    name: "fastdds-async",
    about: "fastdds-tuned, publishing asynchronously",
    settings: &settings("asynchronous", "10000", "4194304"),
    ..BASE
};

const BASE: Peer =
    Peer { name: "", about: "", settings: &[], abilities: Abilities::DDS, calls: Calls { open, version } };

const fn settings(mode: &'static str, heartbeat: &'static str, buffer: &'static str) -> [Setting; 6] {
    [
        Setting::new("publish_mode", mode, "PublishModeQosPolicy: synchronous or asynchronous"),
        Setting::new(
            "heartbeat_period_us",
            heartbeat,
            "RTPSReliableWriterQos.times.heartbeatPeriod, microseconds; empty: 3 seconds",
        ),
        Setting::new(
            "socket_receive_buffer",
            buffer,
            "UDPv4TransportDescriptor.receiveBufferSize, bytes; 0: the system's default",
        ),
        Setting::new(
            "socket_send_buffer",
            buffer,
            "UDPv4TransportDescriptor.sendBufferSize, bytes; 0: the system's default",
        ),
        Setting::new("max_message_size", "65500", "UDPv4TransportDescriptor.maxMessageSize, bytes"),
        Setting::new(
            "max_samples",
            "5000",
            "ResourceLimitsQosPolicy.max_samples of both ends: limit of unacknowledged samples",
        ),
    ]
}

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
