//! eProsima Fast DDS 2; its settings are passed to the shim as lines of `name=value`.

use std::time::Duration;

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Participant, Peer, PeerError, settings};

use crate::foreign::FASTDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "fastdds",
    about: "eProsima Fast DDS, default configuration, UDP on one interface without data sharing and shared memory",
    settings: &settings(SETTINGS, [""; 13]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "fastdds-tuned",
    about: "eProsima Fast DDS with frequent heartbeats, answers without delay and large socket buffers",
    settings: &settings(
        SETTINGS,
        ["synchronous", "1000", "4194304", "4194304", "", "", "", "0", "0", "0", "", "", ""],
    ),
    ..BASE
};

pub(crate) const ASYNC: Peer = Peer {
    name: "fastdds-async",
    about: "fastdds-tuned, publishing asynchronously",
    settings: &settings(
        SETTINGS,
        ["asynchronous", "1000", "4194304", "4194304", "", "", "", "0", "0", "0", "", "", ""],
    ),
    ..BASE
};

pub(crate) const LINKS: Peer = Peer {
    name: "fastdds-links",
    about: "eProsima Fast DDS for slow links: messages that fit packets, a short history, and a flow \
            controller at 92 % of the rate",
    settings: &settings(
        SETTINGS,
        ["asynchronous", "10000", "4194304", "4194304", "1472", "5000", "3", "", "", "", "92", "64000", ""],
    ),
    abilities: Abilities { fits_packets: true, ..BASE.abilities },
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    abilities: Abilities::DDS,
    calls: Calls { open, participant: Some(open_participant), version },
};

const SETTINGS: [(&str, &str); 13] = [
    ("publish_mode", "PublishModeQosPolicy: synchronous or asynchronous; empty: synchronous"),
    ("heartbeat_period_us", "RTPSReliableWriterQos.times.heartbeatPeriod, microseconds; empty: 3 seconds"),
    (
        "socket_receive_buffer",
        "UDPv4TransportDescriptor.receiveBufferSize, bytes; empty: the system's default",
    ),
    ("socket_send_buffer", "UDPv4TransportDescriptor.sendBufferSize, bytes; empty: the system's default"),
    ("max_message_size", "UDPv4TransportDescriptor.maxMessageSize, bytes; empty: 65500"),
    (
        "max_samples",
        "ResourceLimitsQosPolicy.max_samples of both ends: limit of unacknowledged samples; empty: 5000",
    ),
    (
        "history_round_trips",
        "lowers max_samples of the writer to what a known link carries in these and 100 ms",
    ),
    ("nack_response_delay_us", "RTPSReliableWriterQos.times.nackResponseDelay; empty: 5 milliseconds"),
    ("nack_suppression_us", "RTPSReliableWriterQos.times.nackSupressionDuration; empty: 0"),
    (
        "heartbeat_response_delay_us",
        "RTPSReliableReaderQos.times.heartbeatResponseDelay; empty: 5 milliseconds",
    ),
    ("flow_percent", "flow controller: percent of the rate of a known link; empty: no flow controller"),
    (
        "flow_burst_bytes",
        "flow controller: bytes per period, which follows from the rate, 1 millisecond at least",
    ),
    (
        PROFILES,
        "XML file whose default profiles replace Fast DDS's defaults; settings that are not empty override it",
    ),
];

/// The setting that names a file.
const PROFILES: &str = "profiles_file";

fn version() -> String {
    FASTDDS.version()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    FASTDDS.open(options, &configuration(options)?, on_sample)
}

fn open_participant(options: &NodeOptions) -> Result<Box<dyn Participant>, PeerError> {
    FASTDDS.open_participant(options, &configuration(options)?)
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
    if let Some(file) = options.setting::<String>(PROFILES)? {
        check_profiles(&file)?;
    }
    for (name, value) in &options.settings {
        if name != "publish_mode" && name != PROFILES {
            // The shim reads numbers, and reads anything else as 0.
            options.setting::<i64>(name)?;
        }
        lines += &format!("{name}={value}\n");
    }
    Ok(lines)
}

/// Whether the file has profiles that apply; Fast DDS would ignore others without an error.
fn check_profiles(file: &str) -> Result<(), PeerError> {
    let refused = |why: String| PeerError::Engine(format!("{PROFILES} {file}: {why}"));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let is_default = |quote: char| text.contains(&format!("is_default_profile={quote}true{quote}"));
    if is_default('"') || is_default('\'') {
        return Ok(());
    }
    let why = "no profile applies: mark those of participant, data_writer and data_reader with";
    Err(refused(format!("{why} is_default_profile=\"true\"")))
}

/// What follows from the size of samples and from the link, where one is known.
fn limits(options: &NodeOptions) -> Result<String, PeerError> {
    let Some(link) = options.link else { return Ok(String::new()) };
    let mut lines = String::new();
    if let Some(round_trips) = options.setting::<u32>("history_round_trips")? {
        let bytes = link.rate_bps as f64 / 8.0 * (link.round_trip * round_trips + HISTORY_TIME).as_secs_f64();
        let samples = (bytes as usize / options.payload_bytes.max(1)).max(HISTORY_SAMPLES_MIN);
        let limit = options.setting("max_samples")?.unwrap_or(usize::MAX);
        lines += &format!("writer_max_samples={}\n", samples.min(limit));
    }
    if let Some(percent) = options.setting::<u64>("flow_percent")? {
        let bytes_per_s = link.rate_bps / 8 * percent / 100;
        let burst: u64 = options.setting("flow_burst_bytes")?.unwrap_or(0);
        let period_ms = (burst * 1000).div_ceil(bytes_per_s.max(1)).max(1);
        let bytes = bytes_per_s * period_ms / 1000;
        lines += &format!("flow_bytes_per_period={bytes}\nflow_period_ms={period_ms}\n");
    }
    Ok(lines)
}

/// What the writer's history holds beyond round trips: time for the delays of heartbeats and answers.
const HISTORY_TIME: Duration = Duration::from_millis(100);

/// With one sample a writer waits for each acknowledgement.
const HISTORY_SAMPLES_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_options::{link, options};

    #[test]
    fn history_and_flow_controller_follow_the_link() {
        let of = |peer: &Peer, link| limits(&options(peer.settings, link)).unwrap();
        // 12.5 MB/s for 0.13 s in samples of 1000 bytes; 64 kB at 92 % of the rate take 5.6 ms.
        let expected = "writer_max_samples=1625\nflow_bytes_per_period=69000\nflow_period_ms=6\n";
        assert_eq!(of(&LINKS, link(100_000_000, 10)), expected);
        assert_eq!((of(&LINKS, None), of(&TUNED, link(100_000_000, 10))), (String::new(), String::new()));
    }

    #[test]
    fn a_profiles_file_is_refused_by_name_and_cause() {
        let folder = std::env::temp_dir().join(format!("weir-profiles-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let checked = |name: &str, text: Option<&str>| {
            let file = folder.join(name);
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            check_profiles(&file.display().to_string()).map_err(|error| error.to_string())
        };
        let missing = checked("missing.xml", None).unwrap_err();
        assert!(missing.contains("missing.xml: No such file"), "{missing}");
        let unmarked = checked("unmarked.xml", Some("<profiles/>")).unwrap_err();
        assert!(unmarked.contains("unmarked.xml: no profile applies"), "{unmarked}");
        assert_eq!(checked("good.xml", Some("<data_writer is_default_profile=\"true\"/>")), Ok(()));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
