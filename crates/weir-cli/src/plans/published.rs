//! Plans that measure what published tables show, written from the tables.

use std::fmt::Write as _;

use weir_bench::path::PathSpec;
use weir_results::Test;

use crate::published::{Document, Table, table_link};

/// The plan of a table that RTI published.
pub(super) fn of_table(table: &Table) -> String {
    let source = table.source;
    let (first, last) = (table.rows.first(), table.rows.last());
    // Connext Micro is for small systems, as the small profile is.
    let small = if table.name.starts_with("micro") { ", \"weir-small\"" } else { "" };
    let sizes: Vec<String> = table.rows.iter().map(|row| row.size.to_string()).collect();
    let mut text = format!(
        "# {} sizes, {} to {} B ({})\n#\n# Published: {}\n# Hosts: {}\n# Path: {}\n",
        sizes.len(),
        first.map_or(0, |row| row.size),
        last.map_or(0, |row| row.size),
        source.label,
        source.title,
        source.hosts,
        source.path
    );
    text += "#\n# `weir published run` measures the same with the published procedure, RTI Perftest's.\n";
    _ = write!(
        text,
        "\n[[study]]\nname = \"{}\"\nengines = [\"udp\", \"weir\"{small}]\ntests = \"{}\"\nsizes = [{}]\n\
         reliability = \"{}\"\n",
        table.name,
        table.test,
        sizes.join(", "),
        if table.reliable { "reliable" } else { "best-effort" },
    );
    if table.keyed {
        text += "instances = 100000\n";
    }
    match (table.test, table.batch_bytes) {
        (Test::Latency, _) => {}
        // Sizes of which a batch does not hold two are sent one by one.
        (Test::Throughput, Some(bytes @ 1..)) => _ = writeln!(text, "batch = [0, {bytes}]"),
        (Test::Throughput | Test::Workload, _) => text += "batch = 0\n",
    }
    _ = write!(
        text,
        "link = \"{}\"\nduration = \"2s\"\nwarmup = \"500ms\"\nrepeat = 6\n",
        PathSpec::Veth(table_link(table))
    );
    text
}

/// The plan of figures that hpcbench published.
pub(super) fn of_document(document: &Document) -> String {
    let mut text = format!(
        "# {}\n#\n# Published: hpcbench, its page on UDP tests\n# Hosts: two hosts of the mk cluster (2004)\n# Path: 1 \
         Gbit/s Ethernet\n#\n# `{}` measures the same with the published procedure.\n",
        document.about, document.instead
    );
    text += "\n[defaults]\ncommand = \"udp\"\nlink = \"veth,mtu=1500,rate=1G,gso=off\"\nsocket_buffer = 65535\n\
             mode = \"send\"\nduration = \"5s\"\nrepeat = 6\n";
    for (name, keys) in studies(document.name) {
        _ = write!(text, "\n[[study]]\nname = \"{name}\"\n{keys}");
    }
    text
}

/// The studies of a document of hpcbench: their names and what differs from the defaults.
fn studies(name: &str) -> Vec<(&'static str, &'static str)> {
    match name {
        "hpcbench-udp-bidirectional" => vec![BOTH_WAYS],
        "hpcbench-udp-exponential" => vec![SIZES],
        "hpcbench-udp-roundtrip" => vec![ROUND_TRIPS],
        "hpcbench-udp-generator" => vec![GENERATOR],
        "hpcbench-udp-process" => vec![STREAM, BOTH_WAYS, SIZES, LARGE, SMALL],
        _ => vec![STREAM, LARGE, SMALL],
    }
}

const STREAM: (&str, &str) = ("stream", "tests = \"throughput\"\nsizes = 1460\n");
const BOTH_WAYS: (&str, &str) = ("both-ways", "tests = \"throughput\"\nsizes = 1460\ndirection = \"both\"\n");
/// The page begins at 1 byte; datagrams of `weir udp` have at least 20.
const SIZES: (&str, &str) = (
    "sizes",
    "tests = \"throughput\"\n# The page begins at 1 byte, but datagrams of `weir udp` have at least 20.\n\
     # `udptest` sends from 1 byte on, without a header.\n\
     sizes = [32, 64, 128, 256, 512, 1024, 1460]\nrepeat = 1\n",
);
const ROUND_TRIPS: (&str, &str) = ("round-trips", "tests = \"latency\"\nsizes = [64, 1024]\n");
const GENERATOR: (&str, &str) =
    ("generator", "tests = \"throughput\"\nsizes = 1460\nrate = \"200M\"\nduration = \"10s\"\nrepeat = 2\n");
const LARGE: (&str, &str) = (
    "large-datagrams",
    "# Datagrams of several packets.\ntests = \"throughput\"\nsizes = \"8k\"\nsocket_buffer = \"500k\"\nrepeat = 5\n",
);
const SMALL: (&str, &str) =
    ("small-buffers", "tests = \"throughput\"\nsizes = 500\nsocket_buffer = \"10k\"\nrepeat = 10\n");
