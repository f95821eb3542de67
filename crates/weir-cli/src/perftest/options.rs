//! Every option of RTI Perftest 4.3, and those of ours: what it takes, which end it is for, and what becomes of it.

/// Which end an option is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Publisher,
    Subscriber,
}

/// What stands behind an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// The same, and it may be left out.
    MaybeNumber(u64, u64),
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    Text(&'static str),
    MaybeText(&'static str),
}

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It does what it says.
    Works,
    /// It is accepted and has nothing to change: this sentence says why.
    Idle(&'static str),
    /// It is refused: this sentence says what to do instead.
    Refused(&'static str),
}

/// One option.
#[derive(Debug)]
pub(super) struct OptionDef {
    /// Without the dash.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    pub(super) side: Side,
    pub(super) fate: Fate,
    /// For the help.
    pub(super) about: &'static str,
}

const INT: u64 = i32::MAX as u64;

const fn works(name: &'static str, takes: Takes, side: Side, about: &'static str) -> OptionDef {
    OptionDef { name, takes, side, fate: Fate::Works, about }
}

const fn idle(name: &'static str, takes: Takes, side: Side, why: &'static str) -> OptionDef {
    OptionDef { name, takes, side, fate: Fate::Idle(why), about: "" }
}

const fn refused(name: &'static str, takes: Takes, side: Side, instead: &'static str) -> OptionDef {
    OptionDef { name, takes, side, fate: Fate::Refused(instead), about: "" }
}

use Side::{Both, Publisher, Subscriber};
use Takes::{MaybeNumber, MaybeText, Nothing, Number, OneOf, Text};

/// Options that work.
const WORKING: &[OptionDef] = &[
    works("bestEffort", Nothing, Both, "best-effort delivery; reliable unless given"),
    works(
        "dataLen",
        Number(28, 1 << 30),
        Both,
        "size of a sample with its 28 bytes of header [100]; a subscriber learns it",
    ),
    works(
        "verbosity",
        Number(0, 3),
        Both,
        "0: errors only, 1 and 2: notes and warnings, 3: also counters at the end [1]",
    ),
    works("domain", Number(0, 232), Both, "DDS domain [1]"),
    works(
        "durability",
        Number(0, 3),
        Both,
        "0: volatile, 1: the last samples are kept for late subscribers (TRANSIENT_LOCAL) [0]",
    ),
    works("keyed", Nothing, Both, "a topic with a key"),
    works("instances", Number(1, 1_000_000), Both, "number of instances of a keyed topic [1]"),
    works(
        "writeInstance",
        Number(0, INT),
        Publisher,
        "write this one instance; round all of them unless given",
    ),
    works("noPrintIntervals", Nothing, Both, "only the summary (the old -noPrint)"),
    works(
        "useReadThread",
        Nothing,
        Both,
        "a thread of its own takes samples, or echoes; a listener unless given",
    ),
    works(
        "waitsetDelayUsec",
        Number(0, 10_000_000),
        Both,
        "with -useReadThread: longest wait for more samples [0; 100 with -waitsetEventCount]",
    ),
    works("waitsetEventCount", Number(1, INT), Both, "with -useReadThread: samples worth waiting for [5]"),
    works(
        "threadPriorities",
        Text("X:Y:Z"),
        Both,
        "real-time priorities (SCHED_FIFO) of the main, receiving and other threads: 1 to 99, or h, n, l",
    ),
    works(
        "threadCPUAffinity",
        Text("A[:B:C:D]"),
        Both,
        "processors of the main, receiving, timer and status threads; one for all of them",
    ),
    works("cpu", Nothing, Both, "a column with this process's share of all processors"),
    works("outputFormat", OneOf(&["csv", "json", "legacy"]), Both, "csv, json or legacy [csv]"),
    works("noOutputHeaders", Nothing, Both, "rows without titles and headers"),
    works("outputFile", Text("file"), Both, "append results to this file; standard output unless given"),
    works(
        "precise",
        Nothing,
        Both,
        "ours: microseconds with three decimals, unsupported percentiles marked with *",
    ),
    works("asynchronous", Nothing, Both, "a thread of each writer sends; the one that writes unless given"),
    works(
        "sendQueueSize",
        Number(1, INT),
        Both,
        "samples or batches that the writer keeps; bounded by the engine unless given",
    ),
    works(
        "receiveQueueSize",
        Number(1, INT),
        Both,
        "samples that the reader keeps; bounded by their bytes unless given",
    ),
    works(
        "telemetryFile",
        Text("file"),
        Both,
        "ours: write what this host did meanwhile, ten times a second, to this file as CSV",
    ),
    works("pub", Nothing, Both, "publish"),
    works(
        "batchSize",
        Number(0, 65_507),
        Publisher,
        "bytes of a batch, 0: none [8192 where two samples fit]",
    ),
    works(
        "latencyCount",
        Number(1, u64::MAX),
        Publisher,
        "a ping every so many samples or batches [10000; 1 with -latencyTest]",
    ),
    works(
        "executionTime",
        Number(1, INT),
        Publisher,
        "seconds to run; whichever of this and -numIter comes first",
    ),
    works(
        "numIter",
        Number(1, u64::MAX),
        Publisher,
        "samples to send [100000000, with -latencyTest 10000000; none with -executionTime]",
    ),
    works(
        "initialBurstSize",
        Number(0, INT),
        Publisher,
        "initialization pings [one per place in the queue and instance]",
    ),
    works("latencyTest", Nothing, Publisher, "ping-pong: one sample at a time, each echoed"),
    works(
        "scan",
        MaybeText("a:b:c"),
        Both,
        "one run after the other with samples of these sizes [32, 64... 32768, 63000]; a subscriber follows",
    ),
    works("numSubscribers", Number(1, INT), Publisher, "subscribers to wait for [1]"),
    works("pidMultiPubTest", Number(0, INT), Publisher, "number of this publisher; only 0 sends pings [0]"),
    works(
        "pubRate",
        Text("samples/s[:spin|sleep]"),
        Publisher,
        "samples per second, waiting by spin or sleep [unlimited; spin]",
    ),
    works("pubRatebps", Text("bit/s[:spin|sleep]"), Publisher, "the same in bits per second"),
    works("sleep", Number(1, 3_600_000), Publisher, "milliseconds of pause after each sample"),
    works(
        "latencyFile",
        Text("file"),
        Publisher,
        "append every latency to this file as `number, microseconds`",
    ),
    works(
        "loadDataFromFile",
        Text("file"),
        Publisher,
        "fill samples with the bytes of this file, piece by piece",
    ),
    works(
        "maximumAllocableBufferSize",
        Number(1, 1 << 30),
        Publisher,
        "largest file for -loadDataFromFile in bytes [1 GiB]",
    ),
    works("sub", Nothing, Both, "subscribe; the default"),
    works("sidMultiSubTest", Number(0, INT), Subscriber, "number of this subscriber [0]"),
    works("numPublishers", Number(1, 1024), Subscriber, "publishers to wait for [1]"),
    works("nic", Text("address"), Both, "address or name of the interface to use; all unless given"),
    works("allowInterfaces", Text("address"), Both, "the same; several with commas"),
    works("peer", Text("address[:port]"), Both, "host to announce to beside multicast; may be repeated"),
    works("transport", OneOf(TRANSPORTS), Both, "UDPv4, the only one"),
    works(
        "rawTransport",
        Nothing,
        Both,
        "plain UDP sockets without DDS, the floor; the publisher names its subscribers by -peer address[:sid]",
    ),
    works("multicast", Nothing, Both, "receive by 239.255.1.1, .1.2 and .1.100"),
    works(
        "multicastAddr",
        Text("a[,b,c]"),
        Both,
        "the same by these groups; one stands for itself and the next two",
    ),
    works("help", Nothing, Both, "this text"),
    works("version", Nothing, Both, "ours: the version"),
];

/// Values of `-transport` that RTI Perftest knows.
const TRANSPORTS: &[&str] = &["UDPv4", "UDPv6", "SHMEM", "TCP", "TLS", "DTLS", "WAN", "UDPv4_WAN", "Use XML"];

const ONLY_UDP: &str = "the engine has UDPv4 only";
const NO_SECURITY: &str = "the engine has no security; measure without it";
const NO_QUEUE_STATISTICS: &str =
    "the engine has no such statistics; -verbosity 3 prints its counters at the end";
const NO_SHARED_MEMORY: &str = "the engine has no shared memory; on one host it uses UDP like everywhere";
const SOCKET_BUFFERS: &str =
    "set the environment variables WEIR_RECEIVE_BUFFER and WEIR_SEND_BUFFER, in bytes";

/// Options that are known and have nothing to change.
const IDLE: &[OptionDef] = &[
    idle("noXmlQos", Nothing, Both, "no XML file is read in any case"),
    idle("unbounded", MaybeNumber(28, 65_470), Both, "the type's octets are unbounded in any case"),
    idle("noBlockingSockets", Nothing, Both, "sockets never block in any case"),
    idle("instanceHashBuckets", Number(1, 1_000_000), Both, "the engine sizes its tables itself"),
    idle("preallocateFragmentedSamples", Nothing, Both, "memory for large samples is used again in any case"),
];

/// Options that are known and refused.
const REFUSED: &[OptionDef] = &[
    refused(
        "dynamicData",
        Nothing,
        Both,
        "the engine has no dynamic types; leave it out to use the compiled type",
    ),
    refused("noDirectCommunication", Nothing, Both, "there is no persistence service; leave it out"),
    refused("noPositiveAcks", Nothing, Both, "readers always acknowledge; leave it out, or use -bestEffort"),
    refused("keepDurationUsec", Number(1, u64::MAX), Both, "readers always acknowledge; leave it out"),
    refused(
        "qosFile",
        Text("file"),
        Both,
        "no XML is read yet; use the options for delivery, queues and batches",
    ),
    refused(
        "qosLibrary",
        Text("name"),
        Both,
        "no XML is read yet; use the options for delivery, queues and batches",
    ),
    refused(
        "qosprofile",
        Text("name"),
        Both,
        "no XML is read yet; use the options for delivery, queues and batches",
    ),
    refused(
        "flowController",
        Text("name"),
        Both,
        "there are no flow controllers, with -asynchronous samples leave as fast as they can; use -pubRate or -pubRatebps",
    ),
    refused(
        "messageSizeMax",
        Number(0, INT),
        Both,
        "messages follow the interface's MTU; set that with `ip link`",
    ),
    refused("flatData", Nothing, Both, "use `weir bench --loans` for samples that are written in place"),
    refused("zeroCopy", Nothing, Both, NO_SHARED_MEMORY),
    refused("checkConsistency", Nothing, Both, NO_SHARED_MEMORY),
    refused("networkCapture", Nothing, Both, "use tcpdump or tshark"),
    refused("doNotDropNetworkCapture", Nothing, Both, "use tcpdump or tshark"),
    refused("crc", Nothing, Both, "the engine sends no RTPS checksum; UDP has its own"),
    refused("crcKind", Text("kind"), Both, "the engine sends no RTPS checksum; UDP has its own"),
    refused("enable-message-length", Nothing, Both, "the engine has no such header extension; leave it out"),
    refused("receiveBufferSize", Number(1, INT), Both, SOCKET_BUFFERS),
    refused("sendBufferSize", Number(1, INT), Both, SOCKET_BUFFERS),
    refused("showResourceLimits", Nothing, Both, NO_QUEUE_STATISTICS),
    refused("cacheStats", Nothing, Both, NO_QUEUE_STATISTICS),
    refused("compressionId", Text("kind"), Both, "the engine does not compress; leave it out"),
    refused("compressionLevel", Number(0, 10), Both, "the engine does not compress; leave it out"),
    refused("compressionThreshold", Number(0, INT), Both, "the engine does not compress; leave it out"),
    refused("enableInstanceStateRecovery", Nothing, Both, "that is RTI's own; leave it out"),
    refused("enableMonitoring2", Nothing, Both, "that is RTI's own; leave it out"),
    refused("collectorPeer", Text("address"), Both, "that is RTI's own; leave it out"),
    refused(
        "loaningSendReceive",
        Nothing,
        Both,
        "use `weir bench --loans` for samples that are written in place",
    ),
    refused("fastQueue", Nothing, Both, "that is RTI's own; leave it out"),
    refused(
        "enableAutoThrottle",
        Nothing,
        Publisher,
        "a reliable writer is slowed down by its readers in any case; to go slower use -pubRate",
    ),
    refused(
        "enableTurboMode",
        Nothing,
        Publisher,
        "use -batchSize; without batches samples in quick succession leave together in any case",
    ),
    refused("spin", Number(0, INT), Publisher, "use -pubRate N:spin"),
    refused("writerStats", Nothing, Publisher, NO_QUEUE_STATISTICS),
    refused("lowResolutionClock", Nothing, Publisher, "the clock has nanoseconds; leave it out"),
    refused(
        "showSerializationTime",
        Nothing,
        Publisher,
        "samples are encoded where they are sent from, so there is no such time apart",
    ),
    refused(
        "cft",
        Text("a[:b]"),
        Subscriber,
        "the engine has no content filters yet; use -writeInstance to write one instance only",
    ),
    refused(
        "transportVerbosity",
        Number(0, INT),
        Both,
        "-verbosity 3 prints the engine's counters at the end",
    ),
    refused("transportServerBindPort", Number(0, 65_535), Both, ONLY_UDP),
    refused("transportWan", Nothing, Both, ONLY_UDP),
    refused("transportPublicAddress", Text("address"), Both, ONLY_UDP),
    refused("transportHostPort", Number(0, 65_535), Both, ONLY_UDP),
    refused("transportWanServerAddress", Text("address"), Both, ONLY_UDP),
    refused("transportWanServerPort", Number(0, 65_535), Both, ONLY_UDP),
    refused("transportWanId", Text("id"), Both, ONLY_UDP),
    refused("transportSecureWan", Nothing, Both, ONLY_UDP),
    refused("transportCertAuthority", Text("file"), Both, ONLY_UDP),
    refused("transportCertFile", Text("file"), Both, ONLY_UDP),
    refused("transportPrivateKey", Text("file"), Both, ONLY_UDP),
    refused("secureGovernanceFile", Text("file"), Both, NO_SECURITY),
    refused("securePermissionsFile", Text("file"), Both, NO_SECURITY),
    refused("secureCertAuthority", Text("file"), Both, NO_SECURITY),
    refused("secureCertFile", Text("file"), Both, NO_SECURITY),
    refused("securePrivateKey", Text("file"), Both, NO_SECURITY),
    refused("secureEncryptionAlgorithm", Text("name"), Both, NO_SECURITY),
    refused("secureEnableAAD", Nothing, Both, NO_SECURITY),
    refused("secureLibrary", Text("file"), Both, NO_SECURITY),
    refused("lightWeightSecurity", Nothing, Both, NO_SECURITY),
    refused("securePSK", Text("seed"), Both, NO_SECURITY),
    refused("securePSKAlgorithm", Text("name"), Both, NO_SECURITY),
    refused("secureRtpsHmacOnly", Nothing, Both, NO_SECURITY),
    refused("secureDebug", Number(0, 7), Both, NO_SECURITY),
];

/// Spellings that scripts have used for long, with the option that they have always meant.
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
    WORKING.iter().chain(IDLE).chain(REFUSED)
}

/// What a spelling without its dash stands for.
///
/// # Errors
/// The names that it could stand for: none, or several.
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
