//! The configuration of a run, printed before it starts.

use std::fmt::Write as _;

use weir_compat::perftest::{NodeSettings, Pace, Receive, SubscriberSettings};

use super::settings::{Batching, Publishing, Role};

/// The text for standard error.
pub(super) fn banner(role: &Role) -> String {
    let mut text = format!("{}\n\n", version());
    match role {
        Role::Publish(publishing) => publisher(&mut text, publishing),
        Role::Subscribe(settings) => subscriber(&mut text, settings),
    }
    text
}

/// Name, version and the origin of the procedure.
pub(super) fn version() -> String {
    format!("Weir perftest {} (procedure and output of RTI Perftest 4.3)", env!("CARGO_PKG_VERSION"))
}

fn publisher(text: &mut String, publishing: &Publishing) {
    let [first, ..] = &publishing.runs[..] else { return };
    let settings = &first.settings;
    text.push_str(if settings.latency_test {
        "Mode: LATENCY TEST (Ping-Pong test)\n\n"
    } else {
        "Mode: THROUGHPUT TEST\n      (Use \"-latencyTest\" for Latency Mode)\n\n"
    });
    common(text, &settings.node);
    let mut line = |what: &str, value: String| _ = writeln!(text, "\t{what}: {value}");
    line("Publisher ID", settings.pid.to_string());
    line("Latency count", format!("1 latency sample every {} samples", settings.latency_count));
    let sizes: Vec<String> = publishing.runs.iter().map(|run| run.settings.data_len.to_string()).collect();
    line("Data Size", sizes.join(", "));
    let batching =
        publishing.runs.iter().find(|run| matches!(run.batching, Batching::On(_))).unwrap_or(first);
    line(
        "Batching",
        match batching.batching {
            Batching::On(bytes) if publishing.runs.len() > 1 => {
                format!("{bytes} Bytes where two samples fit")
            }
            Batching::On(bytes) => format!("{bytes} Bytes (Use \"-batchSize 0\" to disable batching)"),
            Batching::Off => "No (Use \"-batchSize\" to setup batching)".to_owned(),
            Batching::Unsuitable(why) => format!("Disabled by perftest: {why}."),
        },
    );
    line(
        "Publication Rate",
        match settings.rate {
            None => "Unlimited (Not set)".to_owned(),
            Some(rate) => {
                let pace = if rate.pace == Pace::Spin { "Spin" } else { "Sleep" };
                format!("{} Samples/s ({pace})", rate.per_s)
            }
        },
    );
    if let Some(time) = settings.execution_time {
        line("Execution time", format!("{} seconds", time.as_secs()));
    }
    if settings.num_iter != u64::MAX {
        line("Number of samples", settings.num_iter.to_string());
    }
    transport(text, &settings.node, publish_mode(&settings.node));
}

fn subscriber(text: &mut String, settings: &SubscriberSettings) {
    common(text, &settings.node);
    _ = writeln!(text, "\tSubscriber ID: {}", settings.sid);
    transport(text, &settings.node, "");
}

/// As in RTI Perftest, whose flow controller `default` does not limit the rate.
fn publish_mode(node: &NodeSettings) -> &'static str {
    match (&node.raw, node.asynchronous) {
        (Some(_), _) => "",
        (None, true) => "\tAsynchronous Publishing: Yes\n\tFlow Controller: default\n",
        (None, false) => "\tAsynchronous Publishing: No\n",
    }
}

fn common(text: &mut String, node: &NodeSettings) {
    text.push_str("Perftest Configuration:\n");
    let reliability = match (&node.raw, node.reliable) {
        (Some(_), _) => "None (-rawTransport)",
        (None, true) => "Reliable",
        (None, false) => "Best Effort",
    };
    let keyed = if node.keyed { format!("Yes, {} instances", node.instances) } else { "No".to_owned() };
    _ = writeln!(text, "\tReliability: {reliability}\n\tKeyed: {keyed}");
}

fn transport(text: &mut String, node: &NodeSettings, publish_mode: &str) {
    let receive = match (&node.raw, node.receive) {
        (Some(_), _) => "Sockets",
        (None, Receive::Listener) if node.is_small => "Listeners, by polling (-profile small)",
        (None, Receive::Listener) => "Listeners",
        (None, Receive::Thread { .. }) => "WaitSets",
    };
    let interfaces = if node.interfaces.is_empty() { "all".to_owned() } else { node.interfaces.join(", ") };
    let multicast = match node.multicast {
        Some(groups) => groups.throughput.to_string(),
        None => "No".to_owned(),
    };
    _ = writeln!(text, "\tReceive using: {receive}\n\tDomain: {}", node.domain);
    text.push_str(publish_mode);
    let raw = if node.raw.is_some() { "raw " } else { "" };
    _ = writeln!(
        text,
        "\tTransport Configuration: {raw}UDPv4, interfaces: {interfaces}, multicast: {multicast}"
    );
}
