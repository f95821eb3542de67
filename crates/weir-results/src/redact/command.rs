//! Command lines: options, numbers and Weir's own words stay, all else is replaced.

use std::net::IpAddr;

use super::Redactor;
use super::patterns;

impl Redactor {
    /// Replaces the names in one argument of a command line.
    pub(super) fn argument(&mut self, argument: &str) -> String {
        if !argument.starts_with('-') {
            return self.values(argument);
        }
        match argument.split_once('=') {
            Some((option, values)) => format!("{option}={}", self.values(values)),
            // A short option may have its value attached: `-oDIR`.
            None if argument.contains('/') => {
                let (option, value) = argument.split_at(argument.find('/').unwrap_or(argument.len()));
                format!("{}{}", self.short_option(option), self.values(value))
            }
            None => self.known_in_option(argument),
        }
    }

    /// Replaces names that were learned, also in the value attached to a short option: `-oNAME`.
    fn known_in_option(&self, argument: &str) -> String {
        match argument.char_indices().nth(2) {
            Some((at, _)) if !argument.starts_with("--") => {
                let (option, value) = argument.split_at(at);
                format!("{option}{}", self.replace_known(value))
            }
            _ => self.replace_known(argument),
        }
    }

    fn short_option(&mut self, option: &str) -> String {
        let end = option.char_indices().nth(2).map_or(option.len(), |(at, _)| at);
        let (option, value) = option.split_at(end);
        format!("{option}{}", if value.is_empty() { String::new() } else { self.value(value) })
    }

    /// Replaces the names in a list of values, each of which may have a name: `pub=a,sub=b`.
    fn values(&mut self, values: &str) -> String {
        if patterns::is_path(values) {
            return self.file(values);
        }
        let value = |value: &str| match value.split_once('=') {
            Some((name, value)) => format!("{}={}", self.value(name), self.value(value)),
            None => self.value(value),
        };
        values.split(',').map(value).collect::<Vec<_>>().join(",")
    }

    fn value(&mut self, value: &str) -> String {
        if value.is_empty() || is_number(value) || self.is_own_word(value) {
            return value.to_owned();
        }
        let known = self.text(value);
        if known != value || value.parse::<IpAddr>().is_ok() || value.starts_with(patterns::PATH_ALIAS) {
            return known;
        }
        match value.split_once(':') {
            Some((name, rest)) => format!("{}:{}", self.value(name), self.value(rest)),
            None => self.learn_name("name", value),
        }
    }

    /// Replaces a path. Its last part is a name of its own, since messages may quote it alone.
    fn file(&mut self, path: &str) -> String {
        let last = path.rsplit('/').next().unwrap_or(path);
        if path.starts_with(patterns::PATH_ALIAS) {
            return path.to_owned();
        }
        let alias = patterns::path(path, self);
        if !self.is_own_word(last) && !is_number(last) {
            self.learn_name("name", last);
        }
        alias
    }

    fn is_own_word(&self, word: &str) -> bool {
        let lower = word.to_ascii_lowercase();
        OWN_WORDS.split_ascii_whitespace().any(|it| it == lower) || self.engines.contains(&lower)
    }
}

/// Whether a value is a number with a unit, a range, or a list of them: `8k`, `1.5s`, `0-3`, `10%`.
fn is_number(value: &str) -> bool {
    value.starts_with(|it: char| it.is_ascii_digit() || "+-.".contains(it))
        && value.split(['-', ':', '/', 'x']).all(|part| {
            let unit = part.trim_start_matches(|it: char| it.is_ascii_digit() || "+.".contains(it));
            let dots = part.bytes().filter(|it| *it == b'.').count();
            dots < 2 && UNITS.split_ascii_whitespace().chain([""]).any(|it| it == unit)
        })
}

const UNITS: &str = "k K M G T B KiB MiB GiB kB MB GB s ms us ns m h % bit kbit Mbit Gbit kbps Mbps Gbps pps";

/// Words of Weir's command lines that identify nothing.
const OWN_WORDS: &str = "weir perftest udptest udpserver bench run udp pub sub doctor targets report compare published \
     export history redact lab server show list page smoke dds-latency dds-throughput latency throughput both all none \
     any auto on off true false reliable best-effort block spin veth tun host lo gso single batch segment interleaved \
     sequential shuffle fixed table csv json html markdown log view plain keyed unkeyed keep-last keep-all delay jitter \
     loss mtu rate queue burst reorder duplicate lan wifi wan lte satellite send receive up down forward reverse \
     publisher subscriber udp-gso localhost eth0 default max netns";
