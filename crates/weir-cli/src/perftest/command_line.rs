//! Parses arguments by RTI Perftest's rules: one dash, any case, unambiguous prefixes, the last value wins.

use std::collections::BTreeMap;

use super::options::{self, Fate, OptionDef, Side, Takes};

/// A parsed command line.
#[derive(Debug, Default)]
pub(super) struct Typed {
    /// Values by option, in their order on the command line.
    values: BTreeMap<&'static str, Vec<String>>,
    /// Options without effect, each with the reason.
    pub(super) notes: Vec<String>,
}

impl Typed {
    /// Parses the arguments, without the program name.
    ///
    /// # Errors
    /// A sentence that names the argument and what to do.
    pub(super) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut typed = Self::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let option = option_of(&argument)?;
            if let Fate::Refused(instead) = option.fate {
                return Err(format!("-{} is not supported: {instead}", option.name));
            }
            let is_value = |next: &String| !next.starts_with('-');
            let value = match option.takes {
                Takes::Nothing => String::new(),
                Takes::MaybeNumber(..) | Takes::MaybeText(_) => {
                    arguments.next_if(is_value).unwrap_or_default()
                }
                _ => arguments
                    .next_if(is_value)
                    .ok_or_else(|| format!("Missing '{}' after '-{}'", wanted(option.takes), option.name))?,
            };
            check(option, &value)?;
            if let Fate::Idle(why) = option.fate {
                let note = format!("-{} has no effect: {why}", option.name);
                if !typed.notes.contains(&note) {
                    typed.notes.push(note);
                }
            }
            typed.values.entry(option.name).or_default().push(value);
        }
        typed.check_sides()?;
        Ok(typed)
    }

    /// Whether an option was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The last value of an option.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    /// All values of an option.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The last value as a number, which `parse` has range-checked.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Rejects publisher options with `-sub` and subscriber options with `-pub`.
    fn check_sides(&self) -> Result<(), String> {
        let (publishes, subscribes) = (self.has("pub"), self.has("sub"));
        if publishes && subscribes {
            return Err("-pub and -sub exclude each other: start one process for each".to_owned());
        }
        for option in options::all().filter(|option| self.has(option.name)) {
            match option.side {
                Side::Publisher if subscribes => {
                    return Err(format!("-{} is for the publisher: leave it out with -sub", option.name));
                }
                Side::Subscriber if publishes => {
                    return Err(format!("-{} is for the subscriber: leave it out with -pub", option.name));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn option_of(argument: &str) -> Result<&'static OptionDef, String> {
    let unknown = || format!("Cannot parse '{argument}', invalid input. -help lists the options.");
    let spelling = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).ok_or_else(unknown)?;
    options::find(spelling).map_err(|candidates| match candidates[..] {
        [] => unknown(),
        _ => format!("'{argument}' is ambiguous: write one of {}", dashed(&candidates)),
    })
}

fn dashed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("-{name}")).collect();
    names.join(", ")
}

/// The placeholder of a value in messages and in the help.
pub(super) fn wanted(takes: Takes) -> String {
    match takes {
        Takes::Nothing => String::new(),
        Takes::Number(..) => "number".to_owned(),
        Takes::MaybeNumber(..) => "[number]".to_owned(),
        Takes::MaybeText(what) => format!("[{what}]"),
        Takes::OneOf(choices) => choices.join("|"),
        Takes::Text(what) => what.to_owned(),
    }
}

fn check(option: &OptionDef, value: &str) -> Result<(), String> {
    match option.takes {
        Takes::MaybeNumber(..) if value.is_empty() => Ok(()),
        Takes::Number(low, high) | Takes::MaybeNumber(low, high) => match value.parse::<u64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            _ => Err(format!("-{} takes a whole number from {low} to {high}, not '{value}'", option.name)),
        },
        Takes::OneOf(choices) if !choices.iter().any(|choice| choice.eq_ignore_ascii_case(value)) => {
            Err(format!("-{} takes one of {}, not '{value}'", option.name, choices.join(", ")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Typed, String> {
        Typed::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_command_lines_of_the_documents_are_understood() {
        let line = "-best -keyed -instances 100000 -datalen 32 -pub -transport UDPv4 -nic 172.16.1.1 -noPrint \
                    -noOutputHeaders -exec 30 -noXML -latencyTest";
        let typed = parse(line).unwrap();
        for name in ["bestEffort", "keyed", "pub", "noPrintIntervals", "noOutputHeaders", "latencyTest"] {
            assert!(typed.has(name), "-{name}");
        }
        assert_eq!(typed.number("instances"), Some(100_000));
        assert_eq!(typed.number("executionTime"), Some(30));
        assert_eq!(typed.text("nic"), Some("172.16.1.1"));
        assert_eq!(typed.notes, ["-noXmlQos has no effect: an XML file is read with -qosFile only"]);
        let batch = "-best -pub -batchSize 0 -noOutputHeaders -datalen 64 -noOutputHeaders -batchSize 0";
        assert_eq!(parse(batch).unwrap().number("batchSize"), Some(0));
    }

    #[test]
    fn the_last_of_several_wins_and_all_are_kept() {
        let typed = parse("-dataLen 32 -peer 10.0.0.1 -datal 64 -peer 10.0.0.2").unwrap();
        assert_eq!(typed.number("dataLen"), Some(64));
        assert_eq!(typed.all("peer"), ["10.0.0.1", "10.0.0.2"]);
        assert!(typed.text("nic").is_none() && typed.all("nic").is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        let table = [
            ("-dataLen", "Missing 'number' after '-dataLen'"),
            ("-dataLen -pub", "Missing 'number' after '-dataLen'"),
            ("-datalen 27", "-dataLen takes a whole number from 28 to 1073741824, not '27'"),
            ("-domain x", "-domain takes a whole number from 0 to 232, not 'x'"),
            ("-frobnicate", "Cannot parse '-frobnicate', invalid input."),
            ("32", "Cannot parse '32', invalid input."),
            ("-latency", "'-latency' is ambiguous: write one of -latencyCount, -latencyTest, -latencyFile"),
            ("-outputFormat xml", "-outputFormat takes one of csv, json, legacy, not 'xml'"),
            ("-sub -latencyTest", "-latencyTest is for the publisher"),
            ("-pub -sid 1", "-sidMultiSubTest is for the subscriber"),
            ("-pub -sub", "-pub and -sub exclude each other"),
        ];
        for (line, expected) in table {
            let error = parse(line).unwrap_err();
            assert!(error.starts_with(expected), "{line}: {error}");
        }
    }

    #[test]
    fn an_option_of_the_other_end_is_refused_only_where_the_end_was_named() {
        assert!(parse("-latencyTest").is_ok());
        assert!(parse("-sid 1").is_ok());
    }

    #[test]
    fn every_refused_option_says_so_whatever_follows_it() {
        for option in options::all() {
            let Fate::Refused(instead) = option.fate else { continue };
            for line in [format!("-{}", option.name), format!("-{} 1", option.name)] {
                let error = parse(&line).unwrap_err();
                assert_eq!(error, format!("-{} is not supported: {instead}", option.name));
            }
        }
    }

    #[test]
    fn every_idle_option_leaves_a_note() {
        for option in options::all() {
            let Fate::Idle(why) = option.fate else { continue };
            let value = if matches!(option.takes, Takes::Nothing) { "" } else { "28" };
            let typed = parse(&format!("-{} {value}", option.name)).unwrap();
            assert_eq!(typed.notes, [format!("-{} has no effect: {why}", option.name)]);
        }
    }
}
