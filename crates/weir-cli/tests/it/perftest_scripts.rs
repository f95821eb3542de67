//! RTI's published scripts, as they stand in `scripts/`, between two network namespaces with their addresses.
//!
//! What is changed is `-exec`, which is a second, and the pauses between the runs, which are left out. Every size of the scripts is
//! run once, in one loop or another; with `WEIR_ALL_SCRIPTS` set, as `cargo xtask seeds` does, all loops are run in full, on one core
//! at either end as published and on two.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::is_missing;

const LATENCY: [&str; 2] =
    [include_str!("scripts/latency-publisher.txt"), include_str!("scripts/latency-subscriber.txt")];
const THROUGHPUT: [&str; 2] =
    [include_str!("scripts/throughput-publisher.txt"), include_str!("scripts/throughput-subscriber.txt")];

/// Two namespaces and a cable of MTU 9000 between them; gone with this value, and with them what still runs there.
struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `None` where this process may not do that. `rate` is that of `tc`, "" for as fast as it goes.
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

    /// Runs a script at one end as RTI's are run: with the executable and the folder for its output.
    fn start(&self, end: usize, script: &str, folder: &Path) -> Child {
        let path = std::env::var("PATH").unwrap_or_default();
        Command::new("ip")
            .args(["netns", "exec", &self.names[end], "bash", "-c", script, "script"])
            .arg(env!("CARGO_BIN_EXE_perftest"))
            .arg(folder.join("rows"))
            .env("PATH", format!("{}:{path}", folder.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            // A script that failed leaves the other one waiting.
            let script = format!("ip netns pids {name} | xargs -r kill -9; ip netns delete {name}");
            let _ = Command::new("sh").args(["-c", &script]).status();
        }
    }
}

/// A `sudo` that does nothing: what the scripts want of it is to tune hosts that we have not got.
fn without_tuning(folder: &Path) {
    let sudo = folder.join("sudo");
    fs::write(&sudo, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The changes that make a run of the scripts short.
const HASTE: &[(&str, &str)] = &[("exec_time=30", "exec_time=1"), ("sleep ", "true ")];

/// Runs a pair of scripts with those changes and more; the files that they filled are in the folder.
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
    let mut subscriber = cable.start(1, &subscriber, folder.path());
    let published = cable.start(0, &publisher, folder.path()).wait().unwrap();
    assert!(published.success() && subscriber.wait().unwrap().success());
    Some(folder)
}

fn rows(folder: &TempDir, name: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(folder.path().join("rows").join(name)).unwrap();
    text.lines().map(|line| line.split(',').map(|cell| cell.trim().parse().unwrap()).collect()).collect()
}

/// Checks the rows of a publisher: latencies.
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

/// Checks the rows of a subscriber: throughput, and no losses where there may be none.
fn check_throughput(folder: &TempDir, name: &str, sizes: &[f64], is_reliable: bool) {
    let rows = rows(folder, name);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), sizes, "{name}");
    for row in rows {
        let [size, samples, rate, mbps, lost, percent] = row[..] else { panic!("{name}: {row:?}") };
        assert!(samples >= 1.0 && rate >= 0.0, "{name}: {row:?}");
        // The rate is cut to whole samples.
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

/// Whether all loops are to be run in full.
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
    // Two sizes in the loops of small samples, and all others in the one with the large ones.
    let changes = [(SMALL_LIST, "in 32 63000; do"), (REST_LIST, "in 64 128 256 512 1024 8192 100000 ")];
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
    // The sizes that the scripts for latency lack, and one of theirs.
    let list = "in 32 64 128 256 512 1024 2048 4096 8192 16384 32768 63000; do";
    // In a short run there are few pings, and on a busy machine none: there is one in 1000 samples, not in 10 000.
    let pings = ("-exec $exec_time", "-exec $exec_time -latencyCount 1000");
    let changes = [("in 1 2 3; do", "in 1; do"), (list, "in 32 2048 4096 16384 32768; do"), pings];
    let Some(folder) = run("throughput", "", THROUGHPUT, "1", &changes) else { return };
    check_throughput_files(&folder, &[32.0, 2048.0, 4096.0, 16_384.0, 32_768.0]);
}
