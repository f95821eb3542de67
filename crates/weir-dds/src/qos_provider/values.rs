//! Durations, limits, numbers and bytes, and where they are in a file.

use std::time::Duration;

use base64::Engine as _;
use roxmltree::{Attribute, Node, TextPos};

use super::error::QosProfileError;
use crate::qos::{INFINITE, USER_DATA_MAX};

type Result<T = ()> = std::result::Result<T, QosProfileError>;

/// Where an element begins.
#[derive(Debug, Clone)]
pub(super) struct Place {
    file: String,
    position: TextPos,
}

impl Place {
    pub(super) fn of(file: &str, node: &Node<'_, '_>) -> Self {
        Self { file: file.to_owned(), position: node.document().text_pos_at(node.range().start) }
    }

    pub(super) fn error(&self, cause: impl std::fmt::Display) -> QosProfileError {
        QosProfileError::at(&self.file, self.position, cause)
    }

    pub(super) fn text(&self, text: impl std::fmt::Display) -> String {
        format!("{}:{}: {text}", self.file, self.position.row)
    }
}

/// An element whose value is to be read.
#[derive(Clone, Copy)]
pub(super) struct Value<'a, 'b> {
    pub(super) file: &'a str,
    pub(super) node: Node<'b, 'b>,
}

impl Value<'_, '_> {
    pub(super) fn name(&self) -> &str {
        self.node.tag_name().name()
    }

    pub(super) fn error(&self, cause: impl std::fmt::Display) -> QosProfileError {
        Place::of(self.file, &self.node).error(cause)
    }

    /// The text of an element without elements. Comments may be within it.
    pub(super) fn text(&self) -> Result<String> {
        check_attributes(self.file, &self.node, &[], &[])?;
        if let Some(child) = self.node.children().find(Node::is_element) {
            let cause =
                format!("<{}> has a value, and no element <{}>", self.name(), child.tag_name().name());
            return Err(self.error(cause));
        }
        let texts = self.node.children().filter(Node::is_text).filter_map(|child| child.text());
        Ok(texts.collect::<String>().trim().to_owned())
    }

    pub(super) fn bool(&self) -> Result<bool> {
        match &*self.text()? {
            "true" | "TRUE" | "1" | "BOOLEAN_TRUE" | "DDS_BOOLEAN_TRUE" => Ok(true),
            "false" | "FALSE" | "0" | "BOOLEAN_FALSE" | "DDS_BOOLEAN_FALSE" => Ok(false),
            other => Err(self.error(format!("<{}> is {other:?}: use true or false", self.name()))),
        }
    }

    pub(super) fn i32(&self) -> Result<i32> {
        let text = &*self.text()?;
        text.parse().map_err(|_| {
            let cause =
                format!("<{}> is {text:?}: use a number from {} to {}", self.name(), i32::MIN, i32::MAX);
            self.error(cause)
        })
    }

    /// A positive number.
    pub(super) fn depth(&self) -> Result<u32> {
        let text = &*self.text()?;
        let number = text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number > 0).ok_or_else(|| {
            self.error(format!("<{}> is {text:?}: use a number from 1 to {}", self.name(), i32::MAX))
        })
    }

    /// A positive number; `None`: unlimited.
    pub(super) fn limit(&self) -> Result<Option<u32>> {
        match &*self.text()? {
            "LENGTH_UNLIMITED" | "DDS_LENGTH_UNLIMITED" | "-1" => Ok(None),
            text => match text.parse::<i32>().ok().and_then(|limit| u32::try_from(limit).ok()) {
                Some(limit @ 1..) => Ok(Some(limit)),
                _ => {
                    let cause =
                        format!("<{}> is {text:?}: use a positive number or LENGTH_UNLIMITED", self.name());
                    Err(self.error(cause))
                }
            },
        }
    }

    /// One of the kinds, with or without its suffix.
    pub(super) fn kind<T: Copy>(&self, suffix: &str, kinds: &[(&str, T)]) -> Result<T> {
        let text = &*self.text()?;
        let short = text.strip_prefix("DDS_").unwrap_or(text);
        let short = short.strip_suffix(suffix).unwrap_or(short);
        kinds.iter().find(|(name, _)| *name == short).map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<_> = kinds.iter().map(|(name, _)| format!("{name}{suffix}")).collect();
            self.error(format!("<{}> is {text:?}: use {}", self.name(), names.join(" or ")))
        })
    }

    /// Seconds and nanoseconds, or infinite.
    pub(super) fn duration(&self) -> Result<Duration> {
        let (mut seconds, mut nanos) = (0, 0);
        let mut has_any = false;
        for node in self.node.children().filter(Node::is_element) {
            let part = Value { file: self.file, node };
            has_any = true;
            match part.name() {
                "sec" => seconds = part.part_of_duration("SEC")?,
                "nanosec" => nanos = part.part_of_duration("NSEC")?,
                other => {
                    let cause =
                        format!("<{}> has no element <{other}>: use <sec> and <nanosec>", self.name());
                    return Err(part.error(cause));
                }
            }
        }
        if !has_any {
            let cause = format!("<{}> has no value: use <sec> and <nanosec>", self.name());
            return Err(self.error(cause));
        }
        check_content(self.file, &self.node, &[], &[])?;
        match (seconds, nanos) {
            (ENDLESS, _) | (_, ENDLESS) => Ok(INFINITE),
            (_, 1_000_000_000..) => Err(self.error("<nanosec> is a whole second or more: use <sec>")),
            _ => Ok(Duration::new(u64::from(seconds), nanos)),
        }
    }

    fn part_of_duration(&self, unit: &str) -> Result<u32> {
        let text = &*self.text()?;
        let short = text.strip_prefix("DDS_").unwrap_or(text);
        match short.strip_prefix("DURATION_") {
            Some("INFINITY" | "INFINITE") => return Ok(ENDLESS),
            Some(named) if named == format!("INFINITE_{unit}") => return Ok(ENDLESS),
            Some(named) if named == format!("ZERO_{unit}") => return Ok(0),
            _ => {}
        }
        // The largest number and the largest signed one stand for infinite, too.
        text.parse::<u32>().map(|number| if number >= i32::MAX as u32 { ENDLESS } else { number }).map_err(
            |_| {
                let cause =
                    format!("<{}> is {text:?}: use a number, or DURATION_INFINITE_{unit}", self.name());
                self.error(cause)
            },
        )
    }

    /// Bytes in base 64, or as numbers separated by commas.
    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        let text = &*self.text()?;
        // One number has at most three digits. More of them are base 64.
        let is_number = text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_list = text.contains(',') || is_number;
        let bytes = match text {
            "" => Some(Vec::new()),
            _ if is_list => text.split(',').map(|number| byte_of(number.trim())).collect(),
            _ => {
                let packed: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                base64::engine::general_purpose::STANDARD.decode(packed).ok()
            }
        };
        let bytes = bytes.ok_or_else(|| {
            let cause =
                format!("<{}> is neither base 64 nor numbers up to 255 separated by commas", self.name());
            self.error(cause)
        })?;
        if bytes.len() > USER_DATA_MAX {
            let cause = format!("<{}> has {} bytes: use at most {USER_DATA_MAX}", self.name(), bytes.len());
            return Err(self.error(cause));
        }
        Ok(bytes)
    }

    /// The texts of the elements with this name.
    pub(super) fn list(&self, element: &str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        check_content(self.file, &self.node, &[], &[])?;
        for node in self.node.children().filter(Node::is_element) {
            let item = Value { file: self.file, node };
            if item.name() != element {
                let cause = format!("<{}> has no element <{}>: use <{element}>", self.name(), item.name());
                return Err(item.error(cause));
            }
            texts.push(item.text()?);
        }
        Ok(texts)
    }
}

/// Refuses text in an element that has elements, and attributes other than the known ones.
/// `skipped`: attributes without effect.
pub(super) fn check_content(
    file: &str,
    node: &Node<'_, '_>,
    attributes: &[&str],
    skipped: &[&str],
) -> Result {
    check_attributes(file, node, attributes, skipped)?;
    let name = node.tag_name().name();
    for child in node.children().filter(Node::is_text) {
        let text = child.text().unwrap_or_default();
        let stray = text.trim_start();
        if !stray.is_empty() {
            let position = node.document().text_pos_at(child.range().start + text.len() - stray.len());
            let cause = format!("<{name}> has elements, and no text {:?}", stray.trim_end());
            return Err(QosProfileError::at(file, position, cause));
        }
    }
    Ok(())
}

/// Refuses attributes other than the known ones. Those of XML Schema are for validators.
fn check_attributes(file: &str, node: &Node<'_, '_>, known: &[&str], skipped: &[&str]) -> Result {
    let is_known = |it: &Attribute<'_, '_>| match it.namespace() {
        Some(namespace) => namespace == XML_SCHEMA_INSTANCE,
        None => known.contains(&it.name()) || skipped.contains(&it.name()),
    };
    let Some(attribute) = node.attributes().find(|it| !is_known(it)) else { return Ok(()) };
    let (name, attribute) = (node.tag_name().name(), attribute.name());
    let cause = format!("<{name}> has no attribute {attribute:?}{}", similar(attribute, known));
    Err(Place::of(file, node).error(cause))
}

fn byte_of(text: &str) -> Option<u8> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns a hint at the most similar name, if one is similar.
pub(super) fn similar(name: &str, known: &[&str]) -> String {
    let near = known.iter().map(|known| (distance(name, known), known)).min();
    match near.filter(|(distance, known)| *distance <= 2.max(known.len() / 4)) {
        Some((_, known)) => format!("; did you mean {known:?}?"),
        None => String::new(),
    }
}

/// The number of characters to insert, remove or replace (Levenshtein), of names of at most 64 characters.
fn distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().take(64).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = core::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

const ENDLESS: u32 = u32::MAX;
/// The namespace of `xsi:schemaLocation`.
const XML_SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
