//! A study: a section of a plan, as the options of `weir bench` or `weir udp`.

use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use toml::de::DeTable;

use super::require::{Required, requirements};
use super::source::{Item, Plain, Source};
use crate::args::{BenchArgs, UdpArgs};
use crate::exit::Failure;
use crate::workloads;

/// A section of a plan.
#[derive(Debug)]
pub(crate) struct Study {
    pub(crate) name: String,
    /// The options, with those of `[defaults]`.
    options: Vec<StudyOption>,
    pub(crate) args: StudyArgs,
    pub(crate) required: Vec<Required>,
    /// Where its table begins.
    at: usize,
}

/// The options of a study, by the command whose they are.
#[derive(Debug)]
pub(crate) enum StudyArgs {
    Bench(Box<BenchArgs>),
    Udp(Box<UdpArgs>),
}

/// The command whose options a study has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Bench,
    Udp,
}

/// Options of several studies, as far as each command has them.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    kind: Option<Kind>,
    bench: Vec<StudyOption>,
    udp: Vec<StudyOption>,
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
    /// Reads a section. Its options take precedence over the defaults, and the overrides over both.
    pub(super) fn parse(
        source: Source<'_>,
        at: usize,
        table: &DeTable<'_>,
        (defaults, overrides): (&Defaults, &Defaults),
        folder: Option<&Path>,
    ) -> Result<Self, Failure> {
        let items = source.items(table);
        let own = items.iter().find(|item| item.key == COMMAND).map(Kind::parse).transpose()?;
        let kind = overrides.kind.or(own).or(defaults.kind).unwrap_or_default();
        let command = kind.command();
        let (mut name, mut required, mut options) = (None, Vec::new(), defaults.of(kind).to_vec());
        for item in items {
            match item.key {
                COMMAND => {}
                "name" => name = Some(study_name(&item)?),
                "require" => {
                    required = folder.map_or(Ok(Vec::new()), |folder| requirements(&item, folder))?
                }
                _ => {
                    add(&mut options, option(&command, &item, &["name", "require", COMMAND])?);
                }
            }
        }
        overrides.of(kind).iter().for_each(|option| add(&mut options, option.clone()));
        let name = name.ok_or_else(|| source.error(at, "the study has no `name`"))?;
        let arguments = options.iter().flat_map(|option| &option.arguments);
        let parsed = command.try_get_matches_from(arguments).and_then(|matches| kind.args(&matches));
        let mut args = parsed.map_err(|error| {
            let text = first_paragraph(&error.to_string());
            source.error(place(&options, &text).unwrap_or(at), text)
        })?;
        // Paths in a plan are relative to it.
        if let StudyArgs::Bench(args) = &mut args {
            let settings = args.qos.settings.take();
            let folder = folder.unwrap_or(Path::new(""));
            args.qos.settings = settings.map(|path| folder.join(path));
            if let Some(name) = args.workload.workload.as_mut().filter(|name| !workloads::is_ready(name)) {
                *name = folder.join(&*name).display().to_string();
            }
        }
        Ok(Self { name, options, args, required, at })
    }

    /// The equivalent arguments of its command.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.options.iter().flat_map(|option| &option.arguments).map(String::as_str)
    }

    /// The command whose options it has: `bench` or `udp`.
    pub(crate) fn command(&self) -> &'static str {
        match self.args {
            StudyArgs::Bench(_) => Kind::Bench.name(),
            StudyArgs::Udp(_) => Kind::Udp.name(),
        }
    }

    /// The first option that another version of the study has not got or has otherwise.
    pub(super) fn changed<'s>(&'s self, other: &'s Self) -> Option<&'s str> {
        if self.command() != other.command() {
            return Some(COMMAND);
        }
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

impl Kind {
    fn parse(item: &Item<'_>) -> Result<Self, Failure> {
        match item.text()? {
            "bench" => Ok(Self::Bench),
            "udp" => Ok(Self::Udp),
            _ => Err(item.expected("\"bench\" or \"udp\"")),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::Udp => "udp",
        }
    }

    /// The options, without a program in front.
    fn command(self) -> Command {
        let command = Command::new("weir run");
        let command = match self {
            Self::Bench => BenchArgs::augment_args(command),
            Self::Udp => UdpArgs::augment_args(command),
        };
        command.no_binary_name(true).disable_help_flag(true)
    }

    fn args(self, matches: &ArgMatches) -> Result<StudyArgs, clap::Error> {
        Ok(match self {
            Self::Bench => StudyArgs::Bench(Box::new(BenchArgs::from_arg_matches(matches)?)),
            Self::Udp => StudyArgs::Udp(Box::new(UdpArgs::from_arg_matches(matches)?)),
        })
    }
}

impl Defaults {
    /// Reads options that at least one of the commands has.
    pub(super) fn parse(source: Source<'_>, table: &DeTable<'_>) -> Result<Self, Failure> {
        let commands = [Kind::Bench, Kind::Udp].map(Kind::command);
        let mut defaults = Self::default();
        for item in source.items(table) {
            if item.key == COMMAND {
                defaults.kind = Some(Kind::parse(&item)?);
                continue;
            }
            match commands.each_ref().map(|command| option(command, &item, &[COMMAND])) {
                [Err(error), Err(_)] => return Err(error),
                [bench, udp] => {
                    defaults.bench.extend(bench);
                    defaults.udp.extend(udp);
                }
            }
        }
        Ok(defaults)
    }

    fn of(&self, kind: Kind) -> &[StudyOption] {
        match kind {
            Kind::Bench => &self.bench,
            Kind::Udp => &self.udp,
        }
    }
}

/// Adds an option, or replaces its value.
fn add(options: &mut Vec<StudyOption>, option: StudyOption) {
    options.retain(|other| other.name != option.name);
    options.push(option);
}

/// The key that names the command of a study.
const COMMAND: &str = "command";

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
        // An empty list leaves the option out, even one of the defaults.
        Plain::List(texts) if texts.is_empty() && argument.get_value_delimiter().is_none() => Vec::new(),
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
        "show-workload" => Some("`weir bench --show-workload` prints one"),
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
