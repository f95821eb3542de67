use super::*;
use crate::{
    Case, Interface, LossAttribution, NotMeasured, PathFigures, PathReading, Reliability, Telemetry, Test,
};

/// Everything in [`run`] that identifies someone or something.
const ORIGINALS: [&str; 18] = [
    "lab7",
    "corp.example.org",
    "alice",
    "/users/",
    "secret-drone",
    "10.1.2.3",
    "10.1.2.4",
    "fe80::1234",
    "build9",
    "52:54:00:12:34:56",
    "8c9f1c9e",
    "enx525400aabbcc",
    "operator",
    "drone.xml",
    "tuning",
    "239.1.2.3",
    "acmenet0",
    "orion",
];

/// A text with the folder of all users' homes.
fn home(text: &str) -> String {
    text.replace("HOME", concat!("/", "home"))
}

fn run() -> Run {
    let environment = Environment {
        hostname: Some("lab7.corp.example.org".into()),
        kernel: "6.1.0-lab7".into(),
        cpu_model: Some("AMD EPYC 7B13".into()),
        command: [
            "HOME/alice/bin/weir",
            "bench",
            "--engines",
            "udp,weir",
            "--sizes",
            "32,8k",
            "--duration=1.5s",
            "--to",
            "build9:7400",
            "--hosts",
            "pub=operator@build9,sub=10.1.2.4",
            "--output=HOME/alice/secret-drone/run one",
            "--settings",
            "tuning",
            "-oHOME/alice/x",
            "-oorion-lab7",
            "--orion",
        ]
        .map(home)
        .to_vec(),
        interface: Some(Interface { name: "enx525400aabbcc".into(), ..Interface::default() }),
        ..Environment::default()
    };
    let path = |host: &str| {
        PathFigures::new(host.parse().unwrap(), std::time::Duration::ZERO, &[], &PathReading::default())
    };
    let mut telemetry = Telemetry::new(100);
    let columns = [
        "enx525400aabbcc.recv_packets",
        "cpu.user_percent",
        "acmenet0.recv_packets",
        "br-orion.sent_packets",
        "veth-lab7.sent_packets",
    ];
    telemetry.push(100, (0_u8..).zip(columns).map(|(value, name)| (name.to_owned(), f64::from(value))));
    let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
        it.figures.paths = vec![path("10.1.2.3"), path("10.1.2.4"), path("127.0.0.1")];
        it.evidence.publisher_telemetry = Some(telemetry);
        let mut loss = LossAttribution::default();
        loss.sender.boot_id = Some("8c9f1c9e-0000-4000-8000-0123456789ab".into());
        it.evidence.loss_attribution = Some(loss);
        it.conditions.settings.insert("profile".into(), home("HOME/alice/secret-drone/drone.xml"));
    });
    let reason = "build9 (10.1.2.3:7400, [fe80::1234%eth0]:22, 52:54:00:12:34:56) does not answer \
                  operator@LAB7: HOME/alice/secret-drone/run one is 40 samples/s, 10.1.0.0/16, group 239.1.2.3, \
                  drone.xml is missing";
    let failed = Case::new("udp", Test::Throughput, Reliability::None, 64)
        .with(|it| it.evidence.not_measured = Some(NotMeasured::Failed { reason: home(reason) }));
    Run { cases: vec![case, failed], ..Run::new(environment) }
}

#[test]
fn nothing_that_identifies_is_left_and_the_rest_is_as_it_was() {
    let original = run();
    let redacted = Redactor::new(["acmenet0", "orion"]).redact(&original).unwrap();
    let text = redacted.to_lines().to_ascii_lowercase();
    for name in ORIGINALS {
        assert!(!text.contains(&name.to_ascii_lowercase()), "{name} is left in {text}");
    }
    let environment = &redacted.environment;
    assert_eq!(environment.hostname.as_deref(), Some("host-1"));
    assert_eq!(
        (environment.kernel.as_str(), environment.cpu_model.as_deref()),
        ("6.1.0-host-1", Some("AMD EPYC 7B13"))
    );
    assert_eq!(environment.command[1..7], original.environment.command[1..7]);
    assert_eq!(redacted.cases[0].figures.paths[2].host, Ipv4Addr::LOCALHOST);
    assert_eq!(redacted.cases[0].point, original.cases[0].point);
    let telemetry = redacted.cases[0].evidence.publisher_telemetry.as_ref().unwrap();
    assert_eq!((telemetry.rows(), telemetry.value("cpu.user_percent", 0)), (1, Some(1.0)));
    assert_eq!(telemetry.value("name-1.recv_packets", 0), Some(2.0));
    assert_eq!(telemetry.value("br-name-2.sent_packets", 0), Some(3.0));
    let Some(NotMeasured::Failed { reason }) = &redacted.cases[1].evidence.not_measured else { panic!() };
    assert!(reason.contains("40 samples/s") && reason.ends_with("is missing"), "{reason}");
}

#[test]
fn the_same_name_has_the_same_replacement_in_all_runs() {
    let mut redactor = Redactor::default();
    let (one, two) = (run(), run());
    let other = Run::new(Environment { hostname: Some("lab8".into()), ..Environment::default() });
    redactor.learn(&other).unwrap();
    let redacted = redactor.redact(&one).unwrap();
    assert_eq!(redacted, redactor.redact(&two).unwrap());
    assert_eq!(redacted.environment.hostname.as_deref(), Some("host-2"));
    assert_eq!(redactor.redact(&other).unwrap().environment.hostname.as_deref(), Some("host-1"));
    // The address in a message is that of the path.
    let Some(NotMeasured::Failed { reason }) = &redacted.cases[1].evidence.not_measured else { panic!() };
    assert!(reason.contains(&redacted.cases[0].figures.paths[0].host.to_string()), "{reason}");
}

#[test]
fn a_name_that_one_run_mentions_before_another_defines_it_is_replaced() {
    let mut mention = Run::new(Environment::default());
    let reason = "cannot reach lab8".to_owned();
    mention.cases.push(
        Case::new("udp", Test::Latency, Reliability::None, 64)
            .with(|it| it.evidence.not_measured = Some(NotMeasured::Failed { reason })),
    );
    let other = Run::new(Environment { hostname: Some("lab8".into()), ..Environment::default() });
    let mut redactor = Redactor::default();
    redactor.learn(&other).unwrap();
    assert!(redactor.redact(&mention).unwrap().to_lines().contains("cannot reach host-1"));
}

#[test]
fn a_run_without_names_and_one_that_is_redacted_stay_as_they_are() {
    let mut plain = Run::new(Environment { kernel: "6.18.44".into(), ..Environment::default() });
    plain.environment.command =
        ["weir", "bench", "--tests", "latency", "--wait", "spin:50us"].map(str::to_owned).to_vec();
    plain.cases.push(Case::new("weir", Test::Latency, Reliability::Reliable, 32));
    plain.cases[0].conditions.path = Some("veth,mtu=1500,loss=10%,gso=off".into());
    assert_eq!(Redactor::default().redact(&plain).unwrap(), plain);
    let once = Redactor::default().redact(&run()).unwrap();
    assert_eq!(Redactor::default().redact(&once).unwrap().environment.hostname.as_deref(), Some("host-1"));
}

#[test]
fn names_in_records_of_hosts_are_replaced() {
    let mut value = serde_json::json!({
        "hosts": [
            { "name": "alice@lab9", "address": "10.1.2.3", "environment": { "hostname": "lab9.example.org" } },
            { "name": "lab10:22", "address": "10.1.2.4:22", "ends": ["publisher"] },
            { "name": "local" },
            { "name": "netns:a" },
            { "name": "netns:acme-lab9" },
        ],
        "reason": "ssh lab10: lost LAB9",
    });
    let mut redactor = Redactor::new(["acme"]);
    redactor.replace_in(&mut value.clone(), "");
    redactor.replace_in(&mut value, "");
    assert_eq!(
        value,
        serde_json::json!({
            "hosts": [
                { "name": "user-1@host-1", "address": "192.0.2.1", "environment": { "hostname": "host-1" } },
                { "name": "host-2:22", "address": "192.0.2.2:22", "ends": ["publisher"] },
                { "name": "local" },
                { "name": "netns:a" },
                { "name": "netns:name-1-host-1" },
            ],
            "reason": "ssh host-2: lost host-1",
        })
    );
}

#[test]
fn a_namespace_has_the_same_name_in_the_command_line_and_in_the_records_of_hosts() {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.argument("pub=netns:falcon,sub=netns:b2"), "pub=netns:name-1,sub=netns:name-2");
    assert_eq!(redactor.string("host", "netns:falcon"), "netns:name-1");
    assert_eq!(redactor.argument("-ofalcon"), "-oname-1");
}

#[test]
fn words_that_only_the_user_knows_can_be_named() {
    let mut redactor = Redactor::new(["Project X", "falcon"]);
    assert_eq!(redactor.text("of project x: FALCON, falcons"), "of name-1: name-2, falcons");
}

#[test]
fn what_only_looks_like_a_name_stays() {
    let mut redactor = Redactor::default();
    for text in [
        "0.10.2",
        "12:34:56",
        "rtt/2",
        "40 samples/s and 3 Mbit/s",
        "127.0.0.1:7400",
        "[::1]:22",
        "on/off",
        "a - b",
        "veth,mtu=1500",
        "239.255.0.1",
        "größer als 1 µs",
        "/proc/net/udp",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}
