//! The keys of policies in a file of static endpoints. Policies without a key have the defaults of the specification.

use weir_rtps::qos::{
    DestinationOrder, Durability, LivelinessKind, Ownership, PresentationScope, Qos, Reliability, XCDR1,
    XCDR2,
};
use weir_rtps::sedp::EndpointKind;

use super::file::{Item, Result, Table};

/// Takes the keys of policies.
pub(super) fn take(table: &mut Table<'_>, kind: EndpointKind, qos: &mut Qos) -> Result<()> {
    set(table, "reliability", &mut qos.reliability, |item| {
        item.word(&[("best_effort", Reliability::BestEffort), ("reliable", Reliability::Reliable)])
    })?;
    set(table, "durability", &mut qos.durability, |item| {
        item.word(&[
            ("volatile", Durability::Volatile),
            ("transient_local", Durability::TransientLocal),
            ("transient", Durability::Transient),
            ("persistent", Durability::Persistent),
        ])
    })?;
    set(table, "deadline", &mut qos.deadline, |item| item.period())?;
    set(table, "latency_budget", &mut qos.latency_budget, |item| item.period())?;
    set(table, "liveliness", &mut qos.liveliness.kind, |item| {
        item.word(&[
            ("automatic", LivelinessKind::Automatic),
            ("manual_by_participant", LivelinessKind::ManualByParticipant),
            ("manual_by_topic", LivelinessKind::ManualByTopic),
        ])
    })?;
    set(table, "liveliness_lease", &mut qos.liveliness.lease, |item| item.period())?;
    set(table, "ownership", &mut qos.ownership, |item| {
        item.word(&[("shared", Ownership::Shared), ("exclusive", Ownership::Exclusive)])
    })?;
    if kind == EndpointKind::Writer {
        set(table, "ownership_strength", &mut qos.ownership_strength, |item| {
            item.integer(i32::MIN, i32::MAX)
        })?;
    }
    set(table, "destination_order", &mut qos.destination_order, |item| {
        item.word(&[
            ("by_reception_timestamp", DestinationOrder::ByReceptionTimestamp),
            ("by_source_timestamp", DestinationOrder::BySourceTimestamp),
        ])
    })?;
    set(table, "access_scope", &mut qos.presentation.scope, |item| {
        item.word(&[
            ("instance", PresentationScope::Instance),
            ("topic", PresentationScope::Topic),
            ("group", PresentationScope::Group),
        ])
    })?;
    set(table, "coherent_access", &mut qos.presentation.coherent_access, |item| item.flag())?;
    set(table, "ordered_access", &mut qos.presentation.ordered_access, |item| item.flag())?;
    set(table, "partition", &mut qos.partition, |item| {
        Ok(item.texts()?.into_iter().map(str::to_owned).collect())
    })?;
    set(table, "representation", &mut qos.representation, |item| {
        let ids = item.texts()?.into_iter().map(|text| match text {
            "xcdr1" => Ok(XCDR1),
            "xcdr2" => Ok(XCDR2),
            _ => Err(item.error(format!("`representation` has {text:?}: use \"xcdr1\" or \"xcdr2\""))),
        });
        ids.collect()
    })
}

fn set<'a, T>(
    table: &mut Table<'a>,
    key: &'static str,
    field: &mut T,
    value: impl FnOnce(Item<'a>) -> Result<T>,
) -> Result<()> {
    if let Some(item) = table.take(key) {
        *field = value(item)?;
    }
    Ok(())
}
