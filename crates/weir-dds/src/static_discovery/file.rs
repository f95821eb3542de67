//! The tables of a file of static endpoints, and the values of keys.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weir_rtps::qos::Qos;
use weir_rtps::sedp::EndpointKind;
use weir_rtps::static_peers::StaticEndpoint;
use weir_wire::EntityId;

use super::error::StaticDiscoveryError;
use super::policies;
use super::{Endpoint, Participant};
use crate::qos::INFINITE;

pub(crate) type Result<T> = std::result::Result<T, StaticDiscoveryError>;

/// Longest name of a participant, topic or type, in bytes (RTPS 2.5, 9.6.3.2).
const NAME_MAX: usize = 256;
/// Largest entity key (RTPS 2.5, 9.3.1.2).
const ENTITY_KEY_MAX: u32 = 0xff_ffff;
/// Most endpoints of a participant: so many are kept of one that announces them.
const ENDPOINTS_MAX: usize = 4096;
/// Most participants: so many are kept.
const PARTICIPANTS_MAX: usize = 512;

/// The file: its name in errors, and its text.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// A table: its keys are taken one by one, and those that are left are unknown.
pub(crate) struct Table<'a> {
    source: Source<'a>,
    /// Where the table begins.
    at: usize,
    what: &'static str,
    keys: BTreeMap<&'a str, Item<'a>>,
    taken: Vec<&'static str>,
}

/// A key with its value.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    source: Source<'a>,
    key: &'a str,
    at: usize,
    value: &'a Spanned<DeValue<'a>>,
}

/// Reads the text of a file.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Participant>> {
    let source = Source { name, text };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.error(at, error.message())
    })?;
    let mut root = Table::new(source, 0, "file", document.get_ref());
    let tables = root.take("participant").map_or(Ok(Vec::new()), |item| item.tables("participant"))?;
    root.finish()?;
    if tables.len() > PARTICIPANTS_MAX {
        return Err(source.error(0, format!("{} participants: use at most {PARTICIPANTS_MAX}", tables.len())));
    }
    let mut participants: Vec<Participant> = Vec::new();
    for mut table in tables {
        let at = table.at;
        let name = table.required("name")?.name()?;
        if participants.iter().any(|known| known.name == name) {
            return Err(
                source.error(at, format!("there is another participant {name:?}: use each name once"))
            );
        }
        let hosts = table.take("hosts").map_or(Ok(Vec::new()), |item| item.hosts())?;
        let mut endpoints = Vec::new();
        for (key, kind) in [("writer", EndpointKind::Writer), ("reader", EndpointKind::Reader)] {
            for table in table.take(key).map_or(Ok(Vec::new()), |item| item.tables(key))? {
                let endpoint = endpoint(table, kind)?;
                check_key(source, &endpoints, &endpoint)?;
                endpoints.push(endpoint);
            }
        }
        table.finish()?;
        if endpoints.len() > ENDPOINTS_MAX {
            let text = format!(
                "participant {name:?} has {} endpoints: use at most {ENDPOINTS_MAX}",
                endpoints.len()
            );
            return Err(source.error(at, text));
        }
        participants.push(Participant { name, hosts, endpoints });
    }
    Ok(participants)
}

fn endpoint(mut table: Table<'_>, kind: EndpointKind) -> Result<Endpoint> {
    let line = table.source.line(table.at);
    let key = table.required("entity_key")?.integer(1, ENTITY_KEY_MAX)?;
    let topic = table.required("topic")?.name()?;
    let type_name = table.required("type")?.name()?;
    let is_keyed = table.take("keyed").map_or(Ok(false), |item| item.flag())?;
    let (entity, mut qos) = match kind {
        EndpointKind::Writer => (EntityId::user_writer(key, is_keyed), Qos::for_writer()),
        EndpointKind::Reader => (EntityId::user_reader(key, is_keyed), Qos::for_reader()),
    };
    policies::take(&mut table, kind, &mut qos)?;
    table.finish()?;
    Ok(Endpoint { line, known: StaticEndpoint { entity, topic, type_name, qos: Arc::new(qos) } })
}

/// Refuses two writers, or two readers, with the same key.
fn check_key(source: Source<'_>, known: &[Endpoint], added: &Endpoint) -> Result<()> {
    let of = |it: &Endpoint| (it.known.entity.is_writer(), [0, 1, 2].map(|at| it.known.entity.0[at]));
    match known.iter().find(|it| of(it) == of(added)) {
        Some(other) => {
            let text = format!("the entity key is that of line {}: use another one", other.line);
            Err(StaticDiscoveryError::at(source.name, added.line, text))
        }
        None => Ok(()),
    }
}

impl Source<'_> {
    pub(crate) fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    pub(crate) fn error(&self, at: usize, cause: impl std::fmt::Display) -> StaticDiscoveryError {
        StaticDiscoveryError::at(self.name, self.line(at), cause)
    }
}

impl<'a> Table<'a> {
    pub(crate) fn new(source: Source<'a>, at: usize, what: &'static str, table: &'a DeTable<'a>) -> Self {
        let item = |(key, value): (&'a Spanned<std::borrow::Cow<'a, str>>, &'a Spanned<DeValue<'a>>)| {
            let name: &'a str = key.get_ref();
            (name, Item { source, key: name, at: key.span().start, value })
        };
        Self { source, at, what, keys: table.iter().map(item).collect(), taken: Vec::new() }
    }

    /// Returns the value of a key.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Item<'a>> {
        self.taken.push(key);
        self.keys.remove(key)
    }

    fn required(&mut self, key: &'static str) -> Result<Item<'a>> {
        let missing = self.source.error(self.at, format!("the {} has no `{key}`", self.what));
        self.take(key).ok_or(missing)
    }

    /// Refuses keys that were not taken.
    pub(crate) fn finish(self) -> Result<()> {
        let Some(item) = self.keys.values().min_by_key(|item| item.at) else { return Ok(()) };
        let known = self.taken.join(", ");
        Err(item.error(format!("unknown key `{}`: a {} has the keys {known}", item.key, self.what)))
    }
}

impl<'a> Item<'a> {
    pub(super) fn error(&self, cause: impl std::fmt::Display) -> StaticDiscoveryError {
        self.source.error(self.at, cause)
    }

    /// An error: the value has another form.
    fn expected(&self, what: impl std::fmt::Display) -> StaticDiscoveryError {
        self.error(format!("`{}`: use {what}", self.key))
    }

    /// The line of the key, from 1.
    pub(crate) fn line(&self) -> usize {
        self.source.line(self.at)
    }

    /// A table.
    pub(crate) fn table(self, what: &'static str) -> Result<Table<'a>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Table::new(self.source, self.at, what, table)),
            _ => Err(self.expected(format!("a table [{}]", self.key))),
        }
    }

    /// The tables of an array.
    fn tables(self, what: &'static str) -> Result<Vec<Table<'a>>> {
        let DeValue::Array(array) = self.value.get_ref() else {
            return Err(self.expected(format!("tables [[...{}]]", self.key)));
        };
        let table = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::Table(table) => Ok(Table::new(self.source, value.span().start, what, table)),
            _ => Err(self.expected(format!("tables [[...{}]]", self.key))),
        };
        array.iter().map(table).collect()
    }

    fn text(&self) -> Result<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    fn name(&self) -> Result<String> {
        let text = self.text()?;
        if text.is_empty() || text.len() > NAME_MAX || text.contains('\0') {
            return Err(self.expected(format!("1 to {NAME_MAX} bytes")));
        }
        Ok(text.to_owned())
    }

    pub(super) fn flag(&self) -> Result<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.expected("true or false")),
        }
    }

    pub(crate) fn integer<T>(&self, min: T, max: T) -> Result<T>
    where
        T: TryFrom<i64> + PartialOrd + Copy + std::fmt::Display,
    {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| self.expected(format!("a number from {min} to {max}")))
    }

    /// One of the words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let found = self.text().ok().and_then(|text| words.iter().find(|(word, _)| *word == text));
        let names = || words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(" or ");
        found.map(|(_, value)| *value).ok_or_else(|| self.expected(names()))
    }

    /// A list of texts.
    pub(super) fn texts(&self) -> Result<Vec<&'a str>> {
        let what = "a list of texts in quotes";
        let DeValue::Array(array) = self.value.get_ref() else { return Err(self.expected(what)) };
        let text = |value: &'a Spanned<DeValue<'a>>| match value.get_ref() {
            DeValue::String(text) => Ok(&**text),
            _ => Err(self.expected(what)),
        };
        array.iter().map(text).collect()
    }

    fn hosts(&self) -> Result<Vec<Ipv4Addr>> {
        let host = |text: &str| {
            let host: Option<Ipv4Addr> = text.parse().ok();
            host.filter(|host| !host.is_unspecified() && !host.is_multicast() && !host.is_broadcast())
        };
        let hosts: Option<Vec<_>> = self.texts()?.into_iter().map(host).collect();
        hosts.ok_or_else(|| self.expected("IPv4 addresses of hosts, such as [\"192.168.1.20\"]"))
    }

    /// A period, such as `"100ms"`.
    pub(super) fn period(&self) -> Result<Duration> {
        let text = self.text().ok();
        text.and_then(period)
            .ok_or_else(|| self.expected("a period such as \"100ms\" (units ns, us, ms, s), or \"infinite\""))
    }
}

fn period(text: &str) -> Option<Duration> {
    if text == "infinite" {
        return Some(INFINITE);
    }
    let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
    let number: u64 = text[..digits].parse().ok()?;
    let nanos = match &text[digits..] {
        "ns" => number,
        "us" => number.checked_mul(1_000)?,
        "ms" => number.checked_mul(1_000_000)?,
        "s" => number.checked_mul(1_000_000_000)?,
        _ => return None,
    };
    // Longer ones cannot be announced (RTPS 2.5, 9.3.2, `Duration_t`).
    Some(Duration::from_nanos(nanos)).filter(|period| period.as_secs() < i32::MAX as u64)
}
