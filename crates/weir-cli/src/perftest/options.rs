//! The table of options: those of RTI Perftest 4.3 and our own.

use std::sync::LazyLock;

/// The end that an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Publisher,
    Subscriber,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// A whole number within these bounds.
    Number(u64, u64),
    /// The same, optional.
    MaybeNumber(u64, u64),
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    Text(&'static str),
    MaybeText(&'static str),
}

/// How an option is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Has the effect that its help states.
    Works,
    /// Accepted without effect, for this reason.
    Idle(&'static str),
    /// Rejected, with this reason or alternative.
    Refused(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionDef {
    /// Without the dash.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) side: Side,
    pub(super) fate: Fate,
    /// For the help.
    pub(super) about: &'static str,
}

impl OptionDef {
    const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }
}

/// Options under one heading of the help.
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) options: &'static [OptionDef],
}

const INT: u64 = i32::MAX as u64;

const fn works(name: &'static str, takes: Takes, side: Side) -> OptionDef {
    OptionDef { name, takes, side, fate: Fate::Works, about: "" }
}

const fn idle(name: &'static str, takes: Takes, why: &'static str) -> OptionDef {
    OptionDef { name, takes, side: Both, fate: Fate::Idle(why), about: "" }
}

use Side::{Both, Publisher, Subscriber};
use Takes::{MaybeNumber, MaybeText, Nothing, Number, OneOf, Text};

/// Options that work.
pub(super) const WORKING: &[Group] = &[
    Group { title: "Ends", options: ENDS },
    Group { title: "Workload", options: WORKLOAD },
    Group { title: "QoS", options: QOS },
    Group { title: "Method", options: METHOD },
    Group { title: "Network", options: NETWORK },
    Group { title: "Threads", options: THREADS },
    Group { title: "Output", options: OUTPUT },
];

const ENDS: &[OptionDef] = &[
    works("pub", Nothing, Both).about("Publish; prints latency"),
    works("sub", Nothing, Both).about("Subscribe; prints throughput [default]"),
    works("pidMultiPubTest", Number(0, INT), Publisher)
        .about("Set the index of this publisher; only 0 sends pings [default: 0]"),
    works("sidMultiSubTest", Number(0, INT), Subscriber)
        .about("Set the index of this subscriber [default: 0]"),
    works("numSubscribers", Number(1, INT), Publisher).about("Wait for N subscribers [default: 1]"),
    works("numPublishers", Number(1, 1024), Subscriber).about("Wait for N publishers [default: 1]"),
];

const WORKLOAD: &[OptionDef] = &[
    works("dataLen", Number(28, 1 << 30), Both)
        .about("Send samples of this size in bytes, header of 28 included [default: 100]"),
    works("scan", MaybeText("a:b:c"), Both)
        .about("Run once per sample size in bytes [default: powers of 2 from 32 to 32768, 63000]"),
    works("keyed", Nothing, Both).about("Use a topic with a key"),
    works("instances", Number(1, 1_000_000), Both).about("Write N instances of a keyed topic [default: 1]"),
    works("writeInstance", Number(0, INT), Publisher)
        .about("Write only this instance [default: all in turn]"),
    works("cft", Text("a[:b]"), Subscriber)
        .about("Receive only instance a, or a to b, by a content filter; losses are not counted"),
    works("loadDataFromFile", Text("file"), Publisher)
        .about("Fill samples with the bytes of a file, each with all of it unless sizes are given"),
    works("maximumAllocableBufferSize", Number(1, 1 << 30), Publisher)
        .about("Read at most so many bytes of -loadDataFromFile [default: 1073741824]"),
];

const QOS: &[OptionDef] = &[
    works("bestEffort", Nothing, Both).about("Use best-effort delivery [default: reliable]"),
    works("durability", Number(0, 3), Both)
        .about("Set the durability: 0 volatile, 1 transient local, 2 transient, 3 persistent [default: 0]"),
    works("qosFile", Text("file"), Both)
        .about("Read QoS profiles from an OMG DDS-XML file; options go before them [default: none]"),
    works("qosLibrary", Text("name"), Both)
        .about("Use this library of -qosFile [default: PerftestQosLibrary]"),
    works("asynchronous", Nothing, Both)
        .about("Send from a thread of each writer [default: from the writing thread]"),
    works("batchSize", Number(0, 65_507), Publisher)
        .about("Batch up to this size in bytes; 0: off [default: 8192 where two samples fit]"),
    works("sendQueueSize", Number(1, INT), Both)
        .about("Keep at most N samples or batches in the writer [default: set by the engine]"),
    works("receiveQueueSize", Number(1, INT), Both)
        .about("Keep at most N samples in the reader [default: bounded by bytes]"),
];

const METHOD: &[OptionDef] = &[
    works("latencyCount", Number(1, u64::MAX), Publisher)
        .about("Ping every N samples or batches [default: 10000; 1 with -latencyTest]"),
    works("latencyTest", Nothing, Publisher).about("Run a ping-pong: each sample waits for its echo"),
    works("executionTime", Number(1, INT), Publisher)
        .about("Run for N seconds, or until -numIter samples are sent"),
    works("numIter", Number(1, u64::MAX), Publisher).about(
        "Send N samples [default: 100000000; 10000000 with -latencyTest; no limit with \
         -executionTime]",
    ),
    works("pubRate", Text("samples/s[:spin|sleep]"), Publisher)
        .about("Limit the rate in samples/s, pacing by spin or sleep [default: unlimited; spin]"),
    works("pubRatebps", Text("bit/s[:spin|sleep]"), Publisher).about("Limit the rate in bit/s, as -pubRate"),
    works("sleep", Number(1, 3_600_000), Publisher).about("Pause after each sample, in milliseconds"),
    works("initialBurstSize", Number(0, INT), Publisher)
        .about("Send N initialization pings [default: one per queue place and instance]"),
];

const NETWORK: &[OptionDef] = &[
    works("domain", Number(0, 232), Both).about("Use this DDS domain [default: 1]"),
    works("nic", Text("address"), Both).about("Use this interface, by address or name [default: all]"),
    works("allowInterfaces", Text("address"), Both)
        .about("Use these interfaces, comma-separated [default: all]"),
    works("peer", Text("address[:port]"), Both).about("Announce to this host besides multicast; repeatable"),
    works("transport", OneOf(TRANSPORTS), Both).about("Use this transport, the only one"),
    works("multicast", Nothing, Both).about("Receive from 239.255.1.1, 239.255.1.2 and 239.255.1.100"),
    works("multicastAddr", Text("a[,b,c]"), Both)
        .about("Receive from these groups, or from one and the next two"),
    works("rawTransport", Nothing, Both).about(
        "Use UDP sockets without DDS as the baseline; a publisher names its subscribers by \
         -peer address[:sid[-last]]",
    ),
];

const THREADS: &[OptionDef] = &[
    works("useReadThread", Nothing, Both).about("Take samples or echo in a thread [default: in a listener]"),
    works("waitsetDelayUsec", Number(0, 10_000_000), Both)
        .about("Limit the wait of -useReadThread, in microseconds [default: 0; 100 with -waitsetEventCount]"),
    works("waitsetEventCount", Number(1, INT), Both)
        .about("Wait for N samples in -useReadThread [default: 1; 5 with -waitsetDelayUsec]"),
    works("profile", OneOf(&["full", "small"]), Both).about(
        "Run the engine with threads (full), or without and with little memory (Weir only) [default: full]",
    ),
    works("threadPriorities", Text("X:Y:Z"), Both)
        .about("Set SCHED_FIFO priorities of main, receiving and other threads: 1 to 99, or h, n, l"),
    works("threadCPUAffinity", Text("A[:B:C:D]"), Both)
        .about("Pin main, receiving, timer and status threads, or all, to CPUs such as 2 or 0,2-3"),
];

const OUTPUT: &[OptionDef] = &[
    works("outputFormat", OneOf(&["csv", "json", "legacy"]), Both)
        .about("Print the results in this format [default: csv]"),
    works("outputFile", Text("file"), Both).about("Append the results to a file [default: standard output]"),
    works("noOutputHeaders", Nothing, Both).about("Print rows without titles and headers"),
    works("noPrintIntervals", Nothing, Both).about("Print the summary only"),
    works("precise", Nothing, Both)
        .about("Print microseconds with three decimals; * marks percentiles of too few samples (Weir only)"),
    works("cpu", Nothing, Both).about("Add a column with the CPU use of this process"),
    works("latencyFile", Text("file"), Publisher)
        .about("Append every latency to a file, as number, microseconds"),
    works("telemetryFile", Text("file"), Both)
        .about("Write host telemetry to a file, ten rows per second, as CSV (Weir only)"),
    works("verbosity", Number(0, 3), Both)
        .about("Report 0: errors, 1 or 2: and warnings, 3: and counters at the end [default: 1]"),
    works("help", Nothing, Both).about("Print this help"),
    works("version", Nothing, Both).about("Print the version (Weir only)"),
];

/// Values of `-transport` that RTI Perftest knows.
const TRANSPORTS: &[&str] = &["UDPv4", "UDPv6", "SHMEM", "TCP", "TLS", "DTLS", "WAN", "UDPv4_WAN", "Use XML"];

/// Options that are accepted without effect.
pub(super) const IDLE: &[OptionDef] = &[
    idle("noXmlQos", Nothing, "an XML file is read with -qosFile only"),
    idle("unbounded", MaybeNumber(28, 65_470), "the payload of the type is always unbounded"),
    idle("noBlockingSockets", Nothing, "sockets never block"),
    idle("instanceHashBuckets", Number(1, 1_000_000), "the engine sizes its tables itself"),
    idle("preallocateFragmentedSamples", Nothing, "memory for large samples is always reused"),
];

/// Options that are rejected: the reason, and the names.
pub(super) const REFUSED: &[(&str, &str)] = &[
    (
        "there is no security; measure without it",
        "secureGovernanceFile securePermissionsFile secureCertAuthority secureCertFile \
         securePrivateKey secureEncryptionAlgorithm secureEnableAAD secureLibrary lightWeightSecurity \
         securePSK securePSKAlgorithm secureRtpsHmacOnly secureDebug",
    ),
    (
        "UDPv4 is the only transport",
        "transportServerBindPort transportWan transportPublicAddress transportHostPort \
         transportWanServerAddress transportWanServerPort transportWanId transportSecureWan \
         transportCertAuthority transportCertFile transportPrivateKey",
    ),
    (
        "specific to RTI's middleware; leave it out",
        "enableInstanceStateRecovery enableMonitoring2 collectorPeer fastQueue",
    ),
    ("use -qosFile and -qosLibrary", "qosprofile"),
    ("there is no compression; leave it out", "compressionId compressionLevel compressionThreshold"),
    ("there are no such statistics; use -verbosity 3", "showResourceLimits cacheStats writerStats"),
    ("-verbosity 3 prints the engine's counters", "transportVerbosity"),
    (
        "set the environment variables WEIR_RECEIVE_BUFFER and WEIR_SEND_BUFFER, in bytes",
        "receiveBufferSize sendBufferSize",
    ),
    ("there is no shared memory; one host uses UDP as well", "zeroCopy checkConsistency"),
    ("use `weir bench --loans` to write samples in place", "flatData loaningSendReceive"),
    ("use tcpdump or tshark", "networkCapture doNotDropNetworkCapture"),
    ("there is no RTPS checksum; UDP has its own", "crc crcKind"),
    ("there is no such header extension; leave it out", "enable-message-length"),
    ("readers always acknowledge; leave it out, or use -bestEffort", "noPositiveAcks keepDurationUsec"),
    ("there are no dynamic types; leave it out to use the compiled type", "dynamicData"),
    ("there is no persistence service; leave it out", "noDirectCommunication"),
    ("there are no flow controllers; use -pubRate or -pubRatebps", "flowController"),
    ("messages follow the MTU of the interface; set it with `ip link`", "messageSizeMax"),
    ("readers always throttle a reliable writer; use -pubRate to go slower", "enableAutoThrottle"),
    ("use -batchSize; unbatched samples are coalesced anyway", "enableTurboMode"),
    ("use -pubRate N:spin", "spin"),
    ("the clock has nanoseconds; leave it out", "lowResolutionClock"),
    ("samples are encoded in the send buffer, so this is not measured", "showSerializationTime"),
];

/// Former spellings that scripts use, with the options that they stand for.
const HISTORICAL: &[(&str, &str)] = &[
    ("best", "bestEffort"),
    ("exec", "executionTime"),
    ("noPrint", "noPrintIntervals"),
    ("noXML", "noXmlQos"),
    ("datalen", "dataLen"),
    ("h", "help"),
];

/// All options.
pub(super) fn all() -> impl Iterator<Item = &'static OptionDef> {
    static ALL: LazyLock<Vec<OptionDef>> = LazyLock::new(|| {
        let working = WORKING.iter().flat_map(|group| group.options).copied();
        let refused = REFUSED.iter().flat_map(|(why, names)| {
            let fate = Fate::Refused(why);
            names.split(' ').map(move |name| OptionDef { name, takes: Nothing, side: Both, fate, about: "" })
        });
        working.chain(IDLE.iter().copied()).chain(refused).collect()
    });
    ALL.iter()
}

/// The option of a spelling without its dash.
///
/// # Errors
/// The names that the spelling could stand for: none, or several.
pub(super) fn find(spelling: &str) -> Result<&'static OptionDef, Vec<&'static str>> {
    let exact = |name: &str| all().find(|option| option.name.eq_ignore_ascii_case(name));
    if let Some(option) = exact(spelling) {
        return Ok(option);
    }
    if let Some((_, name)) = HISTORICAL.iter().find(|(old, _)| old.eq_ignore_ascii_case(spelling))
        && let Some(option) = exact(name)
    {
        return Ok(option);
    }
    let begins = |option: &&OptionDef| {
        !spelling.is_empty()
            && option.name.get(..spelling.len()).is_some_and(|start| start.eq_ignore_ascii_case(spelling))
    };
    let found: Vec<&OptionDef> = all().filter(begins).collect();
    match found[..] {
        [option] => Ok(option),
        _ => Err(found.iter().map(|option| option.name).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(spelling: &str) -> &'static str {
        find(spelling).unwrap().name
    }

    #[test]
    fn spellings_of_published_scripts_mean_what_they_always_meant() {
        let table = [
            ("best", "bestEffort"),
            ("exec", "executionTime"),
            ("noPrint", "noPrintIntervals"),
            ("noXML", "noXmlQos"),
            ("datalen", "dataLen"),
            ("latencyTest", "latencyTest"),
            ("noOutputHeaders", "noOutputHeaders"),
            ("nic", "nic"),
            ("transport", "transport"),
            ("keyed", "keyed"),
            ("instances", "instances"),
            ("batchSize", "batchSize"),
            ("pub", "pub"),
            ("sub", "sub"),
            ("pid", "pidMultiPubTest"),
            ("SID", "sidMultiSubTest"),
            ("h", "help"),
        ];
        for (spelling, expected) in table {
            assert_eq!(name(spelling), expected, "-{spelling}");
        }
    }

    #[test]
    fn exact_names_beat_longer_ones_that_begin_alike() {
        for exact in
            ["pub", "pubRate", "instances", "multicast", "transport", "crc", "securePSK", "latencyTest"]
        {
            assert_eq!(name(exact), exact);
            assert_eq!(name(&exact.to_uppercase()), exact);
        }
    }

    #[test]
    fn ambiguous_spellings_name_their_candidates_and_unknown_ones_none() {
        assert_eq!(find("latency").unwrap_err(), ["latencyCount", "latencyTest", "latencyFile"]);
        assert_eq!(find("pubR").unwrap_err(), ["pubRate", "pubRatebps"]);
        assert!(find("b").unwrap_err().contains(&"batchSize"));
        assert!(find("nonsense").unwrap_err().is_empty());
        assert!(find("").unwrap_err().is_empty());
        assert!(find("µ").unwrap_err().is_empty());
    }

    #[test]
    fn every_option_is_there_once_and_every_refusal_says_what_to_do() {
        let mut names: Vec<String> = all().map(|option| option.name.to_lowercase()).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        for option in all() {
            match option.fate {
                Fate::Works => assert!(!option.about.is_empty(), "-{}", option.name),
                Fate::Idle(why) | Fate::Refused(why) => assert!(why.len() > 15, "-{}", option.name),
            }
        }
    }
}
