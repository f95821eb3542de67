//! What the manual says of a command.

use clap::{Arg, Command};

/// The page of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    /// The words to type, such as `weir udp server`.
    pub(crate) name: String,
    /// One line.
    pub(crate) about: String,
    /// The usage lines.
    pub(crate) usage: Vec<String>,
    /// Paragraphs of text.
    pub(crate) description: Vec<String>,
    /// Arguments and options by heading.
    pub(crate) sections: Vec<Section>,
    /// Text whose lines are kept.
    pub(crate) blocks: Vec<Block>,
    /// The exit codes with their meanings.
    pub(crate) exit_codes: String,
}

/// Options under one heading.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) items: Vec<Item>,
}

/// An option, an argument or a subcommand.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) spelling: String,
    pub(crate) text: String,
}

/// Lines under a heading.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
}

impl Page {
    /// The pages of a command and of all its subcommands that are not hidden.
    pub(crate) fn all_of(mut command: Command) -> Vec<Self> {
        command.build();
        let name = command.get_name().to_owned();
        let mut pages = Vec::new();
        Self::push(&mut pages, &mut command, name);
        pages
    }

    fn push(pages: &mut Vec<Self>, command: &mut Command, name: String) {
        pages.push(Self::of(command, name.clone()));
        for sub in command.get_subcommands_mut().filter(|sub| is_shown(sub)) {
            let name = format!("{name} {}", sub.get_name());
            Self::push(pages, sub, name);
        }
    }

    fn of(command: &mut Command, name: String) -> Self {
        let usage = command.render_usage().to_string();
        let usage = usage.trim_start_matches("Usage:").lines().map(|line| line.trim().to_owned()).collect();
        let mut page = Self { usage, about: text(command.get_about()), ..Self::default() };
        let is_root = !name.contains(' ');
        page.name = name;
        for sub in command.get_subcommands().filter(|sub| is_shown(sub)) {
            page.add("Commands", sub.get_name().to_owned(), text(sub.get_about()));
        }
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            if !is_root && arg.get_id() == "help" {
                continue;
            }
            let usual = if arg.is_positional() { "Arguments" } else { "Options" };
            page.add(arg.get_help_heading().unwrap_or(usual), spelling(arg), help(arg));
        }
        page.read_notes(&text(command.get_after_help()));
        page
    }

    /// Adds an item to the section of this title.
    pub(crate) fn add(&mut self, title: &str, spelling: String, text: String) {
        let item = Item { spelling, text };
        match self.sections.iter_mut().find(|section| section.title == title) {
            Some(section) => section.items.push(item),
            None => self.sections.push(Section { title: title.to_owned(), items: vec![item] }),
        }
    }

    /// Reads the text below the options. `Title:` alone on a line begins a block of lines, `Exit codes:` the exit
    /// codes; the rest is description.
    pub(crate) fn read_notes(&mut self, notes: &str) {
        for paragraph in notes.split("\n\n").map(|paragraph| paragraph.trim_matches('\n')) {
            let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
            if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                self.exit_codes = codes.to_owned();
            } else if let Some(title) = first.strip_suffix(':') {
                let lines =
                    rest.lines().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()).collect();
                self.blocks.push(Block { title: title.to_owned(), lines });
            } else if !paragraph.is_empty() {
                self.description.push(paragraph.to_owned());
            }
        }
        // The manual is the same for every build, whatever engines it contains.
        if let Some(block) = self.blocks.iter_mut().find(|block| block.title == "Engines") {
            block.lines = vec!["`weir bench --help` lists the engines of a build.".to_owned()];
        }
    }
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn text(styled: Option<&clap::builder::StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}

fn spelling(arg: &Arg) -> String {
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(_)) => format!("-{short}, {arg}"),
        _ => arg.to_string(),
    }
}

fn help(arg: &Arg) -> String {
    let mut help = text(arg.get_help());
    let defaults = arg.get_default_values();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let defaults: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        help += &format!(" [default: {}]", defaults.join(","));
    }
    let values = arg.get_possible_values();
    if arg.get_action().takes_values() && !values.is_empty() && !arg.is_hide_possible_values_set() {
        let names: Vec<_> =
            values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
        help += &format!(" [possible values: {}]", names.join(", "));
    }
    help
}
