//! `perftest` with several ends, with mismatched ends, and with ends that are killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStderr, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::support::{Domain, Finished, KilledOnDrop};

/// A running end on the loopback interface with its stderr; ends with the test.
struct End {
    child: KilledOnDrop,
    talk: BufReader<ChildStderr>,
    said: String,
    stdout: JoinHandle<String>,
}

impl End {
    fn start(domain: &Domain, words: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perftest"));
        command.args(["-nic", "lo", "-domain", &domain.to_string()]).args(words.split_whitespace());
        let mut child = KilledOnDrop::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let talk = BufReader::new(child.process.stderr.take().unwrap());
        let mut from = child.process.stdout.take().unwrap();
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            from.read_to_string(&mut text).unwrap();
            text
        });
        Self { child, talk, said: String::new(), stdout }
    }

    /// Reads stderr up to a line with `text`.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        loop {
            let mut line = String::new();
            assert!(self.talk.read_line(&mut line).unwrap() > 0, "no `{text}` in: {}", self.said);
            self.said += &line;
            if line.contains(text) {
                return;
            }
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn finish(mut self) -> Finished {
        self.talk.read_to_string(&mut self.said).unwrap();
        let code = self.child.process.wait().unwrap().code();
        Finished { code, stdout: self.stdout.join().unwrap(), stderr: self.said }
    }
}

const ROW: &str = "-noPrint -noOutputHeaders";

fn rows(text: &str) -> Vec<Vec<f64>> {
    text.lines().map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap()).collect()).collect()
}

#[test]
fn a_scan_is_one_table_at_both_ends() {
    let domain = Domain::claim();
    let subscriber = End::start(&domain, "-sub -noPrint");
    let publisher =
        End::start(&domain, "-pub -noPrint -scan 32:1262:1263:70000 -numIter 2000 -latencyCount 10");
    let published = publisher.finish().expect_code(0).expect_stderr("Samples of 1262 bytes (2 of 4):");
    let received = subscriber.finish().expect_code(0);
    for (finished, cells) in [(&published, 10), (&received, 6)] {
        let mut lines = finished.stdout.lines();
        assert!(lines.next().unwrap().starts_with("Sample Size (Bytes),"), "{}", finished.stdout);
        let rows = rows(&lines.collect::<Vec<_>>().join("\n"));
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [32.0, 1262.0, 1263.0, 70_000.0]);
        assert!(rows.iter().all(|row| row.len() == cells), "{rows:?}");
    }
    let received = rows(&received.stdout.lines().skip(1).collect::<Vec<_>>().join("\n"));
    assert!(received.iter().all(|row| row[1] == 2000.0 && row[4] == 0.0), "{received:?}");
}

#[test]
fn several_publishers_and_subscribers_serve_each_other_to_the_end() {
    let domain = Domain::claim();
    let subscribers =
        [0, 1].map(|sid| End::start(&domain, &format!("-sub {ROW} -numPublishers 2 -sidMultiSubTest {sid}")));
    // The first publisher ends long before the other.
    let publishers = [(0, 500), (1, 60_000)].map(|(pid, count)| {
        let words =
            format!("-pub {ROW} -numSubscribers 2 -pidMultiPubTest {pid} -numIter {count} -latencyCount 10");
        End::start(&domain, &words)
    });
    let [first, second] = publishers.map(|publisher| publisher.finish().expect_code(0));
    assert_eq!(rows(&first.stdout)[0].len(), 10);
    assert_eq!(second.stdout, "", "only publisher 0 measures latency");
    for subscriber in subscribers {
        let row = rows(&subscriber.finish().expect_code(0).stdout).remove(0);
        assert_eq!((row[1], row[4]), (60_500.0, 0.0), "{row:?}");
    }
}

#[test]
fn ends_that_do_not_match_name_the_policy_and_end_by_ctrl_c_with_zeros() {
    let domain = Domain::claim();
    let check = |publisher: &str, subscriber: &str, expected: &str| {
        let mut ends = [
            End::start(&domain, &format!("-pub {ROW} {publisher}")),
            End::start(&domain, &format!("-sub {ROW} {subscriber}")),
        ];
        for end in &mut ends {
            end.wait_for(expected);
        }
        for end in ends {
            end.signal(rustix::process::Signal::INT);
            let finished = end.finish().expect_code(130);
            let row = rows(&finished.stdout).remove(0);
            assert!(row[1..].iter().all(|figure| *figure == 0.0), "{row:?}");
        }
    };
    check("-keyed", "", "TYPE does not match");
    check("-bestEffort", "", "RELIABILITY does not match");
    check("", "-bestEffort", "RELIABILITY does not match");
    check("", "-durability 1", "DURABILITY does not match");
}

#[test]
fn an_end_without_a_peer_says_what_it_waits_for() {
    let domain = Domain::claim();
    for (words, other) in [("-pub", "subscriber"), ("-sub", "publisher")] {
        let mut end = End::start(&domain, &format!("{words} {ROW}"));
        end.wait_for(&format!("Waiting to discover 1 {other}s ..."));
        end.wait_for(&format!("no {other} in domain {domain} yet"));
        end.signal(rustix::process::Signal::INT);
        end.finish().expect_code(130);
    }
}

#[test]
fn ends_with_the_same_index_are_rejected() {
    let domain = Domain::claim();
    let subscribers = [0, 1].map(|_| End::start(&domain, &format!("-sub {ROW}")));
    let mut publisher = End::start(&domain, &format!("-pub {ROW} -numSubscribers 2"));
    publisher.wait_for(&format!("1 of 2 subscribers in domain {domain} so far"));
    publisher.signal(rustix::process::Signal::INT);
    publisher.finish().expect_code(130).expect_stderr("-sidMultiSubTest");
    drop(subscribers);
    let domain = Domain::claim();
    let mut subscriber = End::start(&domain, &format!("-sub {ROW} -numPublishers 2"));
    let publishers = [0, 1].map(|_| End::start(&domain, &format!("-pub {ROW} -pubRate 10:sleep")));
    subscriber.wait_for(&format!("1 of 2 publishers in domain {domain} so far"));
    subscriber.signal(rustix::process::Signal::INT);
    subscriber.finish().expect_code(130).expect_stderr("-pidMultiPubTest");
    drop(publishers);
}

/// Kills each end of a stream, and the subscriber of a ping-pong. The other end has to end by itself.
fn kill_each(reliability: &str) {
    let domain = Domain::claim();
    let subscriber = End::start(&domain, &format!("-sub -noOutputHeaders {reliability}"));
    let mut publisher =
        End::start(&domain, &format!("-pub {ROW} -dataLen 1000 -pubRate 1000:sleep {reliability}"));
    publisher.wait_for("Sending data ...");
    publisher.signal(rustix::process::Signal::KILL);
    let received = subscriber.finish().expect_code(3).expect_stderr("disappeared before the end of the test");
    assert_eq!(rows(&received.stdout).pop().unwrap().len(), 6);
    assert_eq!(publisher.finish().code, None);
    for test in ["-pubRate 1000:sleep", "-latencyTest"] {
        let subscriber = End::start(&domain, &format!("-sub {ROW} {reliability}"));
        let mut publisher = End::start(&domain, &format!("-pub {ROW} {test} {reliability}"));
        publisher.wait_for("Sending data ...");
        subscriber.signal(rustix::process::Signal::KILL);
        let published =
            publisher.finish().expect_code(3).expect_stderr("disappeared before the end of the test");
        assert_eq!(rows(&published.stdout)[0].len(), 10);
        assert_eq!(subscriber.finish().code, None);
    }
}

#[test]
fn a_killed_peer_of_a_reliable_test_ends_it_with_the_figures_so_far() {
    kill_each("");
}

#[test]
fn a_killed_peer_of_a_best_effort_test_ends_it_with_the_figures_so_far() {
    kill_each("-bestEffort");
}

#[test]
fn samples_that_are_kept_for_late_subscribers_are_not_written_over() {
    let domain = Domain::claim();
    for keyed in ["", "-keyed -instances 3000"] {
        let subscriber = End::start(&domain, &format!("-sub {ROW} -durability 1 {keyed}"));
        let publisher =
            End::start(&domain, &format!("-pub {ROW} -durability 1 -numIter 100000 -dataLen 100 {keyed}"));
        publisher.finish().expect_code(0);
        let row = rows(&subscriber.finish().expect_code(0).stdout).remove(0);
        assert_eq!((row[1], row[4]), (100_000.0, 0.0), "{row:?}");
    }
}

#[test]
fn a_publisher_that_pauses_for_an_hour_notices_that_its_subscriber_has_left() {
    let domain = Domain::claim();
    let mut subscriber = End::start(&domain, &format!("-sub {ROW}"));
    let mut publisher = End::start(&domain, &format!("-pub {ROW} -sleep 3600000"));
    subscriber.wait_for("Waiting for data ...");
    publisher.wait_for("Sending data ...");
    subscriber.signal(rustix::process::Signal::INT);
    let row = rows(&subscriber.finish().expect_code(130).stdout).remove(0);
    assert!(row.len() == 6 && row.iter().all(|figure| figure.is_finite()), "{row:?}");
    publisher.finish().expect_code(3).expect_stderr("the subscriber disappeared");
}

#[test]
fn plain_udp_scans_sizes_too() {
    let domain = Domain::claim();
    let subscriber = End::start(&domain, &format!("-sub {ROW} -rawTransport"));
    let publisher = End::start(
        &domain,
        &format!("-pub {ROW} -rawTransport -peer 127.0.0.1 -scan 32:1000 -numIter 500 -pubRate 5000:sleep"),
    );
    publisher.finish().expect_code(0);
    let received = rows(&subscriber.finish().expect_code(0).stdout);
    assert_eq!(
        received.iter().map(|row| (row[0], row[1] + row[4])).collect::<Vec<_>>(),
        [(32.0, 500.0), (1000.0, 500.0)]
    );
}

#[test]
fn plain_udp_notices_ctrl_c_and_a_killed_subscriber_in_a_pause_of_an_hour() {
    for test in ["", "-latencyTest"] {
        let domain = Domain::claim();
        for is_interrupted in [true, false] {
            let subscriber = End::start(&domain, &format!("-sub {ROW} -rawTransport"));
            let words = format!("-pub {ROW} -rawTransport -peer 127.0.0.1 -sleep 3600000 {test}");
            let mut publisher = End::start(&domain, &words);
            publisher.wait_for("Sending data ...");
            if is_interrupted {
                publisher.signal(rustix::process::Signal::INT);
                publisher.finish().expect_code(130);
                subscriber.finish().expect_code(0);
            } else {
                subscriber.signal(rustix::process::Signal::KILL);
                subscriber.finish();
                publisher.finish().expect_code(3).expect_stderr("the subscriber disappeared");
            }
        }
    }
}

#[test]
fn plain_udp_serves_several_and_notices_a_killed_end() {
    let domain = Domain::claim();
    let raw = |sid: u32| {
        End::start(&domain, &format!("-sub {ROW} -rawTransport -numPublishers 2 -sidMultiSubTest {sid}"))
    };
    let subscribers = [raw(0), raw(1)];
    let publishers = [(0, 500), (1, 3000)].map(|(pid, count)| {
        let words =
            format!("-pub {ROW} -rawTransport -peer 127.0.0.1 -numSubscribers 2 -pid {pid} -numIter {count}");
        End::start(&domain, &format!("{words} -pubRate 5000:sleep -latencyCount 5"))
    });
    for publisher in publishers {
        publisher.finish().expect_code(0);
    }
    for subscriber in subscribers {
        let row = rows(&subscriber.finish().expect_code(0).stdout).remove(0);
        assert_eq!(row[1] + row[4], 3500.0, "{row:?}");
    }
    for is_publisher in [true, false] {
        let subscriber = End::start(&domain, &format!("-sub {ROW} -rawTransport"));
        let mut publisher =
            End::start(&domain, &format!("-pub {ROW} -rawTransport -peer 127.0.0.1 -pubRate 100:sleep"));
        publisher.wait_for("Sending data ...");
        let (killed, other) = if is_publisher { (publisher, subscriber) } else { (subscriber, publisher) };
        killed.signal(rustix::process::Signal::KILL);
        other.finish().expect_code(3).expect_stderr("disappeared before the end of the test");
        killed.finish();
    }
}
