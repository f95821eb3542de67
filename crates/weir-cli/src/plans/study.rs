//! A study: a section of a plan, as the options of `weir bench`.

use std::path::Path;

use clap::{Arg, ArgAction, Args, Command, FromArgMatches};
use toml::de::DeTable;

use super::require::{Required, requirements};
use super::source::{Item, Plain, Source};
use crate::args::BenchArgs;
use crate::exit::Failure;

/// A section of a plan.
#[derive(Debug)]
pub(crate) struct Study {
    pub(crate) name: String,
    /// The options, with those of `[defaults]`.
    options: Vec<StudyOption>,
    pub(crate) args: Box<BenchArgs>,
    pub(crate) required: Vec<Required>,
    /// Where its table begins.
    at: usize,
}

/// An option of a study.
#[derive(Clone, Debug)]
pub(super) struct StudyOption {
    /// The long name, without dashes in front.
    name: String,
    at: usize,
    arguments: Vec<String>,
}

impl Study {
    /// Reads a section. Its options take precedence over the defaults.
    pub(super) fn parse(
        source: Source<'_>,
        at: usize,
        table: &DeTable<'_>,
        defaults: &[StudyOption],
        folder: Option<&Path>,
    ) -> Result<Self, Failure> {
        let command = command();
        let (mut name, mut required, mut options) = (None, Vec::new(), defaults.to_vec());
        for item in source.items(table) {
            match item.key {
                "name" => name = Some(study_name(&item)?),
                "require" => {
                    required = folder.map_or(Ok(Vec::new()), |folder| requirements(&item, folder))?
                }
                _ => {
                    let option = option(&command, &item, &["name", "require"])?;
                    options.retain(|other| other.name != option.name);
                    options.push(option);
                }
            }
        }
        let name = name.ok_or_else(|| source.error(at, "the study has no `name`"))?;
        let arguments = options.iter().flat_map(|option| &option.arguments);
        let parsed = command.try_get_matches_from(arguments);
        let parsed = parsed.and_then(|matches| BenchArgs::from_arg_matches(&matches));
        let mut args = parsed.map_err(|error| {
            let text = first_paragraph(&error.to_string());
            source.error(place(&options, &text).unwrap_or(at), text)
        })?;
        // Paths in a plan are relative to it.
        args.qos.settings = args.qos.settings.map(|path| folder.unwrap_or(Path::new("")).join(path));
        Ok(Self { name, options, args: Box::new(args), required, at })
    }

    /// The equivalent arguments of `weir bench`.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|option| &option.arguments).map(String::as_str)
    }

    /// The first option that another version of the study has not got or has otherwise.
    pub(super) fn changed<'s>(&'s self, other: &'s Self) -> Option<&'s str> {
        let differs = |option: &&StudyOption, of: &Self| {
            !of.options.iter().any(|it| it.name == option.name && it.arguments == option.arguments)
        };
        let mine = self.options.iter().find(|option| differs(option, other));
        mine.or_else(|| other.options.iter().find(|option| differs(option, self)))
            .map(|option| option.name.as_str())
    }

    /// An error of this study: at the option that the text names, or at its beginning.
    pub(super) fn error(&self, source: Source<'_>, text: &str) -> Failure {
        source.error(place(&self.options, text).unwrap_or(self.at), text)
    }
}

/// The options of `weir bench`, without a program in front.
fn command() -> Command {
    BenchArgs::augment_args(Command::new("weir run")).no_binary_name(true).disable_help_flag(true)
}

/// The options of `[defaults]`.
pub(super) fn defaults(source: Source<'_>, table: &DeTable<'_>) -> Result<Vec<StudyOption>, Failure> {
    let command = command();
    source.items(table).iter().map(|item| option(&command, item, &[])).collect()
}

/// A name is that of a folder, too.
fn study_name(item: &Item<'_>) -> Result<String, Failure> {
    let name = item.text()?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if starts_well && name.len() <= 100 && name.chars().all(is_plain) {
        return Ok(name.to_owned());
    }
    Err(item.expected("letters, digits, `-`, `_` and `.`, at most 100: it names a folder"))
}

fn option(command: &Command, item: &Item<'_>, others: &[&str]) -> Result<StudyOption, Failure> {
    let wanted = item.key.replace('_', "-");
    let is_wanted = |argument: &&Arg| {
        argument.get_long() == Some(&wanted)
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&wanted.as_str()))
    };
    let Some(argument) = command.get_arguments().find(is_wanted) else {
        let known =
            command.get_arguments().filter_map(Arg::get_long).filter(|name| elsewhere(name).is_none());
        let known: Vec<String> = known.map(|name| name.replace('-', "_")).collect();
        return Err(item.unknown(known.iter().map(String::as_str).chain(others.iter().copied())));
    };
    let name = argument.get_long().unwrap_or(&wanted).to_owned();
    if let Some(advice) = elsewhere(&name) {
        return Err(item.error(format!("`{}` is no key of a plan: {advice}", item.key)));
    }
    let with = |value: &str| format!("--{name}={value}");
    let takes_values = !matches!(argument.get_action(), ArgAction::SetTrue);
    let is_repeated =
        matches!(argument.get_action(), ArgAction::Append) && argument.get_value_delimiter().is_none();
    let arguments = match item.plain()? {
        Plain::Flag(false) if !takes_values => Vec::new(),
        Plain::Flag(true) if !takes_values => vec![format!("--{name}")],
        _ if !takes_values => return Err(item.expected("true or false")),
        Plain::Flag(flag) => vec![with(&flag.to_string())],
        Plain::Text(text) => vec![with(&text)],
        Plain::List(texts) if is_repeated => texts.iter().map(|text| with(text)).collect(),
        Plain::List(texts) => vec![with(&texts.join(","))],
    };
    Ok(StudyOption { name, at: item.at, arguments })
}

/// Where an option of `weir bench` is set, if not in a plan.
fn elsewhere(name: &str) -> Option<&'static str> {
    match name {
        "output" => Some("`weir run --output` sets the folder of all studies"),
        "verbose" => Some("use `weir run --verbose`"),
        "progress" => Some("use `weir run --progress`"),
        "format" => Some("`weir report --format` prints the results of a study in other forms"),
        "show-settings" => Some("`weir bench --show-settings` prints them"),
        _ => None,
    }
}

/// Where the first option that a text names is set.
fn place(options: &[StudyOption], text: &str) -> Option<usize> {
    let words = text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
    let named = words.filter_map(|word| word.strip_prefix("--"));
    named
        .filter_map(|name| options.iter().rev().find(|option| option.name == name))
        .map(|option| option.at)
        .next()
}

/// The message of clap, without usage and advice about a command line.
fn first_paragraph(text: &str) -> String {
    let lines = text.trim_start_matches("error: ").lines();
    lines.take_while(|line| !line.trim().is_empty()).map(str::trim).collect::<Vec<_>>().join(" ")
}
