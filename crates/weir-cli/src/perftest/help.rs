//! `-help` and the manual page, made from the table of options.

use std::fmt::Write as _;

use super::command_line::wanted;
use super::options::{self, OptionDef, Side, Takes};
use crate::exit::exit_codes;
use crate::manual::{Block, Page};
use crate::text::{WIDTH, list_item, wrapped};

/// The page of the manual.
pub(crate) fn page() -> Page {
    let mut page = Page {
        name: "perftest".to_owned(),
        about: "Run the procedure of RTI Perftest 4.3 on Weir's DDS engine".to_owned(),
        usage: ["perftest -pub [OPTIONS]", "perftest [-sub] [OPTIONS]"].map(str::to_owned).to_vec(),
        ..Page::default()
    };
    for group in options::WORKING {
        for option in group.options {
            let side = match option.side {
                Side::Both => "",
                Side::Publisher => " (publisher)",
                Side::Subscriber => " (subscriber)",
            };
            page.add(group.title, spelling(option), format!("{}{side}", option.about));
        }
    }
    page.read_notes(NOTES);
    let idle = options::IDLE.iter().map(|option| {
        (
            vec![option.name],
            match option.fate {
                options::Fate::Idle(why) => why,
                _ => "",
            },
        )
    });
    let refused = options::REFUSED.iter().map(|(why, names)| (names.split(' ').collect(), *why));
    page.blocks.push(compact("Accepted without effect", idle));
    page.blocks.push(compact("Not supported", refused));
    page
}

/// The text for standard output.
pub(super) fn help() -> String {
    let page = page();
    let mut text = format!("{}\n\nUsage: {}\n", page.about, page.usage.join("\n       "));
    for section in &page.sections {
        _ = writeln!(text, "\n{}:", section.title);
        for item in &section.items {
            text += &list_item(&item.spelling, &item.text, 34);
        }
    }
    for paragraph in &page.description {
        _ = writeln!(text, "\n{}", wrapped(paragraph, WIDTH, 0));
    }
    let (examples, rest) = page.blocks.split_at(1);
    push_blocks(&mut text, examples);
    _ = writeln!(text, "\nExit codes: {}", page.exit_codes);
    push_blocks(&mut text, rest);
    text
}

fn push_blocks(text: &mut String, blocks: &[Block]) {
    for block in blocks {
        _ = write!(text, "\n{}:\n  {}\n", block.title, block.lines.join("\n  "));
    }
}

/// Names with the reason that they share, a few lines each.
fn compact<'a>(title: &str, reasons: impl Iterator<Item = (Vec<&'a str>, &'a str)>) -> Block {
    let line = |(names, why): (Vec<&str>, &str)| {
        let names: Vec<String> = names.iter().map(|name| format!("-{name}")).collect();
        wrapped(&format!("{}: {why}", names.join(", ")), WIDTH - 2, 2)
    };
    let text = reasons.map(line).collect::<Vec<_>>().join("\n");
    Block { title: title.to_owned(), lines: text.lines().map(str::to_owned).collect() }
}

const NOTES: &str = concat!(
    "Options have one dash. They may be written in any case, and shortened while they stay unambiguous. The \
     environment variables WEIR_WAIT (block, spin or spin:MICROSECONDS), WEIR_RECEIVE_BUFFER and WEIR_SEND_BUFFER \
     (bytes) tune the engine.

Examples:
  perftest -sub -nic 172.16.0.2                                        # the other end of the rest
  perftest -pub -nic 172.16.0.1 -latencyTest -dataLen 32 -exec 30      # latency
  perftest -pub -nic 172.16.0.1 -dataLen 1024 -exec 30                 # throughput in batches
  perftest -pub -nic lo -bestEffort -pubRate 1000:sleep -numIter 5000 -latencyCount 100  # at a rate

",
    exit_codes!()
);

fn spelling(option: &OptionDef) -> String {
    match option.takes {
        Takes::Nothing => format!("-{}", option.name),
        _ if option.name == "transport" => "-transport UDPv4".to_owned(),
        takes => format!("-{} {}", option.name, wanted(takes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_options_come_first_and_the_others_last() {
        let help = help();
        let places: Vec<_> = ["\nWorkload:", "\nExamples:", "\nExit codes:", "\nNot supported:"]
            .iter()
            .map(|title| help.find(title))
            .collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{help}");
        let rest = help.split_once("\nNot supported:\n").unwrap().1;
        assert!(rest.lines().count() <= 40, "{rest}");
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        for option in options::all() {
            assert!(help.contains(&format!("-{}", option.name)), "-{}", option.name);
        }
    }
}
