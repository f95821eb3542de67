//! The published figures in the files of `published/`, and their sources.

use weir_results::Test;

/// The source of figures and the setup that they were measured on.
#[derive(Debug)]
pub(crate) struct Source {
    /// Product, and machine if there are several.
    pub(crate) label: &'static str,
    /// Title of the page or document.
    pub(crate) title: &'static str,
    /// The two hosts.
    pub(crate) hosts: &'static str,
    /// The network between them.
    pub(crate) path: &'static str,
    /// The MTU.
    pub(crate) mtu: &'static str,
    /// The measuring program.
    pub(crate) program: &'static str,
    /// Duration of each row.
    pub(crate) run: &'static str,
    /// Duration to measure each row for here, in seconds.
    pub(crate) seconds: u64,
    /// The processors of the ends.
    pub(crate) processors: &'static str,
}

static PRO: Source = Source {
    label: "Connext Professional",
    title: "RTI Connext DDS Professional, latency benchmarks (UDPv4, C++98)",
    hosts: "two hosts, Xeon E-2186G 3.8 GHz, Ubuntu 18.04",
    path: "Ethernet (Intel I350 at 1 Gbit/s, X550 at 10 Gbit/s), switch Dell S4048T-ON",
    mtu: "not stated",
    program: "RTI Perftest on Connext DDS Professional",
    run: "30 s (-exec 30)",
    seconds: 30,
    processors: "0 of each host (taskset -c 0)",
};

static PRO_BATCHING: Source = Source {
    title: "RTI Connext DDS Professional, batching (UDPv4, C++98)",
    mtu: "not stated; the page calls 9000 the greatest",
    run: "about 20 s by its own figures (-exec 30 in its script), median of 3",
    ..PRO
};

static MICRO: Source = Source {
    label: "Connext Micro, Core i7",
    title: "RTI Connext DDS Micro, latency benchmarks",
    hosts: "two hosts, Core i7 3.33 GHz (6 cores), CentOS 7.1",
    path: "1 Gbit/s Ethernet (Intel I350), switch D-Link DXS-3350 SR",
    mtu: "not stated",
    program: "RTI Perftest 3.0 on Connext DDS Micro",
    run: "not stated",
    seconds: 30,
    processors: "not stated",
};

static MICRO_PI: Source = Source {
    label: "Connext Micro, Raspberry Pi 4",
    hosts: "two Raspberry Pi 4 Model B",
    path: "1 Gbit/s network",
    ..MICRO
};

static MICRO_THROUGHPUT: Source = Source {
    title: "RTI Connext DDS Micro, throughput benchmark",
    run: "60 s by its own figures",
    seconds: 60,
    ..MICRO
};

/// One published table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Name on the command line.
    pub(crate) name: String,
    /// Source of the figures.
    pub(crate) source: &'static Source,
    /// Measure of the table.
    pub(crate) test: Test,
    /// Speed of the link in Gbit/s.
    pub(crate) link_gbps: u32,
    /// Whether the topic is keyed, with 100 000 instances.
    pub(crate) keyed: bool,
    /// Whether delivery is reliable.
    pub(crate) reliable: bool,
    /// Batch size in bytes, 0: unbatched; `None` where the table does not distinguish.
    pub(crate) batch_bytes: Option<u32>,
    /// Rows by size.
    pub(crate) rows: Vec<Row>,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Size of a sample in bytes.
    pub(crate) size: u64,
    /// In the order of [`columns`].
    pub(crate) figures: Vec<f64>,
    /// Whether its figures contradict each other.
    pub(crate) is_doubtful: bool,
}

/// The columns of a measure: headings, names in CSV and JSON, and decimals as published.
pub(crate) fn columns(test: Test) -> &'static [(&'static str, &'static str, usize)] {
    match test {
        Test::Latency => &[
            ("Ave", "ave_us", 0),
            ("Std", "std_us", 1),
            ("Min", "min_us", 0),
            ("Max", "max_us", 0),
            ("50%", "p50_us", 0),
            ("90%", "p90_us", 0),
            ("99%", "p99_us", 0),
            ("99.99%", "p99_99_us", 0),
            ("99.9999%", "p99_9999_us", 0),
        ],
        Test::Throughput | Test::Workload => &[
            ("Total Samples", "total_samples", 0),
            ("Samples/s", "samples_per_s", 0),
            ("Mbps", "mbps", 1),
            ("Lost Samples", "lost_samples", 0),
            ("Lost Samples (%)", "lost_percent", 2),
        ],
    }
}

/// The files of figures, each with the measure and the prefix of its table names.
static FILES: [(&str, Test, &str); 4] = [
    (include_str!("../../published/connext-pro-latency.csv"), Test::Latency, "pro"),
    (include_str!("../../published/connext-pro-throughput.csv"), Test::Throughput, "pro"),
    (include_str!("../../published/connext-micro-latency.csv"), Test::Latency, "micro"),
    (include_str!("../../published/connext-micro-throughput.csv"), Test::Throughput, "micro"),
];

/// All tables that `perftest` can repeat, in the order of their documents.
pub(crate) fn all() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (text, test, begin) in FILES {
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let (empty, row) = read(test, begin, &names, &cells);
            match tables.iter_mut().find(|table| table.name == empty.name) {
                Some(table) => table.rows.push(row),
                None => tables.push(Table { rows: vec![row], ..empty }),
            }
        }
    }
    tables
}

/// The table that a line belongs to, without rows, and the row of the line.
fn read(test: Test, begin: &str, names: &[&str], cells: &[&str]) -> (Table, Row) {
    let cell = |name: &str| names.iter().position(|it| *it == name).and_then(|at| cells.get(at)).copied();
    let number = |name: &str| cell(name).and_then(|text| text.parse::<u32>().ok());
    let platform = cell("platform").map(|platform| if platform.starts_with("xeon") { "xeon" } else { "pi" });
    let link_gbps = number("link_gbps").unwrap_or(1);
    let batch_bytes = number("batch_bytes");
    let (keyed, reliability) = (cell("keyed").unwrap_or_default(), cell("reliability").unwrap_or_default());
    let link = format!("{link_gbps}g");
    let batching = batch_bytes.map(|bytes| if bytes == 0 { "no-batch" } else { "batch" });
    let words =
        [Some(begin), Some(test.name()), platform, Some(&*link), Some(keyed), Some(reliability), batching];
    let name = words.into_iter().flatten().collect::<Vec<_>>().join("-");
    let source = match (begin, test, platform) {
        ("pro", Test::Latency, _) => &PRO,
        ("pro", Test::Throughput, _) => &PRO_BATCHING,
        (_, Test::Throughput, _) => &MICRO_THROUGHPUT,
        (_, _, Some("pi")) => &MICRO_PI,
        _ => &MICRO,
    };
    let at_size = names.iter().position(|name| *name == "size_bytes").unwrap_or(0);
    let size = cells.get(at_size).and_then(|text| text.parse().ok()).unwrap_or(0);
    let figures: Vec<f64> = cells.iter().skip(at_size + 1).filter_map(|text| text.parse().ok()).collect();
    let is_doubtful = test == Test::Throughput && contradicts_itself(size, &figures);
    let table = Table {
        name,
        source,
        test,
        link_gbps,
        keyed: keyed == "keyed",
        reliable: reliability == "reliable",
        batch_bytes,
        rows: Vec::new(),
    };
    (table, Row { size, figures, is_doubtful })
}

/// Whether Mbit/s and samples/s (published as whole numbers) do not match at this size.
fn contradicts_itself(size: u64, figures: &[f64]) -> bool {
    let [_, samples_per_s, mbps, ..] = figures else { return true };
    let mbps_of = |rate: f64| rate * size as f64 * 8.0 / 1e6;
    !(mbps_of(*samples_per_s) - 0.1..=mbps_of(samples_per_s + 1.0) + 0.1).contains(mbps)
}

/// The table of this name, or else all tables with this prefix; `all` stands for all.
pub(crate) fn find(name: &str) -> Vec<Table> {
    let name = name.to_lowercase();
    let mut tables = all();
    if tables.iter().any(|table| table.name == name) {
        tables.retain(|table| table.name == name);
    } else if name != "all" {
        tables.retain(|table| table.name.starts_with(&name));
    }
    tables
}

/// Published figures of another program than `perftest`.
#[derive(Debug)]
pub(crate) struct Document {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Content.
    pub(crate) about: &'static str,
    /// The lines.
    pub(crate) text: &'static str,
    /// The command that measures the same.
    pub(crate) instead: &'static str,
}

/// A file of hpcbench's figures, its content, and the command that measures the same.
macro_rules! hpcbench {
    ($name:literal, $about:literal, $instead:literal) => {
        Document {
            name: concat!("hpcbench-udp-", $name),
            about: concat!("hpcbench, ", $about),
            text: include_str!(concat!("../../published/hpcbench-udp-", $name, ".csv")),
            instead: $instead,
        }
    };
}

static DOCUMENTS: [Document; 6] = [
    hpcbench!("unidirectional", "UDP stream: mk cluster, 1 Gbit/s Ethernet", "udptest -h HOST -r 6"),
    hpcbench!("bidirectional", "UDP streams both ways", "udptest -ih HOST -r 6"),
    hpcbench!("exponential", "UDP streams of growing sizes", "udptest -eh HOST"),
    hpcbench!("roundtrip", "UDP round trips in μs", "udptest -ah HOST"),
    hpcbench!("generator", "UDP traffic at a given rate", "udptest -gh HOST -t 10 -T 200M"),
    hpcbench!("process", "processor time of its UDP tests", "udptest -ch HOST -r 5"),
];

/// The figures of other programs.
pub(crate) fn documents() -> &'static [Document] {
    &DOCUMENTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixteen_latency_tables_and_eight_of_throughput() {
        let tables = all();
        let of = |test| tables.iter().filter(|table| table.test == test).count();
        assert_eq!((of(Test::Latency), of(Test::Throughput)), (16, 8));
        for table in &tables {
            let is_whole = |row: &Row| {
                let all = columns(table.test).len();
                // Micro's page has no 99.9999 %.
                row.figures.len() == all || (table.test == Test::Latency && row.figures.len() == all - 1)
            };
            assert!(table.rows.iter().all(is_whole), "{}", table.name);
            assert!(table.rows.is_sorted_by_key(|row| row.size), "{}", table.name);
            assert_eq!(find(&table.name).len(), 1, "{}", table.name);
        }
    }

    #[test]
    fn the_six_rows_that_contradict_themselves_are_marked() {
        let mut doubtful = Vec::new();
        for table in all() {
            let rows = table.rows.iter().filter(|row| row.is_doubtful);
            doubtful.extend(rows.map(|row| (table.name.clone(), row.size)));
        }
        let expected = [
            ("pro-throughput-10g-unkeyed-best-effort-batch", 4096),
            ("pro-throughput-10g-unkeyed-best-effort-no-batch", 256),
            ("pro-throughput-10g-unkeyed-best-effort-no-batch", 512),
            ("pro-throughput-10g-unkeyed-best-effort-no-batch", 1024),
            ("pro-throughput-10g-unkeyed-best-effort-no-batch", 2048),
            ("pro-throughput-10g-unkeyed-reliable-batch", 1_048_576),
        ];
        let expected: Vec<(String, u64)> =
            expected.into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
        assert_eq!(doubtful, expected);
    }

    #[test]
    fn a_name_is_a_table_or_a_prefix_of_several() {
        assert_eq!(find("pro-latency-1g").len(), 4);
        assert_eq!(find("micro-latency-pi").len(), 4);
        assert_eq!(find("all").len(), 24);
        assert!(find("nonsense").is_empty());
        let table = &find("PRO-latency-1g-unkeyed-reliable")[0];
        assert!(table.reliable && !table.keyed && table.link_gbps == 1);
        let row = table.rows.last().unwrap();
        assert_eq!((row.size, row.figures[1]), (10_485_760, 531.4));
    }
}
