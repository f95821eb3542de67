//! The manual of all commands: man pages and one Markdown page, both generated from the command lines.
//!
//! - `page`: what the manual says of a command, read from its clap definition
//! - `man`, `markdown`: the two forms

mod man;
mod markdown;
mod page;

use clap::CommandFactory;

pub(crate) use man::{file_name, man};
pub(crate) use markdown::markdown;
pub(crate) use page::{Block, Page};

use crate::args::Args;
use crate::{perftest, udpserver, udptest};

/// The pages of all commands and subcommands that are not hidden.
pub(crate) fn pages() -> Vec<Page> {
    let mut pages = Page::all_of(Args::command());
    pages.push(perftest::page());
    pages.extend(Page::all_of(udptest::command()));
    pages.extend(Page::all_of(udpserver::command()));
    pages
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;

    /// Commands of the examples, without comment, redirection and `sudo`.
    fn examples(page: &Page) -> Vec<Vec<String>> {
        let lines =
            page.blocks.iter().filter(|block| block.title == "Examples").flat_map(|block| &block.lines);
        let commands = lines.map(|line| line.split([';', '#', '>', '|']).next().unwrap_or_default());
        let words = commands.map(|line| line.split_whitespace().map(str::to_owned).collect());
        words.filter(|words: &Vec<String>| !words.is_empty()).collect()
    }

    fn accepts(words: &[String]) -> Result<(), String> {
        let parse = |command: Command| {
            command.try_get_matches_from(words).map(drop).map_err(|error| error.to_string())
        };
        match words[0].as_str() {
            "weir" => parse(Args::command()),
            "udptest" => parse(udptest::command()),
            "udpserver" => parse(udpserver::command()),
            "perftest" => perftest::check(&words[1..]),
            other => Err(format!("{other} is none of our commands")),
        }
    }

    #[test]
    fn a_page_keeps_every_paragraph_of_a_help() {
        let page = pages().into_iter().find(|page| page.name == "weir compare").unwrap();
        let begins = |words: &str| page.description.iter().any(|paragraph| paragraph.starts_with(words));
        assert!(begins("Compares the medians") && begins("Runs may have names"), "{:?}", page.description);
    }

    #[test]
    fn every_example_is_accepted_and_there_are_two_to_five() {
        for page in pages() {
            let examples = examples(&page);
            assert!((2..=5).contains(&examples.len()), "{}: {examples:?}", page.name);
            for mut words in examples {
                words.retain(|word| word != "sudo");
                assert_eq!(accepts(&words), Ok(()), "{}: {words:?}", page.name);
            }
        }
    }

    #[test]
    fn every_page_states_its_exit_codes() {
        for page in pages() {
            assert!(page.exit_codes.contains("2 usage"), "{}: {}", page.name, page.exit_codes);
        }
    }

    #[test]
    fn helps_mention_only_options_that_the_command_has() {
        for page in pages().iter().filter(|page| page.name != "perftest") {
            let items = page.sections.iter().flat_map(|section| &section.items);
            let known: BTreeSet<String> = items.clone().flat_map(|item| options(&item.spelling)).collect();
            for item in items {
                // A command in backquotes has options of its own.
                let own = item.text.split('`').step_by(2).collect::<String>();
                let unknown: Vec<String> = options(&own).filter(|name| !known.contains(name)).collect();
                assert!(unknown.is_empty(), "{}: {} mentions {unknown:?}", page.name, item.spelling);
            }
        }
    }

    #[test]
    fn texts_of_options_are_one_sentence_each() {
        for page in pages() {
            for item in page.sections.iter().flat_map(|section| &section.items) {
                let text = &item.text;
                let is_sentence = text.starts_with(|c: char| c.is_ascii_uppercase()) && !text.ends_with('.');
                let is_short = text.chars().count() <= 120 && !text.contains('\n');
                assert!(is_sentence && is_short, "{}: {}: {text}", page.name, item.spelling);
            }
        }
    }

    fn options(text: &str) -> impl Iterator<Item = String> {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        words.filter(|word| word.starts_with("--")).map(str::to_owned)
    }

    #[test]
    fn long_lists_of_options_have_headings() {
        for page in pages() {
            let bare = page.sections.iter().filter(|section| section.title == "Options");
            for section in bare {
                assert!(
                    section.items.len() <= 8,
                    "{}: {} options without headings",
                    page.name,
                    section.items.len()
                );
            }
        }
    }
}
