//! Eclipse Cyclone DDS; its settings become its XML configuration.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Participant, Peer, PeerError, settings};

use crate::foreign::CYCLONEDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "cyclonedds",
    about: "Eclipse Cyclone DDS, default configuration on one interface; its own write batching for batches",
    settings: &settings(SETTINGS, [""; 12]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "cyclonedds-tuned",
    about: "Eclipse Cyclone DDS with large messages and socket buffers, fixed writer watermarks and quick repair",
    settings: &settings(
        SETTINGS,
        ["65500B", "65000B", "4MB", "4MB", "2MB", "2MB", "false", "1", "", REPAIR, "", ""],
    ),
    ..BASE
};

pub(crate) const LINKS: Peer = Peer {
    name: "cyclonedds-links",
    about: "Eclipse Cyclone DDS for slow links: messages that fit packets, watermark and NackDelay by the round trip",
    settings: &settings(
        SETTINGS,
        ["1456B", "1344B", "4MB", "4MB", "500kB", "30kB", "true", "10", "4", "", "", ""],
    ),
    abilities: Abilities { fits_packets: true, ..BASE.abilities },
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    abilities: Abilities { batching: true, ..Abilities::DDS },
    calls: Calls { open, participant: Some(open_participant), version },
};

/// Of the adaptive watermark, losses leave little. Without it a writer that waits needs a low watermark well above
/// zero, or the line runs dry. Larger reorder buffers and queues hold a window; heartbeats start repairs.
const REPAIR: &str = "<Watermarks><WhcLow>1MB</WhcLow></Watermarks>\
    <PrimaryReorderMaxSamples>4096</PrimaryReorderMaxSamples>\
    <SecondaryReorderMaxSamples>4096</SecondaryReorderMaxSamples>\
    <MaxQueuedRexmitMessages>10000</MaxQueuedRexmitMessages><MaxQueuedRexmitBytes>16MB</MaxQueuedRexmitBytes>\
    <AckDelay>1ms</AckDelay><HeartbeatInterval min='1ms' minsched='1ms'>10ms</HeartbeatInterval>";

const SETTINGS: [(&str, &str); 12] = [
    (
        "max_message_size",
        "General/MaxMessageSize: the largest datagram; also the limit of a batch; empty: 14720B",
    ),
    ("fragment_size", "General/FragmentSize: size of the fragments of larger samples; empty: 1344B"),
    ("socket_receive_buffer", "Internal/SocketReceiveBufferSize[@max]; empty: 1 MiB where allowed"),
    ("socket_send_buffer", "Internal/SocketSendBufferSize[@max]; empty: the system's default"),
    ("whc_high", "Internal/Watermarks/WhcHigh: unacknowledged bytes at which a writer waits; empty: 500kB"),
    (
        "whc_high_init",
        "Internal/Watermarks/WhcHighInit: initial value of the adaptive watermark; empty: 30kB",
    ),
    ("whc_adaptive", "Internal/Watermarks/WhcAdaptive; empty: true"),
    (
        "nack_delay_ms",
        "Internal/NackDelay, of a known link at least a round trip; empty: Cyclone DDS's default",
    ),
    ("whc_round_trips", "raises whc_high to what a known link carries in these, to 3 MB at most"),
    ("internal_xml", "more elements of Internal"),
    ("domain_xml", "more elements of Domain"),
    (
        "uri",
        "as CYCLONEDDS_URI: files and XML without Interfaces; settings above that are not empty override it",
    ),
];

fn version() -> String {
    CYCLONEDDS.version()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    CYCLONEDDS.open(options, &configuration(&for_link(options)?), on_sample)
}

fn open_participant(options: &NodeOptions) -> Result<Box<dyn Participant>, PeerError> {
    CYCLONEDDS.open_participant(options, &configuration(options))
}

/// The options with what follows from the link, where one is known.
fn for_link(options: &NodeOptions) -> Result<NodeOptions, PeerError> {
    let mut settings = options.settings.clone();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    if let Some(link) = options.link {
        if let Some(round_trips) = options.setting::<u32>("whc_round_trips")? {
            let bytes = (link.rate_bps as f64 / 8.0 * (link.round_trip * round_trips).as_secs_f64()) as u64;
            if bytes > WHC_DEFAULT {
                set("whc_high", format!("{}B", bytes.min(WHC_MAX)));
            }
        }
        if let Some(least_ms) = options.setting::<u64>("nack_delay_ms")? {
            set("nack_delay_ms", least_ms.max(link.round_trip.as_millis() as u64).to_string());
        }
    }
    Ok(NodeOptions { settings, ..options.clone() })
}

/// Cyclone DDS's own WhcHigh, and the greatest that helped on any link, bytes.
const WHC_DEFAULT: u64 = 500_000;
const WHC_MAX: u64 = 3_000_000;

/// The whole configuration; the environment has no part in it. Of several parts, the later override the earlier.
fn configuration(options: &NodeOptions) -> String {
    let value = |name: &str| options.settings.get(name).filter(|value| !value.is_empty());
    let element = |tag: &str, name: &str| match value(name) {
        Some(value) => format!("<{tag}>{value}</{tag}>"),
        None => String::new(),
    };
    let buffer = |tag: &str, name: &str| match value(name) {
        Some(value) => format!("<{tag} min='default' max='{value}'/>"),
        None => String::new(),
    };
    let uri = value("uri").map_or_else(String::new, |uri| format!("{uri},"));
    format!(
        "{uri}<CycloneDDS><Domain id='any'>\
         <General><Interfaces><NetworkInterface name='{}' multicast='true'/></Interfaces>{}{}</General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery>\
         <Internal>{}{}<Watermarks>{}{}{}</Watermarks>{}{}</Internal>{}</Domain></CycloneDDS>",
        options.interface,
        element("MaxMessageSize", "max_message_size"),
        element("FragmentSize", "fragment_size"),
        buffer("SocketReceiveBufferSize", "socket_receive_buffer"),
        buffer("SocketSendBufferSize", "socket_send_buffer"),
        element("WhcHigh", "whc_high"),
        element("WhcHighInit", "whc_high_init"),
        element("WhcAdaptive", "whc_adaptive"),
        value("nack_delay_ms").map_or_else(String::new, |ms| format!("<NackDelay>{ms}ms</NackDelay>")),
        options.settings.get("internal_xml").map_or("", String::as_str),
        options.settings.get("domain_xml").map_or("", String::as_str),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_options::{link, options};

    #[test]
    fn watermark_and_nack_delay_follow_the_link() {
        let of = |link| configuration(&for_link(&options(LINKS.settings, link)).unwrap());
        let check = |link, expected: [&str; 2]| {
            let xml = of(link);
            expected.iter().for_each(|element| assert!(xml.contains(element), "{element}: {xml}"));
        };
        check(None, ["<WhcHigh>500kB</WhcHigh>", "<NackDelay>10ms</NackDelay>"]);
        check(link(100_000_000, 0), ["<WhcHigh>500kB</WhcHigh>", "<NackDelay>10ms</NackDelay>"]);
        check(link(20_000_000, 70), ["<WhcHigh>700000B</WhcHigh>", "<NackDelay>70ms</NackDelay>"]);
        check(link(200_000_000, 80), ["<WhcHigh>3000000B</WhcHigh>", "<NackDelay>80ms</NackDelay>"]);
        // The default configuration follows no link, and has no element but what the bench needs.
        let default = for_link(&options(DEFAULT.settings, link(200_000_000, 80))).unwrap();
        let xml = configuration(&default);
        assert!(xml.contains("<Internal><Watermarks></Watermarks></Internal></Domain>"), "{xml}");
    }

    #[test]
    fn files_of_the_user_come_first() {
        let mut options = options(TUNED.settings, None);
        options.settings.insert("uri".to_owned(), "mine.xml".to_owned());
        let xml = configuration(&options);
        assert!(xml.starts_with("mine.xml,<CycloneDDS>") && xml.contains("<WhcLow>1MB</WhcLow>"), "{xml}");
    }
}
