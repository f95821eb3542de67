//! Measures a published table on this host.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_bench::case::CpuPair;
use weir_bench::control::Role;
use weir_bench::path::{LinkError, PathSpec, VethSpec, VirtualLink};
use weir_results::{Test, WaitStrategy};

use super::ends::{End, Left, wait_for_both};
use super::tables::{Row, Table, columns};

/// The link between the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkChoice {
    /// An interface of this host.
    Interface(String),
    /// A virtual link with the speed of the table.
    TableLink,
    /// This virtual link.
    Cable(PathSpec),
}

/// The parameters of the ends.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The link between the ends.
    pub(crate) link: LinkChoice,
    /// Seconds per row; `None` = as published.
    pub(crate) exec: Option<u64>,
    /// Sizes to measure; empty = all.
    pub(crate) sizes: Vec<u64>,
    /// CPUs of the ends.
    pub(crate) cpus: Option<CpuPair>,
    /// Wait strategy.
    pub(crate) wait: WaitStrategy,
    /// Whether our engine has the small profile.
    pub(crate) is_small: bool,
    /// DDS domain.
    pub(crate) domain: u32,
}

/// A row measured on this host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OurRow {
    /// The published row.
    pub(crate) published: Row,
    /// Measured figures in the same order, if any.
    pub(crate) figures: Option<Vec<f64>>,
    /// Which of them `perftest` marks as the figure of too few samples.
    pub(crate) of_few: Vec<bool>,
    /// Share of the sample rate that the link can carry, where its speed is known.
    pub(crate) of_link: Option<f64>,
    /// Error, if any.
    pub(crate) trouble: Option<String>,
    /// Whether reliable samples were lost.
    pub(crate) is_lossy: bool,
}

/// Instances of keyed runs, as in the published scripts.
const INSTANCES: u32 = 100_000;

/// MTU of a link with the speed of a table.
const MTU: u32 = 9000;

/// Least burst of such a link: one frame, and what the kernel rounds off.
const FRAME_BYTES: u32 = MTU + 100;

/// Time limit beyond the measured time, for discovery, initialization pings and the end.
const BESIDE: Duration = Duration::from_secs(60);

impl FromStr for LinkChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "veth" => Ok(Self::TableLink),
            _ if text.starts_with("veth,") || is_emulated(text) => {
                text.parse().map(Self::Cable).map_err(|error| format!("{error}"))
            }
            "" => {
                Err("expected an interface, veth, or a link of `weir bench --link`, such as veth,mtu=9000,rate=1G"
                    .to_owned())
            }
            name => Ok(Self::Interface(name.to_owned())),
        }
    }
}

/// Whether a text names an emulated link: `tun`, a preset, or one of them with options.
fn is_emulated(text: &str) -> bool {
    let kind = text.split(',').next().unwrap_or_default();
    matches!(kind.parse(), Ok(PathSpec::Tun(_)))
}

impl fmt::Display for LinkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::TableLink => f.write_str("veth"),
            Self::Cable(spec) => spec.fmt(f),
        }
    }
}

impl Plan {
    /// The virtual link for a table, if any.
    pub(crate) fn link(&self, table: &Table) -> Option<PathSpec> {
        match self.link {
            LinkChoice::Interface(_) => None,
            LinkChoice::Cable(ref spec) => Some(spec.clone()),
            LinkChoice::TableLink => Some(PathSpec::Veth(table_link(table))),
        }
    }

    /// Seconds of each row of a table.
    pub(crate) fn seconds(&self, table: &Table) -> u64 {
        self.exec.unwrap_or(table.source.seconds)
    }

    /// The command that measures this table.
    pub(crate) fn command(&self, table: &Table) -> String {
        let mut line = format!("weir published run {}", table.name);
        if let Some(seconds) = self.exec {
            line += &format!(" --exec {seconds}");
        }
        line += &format!(" --link {}", self.link);
        if !self.sizes.is_empty() {
            let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
            line += &format!(" --sizes {}", sizes.join(","));
        }
        if let Some(cpus) = self.cpus {
            line += &format!(" --cpus {},{}", cpus.publisher, cpus.subscriber);
        }
        if self.is_small {
            line += " --profile small";
        }
        match self.wait {
            WaitStrategy::Block => line,
            wait => format!("{line} --wait {}", wait_variable(wait)),
        }
    }

    fn options(&self, table: &Table, row: &Row, role: Role, interface: &str) -> Vec<String> {
        let is_publisher = role == Role::Publisher;
        let mut line = format!(
            "{} -domain {} -transport UDPv4 -nic {interface} -noPrintIntervals -noOutputHeaders -precise",
            if is_publisher { "-pub" } else { "-sub" },
            self.domain
        );
        if !table.reliable {
            line += " -bestEffort";
        }
        if table.keyed {
            line += &format!(" -keyed -instances {INSTANCES}");
        }
        if self.is_small {
            line += " -profile small";
        }
        if let Some(cpus) = self.cpus {
            let cpu = if is_publisher { cpus.publisher } else { cpus.subscriber };
            line += &format!(" -threadCPUAffinity {cpu}");
        }
        if is_publisher {
            line += &format!(" -dataLen {} -executionTime {}", row.size, self.seconds(table));
            match (table.test, table.batch_bytes) {
                (Test::Latency, _) => line += " -latencyTest",
                // The default is a batch of 8192 bytes where two samples fit, as published.
                (Test::Throughput, Some(1..)) => {}
                (Test::Throughput | Test::Workload, _) => line += " -batchSize 0",
            }
        }
        line.split(' ').map(str::to_owned).collect()
    }
}

/// A virtual link with the speed of a table.
pub(crate) fn table_link(table: &Table) -> VethSpec {
    VethSpec {
        mtu: MTU,
        rate_bps: Some(u64::from(table.link_gbps) * 1_000_000_000),
        queue_bytes: None,
        // Latency includes the time on the wire; throughput needs the full rate.
        burst_bytes: (table.test == Test::Latency).then_some(FRAME_BYTES),
        loss_e4: 0,
        gso: true,
    }
}

/// Measures the rows of a table and passes each to `on_row`. Stops when `interrupted`.
///
/// # Errors
/// When the virtual link cannot be created.
pub(crate) fn measure(
    table: &Table,
    plan: &Plan,
    interrupted: &AtomicBool,
    on_row: &mut dyn FnMut(&OurRow),
) -> Result<Vec<OurRow>, LinkError> {
    let link = plan.link(table).map(VirtualLink::lay).transpose()?;
    let mut rows = Vec::new();
    for row in table.rows.iter().filter(|row| plan.sizes.is_empty() || plan.sizes.contains(&row.size)) {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let ours = measure_row(table, row, plan, link.as_ref(), interrupted);
        on_row(&ours);
        rows.push(ours);
    }
    Ok(rows)
}

fn measure_row(
    table: &Table,
    row: &Row,
    plan: &Plan,
    link: Option<&VirtualLink>,
    interrupted: &AtomicBool,
) -> OurRow {
    let start = |role| {
        let place = link.map(|link| link.place(role));
        let interface = match (&plan.link, &place) {
            (_, Some(place)) => place.interface,
            (LinkChoice::Interface(name), None) => name,
            (_, None) => VirtualLink::INTERFACE,
        };
        let namespace: Option<PathBuf> = place.as_ref().map(|place| place.namespace.clone());
        End::start(
            namespace.as_deref(),
            &wait_variable(plan.wait),
            &plan.options(table, row, role, interface),
        )
    };
    let ends = start(Role::Subscriber).and_then(|subscriber| Ok([subscriber, start(Role::Publisher)?]));
    let mut ours = OurRow {
        published: row.clone(),
        figures: None,
        of_few: Vec::new(),
        of_link: None,
        trouble: None,
        is_lossy: false,
    };
    let [subscriber, publisher] = match ends {
        Ok(ends) => wait_for_both(ends, Duration::from_secs(plan.seconds(table)) + BESIDE, interrupted),
        Err(error) => {
            ours.trouble = Some(format!("cannot start an end: {error}"));
            return ours;
        }
    };
    ours.is_lossy = subscriber.code == Some(1);
    ours.trouble = trouble("publisher", &publisher).or_else(|| trouble("subscriber", &subscriber));
    let text = if table.test == Test::Latency { &publisher.stdout } else { &subscriber.stdout };
    if let Some((figures, of_few)) = figures(text, table.test) {
        (ours.figures, ours.of_few) = (Some(figures), of_few);
    }
    if ours.figures.is_none() && ours.trouble.is_none() {
        ours.trouble = Some("no figures".to_owned());
    }
    ours.of_link = of_link(table, row, plan, ours.figures.as_deref());
    ours
}

fn of_link(table: &Table, row: &Row, plan: &Plan, figures: Option<&[f64]>) -> Option<f64> {
    let link = plan.link(table)?.capacity()?;
    let samples_per_s = figures.filter(|_| table.test == Test::Throughput)?.get(1)?;
    Some(
        samples_per_s
            / link.samples_per_s(row.size, message_bytes(row.size, table.batch_bytes.unwrap_or(0).into())),
    )
}

/// Batch size including headers. Two samples fit in any case if they fit without headers.
pub(super) fn message_bytes(size: u64, batch_bytes: u64) -> u64 {
    if batch_bytes < 2 * size { 0 } else { batch_bytes.max(2 * (size + 64) + 64) }
}

/// The error of a failed end: its last line on stderr.
fn trouble(which: &str, left: &Left) -> Option<String> {
    match left.code {
        Some(0 | 1) => None,
        None => Some(format!("the {which} did not end in time")),
        Some(130) => Some("interrupted".to_owned()),
        Some(code) => {
            let last = left.stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            Some(format!("the {which} ended with code {code}: {}", last.trim_start_matches("perftest: ")))
        }
    }
}

/// The figures of the row that an end printed, and which of them are of too few samples.
fn figures(text: &str, test: Test) -> Option<(Vec<f64>, Vec<bool>)> {
    let row = text.lines().last()?;
    let (_, cells) = row.split_once(',')?;
    let figure = |cell: &str| {
        let (figure, is_of_few) = cell.strip_suffix('*').map_or((cell, false), |figure| (figure, true));
        Some((figure.parse().ok()?, is_of_few))
    };
    let figures: Vec<(f64, bool)> =
        cells.split(',').map(|cell| figure(cell.trim())).collect::<Option<_>>()?;
    (figures.len() == columns(test).len()).then(|| figures.into_iter().unzip())
}

fn wait_variable(wait: WaitStrategy) -> String {
    match wait {
        WaitStrategy::Block => "block".to_owned(),
        WaitStrategy::Spin => "spin".to_owned(),
        WaitStrategy::SpinThenBlock { spin_us } => format!("spin:{spin_us}"),
    }
}

#[cfg(test)]
mod tests {
    use weir_bench::link_capacity::Link;

    use super::*;
    use crate::published::find;

    fn plan(link: &str) -> Plan {
        Plan {
            link: link.parse().unwrap(),
            exec: Some(2),
            sizes: Vec::new(),
            cpus: Some(CpuPair { publisher: 1, subscriber: 0 }),
            wait: WaitStrategy::Block,
            is_small: false,
            domain: 7,
        }
    }

    #[test]
    fn ends_get_the_options_of_the_published_scripts() {
        let options = |name: &str, role| {
            let table = &find(name)[0];
            plan("lo").options(table, &table.rows[0], role, "lo").join(" ")
        };
        assert_eq!(
            options("pro-latency-1g-keyed-best-effort", Role::Publisher),
            "-pub -domain 7 -transport UDPv4 -nic lo -noPrintIntervals -noOutputHeaders -precise -bestEffort -keyed \
             -instances 100000 -threadCPUAffinity 1 -dataLen 32 -executionTime 2 -latencyTest"
        );
        assert_eq!(
            options("pro-throughput-10g-unkeyed-reliable-no-batch", Role::Subscriber),
            "-sub -domain 7 -transport UDPv4 -nic lo -noPrintIntervals -noOutputHeaders -precise -threadCPUAffinity 0"
        );
        let throughput = |name: &str| options(name, Role::Publisher).ends_with("-batchSize 0");
        assert!(throughput("pro-throughput-10g-unkeyed-reliable-no-batch"));
        assert!(!throughput("pro-throughput-10g-unkeyed-reliable-batch"));
        assert!(throughput("micro-throughput-xeon-1g-keyed-reliable"));
    }

    #[test]
    fn the_command_of_a_table_repeats_its_options() {
        let table = &find("pro-latency-1g-keyed-best-effort")[0];
        assert_eq!(
            plan("veth").command(table),
            "weir published run pro-latency-1g-keyed-best-effort --exec 2 --link veth --cpus 1,0"
        );
        let other =
            Plan { exec: None, sizes: vec![32, 64], cpus: None, wait: WaitStrategy::Spin, ..plan("lo") };
        let small = Plan { is_small: true, ..other.clone() };
        assert!(small.command(table).ends_with("--sizes 32,64 --profile small --wait spin"));
        let options = small.options(table, &table.rows[0], Role::Publisher, "lo");
        assert!(options.join(" ").contains(" -profile small "), "{options:?}");
        assert!(other.command(table).ends_with("best-effort --link lo --sizes 32,64 --wait spin"));
    }

    #[test]
    fn a_link_has_the_speed_of_the_table_by_default() {
        let table = &find("pro-throughput-10g-unkeyed-reliable-batch")[0];
        let link = |path: &str| plan(path).link(table).map(|link| link.to_string());
        assert_eq!(link("lo"), None);
        assert_eq!(link("veth").as_deref(), Some("veth,mtu=9000,rate=10G,gso=on"));
        assert_eq!(link("veth,rate=1G").as_deref(), Some("veth,mtu=1500,rate=1G,gso=on"));
        assert_eq!(
            link("lan1g,mtu=9000").as_deref(),
            Some("tun,mtu=9000,rate=1G,delay=100us,queue=262144,seed=1")
        );
        assert!("veth,nonsense".parse::<LinkChoice>().is_err());
        assert!("tun,nonsense".parse::<LinkChoice>().is_err());
    }

    #[test]
    fn rows_of_either_end_are_read() {
        let text = "                 32,    7.123,      0.4,    5.000,   50.100,    7.000,    8.000,    9.000,       20.000,       50.100*\n";
        let (figures_of, of_few) = figures(text, Test::Latency).unwrap();
        assert_eq!((figures_of.len(), figures_of[0], figures_of[8]), (9, 7.123, 50.1));
        assert_eq!((of_few.len(), of_few.iter().position(|is_of_few| *is_of_few)), (9, Some(8)));
        assert_eq!(figures(text, Test::Throughput), None);
        assert_eq!(figures("", Test::Latency), None);
        let text =
            "                 32,        100000,        500000,       128.0,            0,             0.00";
        assert_eq!(figures(text, Test::Throughput).unwrap().0[..2], [100_000.0, 500_000.0]);
    }

    #[test]
    fn a_failed_end_is_named_with_its_last_line() {
        let left = |code, stderr: &str| Left { code, stdout: String::new(), stderr: stderr.to_owned() };
        assert_eq!(trouble("publisher", &left(Some(1), "")), None);
        let found = trouble("publisher", &left(Some(3), "banner\nperftest: no interface\n\n")).unwrap();
        assert_eq!(found, "the publisher ended with code 3: no interface");
        assert!(trouble("subscriber", &left(None, "")).unwrap().contains("in time"));
    }

    #[test]
    fn the_share_of_the_link_is_known_where_its_speed_is() {
        let table = &find("pro-throughput-10g-unkeyed-reliable-no-batch")[0];
        let row = table.rows.iter().find(|row| row.size == 1024).unwrap();
        let link = Link { rate_bps: 10_000_000_000, mtu: 9000, framing: 14 };
        let figures = [0.0, link.samples_per_s(1024, 0) / 2.0, 0.0, 0.0, 0.0];
        let share = of_link(table, row, &plan("veth"), Some(&figures)).unwrap();
        assert!((share - 0.5).abs() < 1e-9);
        assert_eq!(of_link(table, row, &plan("lo"), Some(&figures)), None);
        assert_eq!((message_bytes(4096, 8192), message_bytes(4097, 8192)), (8384, 0));
        assert_eq!((message_bytes(32, 8192), message_bytes(32, 0)), (8192, 0));
    }
}
