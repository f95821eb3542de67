//! `weir budget`: the memory of a participant within a limits table.

use serde_json::json;
use weir_dds::budget::{Budget, BudgetItem};
use weir_dds::{LimitsTable, StaticDiscovery};

use crate::args::{BudgetArgs, ComparisonFormat};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(args: &BudgetArgs) -> Result<Exit, Failure> {
    let table = LimitsTable::from_file(&args.limits).map_err(Failure::usage)?;
    if let Some(system) = &args.system {
        let system = StaticDiscovery::from_file(system).map_err(Failure::usage)?;
        table.check_system(&system, args.name.as_deref()).map_err(Failure::usage)?;
    }
    let budget = table.budget();
    let text = match args.format {
        ComparisonFormat::Table => in_columns(&budget),
        ComparisonFormat::Json => in_json(&budget),
    };
    output::data(&text).map(|()| Exit::Success)
}

/// Returns whether the memory of a part is reserved, or may be less.
fn kind_of(item: &BudgetItem) -> &'static str {
    if item.part.is_reserved() { "reserved" } else { "at most" }
}

fn in_columns(budget: &Budget) -> String {
    let header = ["item", "count", "bytes each", "bytes", ""].map(str::to_owned);
    let row = |item: &BudgetItem| {
        let BudgetItem { part, bytes_each, count, .. } = item;
        [
            part.name().to_owned(),
            count.to_string(),
            bytes_each.to_string(),
            item.bytes().to_string(),
            kind_of(item).to_owned(),
        ]
    };
    let total =
        ["total".to_owned(), String::new(), String::new(), budget.total().to_string(), "at most".to_owned()];
    let rows: Vec<_> = [header].into_iter().chain(budget.items.iter().map(row)).chain([total]).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let [name, count, each, bytes] = [0, 1, 2, 3].map(width);
    let line = |row: &[String; 5]| {
        let [a, b, c, d, e] = row;
        format!("{a:name$}  {b:>count$}  {c:>each$}  {d:>bytes$}  {e}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn in_json(budget: &Budget) -> String {
    let item = |item: &BudgetItem| {
        json!({
            "item": item.part.name(),
            "count": item.count,
            "bytes_each": item.bytes_each,
            "bytes": item.bytes(),
            "is_reserved": item.part.is_reserved(),
        })
    };
    let items: Vec<_> = budget.items.iter().map(item).collect();
    format!("{:#}\n", json!({ "items": items, "total_bytes": budget.total() }))
}

#[cfg(test)]
mod tests {
    use weir_dds::Limits;

    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_item_and_the_sum() {
        let budget = Budget::new(&Limits::SMALL);
        let text = in_columns(&budget);
        assert_eq!(text.lines().count(), budget.items.len() + 2);
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("total ") && last.contains(&budget.total().to_string()), "{last}");
    }

    #[test]
    fn json_has_the_same_figures() {
        let budget = Budget::new(&Limits::SMALL);
        let json: serde_json::Value = serde_json::from_str(&in_json(&budget)).unwrap();
        let sum: u64 =
            json["items"].as_array().unwrap().iter().map(|item| item["bytes"].as_u64().unwrap()).sum();
        assert_eq!(json["total_bytes"].as_u64(), Some(sum));
        assert_eq!(sum, budget.total() as u64);
    }
}
