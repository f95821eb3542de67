//! One row per case.

use serde_json::Value;
use weir_results::Case;

use super::{Cell, ExportTable, ExportType};
use crate::csv::{COLUMNS, LATER, fields, parts};
use crate::html::NamedRun;

/// Returns one row per case: the run, its case's number, the columns of `--format csv` without summaries of points, and
/// further ones.
pub(super) fn table(run: &NamedRun<'_>) -> ExportTable {
    let fields: Vec<(String, String)> = columns().collect();
    let leading = LEADING.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
    let others = fields.iter().map(|(name, _)| (name.clone(), kind_of(name)));
    let mut table = ExportTable::empty(leading.chain(others));
    let environment = &run.run.environment;
    for (number, case) in (1_u64..).zip(&run.run.cases) {
        let parts = parts(case, None);
        let leading: [Cell; LEADING.len()] = [
            run.name.into(),
            number.into(),
            environment.date.as_str().into(),
            environment.hostname.as_deref().into(),
            environment.weir_version.as_str().into(),
            environment.kernel.as_str().into(),
            environment.cpu_model.as_deref().into(),
            settings(case).as_deref().into(),
        ];
        let others = fields.iter().map(|(name, field)| cell(parts.pointer(field), kind_of(name)));
        table.push(leading.into_iter().chain(others));
    }
    table
}

const LEADING: [(&str, ExportType); 8] = [
    ("run", ExportType::Text),
    ("case", ExportType::Integer),
    ("date", ExportType::Text),
    ("hostname", ExportType::Text),
    ("weir_version", ExportType::Text),
    ("kernel", ExportType::Text),
    ("cpu_model", ExportType::Text),
    ("settings", ExportType::Text),
];

/// Columns that the CSV of `weir report` does not have.
const FURTHER: &[(&str, &str)] = &[
    ("/conditions", "keep_last"),
    (
        "/figures/discovery",
        "discovery_from_first_ms=from_first_ms discovery_from_last_ms=from_last_ms discovery_late_ms=late_ms",
    ),
    (
        "/figures/link",
        "link_payload_bytes=payload_bytes link_offered_per_payload_byte=offered_per_payload_byte \
         link_late_mean_us=late_mean_us link_late_max_us=late_max_us link_overrun_packets=overrun_packets",
    ),
    (
        "/figures/link/to_subscribers",
        "link_offered_packets=offered_packets link_offered_bytes=offered_bytes \
         link_delivered_packets=delivered_packets link_delivered_bytes=delivered_bytes \
         link_queue_full_packets=queue_full_packets link_lost_packets=lost_packets \
         link_queue_mean_bytes=queue_mean_bytes link_queue_max_bytes=queue_max_bytes \
         link_queue_mean_ms=queue_mean_ms link_queue_max_ms=queue_max_ms",
    ),
];

pub(super) fn columns() -> impl Iterator<Item = (String, String)> {
    // Summaries are of points, not of cases.
    let own = fields(COLUMNS).filter(|(_, field)| !field.starts_with("/summary"));
    own.chain(fields(FURTHER)).chain(fields(LATER))
}

/// Returns the type of a column; most are figures with fractions.
pub(super) fn kind_of(name: &str) -> ExportType {
    let is_in = |names: &str| names.split_ascii_whitespace().any(|it| it == name);
    if is_in(TEXTS) {
        ExportType::Text
    } else if is_in(FLAGS) {
        ExportType::Boolean
    } else if is_in(COUNTS) {
        ExportType::Integer
    } else {
        ExportType::Float
    }
}

const TEXTS: &str = "engine test reliability wait coalescing latency_kind not_measured warnings path mode direction \
     multicast_group beside";

const FLAGS: &str = "keyed multicast loans kept_awake duplex connected gro clocks_shared";

const COUNTS: &str = "instances batch_bytes size_bytes repeat publishers subscribers count latency_lost total_samples \
     lost duplicates reordered lost_sender lost_receiver_socket lost_in_between kernel_drops \
     publisher_switches_voluntary publisher_switches_involuntary publisher_max_rss_kib \
     subscriber_switches_voluntary subscriber_switches_involuntary subscriber_max_rss_kib publisher_samples \
     publisher_system_calls subscriber_samples subscriber_system_calls loss_placed loss_sender_refused \
     loss_sender_queue loss_path loss_receiver_host loss_receiver_socket loss_unplaced loss_sender_left_out \
     loss_receiver_rejected flows ip_version dscp reorder_extent_max longest_gap late corrupt foreign_datagrams \
     gso_fallbacks path_sent_bytes path_lost_bytes path_repaired_bytes path_waits keep_last link_payload_bytes \
     link_overrun_packets link_offered_packets link_offered_bytes link_delivered_packets link_delivered_bytes \
     link_queue_full_packets link_lost_packets \
     link_queue_max_bytes";

pub(super) fn cell(value: Option<&Value>, kind: ExportType) -> Cell {
    match (kind, value) {
        (ExportType::Text, Some(Value::String(text))) => text.as_str().into(),
        (ExportType::Boolean, Some(Value::Bool(flag))) => Cell::Boolean(*flag),
        (ExportType::Integer, Some(Value::Number(count))) => count.as_u64().into(),
        (ExportType::Float, Some(Value::Number(figure))) => figure.as_f64().into(),
        _ => Cell::Missing,
    }
}

/// Returns `name=value`, joined by semicolons.
fn settings(case: &Case) -> Option<String> {
    let settings: Vec<String> =
        case.conditions.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!settings.is_empty()).then(|| settings.join(";"))
}
