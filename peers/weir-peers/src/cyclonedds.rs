//! Eclipse Cyclone DDS; its settings become its XML configuration.

use weir_peer_api::{Abilities, Calls, Node, NodeOptions, OnSample, Peer, PeerError, settings};

use crate::foreign::CYCLONEDDS;

pub(crate) const DEFAULT: Peer = Peer {
    name: "cyclonedds",
    about: "Eclipse Cyclone DDS, default configuration on one interface; its own write batching for batches",
    settings: &settings(SETTINGS, ["14720B", "1344B", "", "", "500kB", "30kB", "true", "", ""]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "cyclonedds-tuned",
    about: "Eclipse Cyclone DDS with large messages, a higher writer watermark and large socket buffers",
    settings: &settings(SETTINGS, ["65500B", "65000B", "4MB", "4MB", "2MB", "500kB", "true", "", ""]),
    ..BASE
};

pub(crate) const LINKS: Peer = Peer {
    name: "cyclonedds-links",
    about: "Eclipse Cyclone DDS for slow links: messages that fit packets, a shorter NackDelay, large socket buffers",
    settings: &settings(
        SETTINGS,
        ["1456B", "1344B", "4MB", "4MB", "500kB", "30kB", "true", "<NackDelay>10ms</NackDelay>", ""],
    ),
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    abilities: Abilities { batching: true, ..Abilities::DDS },
    calls: Calls { open, version },
};

const SETTINGS: [(&str, &str); 9] = [
    ("max_message_size", "General/MaxMessageSize: the largest datagram; also the limit of a batch"),
    ("fragment_size", "General/FragmentSize: size of the fragments of larger samples"),
    ("socket_receive_buffer", "Internal/SocketReceiveBufferSize[@max]; empty: Cyclone DDS's default"),
    ("socket_send_buffer", "Internal/SocketSendBufferSize[@max]; empty: Cyclone DDS's default"),
    ("whc_high", "Internal/Watermarks/WhcHigh: unacknowledged bytes at which a writer waits"),
    ("whc_high_init", "Internal/Watermarks/WhcHighInit: initial value of the adaptive watermark"),
    ("whc_adaptive", "Internal/Watermarks/WhcAdaptive"),
    ("internal_xml", "more elements of Internal"),
    ("domain_xml", "more elements of Domain"),
];

fn version() -> String {
    CYCLONEDDS.version()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    CYCLONEDDS.open(options, &configuration(options), on_sample)
}

/// The whole configuration; it overrides files and environment variables.
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
    format!(
        "<CycloneDDS><Domain id='any'>\
         <General><Interfaces><NetworkInterface name='{}' multicast='true'/></Interfaces>{}{}</General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery>\
         <Internal>{}{}<Watermarks>{}{}{}</Watermarks>{}</Internal>{}</Domain></CycloneDDS>",
        options.interface,
        element("MaxMessageSize", "max_message_size"),
        element("FragmentSize", "fragment_size"),
        buffer("SocketReceiveBufferSize", "socket_receive_buffer"),
        buffer("SocketSendBufferSize", "socket_send_buffer"),
        element("WhcHigh", "whc_high"),
        element("WhcHighInit", "whc_high_init"),
        element("WhcAdaptive", "whc_adaptive"),
        options.settings.get("internal_xml").map_or("", String::as_str),
        options.settings.get("domain_xml").map_or("", String::as_str),
    )
}
