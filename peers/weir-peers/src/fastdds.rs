//! eProsima Fast DDS 2; its settings are passed to the shim as lines of `name=value`.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Peer, PeerError, settings};

use crate::foreign::FASTDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "fastdds",
    about: "eProsima Fast DDS, default configuration, UDP on one interface without data sharing and shared memory",
    settings: &settings(SETTINGS, ["synchronous", "", "0", "0", "65500", "5000"]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "fastdds-tuned",
    about: "eProsima Fast DDS with frequent heartbeats and large socket buffers",
    settings: &settings(SETTINGS, ["synchronous", "10000", "4194304", "4194304", "65500", "5000"]),
    ..BASE
};

pub(crate) const ASYNC: Peer = Peer {
    name: "fastdds-async",
    about: "fastdds-tuned, publishing asynchronously",
    settings: &settings(SETTINGS, ["asynchronous", "10000", "4194304", "4194304", "65500", "5000"]),
    ..BASE
};

const BASE: Peer =
    Peer { name: "", about: "", settings: &[], abilities: Abilities::DDS, calls: Calls { open, version } };

const SETTINGS: [(&str, &str); 6] = [
    ("publish_mode", "PublishModeQosPolicy: synchronous or asynchronous"),
    ("heartbeat_period_us", "RTPSReliableWriterQos.times.heartbeatPeriod, microseconds; empty: 3 seconds"),
    ("socket_receive_buffer", "UDPv4TransportDescriptor.receiveBufferSize, bytes; 0: the system's default"),
    ("socket_send_buffer", "UDPv4TransportDescriptor.sendBufferSize, bytes; 0: the system's default"),
    ("max_message_size", "UDPv4TransportDescriptor.maxMessageSize, bytes"),
    ("max_samples", "ResourceLimitsQosPolicy.max_samples of both ends: limit of unacknowledged samples"),
];

fn version() -> String {
    FASTDDS.version()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    FASTDDS.open(options, &configuration(options)?, on_sample)
}

fn configuration(options: &NodeOptions) -> Result<String, PeerError> {
    let mut lines = format!("address={}\npayload_bytes={}\n", options.address, options.payload_bytes);
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
