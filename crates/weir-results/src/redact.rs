//! Runs without what identifies people and machines.
//!
//! Replaced are host names, addresses, user names, file paths and serial numbers. The same name gets the same
//! replacement in all runs that one [`Redactor`] has seen, so that it remains visible which runs are of the
//! same host. Replacements are valid values: addresses are those reserved for documentation (RFC 5737, RFC 3849,
//! RFC 6676, RFC 7042). Figures, dates, settings, and the models of processors and interfaces stay.

mod command;
mod patterns;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::Value;
use thiserror::Error;

use crate::{Environment, Run};

/// Replaces what identifies people and machines.
///
/// [`Redactor::learn`] collects the names of all runs before any of them is written.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Names in lower case, and their replacements.
    names: BTreeMap<String, String>,
    /// Replacements, which are not replaced again.
    aliases: BTreeSet<String>,
    addresses: BTreeMap<IpAddr, IpAddr>,
    /// Number of replacements of each kind.
    counts: BTreeMap<&'static str, usize>,
    /// Words of command lines that identify nothing, beside those that are always allowed.
    engines: BTreeSet<String>,
}

/// A run that cannot be redacted: a name in it is also a word of the format.
#[derive(Debug, Error)]
#[error("the run cannot be redacted, since a name in it is a word of the format: {0}")]
pub struct RedactError(#[from] serde_json::Error);

impl Redactor {
    /// Creates a redactor that also replaces these words, wherever they occur.
    #[must_use]
    pub fn new<'a>(also: impl IntoIterator<Item = &'a str>) -> Self {
        let mut redactor = Self::default();
        for word in also {
            redactor.learn_name("name", word);
        }
        redactor
    }

    /// Collects the names in a run.
    ///
    /// # Errors
    /// Never for runs that were read from a file.
    pub fn learn(&mut self, run: &Run) -> Result<(), RedactError> {
        self.engines.extend(run.cases.iter().map(|case| case.point.engine.to_ascii_lowercase()));
        for environment in std::iter::once(&run.environment).chain(&run.peer) {
            self.learn_environment(environment);
        }
        let mut value = serde_json::to_value(run)?;
        // Names are learned where they are replaced.
        self.replace_in(&mut value, "");
        Ok(())
    }

    /// Returns the run with all names replaced.
    ///
    /// # Errors
    /// If a name is also a word of the format, so that the result is not a run.
    pub fn redact(&mut self, run: &Run) -> Result<Run, RedactError> {
        self.learn(run)?;
        let mut value = serde_json::to_value(run)?;
        self.replace_in(&mut value, "");
        Ok(serde_json::from_value(value)?)
    }

    /// Returns a text with all known names replaced, and with what looks like an address, a path or a serial number.
    #[must_use]
    pub fn text(&mut self, text: &str) -> String {
        let known = self.replace_known(text);
        patterns::replace(&known, self)
    }

    fn learn_environment(&mut self, environment: &Environment) {
        if let Some(name) = &environment.hostname {
            self.learn_host(name);
        }
        for argument in &environment.command {
            self.argument(argument);
        }
    }

    /// Learns a host's name, its first label and its domain.
    fn learn_host(&mut self, name: &str) -> String {
        let name = name.trim_end_matches('.');
        if let Ok(address) = name.parse() {
            return self.address(address).to_string();
        }
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "" | "localhost" | "local") {
            return name.to_owned();
        }
        // Namespaces are of one host, so their names are not learned.
        if let Some((kind, namespace)) = name.split_once(':').filter(|_| lower.starts_with("netns:")) {
            return format!("{kind}:{}", self.replace_known(namespace));
        }
        if let Some((name, port)) = name.rsplit_once(':')
            && port.bytes().all(|it| it.is_ascii_digit())
        {
            return format!("{}:{port}", self.learn_host(name));
        }
        let alias = self.learn_name("host", name.split('.').next().unwrap_or(name));
        if let Some((_, domain)) = name.split_once('.') {
            self.names.entry(name.to_ascii_lowercase()).or_insert_with(|| alias.clone());
            self.names.entry(domain.to_ascii_lowercase()).or_insert_with(|| "example".to_owned());
        }
        alias
    }

    /// Learns a name, and returns its replacement, such as `host-1`.
    fn learn_name(&mut self, kind: &'static str, name: &str) -> String {
        let name = name.trim().to_ascii_lowercase();
        if name.is_empty() {
            return name;
        }
        if let Some(known) = self.names.get(&name) {
            return known.clone();
        }
        let number = self.counts.entry(kind).or_default();
        *number += 1;
        let alias = match kind {
            "path" => format!("{}{number}", patterns::PATH_ALIAS),
            "mac" => format!("00:00:5e:00:53:{:02x}", *number % 256),
            _ => format!("{kind}-{number}"),
        };
        self.names.insert(name, alias.clone());
        self.aliases.insert(alias.clone());
        alias
    }

    fn is_alias(&self, word: &str) -> bool {
        self.aliases.contains(word)
    }

    /// Returns the replacement of an address. Addresses that every host has are not replaced, nor are documentation's.
    fn address(&mut self, address: IpAddr) -> IpAddr {
        if is_of_no_host(address) {
            return address;
        }
        let number = self.addresses.len();
        *self.addresses.entry(address).or_insert_with(|| match address {
            IpAddr::V4(it) if it.is_multicast() => Ipv4Addr::new(233, 252, 0, number as u8).into(),
            IpAddr::V4(_) => documentation_v4(number).into(),
            IpAddr::V6(_) => Ipv6Addr::new(
                0x2001,
                0xdb8,
                0,
                0,
                0,
                0,
                (number >> 16) as u16,
                (number as u16).wrapping_add(1),
            )
            .into(),
        })
    }

    fn replace_in(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::String(text) => *text = self.string(key, text),
            Value::Array(values) => values.iter_mut().for_each(|it| self.replace_in(it, key)),
            Value::Object(members) => {
                for (member, value) in members.iter_mut() {
                    // The hosts of a run are records with a name.
                    let is_host = key == "hosts" && member == "name";
                    self.replace_in(value, if is_host { "host" } else { member });
                }
                // Columns of telemetry begin with names of interfaces: `enx0123456789ab.recv_packets`.
                let named: Vec<String> = members.keys().filter(|key| key.contains('.')).cloned().collect();
                for key in named {
                    let known = key.rsplit_once('.').map(|(name, column)| (self.replace_known(name), column));
                    let known =
                        known.map_or_else(|| key.clone(), |(name, column)| format!("{name}.{column}"));
                    let replaced = patterns::replace(&known, self);
                    if replaced != key
                        && let Some(value) = members.remove(&key)
                    {
                        members.insert(replaced, value);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn string(&mut self, key: &str, text: &str) -> String {
        match key {
            "histogram" | "engine" | "test" | "reliability" | "wait" | "coalescing" | "kind" | "code"
            | "stage" | "mode" | "direction" | "duplex" | "date" | "weir_version" => text.to_owned(),
            "command" => self.argument(text),
            _ if key.ends_with("boot_id") || key.contains("serial") => self.learn_name("id", text),
            _ if is_host_key(key) => {
                let replaced = patterns::replace(text, self);
                if replaced == text { self.learn_host(text) } else { replaced }
            }
            "user" | "username" | "user_name" => self.learn_name("user", text),
            _ => self.text(text),
        }
    }

    /// Replaces names that were learned, the longest first, where they are words of their own.
    fn replace_known(&self, text: &str) -> String {
        let mut names: Vec<(&String, &String)> = self.names.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let lower = text.to_ascii_lowercase();
        let mut replaced = String::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let starts_word = !lower[..at].ends_with(char::is_alphanumeric);
            let is_word = |name: &str| {
                let rest = &lower[at..];
                (starts_word || !name.starts_with(char::is_alphanumeric))
                    && rest.starts_with(name)
                    && !rest[name.len()..].starts_with(char::is_alphanumeric)
            };
            let found = names.iter().find(|(name, _)| is_word(name));
            if let Some((name, alias)) = found {
                replaced.push_str(alias);
                at += name.len();
            } else {
                let character = text[at..].chars().next().unwrap_or_default();
                replaced.push(character);
                at += character.len_utf8();
            }
        }
        replaced
    }
}

fn is_host_key(key: &str) -> bool {
    ["host", "hostname", "host_name", "address", "server", "client"]
        .iter()
        .any(|it| key == *it || key.strip_suffix(it).is_some_and(|rest| rest.ends_with('_')))
}

/// Whether an address identifies no host: loopback, unspecified, broadcast, well-known groups, documentation.
fn is_of_no_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            it.is_loopback()
                || it.is_unspecified()
                || it.is_broadcast()
                || it.is_documentation()
                || it.octets()[..2] == [198, 18]
                || it.octets()[..3] == [233, 252, 0]
                || it == DDS_GROUP
        }
        IpAddr::V6(it) => it.is_loopback() || it.is_unspecified() || it.segments()[..2] == [0x2001, 0xdb8],
    }
}

/// The group of DDS discovery (RTPS 2.5, 9.6.1.4.1).
const DDS_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The addresses of RFC 5737, then those of RFC 2544.
fn documentation_v4(number: usize) -> Ipv4Addr {
    let host = (number % 254) as u8 + 1;
    match number / 254 {
        0 => Ipv4Addr::new(192, 0, 2, host),
        1 => Ipv4Addr::new(198, 51, 100, host),
        2 => Ipv4Addr::new(203, 0, 113, host),
        block => Ipv4Addr::new(198, 18, (block - 3) as u8, host),
    }
}

#[cfg(test)]
mod tests;
