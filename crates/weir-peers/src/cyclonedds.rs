//! Eclipse Cyclone DDS: its settings become its XML configuration.

use std::fmt::Write as _;

use crate::foreign::CYCLONEDDS;
use crate::node::{Node, NodeOptions, OnSample, PeerError};

pub(crate) fn version() -> String {
    CYCLONEDDS.version()
}

pub(crate) fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    CYCLONEDDS.open(options, &configuration(options), on_sample)
}

/// The whole configuration: no file and no variable of the environment has a say.
fn configuration(options: &NodeOptions) -> String {
    let element = |path: &[&str], name: &str| {
        let Some(value) = options.settings.get(name).filter(|value| !value.is_empty()) else {
            return String::new();
        };
        let mut xml = String::new();
        path.iter().for_each(|tag| {
            let _ = write!(xml, "<{tag}>");
        });
        xml.push_str(value);
        path.iter().rev().for_each(|tag| {
            // Attributes are in the opening tag only.
            let _ = write!(xml, "</{}>", tag.split(' ').next().unwrap_or(tag));
        });
        xml
    };
    let buffer = |tag: &str, name: &str| match options.settings.get(name).filter(|value| !value.is_empty()) {
        Some(value) => format!("<{tag} min='default' max='{value}'/>"),
        None => String::new(),
    };
    format!(
        "<CycloneDDS><Domain id='any'>\
         <General><Interfaces><NetworkInterface name='{}' multicast='true'/></Interfaces>{}{}</General>\
         <Discovery><ParticipantIndex>auto</ParticipantIndex></Discovery>\
         <Internal>{}{}<Watermarks>{}{}{}</Watermarks>{}</Internal>{}</Domain></CycloneDDS>",
        options.interface,
        element(&["MaxMessageSize"], "max_message_size"),
        element(&["FragmentSize"], "fragment_size"),
        buffer("SocketReceiveBufferSize", "socket_receive_buffer"),
        buffer("SocketSendBufferSize", "socket_send_buffer"),
        element(&["WhcHigh"], "whc_high"),
        element(&["WhcHighInit"], "whc_high_init"),
        element(&["WhcAdaptive"], "whc_adaptive"),
        options.settings.get("internal_xml").map_or("", String::as_str),
        options.settings.get("domain_xml").map_or("", String::as_str),
    )
}
