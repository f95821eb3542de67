//! The results behind the generated pages, and the commands that make them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use super::{at, emptied, read, write_file};
use crate::environment::Environment;
use crate::process;
use crate::steps;

/// Every file or folder of results.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    RUNS.iter().chain(PUBLISHED).chain(PRINTED).map(|(name, _)| *name).collect()
}

/// Measures everything into `results`, in more than an hour, or `only` some of it, such as
/// `overview`. What is there is replaced run by run.
///
/// # Errors
/// When a command fails; results that are complete by then are kept.
pub(super) fn all(
    environment: &Environment,
    weir: Option<&Path>,
    only: &[&str],
    results: &Path,
) -> Result<(), String> {
    let runs = RUNS.iter().chain(PUBLISHED).chain(PRINTED);
    let known: Vec<&str> = runs.map(|(name, _)| stem(name)).chain(["session"]).collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(name)) {
        return Err(format!("no results are named {unknown:?}: there are {}\n", known.join(", ")));
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|only| is_part_of(name, only));
    let built = environment.root.join("peers").join(BUILT);
    let weir = weir.map_or(built, Path::to_owned);
    if !weir.is_file() {
        return Err(format!("there is no {}: build it, or name another weir\n{BUILD}\n", weir.display()));
    }
    let scratch = emptied(environment.target_folder().join("docs-measure"))?;
    for (name, options) in RUNS.iter().filter(|(name, _)| is_wanted(stem(name))) {
        let folder = scratch.join(name);
        run(&weir, options, &folder)?;
        let text = read(&folder.join("results.jsonl"))?;
        let text = redacted(&text, options)?;
        if *options == "targets" {
            let [others, robot] = by_robot(&text)?;
            write_file(&results.join(name), &others)?;
            write_file(&results.join(ROBOT), &robot)?;
        } else {
            write_file(&results.join(name), &text)?;
        }
    }
    for (name, options) in PRINTED.iter().filter(|(name, _)| is_wanted(stem(name))) {
        println!("weir {options}");
        let printed = process::run(Command::new(&weir).args(options.split(' ')), steps::PROGRAM_LIMIT)?;
        write_file(&results.join(name), &printed.stdout)?;
    }
    for (name, options) in PUBLISHED.iter().filter(|(name, _)| is_wanted(name)) {
        published(&weir, options, &scratch.join(name), &results.join(name))?;
    }
    if is_wanted("session") { session(environment) } else { Ok(()) }
}

/// Whether results belong to `page`: they have its name, or one that begins with it, such as `links-tcp` for `links`.
fn is_part_of(name: &str, page: &str) -> bool {
    name.strip_prefix(page).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The name of results without their ending.
fn stem(name: &str) -> &str {
    name.trim_end_matches(".jsonl").trim_end_matches(".json")
}

/// Measures published reference tables.
fn published(weir: &Path, options: &str, folder: &Path, results: &Path) -> Result<(), String> {
    run(weir, options, folder)?;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let name = path.file_name().unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "txt") {
            write_file(&results.join(name), &read(&path)?)?;
        }
    }
    Ok(())
}

/// Writes the page of hpcbench's commands, by the test that runs them.
fn session(environment: &Environment) -> Result<(), String> {
    println!("hpcbench's commands");
    let mut test =
        environment.cargo(&["test", "--locked", "--package", "weir-cli", "--test", "it", "udptest_page"]);
    test.env("WEIR_PAGE_NOTE", environment.root.join(SESSION));
    process::run(&mut test, steps::BUILD_LIMIT).map(drop)
}

/// Not by [`process`], which would keep what it prints to itself for minutes.
fn run(weir: &Path, options: &str, folder: &Path) -> Result<(), String> {
    println!("weir {options}");
    let mut command = Command::new(weir);
    command.args(options.split(' ')).arg("--output").arg(folder).stdout(Stdio::null());
    let status = command.status().map_err(at(weir))?;
    // 1: reliable samples were lost; 3: a case failed. Both belong into the results of whatever else was measured.
    let is_complete = matches!(status.code(), Some(0 | 1 | 3)) && folder.is_dir();
    is_complete.then_some(()).ok_or_else(|| format!("weir {options}: {status}\n"))
}

/// The lines without what identifies the host, and without what no page shows.
fn redacted(text: &str, options: &str) -> Result<String, String> {
    let mut lines = String::new();
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}\n"))?;
        if let Some(environment) = value.get_mut("environment").and_then(Value::as_object_mut) {
            environment.remove("hostname");
            let words = std::iter::once("weir").chain(options.split(' '));
            environment.insert("command".to_owned(), words.collect());
        }
        if let Some(case) = value.as_object_mut() {
            let unused: &[&str] = if options.starts_with("bench") { UNUSED_OF_BENCH } else { UNUSED };
            case.retain(|name, _| !unused.contains(&name.as_str()));
            if options == "targets" || options.contains("--engines all") {
                // These pages have percentiles only, and the histograms of 900 cases would be half a megabyte.
                case.remove("histogram");
                case.remove("series");
            }
            if case.get("loss_attribution").is_some_and(|losses| losses["lost"] == 0) {
                case.remove("loss_attribution");
            }
            let is_plotted = options.starts_with("bench") && is_plotted(case);
            if let Some(link) = case.get_mut("link").and_then(Value::as_object_mut) {
                shorten_series(link, is_plotted);
            }
            if !is_plotted {
                case.remove("ages");
                let paths = case.get_mut("paths").and_then(Value::as_array_mut);
                let series =
                    paths.into_iter().flatten().filter_map(|path| path.get_mut("series")?.as_object_mut());
                series.flatten().filter_map(|(_, steps)| steps.as_array_mut()).for_each(Vec::clear);
            }
            if let Some(losses) = case.get_mut("loss_attribution").and_then(Value::as_object_mut) {
                losses.remove("sender");
                losses.remove("receiver");
            }
        }
        lines += &format!("{value}\n");
    }
    Ok(lines)
}

/// Divides results of the targets: the series `robot`, whose cases have a distribution of ages for each kind of topics,
/// is apart, since no file may be larger than a megabyte. Settings that no page shows are left out.
fn by_robot(text: &str) -> Result<[String; 2], String> {
    let mut parts = [String::new(), String::new()];
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}\n"))?;
        let Some(settings) = value.get_mut("settings").and_then(Value::as_object_mut) else {
            parts.iter_mut().for_each(|part| *part += &format!("{line}\n"));
            continue;
        };
        settings.retain(|name, _| !UNUSED_SETTINGS.contains(&name.as_str()));
        let is_robot = settings.get("series").is_some_and(|series| series == "robot");
        parts[usize::from(is_robot)] += &format!("{value}\n");
    }
    Ok(parts)
}

/// The second part of the results of the targets.
const ROBOT: &str = "targets-robot.jsonl";
const UNUSED_SETTINGS: &[&str] = &["cpus", "domain", "interface", "system_calls", "verify"];

/// Whether a case over a link is drawn over time: a stream alone, of the size that `weir report --plot links` draws,
/// and its first repeat.
fn is_plotted(case: &Map<String, Value>) -> bool {
    case.get("size_bytes") == Some(&PLOTTED_SIZE.into())
        && case.get("repeat").is_none_or(|repeat| *repeat == 1)
        && !case.contains_key("beside")
        && !case.contains_key("rate_samples_per_s")
}

/// Keeps of a link's traffic over time, which is most of a case, the direction that plots show, in wider steps.
fn shorten_series(link: &mut Map<String, Value>, is_plotted: bool) {
    for (name, direction) in link {
        let Some(direction) = direction.as_object_mut() else { continue };
        let Some(Value::Object(mut series)) = direction.remove("series") else { continue };
        if is_plotted && name == "to_subscribers" {
            widen(&mut series);
            direction.insert("series".to_owned(), Value::Object(series));
        }
    }
}

/// Joins steps of a series until there are at most [`STEPS_MAX`].
fn widen(series: &mut Map<String, Value>) {
    let numbers = |value: &Value| value.as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>();
    let steps = series.values().filter_map(Value::as_array).map(Vec::len).max().unwrap_or(0);
    let width = steps.div_ceil(STEPS_MAX).max(1);
    for (name, value) in series {
        if name == "step_ms" {
            *value = value.as_f64().map(|step_ms| step_ms * width as f64).into();
        } else if let Some(numbers) = numbers(value) {
            // A queue is that at the end of a step.
            let join =
                |part: &[u64]| if name == "queue_bytes" { part[part.len() - 1] } else { part.iter().sum() };
            *value = numbers.chunks(width).map(join).collect();
        }
    }
}

/// Of a series of traffic, as much as a plot shows.
const STEPS_MAX: usize = 120;
const PLOTTED_SIZE: u64 = 63_000;

/// `weir` with other engines, below `peers/`.
const BUILT: &str = "target/release/weir";
const BUILD: &str = "cargo build --release --manifest-path peers/Cargo.toml --features peers";

/// Members of cases that no page shows.
const UNUSED: &[&str] = &["publisher_telemetry", "subscriber_telemetry", "loss", "socket_buffers", "paths"];
const UNUSED_OF_BENCH: &[&str] = &[
    "publisher_telemetry",
    "subscriber_telemetry",
    "loss",
    "socket_buffers",
    "publisher",
    "subscriber",
    "discovery",
];

/// Names of results files, and the options of `weir` that measure them.
const RUNS: &[(&str, &str)] = &[
    (
        "overview.jsonl",
        "bench --interface lo --engines udp,udp-gso,weir,cyclonedds-tuned --reliability reliable --batch 0 \
         --keep-awake --duration 800ms --warmup 200ms --repeat 3",
    ),
    (
        "comparison.jsonl",
        "bench --interface lo --engines all --keep-awake --duration 500ms --warmup 200ms --repeat 3",
    ),
    (
        "comparison-veth.jsonl",
        "bench --engines all --link veth,gso=off --tests throughput --batch 0 --keep-awake --duration 500ms \
         --warmup 200ms --repeat 3",
    ),
    (
        "comparison-unpinned.jsonl",
        "bench --interface lo --engines all --cpus none --keep-awake --duration 500ms --warmup 200ms --repeat 3",
    ),
    (
        "stages-block.jsonl",
        "bench --interface lo --breakdown --sizes 32,8k --duration 1s --wait block --reliability reliable",
    ),
    (
        "stages-spin.jsonl",
        "bench --interface lo --breakdown --sizes 32,8k --duration 1s --wait spin --reliability reliable",
    ),
    ("targets.jsonl", "targets"),
    (
        "links-reliable.jsonl",
        "bench --engines weir,cyclonedds-links,fastdds-links --tests throughput --reliability reliable --batch 0 \
         --sizes 1k,8k,63000,1M --cpus none --repeat 3 --duration 5s --warmup 2s --link lan100 --link wifi \
         --link lte --link lte,reverse=on --link wan --link satellite --link lan1g",
    ),
    (
        "links-pairs.jsonl",
        "bench --engines weir:cyclonedds-links,weir:fastdds-links,cyclonedds-links:weir,fastdds-links:weir \
         --tests throughput --reliability reliable --batch 0 --sizes 1k,63000,1M --cpus none --duration 5s --warmup 2s \
         --link lan100 --link wifi --link lte --link wan",
    ),
    (
        "links-best-effort.jsonl",
        "bench --engines weir,weir-links,cyclonedds-links,fastdds-links --tests throughput \
         --reliability best-effort --batch 0 --sizes 1k,8k,63000,1M --cpus none --duration 5s --warmup 1s \
         --link lan100 --link wifi --link lte --link lte,reverse=on --link wan --link satellite --link lan1g",
    ),
    (
        "links-age.jsonl",
        "bench --engines weir,cyclonedds-links,fastdds-links --tests latency --rate 100 --beside none,1M \
         --reliability reliable --sizes 1k --cpus none --duration 15s --warmup 5s --link lan100 --link wifi --link lte \
         --link lte,reverse=on --link wan",
    ),
    (
        "links-fair.jsonl",
        "bench --engines weir,cyclonedds-links,fastdds-links --tests throughput --reliability reliable --batch 0 \
         --sizes 63000 --beside 63000 --cpus none --duration 15s --warmup 5s --link lan100 --link wifi --link lte \
         --link lte,reverse=on --link wan --link satellite",
    ),
    (
        "links-tcp.jsonl",
        "bench --engines weir,cyclonedds-links,fastdds-links --tests throughput --reliability reliable --batch 0 \
         --sizes 63000 --beside tcp --cpus none --duration 30s --warmup 5s \
         --link tun,rate=100M,rtt=20ms,queue=125000 --link tun,rate=100M,rtt=20ms,queue=250000 \
         --link tun,rate=100M,rtt=20ms,queue=500000 --link tun,rate=100M,rtt=20ms,queue=1000000 \
         --link tun,rate=20M,rtt=60ms,queue=75000 --link tun,rate=20M,rtt=60ms,queue=150000 \
         --link tun,rate=20M,rtt=60ms,queue=300000 --link tun,rate=20M,rtt=60ms,queue=600000",
    ),
    (
        "scaling-readers.jsonl",
        "bench --workload readers --scale 1,2,4,8,16,32,64 --engines udp,weir,cyclonedds,fastdds --keep-awake=no \
         --duration 5s --warmup 1s --repeat 3",
    ),
    (
        "scaling-topics.jsonl",
        "bench --workload topics --scale 1,10,100,1000 --engines udp,weir,cyclonedds,fastdds --keep-awake=no \
         --duration 5s --warmup 2s --repeat 3",
    ),
    (
        "scaling-participants.jsonl",
        "bench --workload participants --scale 10,50,100,200 --engines weir,cyclonedds,fastdds --keep-awake=no \
         --duration 10s --warmup 10s --repeat 2",
    ),
    (
        "scaling-keys.jsonl",
        "bench --workload keys --scale 1,100,10000,100000 --engines udp,weir,cyclonedds,fastdds --keep-awake=no \
         --duration 5s --warmup 11s --repeat 3",
    ),
    ("osrf-mininet.jsonl", "published run osrf-mininet --exec 5 --runs 1 --delays 0,20,80 --cpus none"),
];

/// Files with what a command prints, and its options.
const PRINTED: &[(&str, &str)] = &[
    ("targets-domain.json", "domain --participants 200 --endpoints 50 --format json"),
    ("scaling-domain-10.json", "domain --participants 10 --endpoints 50 --format json"),
    ("scaling-domain-50.json", "domain --participants 50 --endpoints 50 --format json"),
    ("scaling-domain-100.json", "domain --participants 100 --endpoints 50 --format json"),
    ("scaling-domain-200.json", "domain --participants 200 --endpoints 50 --format json"),
];

const SESSION: &str = "docs/reference/generated/hpcbench-session.md";
/// Folders of published tables, and the options of `weir` that measure them.
const PUBLISHED: &[(&str, &str)] = &[
    ("published", "published run all --exec 1 --link veth --sizes 32,1024,8192,63000,1048576 --cpus 1,0"),
    (
        "published-mtu1500",
        "published run micro-throughput --exec 5 --link veth,mtu=1500,rate=1G,gso=off --sizes 32,1024,8192,63000 \
         --cpus 1,0",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_and_paths_of_programs_do_not_get_into_the_repository() {
        let text = "{\"schema\":1,\"environment\":{\"hostname\":\"h\",\"command\":[\"/x/weir\",\"bench\"]}}\n\
                    {\"engine\":\"udp\",\"loss_attribution\":{\"lost\":0}}\n\
                    {\"engine\":\"udp\",\"loss_attribution\":{\"lost\":2,\"sender\":{}},\"publisher_telemetry\":{}}\n";
        let expected = "{\"environment\":{\"command\":[\"weir\",\"bench\",\"--repeat\",\"3\"]},\"schema\":1}\n\
                        {\"engine\":\"udp\"}\n{\"engine\":\"udp\",\"loss_attribution\":{\"lost\":2}}\n";
        assert_eq!(redacted(text, "bench --repeat 3").unwrap(), expected);
        assert_eq!(
            redacted("{\"engine\":\"udp\",\"histogram\":\"H\"}", "targets").unwrap(),
            "{\"engine\":\"udp\"}\n"
        );
        assert!(redacted("no JSON\n", "bench").is_err());
    }

    #[test]
    fn the_robot_is_apart_from_the_other_targets() {
        let text = "{\"environment\":{}}\n{\"settings\":{\"cpus\":\"1\",\"series\":\"robot\"}}\n\
                    {\"settings\":{\"engine.threads\":\"yes\",\"series\":\"large\",\"verify\":\"false\"}}\n";
        let [others, robot] = by_robot(text).unwrap();
        let head = "{\"environment\":{}}\n";
        assert_eq!(robot, format!("{head}{{\"settings\":{{\"series\":\"robot\"}}}}\n"));
        let settings = "{\"engine.threads\":\"yes\",\"series\":\"large\"}";
        assert_eq!(others, format!("{head}{{\"settings\":{settings}}}\n"));
    }

    #[test]
    fn published_experiments_keep_the_counts_of_a_link_without_its_series() {
        let text = "{\"link\":{\"late_max_us\":1.5,\"to_subscribers\":{\"lost_packets\":3,\
                    \"series\":{\"step_ms\":10.0}}},\"paths\":[]}\n";
        let expected = "{\"link\":{\"late_max_us\":1.5,\"to_subscribers\":{\"lost_packets\":3}}}\n";
        assert_eq!(redacted(text, "published run osrf-mininet").unwrap(), expected);
    }

    #[test]
    fn a_page_has_the_results_that_begin_with_its_name() {
        let known: Vec<&str> = RUNS.iter().map(|(name, _)| stem(name)).collect();
        let of = |page: &str| known.iter().filter(|name| is_part_of(name, page)).count();
        assert_eq!((of("links"), of("comparison"), of("link")), (6, 3, 0));
    }

    #[test]
    fn a_bench_keeps_the_traffic_to_the_subscribers_in_at_most_120_steps() {
        let series = serde_json::json!({
            "step_ms": 10.0, "delivered_bytes": vec![7; 301], "queue_bytes": (0..301).collect::<Vec<_>>(),
        });
        let case = |size_bytes: u64| {
            let case = serde_json::json!({ "size_bytes": size_bytes, "ages": { "step_ms": 50.0 }, "link": {
                "late_max_us": 1.5, "to_publishers": { "series": series }, "to_subscribers": { "series": series },
            }});
            let text = redacted(&format!("{case}\n"), "bench --link lte").unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let plotted = case(PLOTTED_SIZE);
        assert_eq!(plotted["ages"]["step_ms"], 50.0);
        assert_eq!(plotted["link"]["to_publishers"], serde_json::json!({}));
        let series = &plotted["link"]["to_subscribers"]["series"];
        assert_eq!((&series["step_ms"], &series["delivered_bytes"][0]), (&30.0.into(), &21.into()));
        let queue = series["queue_bytes"].as_array().unwrap();
        assert_eq!((queue.len(), &queue[0], &queue[100]), (101, &2.into(), &300.into()));
        // Other sizes are in no plot.
        let other = case(1024);
        assert_eq!((other.get("ages"), &other["link"]["to_subscribers"]), (None, &serde_json::json!({})));
    }
}
