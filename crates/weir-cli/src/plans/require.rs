//! The requirements of a study: `[[study.require]]`.

use std::path::Path;

use toml::de::{DeTable, DeValue};
use weir_report::{Limit, RatioOf, Reference, Requirement, Selector};
use weir_results::{Run, Test, parse_size};

use super::source::{Item, Plain, Source};
use crate::exit::Failure;

/// A requirement, and where it is in the plan.
#[derive(Clone, Debug)]
pub(crate) struct Required {
    pub(crate) requirement: Requirement,
    pub(super) at: usize,
}

/// The requirements of one or several tables. Each limit of a table is one.
pub(super) fn requirements(item: &Item<'_>, folder: &Path) -> Result<Vec<Required>, Failure> {
    let mut all = Vec::new();
    for (at, table) in item.tables()? {
        all.extend(of_table(item.source, at, table, folder)?);
    }
    Ok(all)
}

fn of_table(
    source: Source<'_>,
    at: usize,
    table: &DeTable<'_>,
    folder: &Path,
) -> Result<Vec<Required>, Failure> {
    let items = source.items(table);
    let mut selector = Selector::default();
    for item in &items {
        match item.key {
            "engine" => selector.engine = Some(item.text()?.to_owned()),
            "test" => selector.test = Some(item.text()?.parse().map_err(|error| item.error(error))?),
            "size" => selector.size_bytes = Some(size(item)?),
            "reliability" => {
                selector.reliability = Some(item.text()?.parse().map_err(|error| item.error(error))?);
            }
            "batch" => selector.batch_bytes = Some(size(item)?),
            _ => {}
        }
    }
    let reference = reference(&items, folder)?;
    let mut required = Vec::new();
    for item in &items {
        let Some(limit) = limit(item, reference.as_ref())? else { continue };
        let requirement = Requirement { selector: selector.clone(), limit };
        if selector.test.is_some_and(|test| requirement.test() != Some(test)) {
            let other = requirement.test().map_or("", Test::name);
            return Err(item.error(format!("`{}` is a figure of the {other} test", item.key)));
        }
        required.push(Required { requirement, at: item.at });
    }
    let has_ratio = |item: &Item<'_>| item.key.ends_with("_ratio");
    if reference.is_some() && !items.iter().any(has_ratio) {
        return Err(source.error(
            at,
            "the requirement has no ratio: add `max_ratio`, `min_ratio`, `max_p99_ratio` or `min_p99_ratio`",
        ));
    }
    if required.is_empty() {
        return Err(
            source.error(at, format!("the requirement has no limit: add one of {}", LIMITS.join(", ")))
        );
    }
    Ok(required)
}

/// The limit of a key; `None` for other keys.
fn limit(item: &Item<'_>, reference: Option<&Reference>) -> Result<Option<Limit>, Failure> {
    let to = || {
        let missing = || item.error(format!("`{}` needs `relative_to` or `relative_to_run`", item.key));
        reference.cloned().ok_or_else(missing)
    };
    Ok(Some(match item.key {
        "max_p50_us" => Limit::MaxP50(item.number()?),
        "max_p99_us" => Limit::MaxP99(item.number()?),
        "min_samples_per_s" => Limit::MinRate(item.number()?),
        "max_lost_percent" => Limit::MaxLostPercent(item.number()?),
        "no_loss" => match item.value.get_ref() {
            DeValue::Boolean(true) => Limit::NoLoss,
            _ => return Err(item.expected("true, or left out")),
        },
        "max_ratio" => Limit::MaxRatio(item.number()?, RatioOf::Headline, to()?),
        "min_ratio" => Limit::MinRatio(item.number()?, RatioOf::Headline, to()?),
        "max_p99_ratio" => Limit::MaxRatio(item.number()?, RatioOf::P99, to()?),
        "min_p99_ratio" => Limit::MinRatio(item.number()?, RatioOf::P99, to()?),
        key if SELECTORS.contains(&key) || REFERENCES.contains(&key) => return Ok(None),
        _ => {
            let known = SELECTORS.iter().chain(LIMITS).chain(REFERENCES).copied();
            return Err(item.unknown(known));
        }
    }))
}

/// What ratios are relative to.
fn reference(items: &[Item<'_>], folder: &Path) -> Result<Option<Reference>, Failure> {
    let find = |key: &str| items.iter().find(|item| item.key == key);
    match (find("relative_to"), find("relative_to_run")) {
        (None, None) => Ok(None),
        (Some(engine), None) => Ok(Some(Reference::Engine(engine.text()?.to_owned()))),
        (None, Some(path)) => {
            let name = path.text()?;
            let run = Run::load(folder.join(name)).map_err(|error| path.error(error))?;
            Ok(Some(Reference::Run { name: name.to_owned(), run: Box::new(run) }))
        }
        (Some(_), Some(path)) => {
            Err(path.error("`relative_to` and `relative_to_run`: leave one of them out"))
        }
    }
}

fn size(item: &Item<'_>) -> Result<u64, Failure> {
    match item.plain()? {
        Plain::Text(text) => parse_size(&text).map_err(|error| item.error(error)),
        _ => Err(item.expected("a size in bytes, such as 1024 or \"1k\"")),
    }
}

const SELECTORS: &[&str] = &["engine", "test", "size", "reliability", "batch"];
const LIMITS: &[&str] = &[
    "max_p50_us",
    "max_p99_us",
    "min_samples_per_s",
    "max_lost_percent",
    "no_loss",
    "max_ratio",
    "min_ratio",
    "max_p99_ratio",
    "min_p99_ratio",
];
const REFERENCES: &[&str] = &["relative_to", "relative_to_run"];
