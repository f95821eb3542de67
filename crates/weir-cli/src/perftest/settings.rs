//! Turns options into the settings of a run.

mod notes;
mod raw;

use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use weir_bench::payload::HEADER_BYTES;
use weir_compat::perftest::{
    DEFAULT_LIBRARY, Durability, Groups, InstanceRange, NodeSettings, Pace, PerThread, Profiles,
    PublisherSettings, Rate, Receive, SubscriberSettings, ThreadSettings,
};

use super::command_line::Typed;

pub(super) use notes::notes;

/// Which end to run, with its settings.
#[derive(Debug)]
pub(super) enum Role {
    Publish(Box<Publishing>),
    Subscribe(Box<SubscriberSettings>),
}

impl Role {
    /// What was skipped in a file of QoS profiles, and what a publisher does in another way than its options say.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &String> {
        let (node, notes) = match self {
            Self::Publish(publishing) => {
                (publishing.runs.first().map(|run| &run.settings.node), &publishing.notes[..])
            }
            Self::Subscribe(settings) => (Some(&settings.node), &[][..]),
        };
        let profiles = node.and_then(|node| node.profiles.as_ref());
        profiles.map_or(&[][..], |profiles| profiles.warnings()).iter().chain(notes)
    }
}

/// The settings of a publisher.
#[derive(Debug)]
pub(super) struct Publishing {
    /// Several with `-scan`.
    pub(super) runs: Vec<PublisherRun>,
    pub(super) latency_file: Option<PathBuf>,
    /// Whether latencies have fractions of microseconds.
    pub(super) precise: bool,
    /// What is done in another way than the options say.
    notes: Vec<String>,
}

/// One run of a publisher.
#[derive(Debug)]
pub(super) struct PublisherRun {
    pub(super) settings: PublisherSettings,
    pub(super) batching: Batching,
}

/// Whether samples are batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batching {
    /// In batches of this size in bytes.
    On(usize),
    /// `-batchSize 0`.
    Off,
    /// Disabled for this reason.
    Unsuitable(&'static str),
}

/// The format of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    Json,
    Legacy,
}

/// How the results are written.
#[derive(Clone, Debug)]
pub(super) struct OutputSettings {
    pub(super) format: Format,
    pub(super) headers: bool,
    pub(super) intervals: bool,
    pub(super) cpu: bool,
    pub(super) precise: bool,
    pub(super) file: Option<PathBuf>,
}

/// Default sample size.
const DATA_LEN: u64 = 100;
/// The largest sample.
const DATA_LEN_MAX: u64 = 1 << 30;
/// Default batch size.
const BATCH_BYTES: u64 = 8192;
/// Default wait for `-waitsetEventCount` samples, as in RTI Perftest.
const WAITSET_DELAY_US: u64 = 100;
/// Why small batches are none.
const TWO_DO_NOT_FIT: &str = "two samples do not fit into a batch";
/// Samples from this size on are fragmented.
const FRAGMENTED_FROM: u64 = 65_000;

/// The end to run and its settings.
///
/// # Errors
/// A sentence that names the conflicting options.
pub(super) fn role(typed: &Typed) -> Result<Role, String> {
    let node = node(typed)?;
    if typed.has("pub") {
        return Ok(Role::Publish(Box::new(publishing(typed, node)?)));
    }
    Ok(Role::Subscribe(Box::new(SubscriberSettings {
        node,
        sid: narrow(typed.number("sidMultiSubTest").unwrap_or(0)),
        num_publishers: narrow(typed.number("numPublishers").unwrap_or(1)),
        served_before: Vec::new(),
        is_next_size: false,
    })))
}

/// How results are written.
pub(super) fn output(typed: &Typed) -> OutputSettings {
    let format = typed.text("outputFormat").unwrap_or("csv");
    OutputSettings {
        format: match format.to_lowercase().as_str() {
            "json" => Format::Json,
            "legacy" => Format::Legacy,
            _ => Format::Csv,
        },
        headers: !typed.has("noOutputHeaders"),
        intervals: !typed.has("noPrintIntervals"),
        cpu: typed.has("cpu"),
        precise: typed.has("precise"),
        file: typed.text("outputFile").map(PathBuf::from),
    }
}

fn node(typed: &Typed) -> Result<NodeSettings, String> {
    if let Some(transport) = typed.text("transport").filter(|kind| !kind.eq_ignore_ascii_case("UDPv4")) {
        return Err(format!("-transport {transport} is not supported: UDPv4 is the only transport"));
    }
    let keyed = typed.has("keyed");
    let instances = typed.number("instances").unwrap_or(1);
    if instances > 1 && !keyed {
        return Err("-instances needs -keyed: without a key there are no instances".to_owned());
    }
    if typed.has("writeInstance") && !keyed {
        return Err("-writeInstance needs -keyed: without a key there are no instances".to_owned());
    }
    let raw = raw::peers(typed)?;
    let mut peers = Vec::new();
    for peer in typed.all("peer").iter().filter(|_| raw.is_none()) {
        peers.push(peer.parse().map_err(|error| format!("-peer: {error}"))?);
    }
    let names = typed.text("nic").into_iter().chain(typed.text("allowInterfaces"));
    let mut interfaces: Vec<String> =
        names.flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect();
    interfaces.dedup();
    Ok(NodeSettings {
        domain: narrow(typed.number("domain").unwrap_or(1)),
        interfaces,
        peers,
        multicast: multicast(typed)?,
        reliable: !typed.has("bestEffort") && raw.is_none(),
        keyed,
        instances: narrow(instances),
        only: only(typed)?,
        send_queue: typed.number("sendQueueSize").map(narrow),
        receive_queue: typed.number("receiveQueueSize").map(narrow),
        receive: receive(typed),
        intervals: !typed.has("noPrintIntervals") || typed.has("latencyFile"),
        durability: durability(typed),
        asynchronous: typed.has("asynchronous"),
        profiles: profiles(typed)?,
        threads: ThreadSettings { priorities: priorities(typed)?, cpus: cpus(typed)? },
        is_small: is_small(typed)?,
        raw,
    })
}

/// Whether `-profile small` is given.
fn is_small(typed: &Typed) -> Result<bool, String> {
    let is_small = typed.text("profile").is_some_and(|profile| profile.eq_ignore_ascii_case("small"));
    if is_small && typed.has("useReadThread") {
        return Err(
            "-profile small does not work with -useReadThread: all of it runs in one thread".to_owned()
        );
    }
    Ok(is_small)
}

/// The instances of `-cft`.
fn only(typed: &Typed) -> Result<Option<InstanceRange>, String> {
    let Some(text) = typed.text("cft") else { return Ok(None) };
    if !typed.has("keyed") {
        return Err("-cft needs -keyed: without a key there are no instances".to_owned());
    }
    if typed.has("rawTransport") {
        return Err("-cft does not work with -rawTransport: plain UDP has no filters".to_owned());
    }
    let (first, last) = text.split_once(':').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok());
    let range = range.and_then(|(first, last)| InstanceRange::new(first, last));
    let wrong =
        || format!("-cft {text}: write an instance, or the first and the last one as 3:5; 65534 at most");
    range.map(Some).ok_or_else(wrong)
}

/// The path of `-telemetryFile`.
pub(super) fn telemetry_file(typed: &Typed) -> Option<PathBuf> {
    typed.text("telemetryFile").map(PathBuf::from)
}

/// The QoS profiles of `-qosFile`.
fn profiles(typed: &Typed) -> Result<Option<Arc<Profiles>>, String> {
    let library = typed.text("qosLibrary");
    match typed.text("qosFile") {
        Some(_) if typed.has("noXmlQos") => {
            Err("-qosFile and -noXmlQos contradict each other: leave one of them out".to_owned())
        }
        Some(file) => {
            let profiles = Profiles::read(Path::new(file), library.unwrap_or(DEFAULT_LIBRARY))?;
            Ok(Some(Arc::new(profiles)))
        }
        None if library.is_some() => {
            Err("-qosLibrary needs -qosFile: no file of QoS profiles is read without it".to_owned())
        }
        None => Ok(None),
    }
}

fn durability(typed: &Typed) -> Durability {
    match typed.number("durability") {
        None | Some(0) => Durability::Volatile,
        Some(1) => Durability::TransientLocal,
        Some(2) => Durability::Transient,
        Some(_) => Durability::Persistent,
    }
}

/// Priorities of `SCHED_FIFO`; h, n and l stand for the highest, middle and lowest.
fn priorities(typed: &Typed) -> Result<Option<PerThread<i32>>, String> {
    let Some(text) = typed.text("threadPriorities") else { return Ok(None) };
    let one = |text: &str| match text.to_lowercase().as_str() {
        "h" => Some(99),
        "n" => Some(50),
        "l" => Some(1),
        number => number.parse().ok().filter(|number| (1..=99).contains(number)),
    };
    let all: Option<Vec<i32>> = text.split(':').map(one).collect();
    match all.as_deref() {
        Some(&[main, receive, event]) => Ok(Some(PerThread { main, receive, event, status: event })),
        _ => Err(format!(
            "-threadPriorities takes three of 1 to 99 or h, n, l, such as 20:30:10 or n:h:l, not '{text}'"
        )),
    }
}

fn cpus(typed: &Typed) -> Result<Option<PerThread<Vec<usize>>>, String> {
    let Some(text) = typed.text("threadCPUAffinity") else { return Ok(None) };
    let all: Option<Vec<Vec<usize>>> = text.split(':').map(|list| numbers(list, CPUS_MAX)).collect();
    match all.as_deref() {
        Some([one]) => Ok(Some(PerThread::all(one))),
        Some([main, receive, event, status]) => {
            let [main, receive, event, status] = [main, receive, event, status].map(Clone::clone);
            Ok(Some(PerThread { main, receive, event, status }))
        }
        _ => Err(format!(
            "-threadCPUAffinity takes processors for all threads or for four kinds, such as 2, 0-3 or 2:0,3:0-1:0, not \
             '{text}'"
        )),
    }
}

/// A list of numbers and ranges, such as `0,2-4`; `None` if it is none, or a number is not below `limit`.
fn numbers(text: &str, limit: usize) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if first > last || last >= limit {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// More processors than a set of the kernel's interface holds.
const CPUS_MAX: usize = 1024;

fn receive(typed: &Typed) -> Receive {
    if !typed.has("useReadThread") {
        return Receive::Listener;
    }
    // Waiting for several samples needs a time limit.
    let delay = if typed.has("waitsetEventCount") { WAITSET_DELAY_US } else { 0 };
    Receive::Thread {
        delay: Duration::from_micros(typed.number("waitsetDelayUsec").unwrap_or(delay)),
        count: usize::try_from(typed.number("waitsetEventCount").unwrap_or(5)).unwrap_or(usize::MAX),
    }
}

fn multicast(typed: &Typed) -> Result<Option<Groups>, String> {
    let Some(text) = typed.text("multicastAddr") else {
        return Ok(typed.has("multicast").then(Groups::default));
    };
    let all: Option<Vec<Ipv4Addr>> = text.split(',').map(|group| group.trim().parse().ok()).collect();
    let groups = match all.as_deref() {
        Some(&[first]) => [0, 1, 2].map(|step| Ipv4Addr::from_bits(first.to_bits().saturating_add(step))),
        Some(&[throughput, latency, announcement]) => [throughput, latency, announcement],
        _ => [Ipv4Addr::UNSPECIFIED; 3],
    };
    if !groups.iter().all(Ipv4Addr::is_multicast) {
        return Err(format!(
            "-multicastAddr takes one group or three, such as 239.255.1.1,239.255.1.2,239.255.1.100, not '{text}'"
        ));
    }
    let [throughput, latency, announcement] = groups;
    Ok(Some(Groups { throughput, latency, announcement }))
}

fn publishing(typed: &Typed, node: NodeSettings) -> Result<Publishing, String> {
    let latency_test = typed.has("latencyTest");
    if latency_test && typed.number("pidMultiPubTest").is_some_and(|pid| pid != 0) {
        return Err("-latencyTest needs publisher 0: the others send no pings".to_owned());
    }
    if latency_test && typed.number("latencyCount").is_some_and(|count| count > 1) {
        return Err("-latencyCount must be 1 with -latencyTest: every sample is a ping".to_owned());
    }
    if typed.number("writeInstance").is_some_and(|at| at >= u64::from(node.instances)) {
        return Err("-writeInstance must be less than -instances: instances count from 0".to_owned());
    }
    let (content, cut) = content(typed)?.map(|content| (content.bytes, content.note)).unzip();
    let sizes = sizes(typed, content.as_deref())?;
    let mut runs = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let more_follows = at + 1 < sizes.len();
        runs.push(publisher_run(typed, *size, node.clone(), content.clone(), more_follows)?);
    }
    let latency_file = typed.text("latencyFile").map(PathBuf::from);
    let notes = unbatched(typed, &runs).into_iter().chain(cut.flatten()).collect();
    Ok(Publishing { runs, latency_file, precise: typed.has("precise"), notes })
}

/// Says that `-batchSize` has no effect. In a scan that depends on the size.
fn unbatched(typed: &Typed, runs: &[PublisherRun]) -> Option<String> {
    let given = typed.number("batchSize")?;
    match runs {
        [PublisherRun { batching: Batching::Unsuitable(why), .. }] => {
            Some(format!("-batchSize {given} has no effect: {why}"))
        }
        _ => None,
    }
}

/// Default sizes of `-scan`.
const SCAN: [u64; 12] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 63_000];

/// The sample size of each run. Unless sizes are given, a sample holds all of the content.
fn sizes(typed: &Typed, content: Option<&[u8]>) -> Result<Vec<u64>, String> {
    let Some(text) = typed.text("scan") else {
        let whole = content.map(|content| (content.len() as u64 + HEADER_BYTES as u64).min(DATA_LEN_MAX));
        return Ok(vec![typed.number("dataLen").or(whole).unwrap_or(DATA_LEN)]);
    };
    if !typed.has("executionTime") && !typed.has("numIter") {
        return Err("-scan needs -executionTime or -numIter, which limit each size".to_owned());
    }
    if text.is_empty() {
        return Ok(SCAN.to_vec());
    }
    let one = |text: &str| text.parse().ok().filter(|size| (28..=1 << 30).contains(size));
    let sizes = text.split([':', ',']).map(one).collect::<Option<Vec<u64>>>();
    sizes.ok_or_else(|| {
        format!("-scan takes sizes from 28 to {}, such as 32:1024:63000, not '{text}'", 1 << 30)
    })
}

fn publisher_run(
    typed: &Typed,
    data_len: u64,
    node: NodeSettings,
    content: Option<Arc<[u8]>>,
    more_follows: bool,
) -> Result<PublisherRun, String> {
    let latency_test = typed.has("latencyTest");
    let execution_time = typed.number("executionTime").map(Duration::from_secs);
    let batching = batching(typed, data_len, latency_test)?;
    let settings = PublisherSettings {
        node,
        data_len: usize::try_from(data_len).unwrap_or(usize::MAX),
        batch_bytes: if let Batching::On(bytes) = batching { bytes } else { 0 },
        latency_test,
        latency_count: if latency_test { 1 } else { typed.number("latencyCount").unwrap_or(10_000) },
        execution_time,
        num_iter: typed.number("numIter").unwrap_or(match (execution_time, latency_test) {
            (Some(_), _) => u64::MAX,
            (None, true) => 10_000_000,
            (None, false) => 100_000_000,
        }),
        initial_burst: typed.number("initialBurstSize"),
        num_subscribers: narrow(typed.number("numSubscribers").unwrap_or(1)),
        pid: narrow(typed.number("pidMultiPubTest").unwrap_or(0)),
        rate: rate(typed, data_len)?,
        // As in RTI Perftest, a rate goes before it.
        sleep: typed.number("sleep").filter(|_| !has_rate(typed)).map(Duration::from_millis),
        write_instance: typed.number("writeInstance").map(narrow),
        content,
        more_follows,
    };
    Ok(PublisherRun { settings, batching })
}

fn batching(typed: &Typed, data_len: u64, latency_test: bool) -> Result<Batching, String> {
    let given = typed.number("batchSize");
    if typed.has("rawTransport") {
        return raw::batching(typed, data_len, given);
    }
    let bytes = given.unwrap_or(BATCH_BYTES);
    if bytes == 0 {
        return Ok(Batching::Off);
    }
    let reason = if latency_test {
        "a latency test sends one sample at a time"
    } else if data_len >= FRAGMENTED_FROM {
        "samples of this size are sent in fragments"
    } else if bytes < 2 * data_len {
        // As in RTI Perftest, also if the size is given.
        return Ok(Batching::Unsuitable(TWO_DO_NOT_FIT));
    } else if given.is_none() && has_rate(typed) {
        "a publication rate is set; -batchSize overrides this"
    } else {
        return Ok(Batching::On(usize::try_from(bytes).unwrap_or(usize::MAX)));
    };
    match given.filter(|_| !typed.has("scan")) {
        Some(given) => Err(format!("-batchSize {given} is not possible: {reason}; use -batchSize 0")),
        None => Ok(Batching::Unsuitable(reason)),
    }
}

/// Whether the rate is limited.
fn has_rate(typed: &Typed) -> bool {
    typed.has("pubRate") || typed.has("pubRatebps")
}

fn rate(typed: &Typed, data_len: u64) -> Result<Option<Rate>, String> {
    let (name, bits) = match (typed.text("pubRate"), typed.text("pubRatebps")) {
        (Some(_), Some(_)) => return Err("-pubRate and -pubRatebps exclude each other".to_owned()),
        (Some(_), None) => ("pubRate", 1),
        (None, Some(_)) => ("pubRatebps", 8 * data_len),
        (None, None) => return Ok(None),
    };
    let text = typed.text(name).unwrap_or_default();
    let (number, method) = text.split_once(':').unwrap_or((text, "spin"));
    let pace = match method.to_lowercase().as_str() {
        "spin" => Some(Pace::Spin),
        "sleep" => Some(Pace::Sleep),
        _ => None,
    };
    match (number.parse::<u64>(), pace) {
        (Ok(number @ 1..), Some(pace)) => Ok(Some(Rate { per_s: (number / bits).max(1), pace })),
        _ => Err(format!(
            "-{name} takes a number from 1, optionally followed by :spin or :sleep, not '{text}'"
        )),
    }
}

/// What samples are filled with.
struct Content {
    bytes: Arc<[u8]>,
    /// Says that the file has more.
    note: Option<String>,
}

/// The content of `-loadDataFromFile`.
fn content(typed: &Typed) -> Result<Option<Content>, String> {
    let max = typed.number("maximumAllocableBufferSize");
    let Some(file) = typed.text("loadDataFromFile") else {
        return match max {
            Some(_) => Err("-maximumAllocableBufferSize needs -loadDataFromFile".to_owned()),
            None => Ok(None),
        };
    };
    let failed = |error| format!("-loadDataFromFile {file}: {error}");
    let opened = File::open(file).map_err(failed)?;
    let length = opened.metadata().map_err(failed)?.len();
    let max = max.unwrap_or(DATA_LEN_MAX);
    let mut bytes = Vec::new();
    opened.take(max).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.is_empty() {
        return Err(format!("-loadDataFromFile {file}: the file is empty"));
    }
    let cut = || {
        format!(
            "-loadDataFromFile {file}: {max} of {length} bytes are sent; -maximumAllocableBufferSize is the limit"
        )
    };
    Ok(Some(Content { bytes: bytes.into(), note: (length > max).then(cut) }))
}

/// Narrows a number that the table of options bounds to 32 bits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Typed {
        Typed::parse(line.split_whitespace().map(str::to_owned)).unwrap()
    }

    fn publisher(line: &str) -> Result<PublisherRun, String> {
        runs(line).map(|mut runs| runs.remove(0))
    }

    fn subscriber(line: &str) -> Result<SubscriberSettings, String> {
        match role(&typed(&format!("-sub {line}")))? {
            Role::Publish(_) => Err("publishes".to_owned()),
            Role::Subscribe(settings) => Ok(*settings),
        }
    }

    fn runs(line: &str) -> Result<Vec<PublisherRun>, String> {
        match role(&typed(&format!("-pub {line}")))? {
            Role::Publish(publishing) => Ok(publishing.runs),
            Role::Subscribe(_) => Err("subscribes".to_owned()),
        }
    }

    #[test]
    fn batching_is_the_default_where_two_samples_fit() {
        let table = [
            ("", Batching::On(8192)),
            ("-dataLen 4096", Batching::On(8192)),
            ("-dataLen 4097", Batching::Unsuitable("two samples do not fit into a batch")),
            ("-batchSize 0", Batching::Off),
            ("-batchSize 0 -dataLen 100000", Batching::Off),
            ("-batchSize 4000 -pubRate 10", Batching::On(4000)),
            ("-latencyTest -batchSize 0", Batching::Off),
        ];
        for (line, expected) in table {
            assert_eq!(publisher(line).unwrap().batching, expected, "{line}");
        }
        for line in ["-latencyTest", "-dataLen 65500", "-pubRate 100", "-pubRatebps 100000"] {
            assert!(matches!(publisher(line).unwrap().batching, Batching::Unsuitable(_)), "{line}");
        }
        for line in ["-latencyTest -batchSize 10", "-batchSize 65000 -dataLen 65500"] {
            assert!(publisher(line).unwrap_err().contains("use -batchSize 0"), "{line}");
        }
    }

    #[test]
    fn batches_that_are_too_small_are_none_and_that_is_said() {
        let of = |line: &str| match role(&typed(&format!("-pub {line}"))).unwrap() {
            Role::Publish(publishing) => (publishing.runs[0].batching, publishing.notes),
            Role::Subscribe(_) => panic!("{line}"),
        };
        for line in
            ["-batchSize 8192 -datalen 8192", "-rawTransport -peer 10.0.0.1 -batchSize 8192 -datalen 8192"]
        {
            let note = "-batchSize 8192 has no effect: two samples do not fit into a batch";
            assert_eq!(of(line), (Batching::Unsuitable(TWO_DO_NOT_FIT), vec![note.to_owned()]), "{line}");
        }
        for line in ["-datalen 8192", "-batchSize 0 -datalen 8192", "-batchSize 8192", "-scan 8192 -exec 1"] {
            assert_eq!(of(line).1, Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn a_scan_is_a_run_for_each_size() {
        let plan = |line: &str| -> Vec<(usize, usize, bool)> {
            let of = |run: PublisherRun| {
                (run.settings.data_len, run.settings.batch_bytes, run.settings.more_follows)
            };
            runs(line).unwrap().into_iter().map(of).collect()
        };
        let all = plan("-scan -exec 1");
        assert_eq!(all.len(), 12);
        assert_eq!((all[0], all[7], all[11]), ((32, 8192, true), (4096, 8192, true), (63_000, 0, false)));
        // Sizes that cannot be batched are sent unbatched.
        let some = plan("-scan 100:5000:64 -numIter 10 -batchSize 4000");
        assert_eq!(some, [(100, 4000, true), (5000, 0, true), (64, 4000, false)]);
        assert_eq!(plan("-exec 1 -dataLen 64"), [(64, 8192, false)]);
        for line in ["-scan", "-scan 27 -exec 1", "-scan 32: -exec 1", "-scan big -exec 1"] {
            assert!(runs(line).is_err(), "{line}");
        }
        assert_eq!(
            notes(&typed("-pub -scan 32 -dataLen 5000")),
            ["-dataLen has no effect: -scan sets the sizes"]
        );
        assert_eq!(notes(&typed("-sub -scan")).len(), 1);
        assert_eq!(notes(&typed("-pub -dataLen 5000")), Vec::<String>::new());
    }

    #[test]
    fn a_file_is_one_sample_unless_sizes_are_given() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("content");
        std::fs::write(&file, [7; 5000]).unwrap();
        let of = |line: &str| match role(&typed(&format!("-pub -loadDataFromFile {} {line}", file.display())))
        {
            Ok(Role::Publish(publishing)) => {
                let settings = &publishing.runs[0].settings;
                (settings.data_len, settings.content.as_ref().unwrap().len(), publishing.notes.len())
            }
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(of(""), (5028, 5000, 0));
        assert_eq!(of("-dataLen 100"), (100, 5000, 0));
        assert_eq!(of("-scan 64 -exec 1"), (64, 5000, 0));
        assert_eq!(of("-maximumAllocableBufferSize 5000"), (5028, 5000, 0));
        assert_eq!(of("-maximumAllocableBufferSize 300"), (328, 300, 1));
        std::fs::write(&file, []).unwrap();
        let empty = publisher(&format!("-loadDataFromFile {}", file.display())).unwrap_err();
        assert!(empty.ends_with("the file is empty"), "{empty}");
    }

    #[test]
    fn asynchronous_publishing_is_optional() {
        assert!(!publisher("").unwrap().settings.node.asynchronous);
        assert!(publisher("-asynchronous").unwrap().settings.node.asynchronous);
        let plain_udp = publisher("-rawTransport -peer 127.0.0.1 -asynchronous").unwrap_err();
        assert!(plain_udp.contains("-asynchronous is not supported with -rawTransport"), "{plain_udp}");
    }

    #[test]
    fn the_small_profile_has_no_threads() {
        assert!(!publisher("").unwrap().settings.node.is_small);
        assert!(!publisher("-profile full").unwrap().settings.node.is_small);
        assert!(publisher("-profile small").unwrap().settings.node.is_small);
        let threads = publisher("-profile small -useReadThread").unwrap_err();
        assert!(threads.contains("does not work with -useReadThread"), "{threads}");
        let plain_udp = publisher("-rawTransport -peer 127.0.0.1 -profile small").unwrap_err();
        assert!(plain_udp.contains("-profile is not supported with -rawTransport"), "{plain_udp}");
    }

    #[test]
    fn qos_profiles_are_read_from_a_file() {
        let text = |topics: &[&str]| {
            let profiles: String =
                topics.iter().map(|name| format!("<qos_profile name=\"{name}\"/>\n")).collect();
            format!("<dds><qos_library name=\"Mine\">\n{profiles}</qos_library></dds>")
        };
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let complete = file("complete.xml", &text(&["ThroughputQos", "LatencyQos", "AnnouncementQos"]));
        let settings = publisher(&format!("-qosFile {complete} -qosLibrary Mine")).unwrap().settings;
        assert!(settings.node.profiles.is_some());
        assert!(publisher("").unwrap().settings.node.profiles.is_none());
        let check = |line: &str, expected: &str| {
            let error = publisher(line).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(
            &format!("-qosFile {complete}"),
            "there is no QoS profile \"PerftestQosLibrary::ThroughputQos\"",
        );
        let partial = file("partial.xml", &text(&["ThroughputQos"]));
        check(&format!("-qosFile {partial} -qosLibrary Mine"), "the topic Latency needs it");
        let broken = file("broken.xml", "<dds>\n<qos_libary name=\"Mine\"/></dds>");
        check(&format!("-qosFile {broken}"), "broken.xml:2:1: <dds> has no element <qos_libary>");
        check("-qosFile /nowhere.xml", "/nowhere.xml: cannot be read");
        check("-qosLibrary Mine", "-qosLibrary needs -qosFile");
        check(&format!("-qosFile {complete} -noXmlQos"), "contradict each other");
        check(&format!("-rawTransport -peer 127.0.0.1 -qosFile {complete}"), "raw UDP has no QoS");
    }

    #[test]
    fn all_durabilities_are_read() {
        let of = |line: &str| publisher(line).unwrap().settings.node.durability;
        assert_eq!((of(""), of("-durability 0")), (Durability::Volatile, Durability::Volatile));
        assert_eq!(of("-durability 1"), Durability::TransientLocal);
        assert_eq!(
            (of("-durability 2"), of("-durability 3")),
            (Durability::Transient, Durability::Persistent)
        );
        let refused = Typed::parse(["-durability", "4"].into_iter().map(str::to_owned));
        assert!(refused.unwrap_err().contains("from 0 to 3"));
    }

    #[test]
    fn rates_have_a_method_or_none() {
        let rate = |line: &str| publisher(line).unwrap().settings.rate.unwrap();
        assert_eq!(rate("-pubRate 100"), Rate { per_s: 100, pace: Pace::Spin });
        assert_eq!(rate("-pubRate 100:sleep"), Rate { per_s: 100, pace: Pace::Sleep });
        assert_eq!(rate("-pubRatebps 80000:SPIN -datalen 1000"), Rate { per_s: 10, pace: Pace::Spin });
        assert_eq!(rate("-pubRatebps 1"), Rate { per_s: 1, pace: Pace::Spin });
        for line in ["-pubRate 0", "-pubRate x", "-pubRate 1:jump", "-pubRate 1 -pubRatebps 1"] {
            assert!(publisher(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_rate_goes_before_a_pause() {
        let sleep = |line: &str| publisher(line).unwrap().settings.sleep;
        assert_eq!(sleep("-sleep 5"), Some(Duration::from_millis(5)));
        assert_eq!([sleep("-sleep 5 -pubRate 9"), sleep("-sleep 5 -pubRatebps 9"), sleep("")], [None; 3]);
    }

    #[test]
    fn a_time_alone_does_not_bound_the_samples() {
        assert_eq!(publisher("").unwrap().settings.num_iter, 100_000_000);
        assert_eq!(publisher("-latencyTest").unwrap().settings.num_iter, 10_000_000);
        assert_eq!(publisher("-exec 1").unwrap().settings.num_iter, u64::MAX);
        assert_eq!(publisher("-exec 1 -numIter 5").unwrap().settings.num_iter, 5);
    }

    #[test]
    fn waiting_for_several_samples_has_a_time_limit() {
        let receive = |line: &str| publisher(line).unwrap().settings.node.receive;
        let thread = |delay_us, count| Receive::Thread { delay: Duration::from_micros(delay_us), count };
        assert_eq!(receive(""), Receive::Listener);
        assert_eq!(receive("-waitsetEventCount 3 -waitsetDelayUsec 7"), Receive::Listener);
        assert_eq!(receive("-useReadThread"), thread(0, 5));
        assert_eq!(receive("-useReadThread -waitsetEventCount 3"), thread(100, 3));
        assert_eq!(receive("-useReadThread -waitsetEventCount 3 -waitsetDelayUsec 7"), thread(7, 3));
    }

    #[test]
    fn groups_are_one_or_three() {
        let groups = |line: &str| multicast(&typed(line));
        assert_eq!(groups(""), Ok(None));
        assert_eq!(groups("-multicast"), Ok(Some(Groups::default())));
        let one = groups("-multicastAddr 239.1.1.255").unwrap().unwrap();
        assert_eq!(one.announcement, Ipv4Addr::new(239, 1, 2, 1));
        assert!(groups("-multicastAddr 239.1.1.1,239.1.1.2").is_err());
        assert!(groups("-multicastAddr 10.0.0.1").is_err());
    }

    #[test]
    fn threads_have_processors_and_priorities() {
        let threads = |line: &str| publisher(line).unwrap().settings.node.threads;
        assert_eq!(threads(""), ThreadSettings::default());
        assert_eq!(threads("-threadCPU 3").cpus, Some(PerThread::all(&vec![3])));
        assert_eq!(threads("-threadCPU 0,2-4").cpus, Some(PerThread::all(&vec![0, 2, 3, 4])));
        let each = PerThread { main: vec![1], receive: vec![0], event: vec![2], status: vec![3] };
        assert_eq!(threads("-threadCPUAffinity 1:0:2:3").cpus, Some(each));
        let each = PerThread { main: vec![0, 1], receive: vec![0], event: vec![1], status: vec![1] };
        assert_eq!(threads("-threadCPUAffinity 0-1:0:1:1").cpus, Some(each));
        let urgent = PerThread { main: 50, receive: 99, event: 7, status: 7 };
        assert_eq!(threads("-threadPriorities N:h:7").priorities, Some(urgent));
        for line in [
            "-threadP 1",
            "-threadP 0:1:2",
            "-threadP 1:2:100",
            "-threadP a:b:c",
            "-threadC 1:2",
            "-threadC x",
            "-threadC 1-0",
            "-threadC 0-1024",
            "-threadC 0,",
        ] {
            assert!(publisher(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_subscriber_may_receive_only_some_instances() {
        let only = |line: &str| subscriber(line).map(|settings| settings.node.only);
        assert_eq!(only("-keyed"), Ok(None));
        assert_eq!(only("-keyed -instances 9 -cft 3"), Ok(InstanceRange::new(3, 3)));
        assert_eq!(only("-keyed -instances 9 -cft 3:5"), Ok(InstanceRange::new(3, 5)));
        for line in ["-cft 3", "-keyed -cft 5:3", "-keyed -cft 65535", "-keyed -cft a", "-keyed -cft 1:2:3"] {
            let refusal = only(line).unwrap_err();
            assert!(refusal.starts_with("-cft"), "{refusal}");
        }
    }

    #[test]
    fn options_without_their_precondition_are_refused() {
        for line in [
            "-instances 5",
            "-writeInstance 0",
            "-keyed -instances 5 -writeInstance 5",
            "-keyed -writeInstance 1",
            "-maximumAllocableBufferSize 5",
            "-latencyTest -pid 1",
            "-latencyTest -latencyCount 5",
            "-transport SHMEM",
            "-peer nowhere",
        ] {
            assert!(publisher(line).is_err(), "{line}");
        }
    }
}
