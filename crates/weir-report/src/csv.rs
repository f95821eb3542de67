//! One table of all cases, for spreadsheets and scripts.

use serde_json::{Value, json};
use weir_results::{Case, Run, Warning};

use crate::compare::{ReportOptions, times};
use crate::group::{Group, groups};
use crate::json::entry;

/// Returns all cases as CSV (RFC 4180, but with line feeds), one line each, in the order of
/// measuring. (Workloads have several.)
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
///   reorder_extent_mean, longest_gap, late, corrupt, foreign_datagrams, gso_fallbacks,
///   datagrams_per_receive, clocks_shared, clock_offset_us, clock_error_us, clock_drift_us,
///   sender_busy_percent`
/// - the path to the (first) subscriber's host, by the publisher's engine: `path_round_trip_min_ms, path_round_trip_ms,
///   path_queue_ms, path_rate_mbps, path_in_flight_bytes, path_sent_bytes, path_lost_bytes, path_repaired_bytes,
///   path_waits`
/// - what shared the link: `beside, beside_mbps`
/// - workloads, whose cases have a line for each kind of topics: `workload, workload_cpu_percent, topics`, then of
///   these topics `topic_count, topic_writers, topic_readers, topic_size_bytes, topic_reliability, topic_keep_last,
///   topic_instances, topic_rate_hz, topic_burst, topic_due_samples_per_s, topic_sent_samples_per_s, topic_expected,
///   topic_received, topic_lost, topic_duplicates, age_p50_us, age_p99_us, age_p99_9_us, age_max_us,
///   topic_lag_p99_us`, then of all `workload_digest`
/// - losses by what the engines count, which are part of `loss_placed`: `loss_sender_left_out, loss_receiver_rejected`
///
/// New columns are added at the end, so that existing ones keep their positions.
///
/// # Panics
/// Never: writing into memory does not fail.
#[must_use]
pub fn csv(run: &Run, options: &ReportOptions) -> String {
    let groups = groups(run);
    let records = |case: &Case| -> Vec<Vec<String>> {
        let parts = parts(case, summary(&groups, case, options));
        let record = |topics: &Value| {
            let value = |field: &str| match field.strip_prefix(TOPICS) {
                Some(field) => topics.pointer(field),
                None => parts.pointer(field),
            };
            columns().map(|(_, field)| value(&field).map_or_else(String::new, text)).collect()
        };
        let topics = case.figures.workload.iter().flat_map(|workload| &workload.groups);
        let mut records: Vec<Vec<String>> = topics.map(|topics| record(&json!(topics))).collect();
        if records.is_empty() {
            records.push(record(&Value::Null));
        }
        records
    };
    let header: Vec<String> = columns().map(|(name, _)| name).collect();
    written(std::iter::once(header).chain(run.cases.iter().flat_map(records)))
}

/// Returns the names of the columns and where their values are in [`parts`].
fn columns() -> impl Iterator<Item = (String, String)> {
    fields(COLUMNS).chain(fields(TOPIC_COLUMNS)).chain(fields(LATER))
}

/// Columns that were added since, see [`COLUMNS`]. They are the last ones of every table.
pub(crate) const LATER: &[(&str, &str)] = &[(
    "/evidence/attribution",
    "loss_sender_left_out=sender_left_out loss_receiver_rejected=receiver_rejected",
)];

/// The part of a kind of topics of a workload, which is a line of its own.
const TOPICS: &str = "/topics";

/// The columns of these, see [`COLUMNS`].
const TOPIC_COLUMNS: &[(&str, &str)] = &[
    ("/conditions", "workload=workload_name"),
    ("/figures/workload", "workload_cpu_percent=cpu_percent"),
    (
        TOPICS,
        "topics=name topic_count=topics topic_writers=writers topic_readers=readers topic_size_bytes=size_bytes \
         topic_reliability=reliability topic_keep_last=keep_last topic_instances=instances topic_rate_hz=rate_hz \
         topic_burst=burst topic_due_samples_per_s=due_samples_per_s topic_sent_samples_per_s=sent_samples_per_s \
         topic_expected=expected topic_received=received topic_lost=lost topic_duplicates=duplicates \
         age_p50_us=age_us/p50 age_p99_us=age_us/p99 age_p99_9_us=age_us/p99_9 age_max_us=age_us/max \
         topic_lag_p99_us=schedule_lag_us/p99",
    ),
    ("/conditions", "workload_digest"),
];

/// Returns the names of columns and where their values are in [`parts`].
pub(crate) fn fields(
    columns: &'static [(&'static str, &'static str)],
) -> impl Iterator<Item = (String, String)> {
    columns.iter().flat_map(|&(part, names)| {
        names.split(' ').map(move |name| {
            let (name, field) = name.split_once('=').unwrap_or((name, name));
            (name.to_owned(), format!("{part}/{field}"))
        })
    })
}

/// The columns by part of a case, see [`parts`]: `column`, or `column=field` where the results format has another name
/// for it.
pub(crate) const COLUMNS: &[(&str, &str)] = &[
    ("/point", "engine test reliability keyed instances batch_bytes size_bytes"),
    ("/conditions", "wait repeat"),
    ("/always", "publishers subscribers multicast loans"),
    ("/conditions", "coalescing rate_samples_per_s"),
    ("/figures", "duration_s"),
    ("/figures/latency_us", "latency_kind=kind count"),
    (
        "/times",
        "mean_us=mean std_us=std min_us=min max_us=max p50_us=p50 p90_us=p90 p99_us=p99 p99_99_us=p99_99 \
         p99_9999_us=p99_9999",
    ),
    ("/figures/latency_us", "latency_lost=lost"),
    (
        "/figures/throughput",
        "offered_samples_per_s total_samples samples_per_s mbps lost lost_percent duplicates reordered \
         samples_per_datagram datagrams_per_send",
    ),
    (
        "/evidence/loss",
        "lost_sender=sender lost_receiver_socket=receiver_socket lost_in_between=in_between kernel_drops",
    ),
    (
        "/figures",
        "publisher_cpu_user_s=publisher/cpu_user_s publisher_cpu_system_s=publisher/cpu_system_s \
         publisher_switches_voluntary=publisher/context_switches_voluntary \
         publisher_switches_involuntary=publisher/context_switches_involuntary \
         publisher_max_rss_kib=publisher/max_rss_kib \
         subscriber_cpu_user_s=subscriber/cpu_user_s subscriber_cpu_system_s=subscriber/cpu_system_s \
         subscriber_switches_voluntary=subscriber/context_switches_voluntary \
         subscriber_switches_involuntary=subscriber/context_switches_involuntary \
         subscriber_max_rss_kib=subscriber/max_rss_kib",
    ),
    ("/always", "not_measured warnings"),
    (
        "/figures",
        "publisher_samples=publisher/samples publisher_system_calls=publisher/system_calls \
         subscriber_samples=subscriber/samples subscriber_system_calls=subscriber/system_calls",
    ),
    ("/conditions", "path"),
    ("/always", "kept_awake"),
    ("/conditions", "load_percent"),
    ("/figures/schedule_lag_us", "lag_p50_us=p50 lag_p99_us=p99 lag_max_us=max"),
    ("/summary", "point_median=median point_low=interval_95/0 point_high=interval_95/1"),
    (
        "/summary/relative_to",
        "relative_to=engine ratio ratio_low=interval_95/0 ratio_high=interval_95/1 pairs verdict",
    ),
    (
        "/evidence/attribution",
        "loss_placed=lost loss_sender_refused=sender_refused loss_sender_queue=sender_queue loss_path=path \
         loss_receiver_host=receiver_host loss_receiver_socket=receiver_socket loss_unplaced=unplaced",
    ),
    ("/figures/schedule_lag_us", "lag_p99_9_us=p99_9"),
    (
        "/figures/udp",
        "mode flows direction duplex connected gro ip_version dscp multicast_group=multicast asked_mbps \
         offered_mbps jitter_us one_way_p99_9_us reorder_extent_max reorder_extent_mean longest_gap late corrupt \
         foreign_datagrams gso_fallbacks datagrams_per_receive",
    ),
    (
        "/figures/udp/clocks",
        "clocks_shared=shared clock_offset_us=offset_us clock_error_us=error_us clock_drift_us=drift_us",
    ),
    ("/figures/udp", "sender_busy_percent"),
    (
        "/figures/paths/0",
        "path_round_trip_min_ms=round_trip_min_ms path_round_trip_ms=round_trip_ms path_queue_ms=queue_ms \
         path_rate_mbps=rate_mbps path_in_flight_bytes=in_flight_bytes path_sent_bytes=sent_bytes \
         path_lost_bytes=lost_bytes path_repaired_bytes=repaired_bytes path_waits=waits",
    ),
    ("/conditions", "beside"),
    ("/figures", "beside_mbps"),
];

/// The parts of a case in the results format, and the point of which it is a repeat. `always`: what the format leaves
/// out or writes differently.
pub(crate) fn parts(case: &Case, summary: Option<Value>) -> Value {
    let codes: Vec<&str> = case.evidence.warnings.iter().map(Warning::code).collect();
    json!({
        "point": case.point,
        "conditions": case.conditions,
        "figures": case.figures,
        "times": times(case),
        "evidence": { "loss": case.evidence.loss, "attribution": case.evidence.loss_attribution },
        "always": {
            "publishers": case.point.publishers,
            "subscribers": case.point.subscribers,
            "multicast": case.point.multicast,
            "loans": case.point.loans,
            "kept_awake": case.conditions.kept_awake,
            "not_measured": case.evidence.not_measured.as_ref().map(ToString::to_string),
            "warnings": codes.join(" "),
        },
        "summary": summary,
    })
}

/// Returns the summary of the point of which a case is a repeat; for a baseline of its first one,
/// since it is in several groups.
fn summary(groups: &[Group<'_>], case: &Case, options: &ReportOptions) -> Option<Value> {
    groups.iter().find_map(|group| {
        let point =
            group.points.iter().find(|point| point.repeats.iter().any(|it| std::ptr::eq(*it, case)))?;
        Some(entry(group, point, options))
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // Without `.0` if it is whole.
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

/// Returns rows as CSV under these names.
///
/// # Panics
/// If a row has another length than the names.
#[must_use]
pub fn csv_text(names: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let header = names.iter().map(|it| (*it).to_owned()).collect();
    written(std::iter::once(header).chain(rows))
}

/// Writes records of equal length as CSV.
pub(crate) fn written(records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("every record has the cells of the header");
    }
    let bytes = writer.into_inner().expect("writing into memory does not fail");
    String::from_utf8(bytes).expect("all cells are text")
}
