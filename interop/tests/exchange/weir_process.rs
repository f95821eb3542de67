//! Weir in a separate process, for tests in which it is killed: the test runs itself again, and the
//! inner one runs commands like the programs of the other engines.

use std::io::BufRead;
use std::process::Command;

use weir_dds::{DataReader, DataWriter, Reliability};

use crate::peer::Peer;
use crate::types::Numbered;
use crate::weir::{LIMIT, Run, take_exactly};

/// Starts it for a run's domain and topic. `test` is the full name of the calling test, which must
/// call [`serve`] first.
pub(crate) fn start(test: &str, run: &Run) -> Peer {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, format!("{} {}", run.domain, run.topic));
    Peer::start(&mut command)
}

/// In the inner process, runs commands from standard input until it ends, and returns `true`.
///
/// The commands are `writer`, `reader`, `matched COUNT`, `acknowledged`, `write FIRST COUNT SIZE
/// INSTANCES`, `read` with the same, `quit`.
pub(crate) fn serve<T: Numbered>() -> bool {
    let Ok(place) = std::env::var(INSIDE) else { return false };
    let (domain, topic) = place.split_once(' ').unwrap();
    let run = Run::of(domain.parse().unwrap(), topic.to_owned()).with_lease();
    let mut endpoint = None;
    answer();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "quit" {
            break;
        }
        act::<T>(&line, &run, &mut endpoint);
        answer();
    }
    drop((endpoint, run));
    answer();
    true
}

enum Endpoint<T: Numbered> {
    Writer(DataWriter<T>),
    Reader(DataReader<T>),
}

fn act<T: Numbered>(line: &str, run: &Run, endpoint: &mut Option<Endpoint<T>>) {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |index: usize| words[index].parse::<u32>().unwrap();
    match (words[0], &endpoint) {
        ("writer", _) => *endpoint = Some(Endpoint::Writer(run.writer(Reliability::Reliable))),
        ("reader", _) => *endpoint = Some(Endpoint::Reader(run.reader(Reliability::Reliable))),
        ("matched", Some(Endpoint::Writer(writer))) => {
            writer.wait_for_subscriptions(number(1).into(), LIMIT).unwrap();
        }
        ("matched", Some(Endpoint::Reader(reader))) => {
            reader.wait_for_publications(number(1).into(), LIMIT).unwrap();
        }
        ("acknowledged", Some(Endpoint::Writer(writer))) => writer.wait_for_acknowledgments(LIMIT).unwrap(),
        ("write", Some(Endpoint::Writer(writer))) => {
            let numbers = number(1)..number(1) + number(2);
            numbers.for_each(|it| writer.write(&T::make(it, number(3), number(4))).unwrap());
        }
        ("read", Some(Endpoint::Reader(reader))) => {
            take_exactly(reader, number(1), number(2), number(3), number(4));
        }
        _ => panic!("bad command: {line}"),
    }
}

/// On its own line: the test harness has printed something before.
fn answer() {
    println!("\nok");
}

/// Set for the inner process: its domain and topic.
const INSIDE: &str = "WEIR_TEST_PEER";
