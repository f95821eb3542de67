//! The text of a plan, its values, and errors that name file, line and cause.

use anyhow::anyhow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::Failure;

/// A plan's name and text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    /// The file, or the name of a ready-made plan.
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// Where the keys of the command line begin.
    pub(super) file_bytes: usize,
}

/// A key with its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) source: Source<'a>,
    pub(super) key: &'a str,
    /// Where the key is in the text.
    pub(super) at: usize,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Flag(bool),
    Text(String),
    List(Vec<String>),
}

impl<'a> Source<'a> {
    /// An error at a place in the text.
    pub(super) fn error(&self, at: usize, cause: impl std::fmt::Display) -> Failure {
        if at >= self.file_bytes {
            return Failure::usage(anyhow!("--set: {cause}"));
        }
        let line = 1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        Failure::usage(anyhow!("{}, line {line}: {cause}", self.name))
    }

    /// The items of a table in the order of the text.
    pub(super) fn items(self, table: &'a DeTable<'a>) -> Vec<Item<'a>> {
        let item = |(key, value): (&'a Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let name: &std::borrow::Cow<'a, str> = key.get_ref();
            Item { source: self, key: name, at: key.span().start, value }
        };
        let mut items: Vec<Item<'a>> = table.iter().map(item).collect();
        items.sort_by_key(|item| item.at);
        items
    }
}

impl<'a> Item<'a> {
    /// An error at this key.
    pub(super) fn error(&self, cause: impl std::fmt::Display) -> Failure {
        self.source.error(self.at, cause)
    }

    /// An error: the value has another form.
    pub(super) fn expected(&self, what: &str) -> Failure {
        self.source.error(self.value.span().start, format!("`{}` is {what}", self.key))
    }

    /// The error of a key that is not one of these.
    pub(super) fn unknown<'k>(&self, known: impl IntoIterator<Item = &'k str>) -> Failure {
        let nearest = nearest(self.key, known);
        let hint = nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
        self.error(format!("unknown key `{}`{hint}", self.key))
    }

    pub(super) fn text(&self) -> Result<&'a str, Failure> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    pub(super) fn number(&self) -> Result<f64, Failure> {
        let number = match self.value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => scalar(self.value.get_ref()),
            _ => None,
        };
        let number =
            number.and_then(|text| text.parse().ok()).filter(|it: &f64| it.is_finite() && *it >= 0.0);
        number.ok_or_else(|| self.expected("a number of at least 0"))
    }

    pub(super) fn table(&self) -> Result<&'a DeTable<'a>, Failure> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.expected(&format!("a table: [{}]", self.key))),
        }
    }

    /// The tables of an array, each with its place. A single table counts as an array of one.
    pub(super) fn tables(&self) -> Result<Vec<(usize, &'a DeTable<'a>)>, Failure> {
        let array = match self.value.get_ref() {
            DeValue::Table(table) => return Ok(vec![(self.at, table)]),
            DeValue::Array(array) => array,
            _ => return Err(self.expected(&format!("an array of tables: [[{}]]", self.key))),
        };
        let table = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::Table(table) => Ok((value.span().start, table)),
            _ => Err(self.expected(&format!("an array of tables: [[{}]]", self.key))),
        };
        array.iter().map(table).collect()
    }

    /// The value of an option.
    pub(super) fn plain(&self) -> Result<Plain, Failure> {
        let wrong = || self.expected("a text, a number, true or false, or an array of these");
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(Plain::Flag(*flag)),
            DeValue::Array(array) => {
                let texts = array.iter().map(|value| scalar(value.get_ref()).ok_or_else(wrong));
                texts.collect::<Result<_, _>>().map(Plain::List)
            }
            other => scalar(other).map(Plain::Text).ok_or_else(wrong),
        }
    }
}

/// A text, number or truth value as an option has it.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

/// The candidate that a misspelt word is closest to, if any is close.
fn nearest<'k>(word: &str, candidates: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let close = 1 + word.chars().count() / 4;
    let distances = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    distances.filter(|(distance, _)| *distance <= close).min().map(|(_, candidate)| candidate)
}

/// Characters to insert, delete or replace (Levenshtein distance).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, character) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, of_other) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(character != *of_other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_proposed_if_it_is_close() {
        let words = ["sizes", "tests", "until_width"];
        assert_eq!(nearest("sizse", words), Some("sizes"));
        assert_eq!(nearest("until-width", words), Some("until_width"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
