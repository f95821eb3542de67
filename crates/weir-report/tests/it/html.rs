//! The HTML report: its structure, what it contains, and what it must not contain.

use std::path::Path;

use weir_report::{NamedRun, Published, PublishedRow, ReportOptions, html_report};
use weir_results::{
    Case, CaseSeries, Environment, Interface, LatencyKind, LatencyRecorder, LatencySummary, LossAttribution,
    NotMeasured, ProcessFigures, Reliability, Run, Telemetry, Test, ThroughputSummary, UdpFigures, UdpMode,
    Warning,
};

fn page(runs: &[(&str, &Run)]) -> String {
    let runs: Vec<NamedRun<'_>> =
        runs.iter().map(|(name, run)| NamedRun { name, run, published: &[] }).collect();
    html_report(&runs, &ReportOptions::default())
}

fn example() -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-results/tests/data/example-v1.jsonl");
    Run::load(path).expect("the committed example can be read")
}

/// A latency case with everything that a case can have.
pub(crate) fn latency(engine: &str, size_bytes: u64, seed: u64) -> Case {
    let mut recorder = LatencyRecorder::new();
    (1..=20_000).for_each(|n| recorder.record(20_000 + (n * n * (seed + 7)) % 90_000));
    let noise = |n: u64| ((n + seed) * 7919 % 100) as f64;
    let ten = |us: f64| (0..10).map(|n| Some(us + noise(n) / 10.0)).collect::<Vec<_>>();
    let mut telemetry = Telemetry::new(100);
    for row in 1..=100 {
        let figures = [("cpu.idle_percent", noise(row)), ("cpu.user_percent", 50.0)];
        telemetry.push(row * 100, figures.map(|(name, value)| (name.to_owned(), value)));
    }
    Case::new(engine, Test::Latency, Reliability::Reliable, size_bytes).with(|case| {
        case.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
        case.figures.histogram = recorder.histogram(LatencyKind::HalfRtt);
        case.figures.duration_s = Some(10.0);
        case.figures.series = Some(CaseSeries {
            step_ms: 1000.0,
            received: (0..10).map(|n| 9000 + noise(n) as u64).collect(),
            missing: (0..10).map(|n| noise(n) as u64 * (seed % 3)).collect(),
            p50_us: ten(20.0),
            p99_us: ten(50.0),
            max_us: ten(500.0),
            publisher_cpu_percent: ten(30.0),
            subscriber_cpu_percent: ten(40.0),
        });
        let end = ProcessFigures { cpu_user_s: 1.0, samples: Some(90_000), ..ProcessFigures::default() };
        (case.figures.publisher, case.figures.subscriber) = (Some(end), Some(end));
        case.evidence.publisher_telemetry = Some(telemetry.clone());
        case.evidence.subscriber_telemetry = Some(telemetry);
        case.evidence.loss_attribution =
            Some(LossAttribution { lost: 10, path: 7, receiver_socket: 3, ..LossAttribution::default() });
        case.conditions.settings.insert("cpus".to_owned(), "0,1".to_owned());
    })
}

/// Names that would be markup if they were not escaped.
fn hostile() -> Run {
    let mut environment =
        Environment { hostname: Some("<script>host</script>".into()), ..Environment::default() };
    environment.command = vec!["weir".into(), "</code><script>alert(1)</script>".into()];
    environment.sysctls.insert("a<b".into(), "\"><img src=x onerror=alert(1)>".into());
    let name = "\"'><script>alert(1)</script><b>";
    let unknown = Warning::Unknown { code: "x".into(), text: "<i>text".into(), advice: "</aside>".into() };
    let first = latency(name, 32, 1).with(|case| {
        case.conditions.path = Some("<u>path".to_owned());
        case.conditions.settings.insert("<s>".into(), "</table>\u{1b}[31m\u{0}".into());
        case.evidence.warnings.push(unknown);
    });
    let failed = Case::new(name, Test::Throughput, Reliability::Reliable, 32).with(|case| {
        case.evidence.not_measured = Some(NotMeasured::Failed { reason: "<style>body{}</style>".to_owned() });
    });
    Run { cases: vec![first, latency(name, 1024, 2), failed], ..Run::new(environment) }
}

/// Reads a page as a browser would if every element were closed; returns the names of the elements in order.
#[track_caller]
fn elements(page: &str) -> Vec<String> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("it starts with its type");
    let (mut open, mut names) = (Vec::new(), Vec::new());
    while let Some(at) = rest.find('<') {
        let end = at + rest[at..].find('>').expect("every tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closed out of order, before {:.80}", rest);
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.split(' ').next().unwrap_or_default().to_owned();
        if name == "style" {
            rest = &rest[rest.find("</style>").expect("the style ends")..];
        }
        if !["meta", "br"].contains(&name.as_str()) {
            open.push(name.clone());
        }
        names.push(name);
    }
    assert_eq!(open, Vec::<String>::new());
    names
}

fn count(names: &[String], name: &str) -> usize {
    names.iter().filter(|it| *it == name).count()
}

#[test]
fn pages_are_well_formed_and_accessible() {
    let (example, hostile) = (example(), hostile());
    let page = page(&[("one", &example), ("two", &hostile)]);
    let names = elements(&page);
    assert_eq!((count(&names, "h1"), count(&names, "main"), count(&names, "h2")), (1, 1, 2));
    // No heading skips a level.
    let levels: Vec<usize> = names.iter().filter_map(|name| name.strip_prefix('h')?.parse().ok()).collect();
    assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    assert!(count(&names, "table") > 10);
    assert_eq!(count(&names, "table"), count(&names, "caption"));
    assert_eq!(count(&names, "figure"), count(&names, "figcaption"));
    assert_eq!(page.matches("<th ").count(), page.matches(" scope=\"").count());
    let told =
        page.matches("role=\"img\" aria-label=\"").count() + page.matches("aria-hidden=\"true\"").count();
    assert_eq!(count(&names, "svg"), told);
    // Each link of the contents leads somewhere.
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(page.matches(&format!(" id=\"{link}\"")).count(), 1, "{link}");
    }
}

#[test]
fn names_in_a_results_file_do_not_become_markup() {
    let run = hostile();
    let page = page(&[("<run>", &run)]);
    let names = elements(&page);
    for element in ["script", "img", "b", "i", "u", "s", "run"] {
        assert_eq!(count(&names, element), 0, "{element}");
    }
    assert_eq!(count(&names, "style"), 1);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!page.contains(|letter: char| letter.is_control() && letter != '\n'));
}

#[test]
fn a_page_needs_no_network_and_no_scripts() {
    let run = example();
    let page = page(&[("run", &run)]);
    for text in ["http://", "https://", "src=", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(text), "{text}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn every_case_appears_and_the_same_run_gives_the_same_page() {
    let run = example();
    let page = page(&[("run", &run)]);
    for case in &run.cases {
        let row = format!("<th scope=\"row\">{}", case.point.engine);
        let size = format!("<td>{}</td>", case.point.size_bytes);
        let is_shown = page
            .split(&row)
            .skip(1)
            .any(|rest| rest.split("</tr>").next().is_some_and(|it| it.contains(&size)));
        let is_listed = page.contains(&format!("{} B", case.point.size_bytes));
        assert!(
            is_shown || case.evidence.not_measured.is_some() && is_listed,
            "{} {}",
            case.point.engine,
            case.point.size_bytes
        );
    }
    assert_eq!(page, self::page(&[("run", &example())]));
}

#[test]
fn each_figure_of_a_complete_case_is_drawn_with_its_data() {
    let run = Run {
        cases: vec![latency("udp", 32, 3), latency("weir", 32, 1)],
        ..Run::new(Environment::default())
    };
    let page = page(&[("run", &run)]);
    for title in [
        "Latency, samples of 32 bytes.",
        "Median latency as a multiple of udp.",
        "Latency by percentile.",
        "Lost samples by place.",
        "Processor time per million samples.",
        "Rate over time.",
        "99th percentile over time.",
        "Missing samples over time.",
        "Processor time over time.",
        "Processors of the host over time.",
    ] {
        assert!(page.contains(&format!("<strong>{title}</strong>")), "{title}");
    }
    assert_eq!(page.matches("<figure").count(), page.matches("The data behind this plot").count());
    assert!(page.contains(">99.9%</th>") && page.contains("No reliable sample was lost."));
}

#[test]
fn sentences_say_what_the_figures_support() {
    let stream = |engine: &str, repeat: u32, samples_per_s: f64, lost: u64| {
        Case::new(engine, Test::Throughput, Reliability::Reliable, 32).with(|case| {
            case.conditions.repeat = repeat;
            case.figures.throughput = Some(ThroughputSummary {
                samples_per_s,
                mbps: samples_per_s * 256e-6,
                lost,
                lost_percent: lost as f64,
                ..ThroughputSummary::default()
            });
        })
    };
    let run = |repeats: u32, lost| {
        let cases =
            (1..=repeats).flat_map(|n| [stream("udp", n, 180e3, 0), stream("weir", n, 3.672e6, lost)]);
        Run { cases: cases.collect(), ..Run::new(Environment::default()) }
    };
    let once = page(&[("run", &run(1, 0))]);
    assert!(
        once.contains("At 32 B, weir reached 3.67 M samples/s, 20.4 x udp. No reliable sample was lost.")
    );
    assert!(once.contains("there are no intervals") && !once.contains("95 % interval "));
    let often = page(&[("run", &run(6, 9))]);
    assert!(often.contains("20.4 x udp (95 % interval 20.40..20.40), but lost up to 9.0 % of the samples."));
    assert!(often.contains("Reliable samples were lost by weir at 32 B (54)."));
    assert!(often.contains("<tr class=\"lossy\">") && often.contains("class=\"cross\""));
    // Those of the warm-up are losses of a reliable case, and a failed repeat may have lost some.
    let forbidden = Warning::LostSamples { lost: 5, permitted: false };
    let mut early = run(1, 0);
    early.cases[1].evidence.warnings.push(forbidden);
    assert!(page(&[("run", &early)]).contains("Reliable samples were lost by weir at 32 B (5)."));
    let mut failed = run(2, 0);
    failed.cases[3].figures.throughput = None;
    failed.cases[3].evidence.not_measured = Some(NotMeasured::Failed { reason: "no echo".to_owned() });
    let failed = page(&[("run", &failed)]);
    assert!(failed.contains("In the repeats that did not fail, no reliable sample was lost."));
    assert!(!failed.contains("No reliable sample"));
}

#[test]
fn a_difference_too_small_for_its_repeats_is_called_inconclusive_with_the_reason() {
    let run = |repeats: u32| {
        let case = |engine: &str, repeat: u32, samples_per_s: f64| {
            Case::new(engine, Test::Throughput, Reliability::Reliable, 32).with(|case| {
                case.conditions.repeat = repeat;
                case.figures.throughput =
                    Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
            })
        };
        let cases = (1..=repeats).flat_map(|n| [case("udp", n, 100e3), case("weir", n, 110e3)]);
        Run { cases: cases.collect(), ..Run::new(Environment::default()) }
    };
    let few = page(&[("run", &run(6))]);
    assert!(few.contains(
        "1.10 x udp (95 % interval 1.10..1.10), inconclusive (a difference below 20 % needs 20 repeats)."
    ));
    let enough = page(&[("run", &run(20))]);
    assert!(enough.contains("1.10 x udp (95 % interval 1.10..1.10). No reliable"));
}

#[test]
fn the_speed_of_the_only_link_is_drawn() {
    let stream = |size_bytes: u64, path: &str| {
        Case::new("weir", Test::Throughput, Reliability::Reliable, size_bytes).with(|case| {
            case.conditions.path = Some(path.to_owned());
            case.figures.throughput = Some(ThroughputSummary { mbps: 80.0, ..ThroughputSummary::default() });
        })
    };
    let interface = Some(Interface { speed_mbps: Some(100), ..Interface::default() });
    let environment = Environment { interface, ..Environment::default() };
    let run = |paths: [&str; 2]| Run {
        cases: vec![stream(32, paths[0]), stream(1024, paths[0]), stream(64, paths[1])],
        ..Run::new(environment.clone())
    };
    let text = "speed of the link";
    let one_size = Run { cases: vec![stream(32, "a")], ..Run::new(environment.clone()) };
    assert!(page(&[("run", &one_size)]).contains(text));
    assert!(page(&[("run", &run(["a", "a"]))]).contains(text));
    assert!(!page(&[("run", &run(["a", "b"]))]).contains(text));
}

#[test]
fn warnings_are_beside_what_they_concern() {
    let warned = |case: Case, warning: Warning| case.with(|case| case.evidence.warnings.push(warning));
    let all = || Warning::DebugBuild;
    let cases = vec![
        warned(latency("weir", 32, 1), all()),
        warned(
            warned(Case::new("weir", Test::Throughput, Reliability::Reliable, 32), all()),
            Warning::NothingReceived,
        ),
    ];
    let run = Run { cases, ..Run::new(Environment::default()) };
    let page = page(&[("run", &run)]);
    let (latency, throughput) = (page.find("id=\"run1-1\"").unwrap(), page.find("id=\"run1-2\"").unwrap());
    let places: Vec<usize> = page.match_indices("<aside").map(|(at, _)| at).collect();
    assert_eq!(places.len(), 2);
    assert!(places[0] < latency && places[1] > throughput, "{places:?}");
}

#[test]
fn warnings_that_differ_only_in_numbers_are_one() {
    let late = |repeat: u32| {
        latency("weir", 32, 1).with(|case| {
            case.conditions.repeat = repeat;
            let reached_samples_per_s = 900.0 + f64::from(repeat);
            case.evidence
                .warnings
                .push(Warning::ScheduleLag { asked_samples_per_s: 1000.0, reached_samples_per_s });
        })
    };
    let run = Run { cases: (1..=3).map(late).collect(), ..Run::new(Environment::default()) };
    let page = page(&[("run", &run)]);
    assert_eq!(page.matches("the publisher achieved").count(), 1);
    assert!(page.contains("achieved 901 of the 1000 samples/s"), "{page}");
    assert!(page.contains("(all 3 cases; 2 more differ only in numbers)"), "{page}");
}

#[test]
fn udp_tests_have_tables_and_plots_of_their_own() {
    let stream = |mode: UdpMode, size_bytes: u64| {
        latency(mode.engine(), size_bytes, 1).with(|case| {
            (case.point.test, case.figures.latency_us) = (Test::Throughput, None);
            case.figures.throughput = Some(ThroughputSummary {
                mbps: 987.6,
                lost: 5,
                lost_percent: 0.1,
                ..ThroughputSummary::default()
            });
            case.figures.udp = Some(UdpFigures { mode, flows: 1, ip_version: 4, ..UdpFigures::default() });
        })
    };
    let cases = vec![stream(UdpMode::Send, 64), stream(UdpMode::Gso, 64), stream(UdpMode::Gso, 1460)];
    let page = page(&[("run", &Run { cases, ..Run::new(Environment::default()) })]);
    elements(&page);
    for text in
        ["UDP streams at full speed, IPv4", "Throughput by sample size.", "Lost samples by place.", ">987.6<"]
    {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.matches("<th scope=\"row\">gso").count() > 4);
}

#[test]
fn a_run_without_cases_has_a_page() {
    let run = Run::new(Environment::default());
    let page = page(&[("nothing", &run)]);
    elements(&page);
    assert!(page.contains("No cases"));
}

#[test]
fn five_hundred_complete_cases_take_less_than_three_megabytes() {
    let engines = ["udp", "weir", "cyclonedds", "fastdds-tuned", "rustdds"];
    let mut cases = Vec::new();
    for keyed in 0..10 {
        for size in 0..10 {
            let case = |(seed, engine): (u64, &&str)| {
                latency(engine, 32 << size, seed + keyed * 5 + size).with(|case| {
                    (case.point.keyed, case.point.instances) = (true, keyed + 1);
                })
            };
            cases.extend((0..).zip(&engines).map(case));
        }
    }
    let run = Run { cases, ..Run::new(Environment::default()) };
    let page = page(&[("run", &run)]);
    elements(&page);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

#[test]
fn published_figures_are_beside_those_of_their_size_and_compared_with_nothing() {
    let row = |size_bytes: u64, is_doubtful: bool| {
        let case = Case::new("", Test::Latency, Reliability::Reliable, size_bytes).with(|case| {
            let summary =
                LatencySummary { count: 1_000_000, p50: 77.25, p99: 88.5, ..LatencySummary::default() };
            case.figures.latency_us = Some(summary);
        });
        PublishedRow { case, is_doubtful }
    };
    let published = [Published {
        name: "table-1".to_owned(),
        label: "<them> (published)".to_owned(),
        source: "a page".to_owned(),
        rows: vec![row(32, false), row(64, true), row(128, false)],
    }];
    let cases =
        vec![latency("udp", 32, 3), latency("weir", 32, 1), latency("udp", 64, 3), latency("weir", 64, 1)];
    let run = Run { cases, ..Run::new(Environment::default()) };
    let page =
        html_report(&[NamedRun { name: "run", run: &run, published: &published }], &ReportOptions::default());
    elements(&page);
    let label = "&lt;them&gt; (published)";
    let row = |label: &str, size: u64| {
        format!("<tr class=\"published\"><th scope=\"row\">{label}</th><td>{size}</td>")
    };
    let of_table = page.split("All figures").next().unwrap();
    // Behind the engines of its size, with what was published only.
    let at = of_table.find(&row(label, 32)).unwrap();
    assert!(of_table[..at].contains("<td>32</td>") && !of_table[..at].contains("<td>64</td>"));
    let cells = of_table[at..].split("</tr>").next().unwrap();
    assert!(cells.contains("<td>77.25</td><td>88.50</td>") && cells.ends_with("<td>-</td>"), "{cells}");
    assert!(of_table.contains(&row(&format!("{label} ?"), 64)) && page.contains("contradict each other"));
    // A size that was not measured is in the plot and in its data.
    assert!(!of_table.contains(&row(label, 128)) && page.contains(&row(label, 128)));
    assert!(page.contains("the vendor's figures of another machine, from table-1: a page."));
    let ratios = page.split("Median latency as a multiple of udp.").nth(1).unwrap();
    assert!(!ratios.split("</figure>").next().unwrap().contains("them"));
    assert!(!self::page(&[("run", &run)]).contains("them"));
}
