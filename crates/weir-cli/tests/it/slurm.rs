//! Hosts that Slurm reaches: a cluster of one node in a network namespace. Without root or Slurm a test reports that
//! and passes, unless `WEIR_REQUIRE_NETNS` or `WEIR_REQUIRE_SLURM` is set.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{self, BRIEF, Finished, KilledOnDrop, Scene, is_missing};

/// A node `n1`, with a controller and an authentication service of its own.
struct Cluster {
    scene: Scene,
    namespace: String,
    _daemons: Vec<KilledOnDrop>,
}

impl Cluster {
    /// `None`: this machine has not got what is needed, which is reported.
    fn start() -> Option<Self> {
        if is_refused() {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("weir-it-{}-{number}-slurm", std::process::id());
        let mut cluster = Self { scene: Scene::new(), namespace, _daemons: Vec::new() };
        run(Command::new("ip").args(["netns", "add", &cluster.namespace]));
        // slurmd does not listen while there is no address but those of the loopback interface.
        for words in [
            "link set lo up",
            "link add weir0 type veth peer name weir1",
            "address add 10.79.0.1/24 dev weir0",
            "link set weir0 up",
        ] {
            run(Command::new("ip").args(["-n", &cluster.namespace]).args(words.split(' ')));
        }
        cluster.configure();
        cluster._daemons = vec![
            cluster.munge(),
            cluster.daemon("slurmctld", &["-D"], "Running as primary controller"),
            cluster.daemon("slurmd", &["-D", "-N", "n1"], "slurmd started"),
        ];
        Some(cluster)
    }

    fn configure(&self) {
        let hostname = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let hostname = hostname.trim().split('.').next().unwrap();
        for folder in ["state", "spool"] {
            fs::create_dir_all(self.scene.path(folder)).unwrap();
        }
        let mut key = Vec::new();
        fs::File::open("/dev/urandom").unwrap().take(1024).read_to_end(&mut key).unwrap();
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o400).open(self.scene.path("key")).unwrap();
        file.write_all(&key).unwrap();
        let folder = self.scene.path("").display().to_string();
        let folder = folder.trim_end_matches('/');
        let config = format!(
            "ClusterName=weir\nSlurmctldHost={hostname}(127.0.0.1)\nSlurmUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={folder}/munge\nCredType=cred/munge\n\
             StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
             SelectType=select/cons_tres\nMpiDefault=none\n\
             NodeName=n1 NodeHostname={hostname} NodeAddr=127.0.0.1\nPartitionName=all Nodes=ALL Default=YES State=UP\n"
        );
        fs::write(self.scene.path("slurm.conf"), config).unwrap();
    }

    /// Starts the authentication service. It says nothing once it listens: its socket does.
    fn munge(&self) -> KilledOnDrop {
        let of = |option: &str, name: &str| format!("--{option}={}", self.scene.path(name).display());
        let mut command = self.inside("munged");
        command.args(["--foreground", "--force"]).args([of("key-file", "key"), of("socket", "munge")]);
        command.args([
            of("pid-file", "munged.pid"),
            of("seed-file", "munged.seed"),
            of("log-file", "munged.log"),
        ]);
        let mut daemon = KilledOnDrop::spawn(command.stdout(Stdio::null()).stderr(Stdio::null()));
        while std::os::unix::net::UnixStream::connect(self.scene.path("munge")).is_err() {
            assert_eq!(daemon.process.try_wait().unwrap(), None, "munged ended at its start");
            std::thread::yield_now();
        }
        daemon
    }

    /// Starts a daemon of Slurm, and waits until it says `ready`.
    fn daemon(&self, program: &str, words: &[&str], ready: &str) -> KilledOnDrop {
        let mut command = self.inside(program);
        command.args(words).arg("-v").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut daemon = KilledOnDrop::spawn(&mut command);
        let mut said = BufReader::new(daemon.process.stderr.take().unwrap());
        let mut lines = String::new();
        while !lines.contains(ready) {
            assert_ne!(said.read_line(&mut lines).unwrap(), 0, "{program} ended: {lines}");
        }
        // What it says later is of no use, but it has to be read.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        daemon
    }

    /// A program in the cluster's network, with the cluster's configuration.
    fn inside(&self, program: &str) -> Command {
        // Unlike `ip netns exec`, this leaves /sys with its control groups as it is.
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.namespace))
            .arg(program)
            .current_dir(self.scene.path(""));
        command.env("SLURM_CONF", self.scene.path("slurm.conf"));
        command
    }

    /// A `weir` inside an allocation of the node, which waits until the node has registered.
    fn weir(&self, words: &str) -> Command {
        let mut command = self.inside("salloc");
        command.args(["--quiet", "--nodes=1", env!("CARGO_BIN_EXE_weir")]).args(words.split_whitespace());
        command
    }

    /// The processes in the cluster's network with these arguments.
    fn running(&self, arguments: &str) -> Vec<Pid> {
        let output = Command::new("ip").args(["netns", "pids", &self.namespace]).output().unwrap().stdout;
        let is_it = |pid: &&str| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(arguments)
        };
        let output = String::from_utf8(output).unwrap();
        output.lines().filter(is_it).filter_map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).status();
    }
}

/// Returns the parent of a process (`man 5 proc_pid_stat`).
fn parent_of(pid: Pid) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether a namespace or Slurm is unavailable.
fn is_refused() -> bool {
    let works = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
    };
    if !works(&["unshare", "--net", "ip", "link"]) {
        return is_missing(Some("network namespaces need root and iproute2".to_owned()));
    }
    let exists = |program: &&str| Command::new(program).arg("-V").output().is_ok();
    if ["slurmctld", "slurmd", "salloc", "munged"].iter().all(exists) {
        return false;
    }
    assert!(std::env::var_os("WEIR_REQUIRE_SLURM").is_none(), "no Slurm, and WEIR_REQUIRE_SLURM is set");
    support::skip("Slurm is not installed (on Debian: apt install slurm-wlm)");
    true
}

const NODE: &str = "--hosts pub=local%lo,sub=slurm:n1%lo --cpus none";

#[test]
fn an_end_runs_on_a_node_of_the_allocation() {
    let Some(cluster) = Cluster::start() else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines weir --tests latency --rate 500/s --sizes 32 --reliability reliable \
         --format json {NODE}"
    );
    let document = Finished::from(cluster.weir(&words).output().unwrap()).expect_code(0).json();
    assert_eq!(document["hosts"][1]["name"], "slurm:n1");
    assert_eq!(document["hosts"][1]["ends"][0], "subscriber");
    let case = &document["cases"][0];
    assert_eq!(case["throughput"]["lost"], 0, "{case}");
    assert!(case["subscriber"]["samples"].as_u64() > Some(0), "{case}");
    // A node that is not in the allocation.
    let words = words.replace("slurm:n1", "slurm:n2").replace("results", "others");
    Finished::from(cluster.weir(&words).output().unwrap())
        .expect_code(3)
        .expect_stderr("lists the nodes of the allocation");
    assert!(!cluster.scene.path("others").exists());
}

#[test]
fn nothing_is_left_on_a_node_when_the_run_is_interrupted_or_killed() {
    let Some(cluster) = Cluster::start() else { return };
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let words = format!(
            "bench --output results-{code:?} {BRIEF} --engines mock-hang --tests throughput --sizes 32 --batch 0 \
             --reliability reliable --verbose {NODE}"
        );
        let mut command = cluster.weir(&words);
        let mut allocation = KilledOnDrop::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let mut talk = BufReader::new(allocation.process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("32 B: started") {
            line.clear();
            assert_ne!(talk.read_line(&mut line).unwrap(), 0, "stderr ended early");
        }
        while cluster.running("--role subscriber").is_empty() {
            std::thread::yield_now();
        }
        // A process that it starts has the same arguments until it runs its own program.
        let salloc = Some(allocation.process.id());
        let coordinator = cluster.running("weir bench ").into_iter().find(|pid| parent_of(*pid) == salloc);
        kill_process(coordinator.unwrap(), signal).unwrap();
        talk.read_to_end(&mut Vec::new()).unwrap();
        // `salloc` passes on the exit code, and 0 or 1 after a signal.
        let ended = allocation.process.wait().unwrap();
        assert!(code.is_none() || ended.code() == code, "{ended}");
        while ["/weir host", "/weir agent"].iter().any(|text| !cluster.running(text).is_empty()) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_node_without_an_allocation_is_refused_before_slurm_is_asked() {
    Scene::new()
        .weir(&format!("bench --output results --engines mock --sizes 32 {NODE}"))
        .expect_code(3)
        .expect_stderr("start weir inside one, as with `salloc -N2 weir");
}
