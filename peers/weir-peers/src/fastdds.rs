//! eProsima Fast DDS 2; its settings are passed to the shim as lines of `name=value`.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Peer, PeerError, settings};

use crate::foreign::FASTDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "fastdds",
    about: "eProsima Fast DDS, default configuration, UDP on one interface without data sharing and shared memory",
    settings: &settings(SETTINGS, ["synchronous", "", "0", "0", "65500", "5000", "", "", "", "", ""]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "fastdds-tuned",
    about: "eProsima Fast DDS with frequent heartbeats and large socket buffers",
    settings: &settings(
        SETTINGS,
        ["synchronous", "10000", "4194304", "4194304", "65500", "5000", "", "", "", "", ""],
    ),
    ..BASE
};

pub(crate) const ASYNC: Peer = Peer {
    name: "fastdds-async",
    about: "fastdds-tuned, publishing asynchronously",
    settings: &settings(
        SETTINGS,
        ["asynchronous", "10000", "4194304", "4194304", "65500", "5000", "", "", "", "", ""],
    ),
    ..BASE
};

pub(crate) const LINKS: Peer = Peer {
    name: "fastdds-links",
    about: "eProsima Fast DDS for slow links: messages that fit packets, a short history, a flow controller with \
            the link's rate",
    settings: &settings(
        SETTINGS,
        ["asynchronous", "10000", "4194304", "4194304", "1472", "5000", "4000000", "", "", "92", "64000"],
    ),
    ..BASE
};

const BASE: Peer =
    Peer { name: "", about: "", settings: &[], abilities: Abilities::DDS, calls: Calls { open, version } };

const SETTINGS: [(&str, &str); 11] = [
    ("publish_mode", "PublishModeQosPolicy: synchronous or asynchronous"),
    ("heartbeat_period_us", "RTPSReliableWriterQos.times.heartbeatPeriod, microseconds; empty: 3 seconds"),
    ("socket_receive_buffer", "UDPv4TransportDescriptor.receiveBufferSize, bytes; 0: the system's default"),
    ("socket_send_buffer", "UDPv4TransportDescriptor.sendBufferSize, bytes; 0: the system's default"),
    ("max_message_size", "UDPv4TransportDescriptor.maxMessageSize, bytes"),
    ("max_samples", "ResourceLimitsQosPolicy.max_samples of both ends: limit of unacknowledged samples"),
    (
        "history_bytes",
        "lowers max_samples of the writer to what these bytes hold, but not below 4; empty: no limit",
    ),
    ("nack_response_delay_us", "RTPSReliableWriterQos.times.nackResponseDelay; empty: 5 milliseconds"),
    (
        "heartbeat_response_delay_us",
        "RTPSReliableReaderQos.times.heartbeatResponseDelay; empty: 5 milliseconds",
    ),
    (
        "flow_percent",
        "flow controller: percent of a link's rate, where that is known; empty: no flow controller",
    ),
    (
        "flow_burst_bytes",
        "flow controller: bytes per period, which follows from the rate, 1 millisecond at least",
    ),
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
    lines += &limits(options)?;
    for (name, value) in &options.settings {
        if name != "publish_mode" {
            // The shim reads numbers, and reads anything else as 0.
            options.setting::<i64>(name)?;
        }
        lines += &format!("{name}={value}\n");
    }
    Ok(lines)
}

/// What follows from the size of samples and from the rate of the link.
fn limits(options: &NodeOptions) -> Result<String, PeerError> {
    let mut lines = String::new();
    if let Some(bytes) = options.setting::<usize>("history_bytes")? {
        let samples = (bytes / options.payload_bytes.max(1)).max(HISTORY_SAMPLES_MIN);
        let limit = options.setting("max_samples")?.unwrap_or(usize::MAX);
        lines += &format!("writer_max_samples={}\n", samples.min(limit));
    }
    let percent: Option<u64> = options.setting("flow_percent")?;
    if let Some((percent, rate_bps)) = percent.zip(options.link_rate_bps) {
        let bytes_per_s = rate_bps / 8 * percent / 100;
        let burst: u64 = options.setting("flow_burst_bytes")?.unwrap_or(0);
        let period_ms = (burst * 1000).div_ceil(bytes_per_s.max(1)).max(1);
        let bytes = bytes_per_s * period_ms / 1000;
        lines += &format!("flow_bytes_per_period={bytes}\nflow_period_ms={period_ms}\n");
    }
    Ok(lines)
}

/// With fewer samples a writer waits for each acknowledgement.
const HISTORY_SAMPLES_MIN: usize = 4;
