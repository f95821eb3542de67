//! One table of all cases, for spreadsheets and scripts.

use crate::compare::{ReportOptions, compare};
use crate::group::{Group, Point, groups};
use crate::json::rounded;
use weir_results::{Case, LatencySummary, ProcessFigures, Run, ThroughputSummary};

/// Returns all cases as CSV (RFC 4180, but with line feeds), one line each, in the order of
/// measuring.
///
/// There is one header. Cells of figures that a case does not have are empty. Columns, left to
/// right:
///
/// - conditions: `engine, test, reliability, keyed, instances, batch_bytes, size_bytes, wait,
///   repeat, publishers, subscribers, multicast, loans, coalescing, rate_samples_per_s, duration_s`
/// - latency: `latency_kind, count`, and in microseconds `mean_us, std_us, min_us, max_us, p50_us,
///   p90_us, p99_us, p99_99_us, p99_9999_us`, then `latency_lost`
/// - throughput: `offered_samples_per_s, total_samples, samples_per_s, mbps, lost, lost_percent,
///   duplicates, reordered, samples_per_datagram, datagrams_per_send`
/// - losses of the measured part: `lost_sender, lost_receiver_socket, lost_in_between,
///   kernel_drops`
/// - both processes: `cpu_user_s, cpu_system_s, switches_voluntary, switches_involuntary,
///   max_rss_kib`, prefixed by `publisher_` or `subscriber_`
/// - `not_measured` (why there are no figures) and `warnings` (codes, separated by spaces)
/// - both processes: `samples` (warm-up included) and `system_calls`
/// - `path` (the network between the ends), `kept_awake`
/// - open loop: `load_percent` and `lag_p50_us, lag_p99_us, lag_max_us`
/// - the point of which the case is a repeat, by the figure that decides (`p50_us` or
///   `samples_per_s`): `point_median, point_low, point_high` (95 % interval), `relative_to, ratio,
///   ratio_low, ratio_high, pairs, verdict`
/// - losses of the whole case, warm-up included: `loss_placed`, the sum of `loss_sender_refused,
///   loss_sender_queue, loss_path, loss_receiver_host, loss_receiver_socket, loss_unplaced`
/// - UDP tests: `lag_p99_9_us, mode, flows, direction, duplex, connected, gro, ip_version, dscp,
///   multicast_group, asked_mbps, offered_mbps, jitter_us, one_way_p99_9_us, reorder_extent_max,
///   reorder_extent_mean, longest_gap, late, corrupt, strangers, gso_fallbacks,
///   datagrams_per_receive, clocks_shared, clock_offset_us, clock_error_us, clock_drift_us,
///   sender_busy_percent`
///
/// New columns are added at the end, so that existing ones keep their positions.
///
/// # Panics
/// Never: writing into memory does not fail.
#[must_use]
pub fn csv(run: &Run, options: &ReportOptions) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let blank = Case::new("", weir_results::Test::Latency, weir_results::Reliability::None, 0);
    let mut header = cells(&blank);
    header.extend(point_cells(None, options));
    header.extend(later_cells(&blank));
    writer.write_record(header.iter().map(|(name, _)| name)).expect("writing into memory does not fail");
    let groups = groups(run);
    for case in &run.cases {
        let mut record = cells(case);
        record.extend(point_cells(find(&groups, case), options));
        record.extend(later_cells(case));
        writer
            .write_record(record.iter().map(|(_, value)| value))
            .expect("every case has the cells of the header");
    }
    let bytes = writer.into_inner().expect("writing into memory does not fail");
    String::from_utf8(bytes).expect("all cells are text")
}

/// Returns the cells of a case with their names, which are the same for every case.
fn cells(case: &Case) -> Vec<(String, String)> {
    let mut cells = vec![
        cell("engine", Some(&case.point.engine)),
        cell("test", Some(case.point.test)),
        cell("reliability", Some(case.point.reliability)),
        cell("keyed", Some(case.point.keyed)),
        cell("instances", Some(case.point.instances)),
        cell("batch_bytes", Some(case.point.batch_bytes)),
        cell("size_bytes", Some(case.point.size_bytes)),
        cell("wait", Some(case.conditions.wait)),
        cell("repeat", Some(case.conditions.repeat)),
        cell("publishers", Some(case.point.publishers)),
        cell("subscribers", Some(case.point.subscribers)),
        cell("multicast", Some(case.point.multicast)),
        cell("loans", Some(case.point.loans)),
        cell("coalescing", case.conditions.coalescing),
        cell("rate_samples_per_s", case.conditions.rate_samples_per_s),
        cell("duration_s", case.figures.duration_s),
    ];
    cells.extend(latency_cells(case.figures.latency_us.as_ref()));
    cells.extend(throughput_cells(case.figures.throughput.as_ref()));
    cells.extend([
        cell("lost_sender", case.evidence.loss.map(|loss| loss.sender)),
        cell("lost_receiver_socket", case.evidence.loss.map(|loss| loss.receiver_socket)),
        cell("lost_in_between", case.evidence.loss.map(|loss| loss.in_between)),
        cell("kernel_drops", case.evidence.loss.and_then(|loss| loss.kernel_drops)),
    ]);
    cells.extend(process_cells("publisher", case.figures.publisher.as_ref()));
    cells.extend(process_cells("subscriber", case.figures.subscriber.as_ref()));
    let codes: Vec<&str> = case.evidence.warnings.iter().map(weir_results::Warning::code).collect();
    cells.extend([
        cell("not_measured", case.evidence.not_measured.as_ref()),
        cell("warnings", Some(codes.join(" "))),
    ]);
    for (side, figures) in [("publisher", case.figures.publisher), ("subscriber", case.figures.subscriber)] {
        cells.push(cell(format!("{side}_samples"), figures.and_then(|figures| figures.samples)));
        cells.push(cell(format!("{side}_system_calls"), figures.and_then(|figures| figures.system_calls)));
    }
    cells.push(cell("path", case.conditions.path.as_ref()));
    cells.push(cell("kept_awake", Some(case.conditions.kept_awake)));
    cells.push(cell("load_percent", case.conditions.load_percent));
    let lag = case.figures.schedule_lag_us;
    cells.extend([
        cell("lag_p50_us", lag.map(|lag| lag.p50)),
        cell("lag_p99_us", lag.map(|lag| lag.p99)),
        cell("lag_max_us", lag.map(|lag| lag.max)),
    ]);
    cells
}

/// Returns the cells after those of the point: columns added later.
fn later_cells(case: &Case) -> Vec<(String, String)> {
    let loss = case.evidence.loss_attribution.as_ref();
    let mut cells = vec![
        cell("loss_placed", loss.map(|loss| loss.lost)),
        cell("loss_sender_refused", loss.map(|loss| loss.sender_refused)),
        cell("loss_sender_queue", loss.map(|loss| loss.sender_queue)),
        cell("loss_path", loss.map(|loss| loss.path)),
        cell("loss_receiver_host", loss.map(|loss| loss.receiver_host)),
        cell("loss_receiver_socket", loss.map(|loss| loss.receiver_socket)),
        cell("loss_unplaced", loss.map(|loss| loss.unplaced)),
    ];
    cells.extend(udp_cells(case));
    cells
}

/// Returns the cells that only UDP tests have.
fn udp_cells(case: &Case) -> Vec<(String, String)> {
    let udp = case.figures.udp.as_ref();
    let clocks = udp.and_then(|udp| udp.clocks);
    vec![
        cell("lag_p99_9_us", case.figures.schedule_lag_us.and_then(|lag| lag.p99_9)),
        cell("mode", udp.map(|udp| udp.mode)),
        cell("flows", udp.map(|udp| udp.flows)),
        cell("direction", udp.map(|udp| udp.direction)),
        cell("duplex", udp.map(|udp| udp.duplex)),
        cell("connected", udp.map(|udp| udp.connected)),
        cell("gro", udp.map(|udp| udp.gro)),
        cell("ip_version", udp.map(|udp| udp.ip_version)),
        cell("dscp", udp.and_then(|udp| udp.dscp)),
        cell("multicast_group", udp.and_then(|udp| udp.multicast.as_ref())),
        cell("asked_mbps", udp.and_then(|udp| udp.asked_mbps)),
        cell("offered_mbps", udp.map(|udp| udp.offered_mbps)),
        cell("jitter_us", udp.and_then(|udp| udp.jitter_us)),
        cell("one_way_p99_9_us", udp.and_then(|udp| udp.one_way_p99_9_us)),
        cell("reorder_extent_max", udp.map(|udp| udp.reorder_extent_max)),
        cell("reorder_extent_mean", udp.map(|udp| udp.reorder_extent_mean)),
        cell("longest_gap", udp.map(|udp| udp.longest_gap)),
        cell("late", udp.map(|udp| udp.late)),
        cell("corrupt", udp.map(|udp| udp.corrupt)),
        cell("strangers", udp.map(|udp| udp.strangers)),
        cell("gso_fallbacks", udp.map(|udp| udp.gso_fallbacks)),
        cell("datagrams_per_receive", udp.and_then(|udp| udp.datagrams_per_receive)),
        cell("clocks_shared", clocks.map(|clocks| clocks.shared)),
        cell("clock_offset_us", clocks.map(|clocks| clocks.offset_us)),
        cell("clock_error_us", clocks.map(|clocks| clocks.error_us)),
        cell("clock_drift_us", clocks.map(|clocks| clocks.drift_us)),
        cell("sender_busy_percent", udp.and_then(|udp| udp.sender_busy_percent)),
    ]
}

fn latency_cells(latency: Option<&LatencySummary>) -> [(String, String); 12] {
    // No round trip completed: there are no times.
    let time = |figure: fn(&LatencySummary) -> f64| latency.filter(|latency| latency.count > 0).map(figure);
    [
        cell("latency_kind", latency.map(|l| l.kind)),
        cell("count", latency.map(|l| l.count)),
        cell("mean_us", time(|l| l.mean)),
        cell("std_us", time(|l| l.std)),
        cell("min_us", time(|l| l.min)),
        cell("max_us", time(|l| l.max)),
        cell("p50_us", time(|l| l.p50)),
        cell("p90_us", time(|l| l.p90)),
        cell("p99_us", time(|l| l.p99)),
        cell("p99_99_us", time(|l| l.p99_99)),
        cell("p99_9999_us", time(|l| l.p99_9999)),
        cell("latency_lost", latency.map(|l| l.lost)),
    ]
}

fn throughput_cells(throughput: Option<&ThroughputSummary>) -> [(String, String); 10] {
    [
        cell("offered_samples_per_s", throughput.map(|t| t.offered_samples_per_s)),
        cell("total_samples", throughput.map(|t| t.total_samples)),
        cell("samples_per_s", throughput.map(|t| t.samples_per_s)),
        cell("mbps", throughput.map(|t| t.mbps)),
        cell("lost", throughput.map(|t| t.lost)),
        cell("lost_percent", throughput.map(|t| t.lost_percent)),
        cell("duplicates", throughput.map(|t| t.duplicates)),
        cell("reordered", throughput.map(|t| t.reordered)),
        cell("samples_per_datagram", throughput.and_then(|t| t.samples_per_datagram)),
        cell("datagrams_per_send", throughput.and_then(|t| t.datagrams_per_send)),
    ]
}

fn process_cells(side: &str, figures: Option<&ProcessFigures>) -> [(String, String); 5] {
    let name = |figure: &str| format!("{side}_{figure}");
    [
        cell(name("cpu_user_s"), figures.map(|f| f.cpu_user_s)),
        cell(name("cpu_system_s"), figures.map(|f| f.cpu_system_s)),
        cell(name("switches_voluntary"), figures.map(|f| f.context_switches_voluntary)),
        cell(name("switches_involuntary"), figures.map(|f| f.context_switches_involuntary)),
        cell(name("max_rss_kib"), figures.map(|f| f.max_rss_kib)),
    ]
}

/// Finds the point of which a case is a repeat; for a baseline its first one, since it is in
/// several groups.
fn find<'a, 'b>(groups: &'b [Group<'a>], case: &Case) -> Option<(&'b Group<'a>, &'b Point<'a>)> {
    groups.iter().find_map(|group| {
        let is_its = |point: &&Point<'_>| point.repeats.iter().any(|repeat| std::ptr::eq(*repeat, case));
        Some((group, group.points.iter().find(is_its)?))
    })
}

fn point_cells(of: Option<(&Group<'_>, &Point<'_>)>, options: &ReportOptions) -> [(String, String); 9] {
    let found = of.and_then(|(group, point)| compare(group, point, &options.relative_to));
    let interval = of.and_then(|(_, point)| point.interval());
    let ratio = found.and_then(|found| found.interval);
    [
        cell("point_median", of.and_then(|(_, point)| point.headline()).map(|spread| rounded(spread.median))),
        cell("point_low", interval.map(|interval| rounded(interval.low))),
        cell("point_high", interval.map(|interval| rounded(interval.high))),
        cell("relative_to", found.map(|_| &options.relative_to)),
        cell("ratio", found.map(|found| rounded(found.ratio))),
        cell("ratio_low", ratio.map(|interval| rounded(interval.low))),
        cell("ratio_high", ratio.map(|interval| rounded(interval.high))),
        cell("pairs", found.map(|found| found.pairs)),
        cell("verdict", found.map(|found| found.verdict.name())),
    ]
}

fn cell(name: impl Into<String>, value: Option<impl ToString>) -> (String, String) {
    (name.into(), value.map_or_else(String::new, |value| value.to_string()))
}
