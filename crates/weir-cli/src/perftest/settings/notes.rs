//! Options without effect beside the others; each is reported on stderr.

use super::{Format, Typed, has_rate, output};
use crate::perftest::options::{self, Side};

/// Options without effect beside the others, each with the reason.
pub(in crate::perftest) fn notes(typed: &Typed) -> Vec<String> {
    let (is_publisher, is_raw) = (typed.has("pub"), typed.has("rawTransport"));
    let pings_itself = is_publisher && typed.has("latencyTest");
    let without_pings = is_publisher && typed.number("pidMultiPubTest").is_some_and(|pid| pid > 0);
    let listens = !pings_itself && !typed.has("useReadThread");
    const LISTENER: &str = "without -useReadThread a listener takes each sample at once";
    const PINGS: &str = "with -latencyTest the sending thread waits for the echo";
    const ONLY_0: &str = "only publisher 0 sends pings";
    let table = [
        (is_publisher && typed.has("scan"), "dataLen", "-scan sets the sizes"),
        (is_publisher && has_rate(typed), "sleep", "the rate decides when samples are sent"),
        (!is_publisher, "scan", "a subscriber follows its publisher"),
        (!is_publisher, "dataLen", "a subscriber learns the size from its publisher"),
        (!is_publisher, "instances", "a subscriber accepts all instances"),
        (is_raw, "bestEffort", "-rawTransport never retransmits"),
        (is_raw && !pings_itself, "useReadThread", "-rawTransport always reads in a thread"),
        (is_raw && !is_publisher, "peer", "with -rawTransport a subscriber answers every sender"),
        (pings_itself, "useReadThread", PINGS),
        (pings_itself, "waitsetDelayUsec", PINGS),
        (pings_itself, "waitsetEventCount", PINGS),
        (listens, "waitsetDelayUsec", LISTENER),
        (listens, "waitsetEventCount", LISTENER),
        (without_pings, "latencyCount", ONLY_0),
        (without_pings, "latencyFile", ONLY_0),
        (output(typed).format == Format::Json, "noOutputHeaders", "JSON has no headers"),
    ];
    let idle = table.into_iter().filter(|(applies, name, _)| *applies && typed.has(name));
    let idle = idle.map(|(_, name, why)| format!("-{name} has no effect: {why}"));
    idle.chain(of_the_other_end(typed)).collect()
}

/// Publisher options without `-pub` or `-sub`; with `-sub` they are rejected.
fn of_the_other_end(typed: &Typed) -> impl Iterator<Item = String> {
    let is_meant = |name| !typed.has("pub") && !typed.has("sub") && typed.has(name);
    let all = options::all().filter(move |option| option.side == Side::Publisher && is_meant(option.name));
    all.map(|option| {
        format!(
            "-{} has no effect: it is for the publisher, and without -pub this is a subscriber",
            option.name
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(line: &str) -> Vec<String> {
        let typed = Typed::parse(line.split_whitespace().map(str::to_owned)).unwrap();
        let name = |note: &String| note.split(' ').next().unwrap_or_default().to_owned();
        notes(&typed).iter().map(name).collect()
    }

    #[test]
    fn every_option_without_effect_is_reported() {
        let table = [
            ("-latencyTest -pubRate 10", "-latencyTest -pubRate"),
            ("-sub -keyed -instances 5", "-instances"),
            ("-pub -sleep 5 -pubRate 10", "-sleep"),
            ("-pub -sleep 5", ""),
            ("-pub -keyed -instances 5", ""),
            ("-pub -latencyTest -useReadThread -waitsetDelayUsec 5", "-useReadThread -waitsetDelayUsec"),
            ("-pub -useReadThread -waitsetEventCount 5", ""),
            ("-sub -waitsetEventCount 5", "-waitsetEventCount"),
            ("-pub -latencyTest -waitsetEventCount 5", "-waitsetEventCount"),
            ("-pub -rawTransport -peer 10.0.0.1 -latencyTest -useReadThread", "-useReadThread"),
            ("-pub -pid 1 -latencyCount 5 -latencyFile f", "-latencyCount -latencyFile"),
            ("-pub -pid 0 -latencyCount 5 -latencyFile f", ""),
            ("-sub -outputFormat JSON -noOutputHeaders", "-noOutputHeaders"),
            ("-sub -outputFormat legacy -noOutputHeaders", ""),
        ];
        for (line, expected) in table {
            let mut found = noted(line);
            found.sort_unstable();
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }
}
