//! `perftest` with the options of RTI Perftest's scripts.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::{Domain, Finished, KilledOnDrop};

fn perftest(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perftest"));
    command.args(words.split_whitespace());
    command
}

fn finished(words: &str) -> Finished {
    Finished::from(perftest(words).output().unwrap())
}

/// Runs both ends on the loopback interface in a separate domain.
fn pair(publisher: &str, subscriber: &str) -> (Finished, Finished) {
    let domain = Domain::claim();
    let end = |words: &str| perftest(&format!("-domain {domain} -nic lo {words}"));
    let mut command = end(&format!("-sub {subscriber}"));
    let mut waiting = KilledOnDrop::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let published = Finished::from(end(&format!("-pub {publisher}")).output().unwrap()).expect_code(0);
    let read = |from: &mut dyn Read| {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    };
    let stderr = read(waiting.process.stderr.as_mut().unwrap());
    let stdout = read(waiting.process.stdout.as_mut().unwrap());
    let code = waiting.process.wait().unwrap().code();
    (published, Finished { code, stdout, stderr })
}

/// The one row of a run without headers.
fn row(finished: Finished) -> Vec<f64> {
    let finished = finished.expect_code(0);
    assert_eq!(finished.stdout.lines().count(), 1, "{}", finished.stdout);
    finished.stdout.trim().split(',').map(|cell| cell.trim().parse().unwrap()).collect()
}

#[test]
fn help_has_examples_and_every_kind_of_option() {
    for words in ["-help", "-h", "--help"] {
        let help = finished(words).expect_code(0).stdout;
        for expected in
            ["Examples:", "-latencyTest", "Not supported:", "-rawTransport", "Exit codes: 0 success"]
        {
            assert!(help.contains(expected), "no `{expected}` in: {help}");
        }
    }
}

#[test]
fn unsupported_options_are_rejected_with_an_alternative() {
    finished("-pub -rawTransport").expect_code(2).expect_stderr("-rawTransport needs -peer ADDRESS[:SID]");
    finished("-pub -flowController 1Gbps").expect_code(2).expect_stderr("there are no flow controllers");
    finished("-sub -raw -asynchronous").expect_code(2).expect_stderr("not supported with -rawTransport");
    finished("-pub -durability 4").expect_code(2).expect_stderr("durability");
    finished("-sub -crc").expect_code(2).expect_stderr("there is no RTPS checksum");
    finished("-sub -cft 1").expect_code(2).expect_stderr("-cft needs -keyed");
    finished("-pub -nosuch").expect_code(2).expect_stderr("Cannot parse '-nosuch', invalid input.");
    finished("-pub -nic nowhere0").expect_code(3).expect_stderr("nowhere0");
}

#[test]
fn telemetry_goes_to_files_and_leaves_the_rows_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = |end: &str| folder.path().join(end).display().to_string();
    let (published, received) = pair(
        &format!("-noPrint -noOutputHeaders -numIter 300 -scan 64:128 -telemetryFile {}", file("pub")),
        &format!("-noPrint -noOutputHeaders -telemetryFile {}", file("sub")),
    );
    assert_eq!(published.stdout.lines().count(), 2, "{}", published.stdout);
    assert_eq!(received.expect_code(0).stdout.lines().count(), 2);
    for (end, name) in [("pub", "publisher"), ("sub", "subscriber")] {
        let rows = std::fs::read_to_string(file(end)).unwrap();
        assert!(rows.starts_with("case,engine,test,") && rows.contains(",cpu.user_percent,"), "{rows}");
        for (number, size) in [(1, 64), (2, 128)] {
            let beginning = format!("\n{number},weir,throughput,reliable,{size},{number},{name},");
            assert!(rows.contains(&beginning), "no {beginning} in {rows}");
        }
    }
    finished("-pub -nic lo -telemetryFile /nowhere/file")
        .expect_code(3)
        .expect_stderr("-telemetryFile /nowhere/file");
}

#[test]
fn a_latency_test_prints_a_row_at_either_end() {
    let (published, received) = pair(
        "-best -datalen 1262 -noPrint -noOutputHeaders -noXML -latencyTest -numIter 200",
        "-best -noPrint -noOutputHeaders -noXML -datalen 32",
    );
    assert!(published.stderr.contains("LATENCY TEST (Ping-Pong test)"), "{}", published.stderr);
    assert!(published.stderr.contains("-noXmlQos has no effect"), "{}", published.stderr);
    assert!(published.stderr.contains("\tAsynchronous Publishing: No\n"), "{}", published.stderr);
    let latency = row(published);
    assert_eq!((latency.len(), latency[0]), (10, 1262.0));
    assert!(latency[3] <= latency[5] && latency[5] <= latency[9] && latency[9] <= latency[4], "{latency:?}");
    let throughput = row(received);
    assert_eq!((throughput.len(), throughput[0]), (6, 1262.0));
}

/// The echoes have no room at the publisher, and the pings none at the subscriber, unless echoes are taken meanwhile.
#[test]
fn more_initialization_pings_than_either_end_has_room_for_are_echoed() {
    let (published, received) = pair(
        "-datalen 32 -noPrint -noOutputHeaders -noXML -latencyTest -numIter 10 -initialBurstSize 200000",
        "-datalen 32 -noPrint -noOutputHeaders -noXML",
    );
    assert_eq!(row(published)[0], 32.0);
    assert_eq!(row(received)[..2], [32.0, 10.0]);
}

#[test]
fn ends_of_the_small_profile_serve_each_other_and_those_of_the_full_one() {
    for (publisher, subscriber) in [("small", "small"), ("small", "full"), ("full", "small")] {
        for (options, samples) in [
            ("-latencyTest -numIter 200 -initialBurstSize 20000", 200.0),
            ("-numIter 50000 -latencyCount 10", 50_000.0),
            ("-numIter 1000 -pubRate 2000:sleep -batchSize 0", 1000.0),
        ] {
            let (published, received) = pair(
                &format!("-profile {publisher} -datalen 100 -noPrint -noOutputHeaders {options}"),
                &format!("-profile {subscriber} -noPrint -noOutputHeaders"),
            );
            assert_eq!(row(published)[0], 100.0);
            let received = row(received);
            assert_eq!((received[1], received[4]), (samples, 0.0), "{publisher}, {subscriber}: {options}");
        }
    }
}

#[test]
fn a_subscriber_with_a_content_filter_receives_its_instances_and_loses_none() {
    for (filter, expected) in [("2:4", 3000.0), ("7", 1000.0)] {
        let (_, subscriber) = pair(
            "-keyed -instances 10 -datalen 63 -noPrint -numIter 10000 -latencyCount 100 -batchSize 0",
            &format!("-keyed -noPrint -noOutputHeaders -cft {filter}"),
        );
        let row = row(subscriber);
        assert_eq!((row[1], row[4]), (expected, 0.0), "-cft {filter}: {row:?}");
    }
}

#[test]
fn a_reliable_keyed_stream_arrives_whole() {
    let (published, received) = pair(
        "-keyed -instances 100 -datalen 63 -noPrint -numIter 100000 -latencyCount 10",
        "-keyed -noPrint -noOutputHeaders",
    );
    let published = published.expect_code(0);
    assert!(published.stdout.starts_with("Sample Size (Bytes), Ave (μs)"), "{}", published.stdout);
    let throughput = row(received);
    assert_eq!(throughput[..2], [63.0, 100_000.0]);
    assert_eq!(throughput[4..], [0.0, 0.0]);
}

#[test]
fn threads_that_publish_send_samples_pings_and_echoes() {
    for (publisher, samples) in [
        ("-latencyTest -numIter 300", 300.0),
        ("-latencyTest -best -numIter 300 -dataLen 200000", 300.0),
        ("-numIter 100000 -dataLen 63 -latencyCount 10", 100_000.0),
        ("-numIter 50000 -batchSize 0", 50_000.0),
        ("-numIter 100 -dataLen 1000000", 100.0),
        ("-numIter 5000 -durability 1 -batchSize 0", 5_000.0),
        ("-numIter 5000 -durability 3 -batchSize 0", 5_000.0),
    ] {
        let subscriber = ["-best", "-durability 1", "-durability 3"]
            .into_iter()
            .filter(|word| publisher.contains(word))
            .collect::<String>();
        let (published, received) = pair(
            &format!("-asynchronous -noPrint -noOutputHeaders {publisher}"),
            &format!("-asynchronous -noPrint -noOutputHeaders {subscriber}"),
        );
        let banner = "\tAsynchronous Publishing: Yes\n\tFlow Controller: default\n";
        assert!(published.stderr.contains(banner), "{}", published.stderr);
        assert!(!received.stderr.contains("has no effect"), "{}", received.stderr);
        assert_eq!(row(published).len(), 10);
        assert_eq!(row(received)[1], samples, "{publisher}");
    }
}

#[test]
fn threads_that_read_take_samples_and_echoes() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("latencies.csv");
    let (published, received) = pair(
        &format!(
            "-useReadThread -scan 100:200 -numIter 2000 -latencyCount 10 -pubRate 2000:sleep -batchSize 0 -noPrint \
             -noOutputHeaders -latencyFile {}",
            file.display()
        ),
        "-useReadThread -waitsetEventCount 3 -noPrint -noOutputHeaders",
    );
    for (at, finished) in [published, received].into_iter().enumerate() {
        let finished = finished.expect_code(0);
        assert_eq!(finished.stdout.lines().count(), 2, "{}", finished.stdout);
        for line in finished.stdout.lines() {
            let row: Vec<f64> = line.split(',').map(|cell| cell.trim().parse().unwrap()).collect();
            assert!(row[1] > 0.0 && (at == 0 || row[1] == 2000.0), "{row:?}");
        }
    }
    // All pings except the first of each size, line by line as RTI Perftest writes them. An echo that is still in
    // flight when a size ends does not count; at this rate, none waits behind many samples.
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let runs: Vec<&[&str]> = lines.split_inclusive(|line| line.is_empty()).collect();
    assert_eq!(runs.len(), 2, "{text}");
    for run in runs {
        assert_eq!((run[0], run[run.len() - 1]), ("Sample Number, Value", ""));
        let rows = &run[1..run.len() - 1];
        assert!((190..=199).contains(&rows.len()), "{text}");
        for (number, row) in rows.iter().enumerate() {
            assert!(row.starts_with(&format!("{number}, ")), "{row}");
        }
    }
}

#[test]
fn a_run_without_pings_says_why_there_is_no_latency() {
    let (published, received) = pair("-numIter 10 -noPrint", "-noPrint -noOutputHeaders");
    assert!(published.stderr.contains("no latency was measured"), "{}", published.stderr);
    assert_eq!(row(received)[1], 10.0);
}

#[test]
fn plain_udp_runs_the_same_procedure() {
    for (publisher, samples) in [
        ("-latencyTest -numIter 300 -dataLen 1263", 300.0),
        ("-numIter 5000 -dataLen 64 -batchSize 1000 -latencyCount 10", 5000.0),
        ("-numIter 200 -dataLen 60000 -pubRate 1000:sleep", 200.0),
    ] {
        let (published, received) = pair(
            &format!("-rawTransport -peer 127.0.0.1 -noPrint -noOutputHeaders {publisher}"),
            "-rawTransport -noPrint -noOutputHeaders -bestEffort",
        );
        assert!(received.stderr.contains("-bestEffort has no effect"), "{}", received.stderr);
        assert_eq!(row(published).len(), 10);
        let throughput = row(received);
        // Received and lost samples add up to the sent ones.
        assert_eq!(throughput[1] + throughput[4], samples, "{throughput:?}");
    }
}
