//! The ordinary engine and a host of smoltcp exchange samples over a TAP device, in a network namespace of their own.
//! Needs root; otherwise the test says why it is skipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Stdio};
use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriterQos, DdsType, DomainParticipant, ParticipantSettings};

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
struct Number {
    value: u64,
    text: String,
}

const COUNT: u64 = 200;
/// When a call that waits gives up: the other end does not work.
const LIMIT: Duration = Duration::from_secs(120);
/// Set in the process that has the namespace.
const INSIDE: &str = "WEIR_TAP_TEST_INSIDE";
const NAME: &str = "a_host_of_smoltcp_exchanges_samples_with_the_ordinary_engine";

#[test]
fn a_host_of_smoltcp_exchanges_samples_with_the_ordinary_engine() {
    if std::env::var_os(INSIDE).is_some() {
        return exchange();
    }
    let has_namespaces = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !has_namespaces.is_ok_and(|status| status.success()) || !std::path::Path::new("/dev/net/tun").exists()
    {
        println!("skipped: needs root, util-linux and /dev/net/tun");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let inside = Command::new("unshare")
        .arg("--net")
        .arg(own)
        .args([NAME, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(inside.unwrap().success());
}

/// Both ends, in a namespace.
fn exchange() {
    for words in [
        "link set lo up",
        "tuntap add name weir-tap0 mode tap",
        "address add 10.78.0.1/24 dev weir-tap0",
        "link set weir-tap0 up",
    ] {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
    }
    let talker = Command::new(env!("CARGO_BIN_EXE_talker"))
        .args(["weir-tap0", "10.78.0.2", &COUNT.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let participant =
        DomainParticipant::new(0, ParticipantSettings::default().interface("weir-tap0")).unwrap();
    let topic = participant.create_topic::<Number>("FromSmoltcp").unwrap();
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader = participant.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
    let topic = participant.create_topic::<Number>("ToSmoltcp").unwrap();
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    let writer = participant.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap();
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    // Some are longer than a packet, and are sent in fragments.
    let number = |value: u64| Number { value, text: "x".repeat(value as usize * 20) };
    for value in 0..COUNT {
        writer.write(&number(value)).unwrap();
    }
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    let mut received = Vec::new();
    while received.len() < COUNT as usize {
        reader.wait_for_data(LIMIT).unwrap();
        received.extend(reader.take(usize::MAX).into_iter().filter_map(|sample| sample.into_data()));
    }
    let expected = (0..COUNT).map(|value| Number { value, text: "from smoltcp".to_owned() });
    assert!(received.into_iter().eq(expected));
    // It ends when everything it wrote is acknowledged.
    let talker = talker.wait_with_output().unwrap();
    assert!(talker.status.success(), "{talker:?}");
    // All of its output fits a pipe: nothing reads it meanwhile.
    let line = |value| format!("received {value} {} true", number(value).text.len());
    let lines: Vec<String> = (0..COUNT).map(line).collect();
    assert_eq!(String::from_utf8(talker.stdout).unwrap().lines().collect::<Vec<_>>(), lines);
}
