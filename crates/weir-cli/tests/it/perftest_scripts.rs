//! RTI's published scripts in `scripts/`, run between two network namespaces with the addresses of
//! the scripts.
//!
//! Changed are `-exec`, to a number of samples, and the pauses between runs, which are removed. Every
//! size of the scripts is run once. With `WEIR_ALL_SCRIPTS` set, as by `cargo xtask seeds`, all loops
//! run in full for a second each, on one core per end as published and on two.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::is_missing;

const LATENCY: [&str; 2] =
    [include_str!("scripts/latency-publisher.txt"), include_str!("scripts/latency-subscriber.txt")];
const THROUGHPUT: [&str; 2] =
    [include_str!("scripts/throughput-publisher.txt"), include_str!("scripts/throughput-subscriber.txt")];

/// Two namespaces joined by a link of MTU 9000; dropped with this value, with all processes in
/// them.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `None` without the permission. `rate` is that of `tc`, or "" for no limit.
    fn lay(label: &str, rate: &str) -> Option<Self> {
        let names = [1, 2].map(|end| format!("perftest-{label}-{}-{end}", std::process::id()));
        let cable = Self { names };
        let mut script = String::from("set -e\n");
        let [one, other] = &cable.names;
        script += &format!(
            "ip netns add {one}\nip netns add {other}\n\
             ip -n {one} link add p0 type veth peer name p0 netns {other}\n"
        );
        for (name, end) in [(one, 1), (other, 2)] {
            for net in [0, 1] {
                script += &format!("ip -n {name} address add 172.16.{net}.{end}/24 dev p0\n");
            }
            script += &format!("ip -n {name} link set p0 mtu 9000 up\nip -n {name} link set lo up\n");
            if !rate.is_empty() {
                let shape = format!("tbf rate {rate} burst 500kb limit 9500kb");
                script += &format!("ip netns exec {name} tc qdisc add dev p0 root {shape}\n");
            }
        }
        let laid = Command::new("sh").args(["-c", &script]).output().is_ok_and(|laid| laid.status.success());
        let refused = (!laid).then(|| "network namespaces need root, `ip` and `tc`".to_owned());
        (!is_missing(refused)).then_some(cable)
    }

    /// Runs a script at one end, with the executable and the output folder as its arguments, until a command of it
    /// fails. Its output goes to a file.
    fn start(&self, end: usize, script: &str, folder: &Path) -> Child {
        let path = std::env::var("PATH").unwrap_or_default();
        let output = fs::File::create(folder.join(OUTPUTS[end])).unwrap();
        Command::new("ip")
            .args(["netns", "exec", &self.names[end], "bash", "-e", "-c", script, "script"])
            .arg(env!("CARGO_BIN_EXE_perftest"))
            .arg(folder.join("rows"))
            .env("PATH", format!("{}:{path}", folder.display()))
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap()
    }

    /// Ends everything that runs at either end.
    fn kill(&self) {
        for name in &self.names {
            let script = format!("ip netns pids {name} | xargs -r kill -9");
            let _ = Command::new("sh").args(["-c", &script]).status();
        }
    }
}

/// The names of the files with the output of the publisher and the subscriber.
const OUTPUTS: [&str; 2] = ["publisher", "subscriber"];

impl Drop for Cable {
    fn drop(&mut self) {
        self.kill();
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// A `sudo` without effect, since the scripts only use it to tune hosts.
fn without_tuning(folder: &Path) {
    let sudo = folder.join("sudo");
    fs::write(&sudo, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The edits that shorten a run of the scripts.
const HASTE: [(&str, &str); 2] = [("exec_time=30", "exec_time=1"), ("sleep ", "true ")];
/// The option that limits a run. A number of samples has the same figures on a machine of any speed.
const LIMIT: &str = "-exec $exec_time";

/// Runs a pair of scripts with these and further edits, and returns the folder of their files.
fn run(
    label: &str,
    rate: &str,
    scripts: [&str; 2],
    publisher_core: &str,
    changes: &[(&str, &str)],
) -> Option<TempDir> {
    let cable = Cable::lay(label, rate)?;
    let folder = TempDir::new().unwrap();
    without_tuning(folder.path());
    let [publisher, subscriber] = scripts.map(|script| {
        let mut script = script.to_owned();
        for (from, to) in HASTE.iter().chain(changes) {
            script = script.replace(from, to);
        }
        script
    });
    let publisher = publisher.replace("taskset -c 0", &format!("taskset -c {publisher_core}"));
    let ends = [publisher, subscriber];
    let ends = [1, 0].map(|end| cable.start(end, &ends[end], folder.path()));
    if let Err(why) = wait_for_both(&cable, ends) {
        let [publisher, subscriber] =
            OUTPUTS.map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
        panic!("{why}\n--- publisher\n{publisher}\n--- subscriber\n{subscriber}");
    }
    Some(folder)
}

/// Waits for both ends. When one has failed or takes too long, ends the other, which would wait for it for ever.
fn wait_for_both(cable: &Cable, ends: [Child; 2]) -> Result<(), String> {
    // All loops of a pair of scripts take an hour and a half.
    let limit = if is_all() { Duration::from_secs(110 * 60) } else { Duration::from_secs(900) };
    let until = Instant::now() + limit;
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for mut end in ends {
            let sender = sender.clone();
            scope.spawn(move || sender.send(end.wait().unwrap()));
        }
        let wait = || match ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("one end failed: {status}")),
            Err(_) => Err(format!("killed after {limit:?}")),
        };
        wait().and_then(|()| wait()).inspect_err(|_| cable.kill())
    })
}

fn rows(folder: &TempDir, name: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(folder.path().join("rows").join(name)).unwrap();
    text.lines().map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap()).collect()).collect()
}

/// Checks the latency rows of a publisher.
fn check_latencies(folder: &TempDir, name: &str, sizes: &[f64]) {
    let rows = rows(folder, name);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), sizes, "{name}");
    for row in rows {
        let [_, ave, std, min, max, percentiles @ ..] = &row[..] else { panic!("{name}: {row:?}") };
        assert_eq!(percentiles.len(), 5, "{name}: {row:?}");
        let is_sound = min <= &percentiles[0] && percentiles.is_sorted() && &percentiles[4] <= max;
        assert!(is_sound && (min - 1.0..=max + 1.0).contains(ave) && *std >= 0.0, "{name}: {row:?}");
        assert!(*ave > 0.0 && *ave < 5e6, "{name}: {row:?}");
    }
}

/// Checks the throughput rows of a subscriber, without losses if reliable.
fn check_throughput(folder: &TempDir, name: &str, sizes: &[f64], is_reliable: bool) {
    let rows = rows(folder, name);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), sizes, "{name}");
    for row in rows {
        let [size, samples, rate, mbps, lost, percent] = row[..] else { panic!("{name}: {row:?}") };
        assert!(samples >= 1.0 && rate >= 0.0, "{name}: {row:?}");
        // The rate is truncated to whole samples.
        let range = rate * size * 8e-6 - 0.1..=(rate + 1.0) * size * 8e-6 + 0.1;
        assert!(range.contains(&mbps), "{name}: {row:?}");
        assert!((lost / (lost + samples) * 100.0 - percent).abs() < 0.01, "{name}: {row:?}");
        assert!(!is_reliable || lost == 0.0, "{name}: {row:?}");
    }
}

const SMALL: [f64; 8] = [32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 8192.0, 63_000.0];
const LARGE: [f64; 6] = [100_000.0, 500_000.0, 1_048_576.0, 1_548_576.0, 4_194_304.0, 10_485_760.0];
const SMALL_LIST: &str = "in 32 64 128 256 512 1024 8192 63000; do";
const REST_LIST: &str = "in 32 64 128 256 512 1024 8192 63000 100000 ";

/// Whether to run all loops in full.
fn is_all() -> bool {
    std::env::var_os("WEIR_ALL_SCRIPTS").is_some()
}

fn check_latency_files(folder: &TempDir, small: &[f64], rest: &[f64]) {
    for (loop_of, sizes) in
        [("unkeyed_be", small), ("unkeyed_rel", rest), ("keyed_be", small), ("keyed_rel", small)]
    {
        check_latencies(folder, &format!("lat_udpv4_pub_{loop_of}.csv"), sizes);
        check_throughput(folder, &format!("lat_udpv4_sub_{loop_of}.csv"), sizes, loop_of.ends_with("rel"));
    }
}

fn check_throughput_files(folder: &TempDir, sizes: &[f64]) {
    for loop_of in ["unkeyed_be", "unkeyed_rel"] {
        let is_reliable = loop_of.ends_with("rel");
        check_latencies(folder, &format!("thr_udpv4_pub_{loop_of}_noBatch.csv"), sizes);
        check_throughput(folder, &format!("thr_udpv4_sub_{loop_of}_noBatch.csv"), sizes, is_reliable);
    }
}

#[test]
fn published_latency_scripts_run() {
    if is_all() {
        let all: Vec<f64> = SMALL.iter().chain(&LARGE).copied().collect();
        for (rate, core) in [("1gbit", "0"), ("10gbit", "1")] {
            let folder = run("latency", rate, LATENCY, core, &[]).expect("network namespaces");
            check_latency_files(&folder, &SMALL, &all);
        }
        return;
    }
    // Two sizes in the loops of small samples, the others in the loop of large ones.
    let changes = [
        (LIMIT, "-numIter 10"),
        (SMALL_LIST, "in 32 63000; do"),
        (REST_LIST, "in 64 128 256 512 1024 8192 100000 "),
    ];
    let Some(folder) = run("latency", "1gbit", LATENCY, "0", &changes) else { return };
    let rest: Vec<f64> = SMALL[1..7].iter().chain(&LARGE).copied().collect();
    check_latency_files(&folder, &[32.0, 63_000.0], &rest);
}

#[test]
fn published_throughput_scripts_run() {
    if is_all() {
        let once = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 63_000].map(f64::from);
        for (rate, core) in [("10gbit", "0"), ("", "1")] {
            let folder = run("throughput", rate, THROUGHPUT, core, &[]).expect("network namespaces");
            check_throughput_files(&folder, &[once, once, once].concat());
        }
        return;
    }
    // The sizes that the latency scripts lack, and one of theirs.
    let list = "in 32 64 128 256 512 1024 2048 4096 8192 16384 32768 63000; do";
    let changes = [
        (LIMIT, "-numIter 10000 -latencyCount 500"),
        ("in 1 2 3; do", "in 1; do"),
        (list, "in 32 2048 4096 16384 32768; do"),
    ];
    let Some(folder) = run("throughput", "", THROUGHPUT, "1", &changes) else { return };
    check_throughput_files(&folder, &[32.0, 2048.0, 4096.0, 16_384.0, 32_768.0]);
}
