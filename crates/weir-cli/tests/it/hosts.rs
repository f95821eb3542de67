//! Runs on several hosts: two network namespaces with a cable between them, each with an sshd. Without root, the
//! necessary programs or an sshd a test reports that and passes, unless `WEIR_REQUIRE_NETNS` or `WEIR_REQUIRE_SSHD` is
//! set.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_results::Run;

use crate::support::{self, BRIEF, Finished, KilledOnDrop, Random, Scene, is_missing};

/// Two hosts, `alpha` and `beta` for SSH, which this process sees from `alpha`'s network.
struct TwoHosts {
    scene: Scene,
    /// Their namespaces.
    names: [String; 2],
    _sshds: Vec<KilledOnDrop>,
}

impl TwoHosts {
    /// `None`: this machine has not got what is needed, which is reported.
    fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same, with `beta`'s sshd run by this command.
    fn start_with(wrapper: &[&str]) -> Option<Self> {
        if is_refused() {
            return None;
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let names = ["a", "b"].map(|end| format!("weir-it-{}-{number}-{end}", std::process::id()));
        let mut hosts = Self { scene: Scene::new(), names, _sshds: Vec::new() };
        for name in &hosts.names {
            run(&format!("ip netns add {name}"));
        }
        let [a, b] = hosts.names.clone();
        run(&format!("ip -n {a} link add weir0 type veth peer name weir0 netns {b}"));
        for (name, address) in [&a, &b].into_iter().zip(ADDRESSES) {
            run(&format!("ip -n {name} link set lo up"));
            run(&format!("ip -n {name} address add {address}/24 dev weir0"));
            run(&format!("ip -n {name} link set weir0 up"));
        }
        hosts.write_keys();
        hosts._sshds = vec![hosts.sshd(0, &[]), hosts.sshd(1, wrapper)];
        Some(hosts)
    }

    fn write_keys(&self) {
        for name in ["host", "user"] {
            let path = self.path(name);
            run(&format!("ssh-keygen -q -t ed25519 -N  -f {}", path.display()));
        }
        let key = fs::read_to_string(self.path("host.pub")).unwrap();
        let known = ADDRESSES.map(|address| format!("[{address}]:2222 {key}"));
        fs::write(self.path("known"), known.concat()).unwrap();
        let config = format!(
            "Host *\n Port 2222\n User root\n IdentityFile {user}\n IdentitiesOnly yes\n UserKnownHostsFile {known}\n\
             Host alpha\n HostName {}\nHost beta\n HostName {}\n",
            ADDRESSES[0],
            ADDRESSES[1],
            user = self.path("user").display(),
            known = self.path("known").display(),
        );
        fs::write(self.path("config"), config).unwrap();
    }

    /// Starts an sshd, and waits until it listens.
    fn sshd(&self, index: usize, wrapper: &[&str]) -> KilledOnDrop {
        // Debian's sshd needs this folder, which its service makes.
        fs::create_dir_all("/run/sshd").unwrap();
        let path = |name: &str| self.path(name).display().to_string();
        let config = format!(
            "Port 2222\nListenAddress {}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nPidFile none\nUsePAM no\n\
             PermitRootLogin prohibit-password\nSetEnv XDG_CACHE_HOME={}\n",
            ADDRESSES[index],
            path("host"),
            path("user.pub"),
            path("cache"),
        );
        let file = self.path(&format!("sshd{index}"));
        fs::write(&file, config).unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[index]]).args(wrapper);
        command.args(["/usr/sbin/sshd", "-D", "-e", "-f"]).arg(file).stdin(Stdio::null());
        let mut sshd = KilledOnDrop::spawn(command.stderr(Stdio::piped()));
        let mut said = BufReader::new(sshd.process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("Server listening") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "sshd ended");
        }
        // What it says later is of no use, but it has to be read.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        sshd
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scene.path(name)
    }

    /// The options that name `alpha` and `beta` as the hosts.
    fn by_ssh(&self) -> Vec<String> {
        self.between("pub=alpha,sub=beta")
    }

    /// The same with the program there: to copy and hash an unoptimised build takes most of a test's time.
    fn with_program(&self) -> Vec<String> {
        let program = self.path("cache/weir/weir-there");
        if !program.exists() {
            fs::create_dir_all(self.path("cache/weir")).unwrap();
            let own = env!("CARGO_BIN_EXE_weir");
            // Not across file systems.
            fs::hard_link(own, &program).or_else(|_| fs::copy(own, &program).map(drop)).unwrap();
        }
        [self.by_ssh(), ["--remote-weir".to_owned(), program.display().to_string()].to_vec()].concat()
    }

    /// Processes of this host in both networks.
    fn local(&self) -> Vec<String> {
        let [a, b] = &self.names;
        self.between(&format!("pub=netns:{a},sub=netns:{b}"))
    }

    fn between(&self, hosts: &str) -> Vec<String> {
        let rsh = format!("ssh -F {}", self.path("config").display());
        ["--hosts", hosts, "--rsh", &rsh].map(str::to_owned).to_vec()
    }

    /// A `weir` in `alpha`'s network.
    fn command(&self, words: &str, hosts: &[String]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[0], env!("CARGO_BIN_EXE_weir")]);
        command.args(words.split_whitespace()).args(hosts).current_dir(self.path(""));
        command
    }

    fn weir(&self, words: &str, hosts: &[String]) -> Finished {
        Finished::from(self.command(words, hosts).output().unwrap())
    }

    /// Waits until nothing that was started on the hosts runs any more; the time limit of the test run catches a hang.
    fn await_end(&self) {
        while !self.running("").is_empty() {
            std::thread::yield_now();
        }
    }

    /// Waits for processes on the hosts whose arguments contain `text`, and returns them.
    fn await_running(&self, text: &str, count: usize) -> Vec<Pid> {
        loop {
            let found = self.running(text);
            if found.len() == count {
                return found;
            }
            std::thread::yield_now();
        }
    }

    /// The processes of the copied program whose arguments contain `text`.
    fn running(&self, text: &str) -> Vec<Pid> {
        let program = self.path("cache/weir/weir-").display().to_string();
        let is_it = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.starts_with(&program) && line.contains(text)
        };
        let pids =
            fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(is_it).filter_map(Pid::from_raw).collect()
    }

    /// The copies of the program, with the numbers of their files.
    fn copies(&self) -> Vec<(PathBuf, u64)> {
        let entries = fs::read_dir(self.path("cache/weir")).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.path(), entry.metadata().unwrap().ino())).collect()
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        for name in &self.names {
            // The devices are removed with the last process inside.
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

const ADDRESSES: [&str; 2] = ["10.79.0.1", "10.79.0.2"];

fn run(line: &str) {
    let mut words = line.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether hosts in namespaces, or their sshd, are unavailable.
fn is_refused() -> bool {
    let works = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
    };
    if !works(&["unshare", "--net", "ip", "link"]) {
        return is_missing(Some("network namespaces need root and iproute2".to_owned()));
    }
    if Path::new("/usr/sbin/sshd").exists() && works(&["ssh", "-V"]) {
        return false;
    }
    assert!(std::env::var_os("WEIR_REQUIRE_SSHD").is_none(), "no sshd, and WEIR_REQUIRE_SSHD is set");
    support::skip("ssh or sshd is not installed (on Debian: apt install openssh-client openssh-server)");
    true
}

fn results(output: &Finished) -> Vec<Value> {
    output.json()["cases"].as_array().unwrap().clone()
}

/// The latencies measured in each case: as many as were sent, and all of them arrived.
fn counts(cases: &[Value]) -> BTreeMap<String, u64> {
    let count = |case: &Value| {
        let latency = &case["latency_us"];
        assert!(latency["p50"].as_f64() > Some(0.0) && latency["p50"].as_f64() < Some(1e9), "{case}");
        assert_eq!((&case["throughput"]["lost"], &latency["lost"]), (&0.into(), &0.into()), "{case}");
        assert!(case["publisher"]["samples"].as_u64() > Some(0), "{case}");
        assert_eq!(case["publisher"]["samples"], case["subscriber"]["samples"], "{case}");
        assert_eq!(case["publisher"]["samples"], latency["count"], "{case}");
        (format!("{} {}", case["engine"], case["size_bytes"]), latency["count"].as_u64().unwrap())
    };
    cases.iter().map(count).collect()
}

#[test]
fn two_hosts_through_ssh_agree_with_two_processes_on_the_same_cable() {
    let Some(hosts) = TwoHosts::start() else { return };
    // With more, the comparison is printed.
    let repeats = std::env::var("WEIR_HOSTS_REPEATS").unwrap_or_else(|_| "1".to_owned());
    let words = format!(
        "bench --duration 200ms --warmup 0s --engines udp,weir --tests latency --rate 500/s --sizes 32,1000 \
         --reliability reliable --cpus none --repeat {repeats} --format json"
    );
    let local = hosts.weir(&format!("{words} --output local"), &hosts.local());
    let by_ssh = hosts.weir(&format!("{words} --output ssh"), &hosts.by_ssh());
    let (local, by_ssh) = (local.expect_code(0), by_ssh.expect_code(0));
    let (here, there) = (counts(&results(&local)), counts(&results(&by_ssh)));
    assert!(here.len() == 4 && here.keys().eq(there.keys()), "{here:?} {there:?}");
    // All hundred, unless the machine was too slow for the schedule.
    assert!(here.values().chain(there.values()).all(|count| (1..=100).contains(count)), "{here:?} {there:?}");
    let document = by_ssh.json();
    assert_eq!(document["cases"][0]["path"], "hosts pub=alpha,sub=beta");
    assert_eq!(document["cases"][0]["clocks"]["shared"], true);
    for (index, (name, end)) in [("alpha", "publisher"), ("beta", "subscriber")].into_iter().enumerate() {
        let host = &document["hosts"][index];
        let found = [&host["name"], &host["ends"][0], &host["interface"], &host["address"]];
        assert_eq!(found, [name, end, "weir0", ADDRESSES[index]], "{host}");
        assert_eq!(host["environment"]["interface"]["name"], "weir0");
    }
    assert!(document["peer"]["kernel"].is_string());
    // One repeat decides nothing, but each case has its counterpart.
    if repeats == "1" {
        let compared =
            hosts.weir("compare local ssh --across-paths --format json", &[]).expect_code(0).json();
        let figures = compared["figures"].as_array().unwrap();
        assert!(figures.len() >= 4 && figures.iter().all(|it| it["verdict"] == "inconclusive"), "{compared}");
        assert!(
            ["missing", "added"].iter().all(|list| compared[list] == Value::Array(Vec::new())),
            "{compared}"
        );
    } else {
        println!("{}", hosts.weir("compare local ssh --across-paths", &[]).stdout);
    }
    // Both hosts have one home here: the program was copied once, and is not copied again.
    let copies = hosts.copies();
    assert_eq!(copies.len(), 1, "{copies:?}");
    let words = format!("bench {BRIEF} --engines mock --tests latency --sizes 32 --output again");
    hosts.weir(&words, &hosts.by_ssh()).expect_code(0);
    assert_eq!(hosts.copies(), copies);
    hosts.await_end();
}

#[test]
fn processors_of_all_hosts_are_kept_awake_for_the_cases_that_ask_for_it() {
    let Some(hosts) = TwoHosts::start() else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines mock --tests latency --sizes 32 --reliability reliable \
         --keep-awake=both --format json"
    );
    let document = hosts.weir(&words, &hosts.with_program()).expect_code(0).json();
    let how = |case: usize| document["cases"][case]["settings"]["keep_awake"].as_str().unwrap().to_owned();
    assert_eq!([0, 1].map(|case| document["cases"][case]["kept_awake"] == true), [false, true]);
    assert_eq!(how(0), "no");
    for host in ["alpha: SCHED_IDLE spinners", "beta: SCHED_IDLE spinners"] {
        assert!(how(1).contains(host), "{}", how(1));
    }
    hosts.await_end();
}

#[test]
fn latencies_are_measured_both_ways_where_idling_slows_a_host_down() {
    let Some(hosts) = TwoHosts::start() else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines udp,weir --tests latency --sizes 32 --reliability reliable \
         --cpus none --format json"
    );
    let document = hosts.weir(&words, &hosts.with_program()).expect_code(0).json();
    // The check of this machine decides, by the rule of `WakeUp`.
    let is_slowed = |wake_up: &Value| {
        let [idle, awake] = ["idle_ns", "awake_ns"].map(|name| wake_up[name].as_u64().unwrap());
        idle.saturating_sub(awake) >= 1_000 && (idle - awake) * 4 > awake
    };
    // None where the check took too long.
    let wake_ups = |host: usize| document["hosts"][host]["environment"]["wake_ups"].as_array();
    let is_expected = [0, 1].into_iter().filter_map(wake_ups).flatten().any(is_slowed);
    let cases = document["cases"].as_array().unwrap();
    let awake = cases.iter().filter(|case| case["kept_awake"] == true).count();
    assert_eq!((cases.len(), awake), if is_expected { (4, 2) } else { (2, 0) });
    hosts.await_end();
}

#[test]
fn a_breakdown_needs_one_clock_for_both_ends() {
    let Some(hosts) = TwoHosts::start() else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines udp --breakdown --sizes 32 --cpus none --format json"
    );
    let case = &results(&hosts.weir(&words, &hosts.with_program()).expect_code(0))[0];
    assert!(case["breakdown"].is_object(), "{case}");
    hosts.await_end();
    drop(hosts);
    if is_missing((!Path::new("/proc/self/ns/time").exists()).then(|| "no time namespaces".to_owned())) {
        return;
    }
    let wrapper = ["unshare", "--time", "--monotonic", "5000", "--fork", "--kill-child"];
    let Some(hosts) = TwoHosts::start_with(&wrapper) else { return };
    hosts
        .weir(&words, &hosts.with_program())
        .expect_code(2)
        .expect_stderr("--breakdown needs hosts with one clock");
}

#[test]
fn one_way_latency_between_two_clocks_has_their_error() {
    let wrapper = ["unshare", "--time", "--monotonic", "5000", "--fork", "--kill-child"];
    if is_missing((!Path::new("/proc/self/ns/time").exists()).then(|| "no time namespaces".to_owned())) {
        return;
    }
    let Some(hosts) = TwoHosts::start_with(&wrapper) else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines weir --tests latency --rate 1000/s --sizes 32 --cpus none \
         --reliability reliable --format json"
    );
    let case = &results(&hosts.weir(&words, &hosts.with_program()).expect_code(0))[0];
    let clocks = &case["clocks"];
    let (offset_us, error_us) = (clocks["offset_us"].as_f64().unwrap(), clocks["error_us"].as_f64().unwrap());
    assert_eq!(clocks["shared"], false);
    // The kernel's clocks differ by exactly that.
    assert!((offset_us - 5e9).abs() <= error_us, "{clocks}");
    assert_eq!(case["throughput"]["lost"], 0);
    let warnings = case["warnings"].as_array().unwrap();
    let warning = warnings.iter().find(|warning| warning["code"] == "clock-error").unwrap();
    match case["latency_us"]["p50"].as_f64() {
        Some(p50) => assert!(p50 >= error_us && p50 < 1e9, "{case}"),
        None => assert_eq!(warning["exceeds_latency"], true),
    }
    // Processors of two machines may have the same number; one clock for both ends has no discovery.
    assert!(case["discovery"].is_null());
}

#[test]
fn a_plan_runs_on_hosts_and_goes_on_there() {
    let Some(hosts) = TwoHosts::start() else { return };
    let plan = "[defaults]\nengines = \"mock\"\ntests = \"latency\"\nduration = \"50ms\"\nwarmup = \"0s\"\n\
                reliability = \"reliable\"\n[[study]]\nname = \"one\"\nsizes = 32\n\
                [[study]]\nname = \"two\"\nsizes = 64\n[[study.require]]\nno_loss = true\n";
    fs::write(hosts.path("plan.toml"), plan).unwrap();
    let words = "run plan.toml --output results";
    let said = hosts.weir(words, &hosts.with_program()).expect_code(0).stderr;
    assert!(said.contains("host beta: subscriber; weir0 10.79.0.2"), "{said}");
    let again = hosts.weir(words, &hosts.with_program()).expect_code(0);
    assert!(again.stderr.contains("study two (2 of 2): finished before"), "{}", again.stderr);
    hosts
        .weir(words, &hosts.between("pub=beta,sub=alpha"))
        .expect_code(2)
        .expect_stderr("choose another folder");
    hosts.scene.weir("report results/one -o report.html").expect_code(0);
    let html = fs::read_to_string(hosts.path("report.html")).unwrap();
    assert!(html.contains("Where the ends ran") && html.contains("Host beta"));
}

#[test]
fn several_ends_take_the_hosts_in_turn() {
    let Some(hosts) = TwoHosts::start() else { return };
    let words = format!(
        "bench --output results {BRIEF} --engines weir --tests throughput --sizes 1000 --subscribers 3 --batch 0 \
         --reliability reliable --format json"
    );
    let document =
        hosts.weir(&words, &hosts.between("pub=local,sub=beta,sub=alpha,sub3=beta")).expect_code(0).json();
    let ends: Vec<String> =
        document["hosts"].as_array().unwrap().iter().map(|host| host["ends"].to_string()).collect();
    let expected =
        [r#"["publisher"]"#, r#"["subscriber 1 of 3","subscriber 3 of 3"]"#, r#"["subscriber 2 of 3"]"#];
    assert_eq!(ends, expected);
    let throughput = &document["cases"][0]["throughput"];
    assert_eq!(throughput["lost"], 0);
    assert!(throughput["total_samples"].as_u64() > Some(0), "{throughput}");
}

#[test]
fn hosts_that_cannot_be_used_are_reported_with_what_to_do() {
    let Some(hosts) = TwoHosts::start() else { return };
    let words = format!("bench --output results {BRIEF} --engines mock --sizes 32");
    let check = |between: Vec<String>, expected: &str| {
        hosts.weir(&words, &between).expect_code(3).expect_stderr(expected);
        assert!(!hosts.scene.results().exists());
    };
    // No sshd at this port.
    let closed: Vec<String> =
        hosts.by_ssh().iter().map(|word| word.replace("ssh -F", "ssh -p 2223 -F")).collect();
    check(closed, "Connection refused): check that the host is on and runs sshd");
    check(
        hosts.between("pub=local,sub=netns:weir-no-such"),
        "netns:weir-no-such: it ended before weir started there",
    );
    let other = hosts.path("other-weir");
    fs::write(
        &other,
        "#!/bin/sh\necho weir-host-ready\necho '{\"kind\":\"hello\",\"schema\":1,\"version\":\"0.0.0\",\
         \"facts\":{\"interfaces\":[],\"cpus\":[],\"clock\":\"\",\"reached\":null}}'\nexec cat\n",
    )
    .unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let with_other = [hosts.by_ssh(), vec!["--remote-weir".to_owned(), other.display().to_string()]].concat();
    check(with_other, "the other process is weir 0.0.0");
    // Another key than that which is known.
    run(&format!("ssh-keygen -q -t ed25519 -N  -f {}", hosts.path("stranger").display()));
    let key = fs::read_to_string(hosts.path("stranger.pub")).unwrap();
    fs::write(hosts.path("known"), format!("[{}]:2222 {key}", ADDRESSES[1])).unwrap();
    check(hosts.between("pub=local,sub=beta"), "connect once by hand to accept it");
    hosts.await_end();
}

#[test]
fn options_without_meaning_for_hosts_are_refused_before_anything_runs() {
    let check = |words: &str, expected: &str| {
        let finished = Scene::new().weir(&format!("bench --output results --engines mock {words}"));
        finished.expect_code(2).expect_stderr(expected);
    };
    check("--hosts alpha", "is not END=PLACE");
    check("--hosts pub=a,sub=b --link veth", "`weir lab up --link LINK`");
    check("--hosts pub=a,sub=b --outside-checks", "run on this host only");
    check("--hosts pub=a,sub=b,sub2=c", "names sub2, but there are only 1");
    check("--rsh rsh", "--rsh needs --hosts");
}

/// A run on hosts whose second case hangs.
struct HangingRun {
    hosts: TwoHosts,
    child: KilledOnDrop,
}

impl HangingRun {
    /// Returns when both processes of the second case run.
    fn start() -> Option<Self> {
        let hosts = TwoHosts::start()?;
        let words = format!(
            "bench --output results {BRIEF} --engines mock,mock-hang --tests throughput --order listed --repeat 2 \
             --reliability reliable --sizes 32 --batch 0 --verbose"
        );
        let mut command = hosts.command(&words, &hosts.with_program());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = KilledOnDrop::spawn(&mut command);
        let mut talk = BufReader::new(child.process.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("mock-hang throughput reliable 32 B: started") {
            line.clear();
            assert_ne!(talk.read_line(&mut line).unwrap(), 0, "stderr ended early");
        }
        std::thread::spawn(move || std::io::copy(&mut talk, &mut std::io::sink()));
        Some(Self { hosts, child })
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.process.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        self.child.process.wait().unwrap().code()
    }

    /// The reasons of the cases without figures, and how many cases there are.
    fn failures(&self) -> (Vec<String>, usize) {
        let lines = self.hosts.scene.result_lines();
        let reasons = lines.iter().filter_map(|line| line["not_measured"]["reason"].as_str());
        (reasons.map(str::to_owned).collect(), lines.len() - 1)
    }
}

#[test]
fn an_end_or_a_host_that_is_killed_fails_its_case_and_the_run_goes_on() {
    let Some(mut run) = HangingRun::start() else { return };
    // The second case hangs until one of its processes is killed, the fourth until its host's connection is.
    run.hosts.await_running(" agent ", 2);
    let subscriber = run.hosts.await_running("--role subscriber", 1)[0];
    kill_process(subscriber, Signal::KILL).unwrap();
    loop {
        let again = run.hosts.running("--role subscriber");
        if again.first().is_some_and(|pid| *pid != subscriber) && run.failures().1 == 3 {
            break;
        }
        std::thread::yield_now();
    }
    for host in run.hosts.running(" host") {
        // Another one may have ended with the first.
        let killed = kill_process(host, Signal::KILL);
        assert!(matches!(killed, Ok(()) | Err(Errno::SRCH)), "{killed:?}");
    }
    assert_eq!(run.code(), Some(3));
    let (reasons, count) = run.failures();
    assert_eq!((reasons.len(), count), (2, 4), "{reasons:?}");
    assert!(
        reasons[0].contains("beta: the subscriber's process ended before its case did (signal: 9"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("its connection was closed"), "{reasons:?}");
    run.hosts.await_end();
}

#[test]
fn nothing_is_left_on_the_hosts_when_the_run_is_interrupted_or_killed() {
    for signal in [Signal::INT, Signal::KILL] {
        let Some(mut run) = HangingRun::start() else { return };
        run.hosts.await_running(" agent ", 2);
        run.signal(signal);
        let expected = if signal == Signal::INT { Some(130) } else { None };
        assert_eq!(run.code(), expected);
        run.hosts.await_end();
        assert_eq!(run.failures(), (Vec::new(), 1));
    }
}

/// A run of four cases on the hosts, killed at a line of progress that follows from the seed.
fn run_and_kill(hosts: &TwoHosts, words: &str, seed: u64) {
    let mut random = Random::new(seed);
    let mut command = hosts.command(words, &hosts.with_program());
    let mut run = KilledOnDrop::spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let lines = BufReader::new(run.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut events = lines.filter(|line| line.starts_with('['));
    events.nth(random.below(8));
    let coordinator = Pid::from_raw(run.process.id().try_into().unwrap());
    let victims = match random.below(3) {
        0 => coordinator.into_iter().collect(),
        1 => hosts.running(" host"),
        // None, if it happens to be between two cases.
        _ => hosts.running(" agent "),
    };
    // It may have ended by itself.
    victims.first().map(|victim| kill_process(*victim, Signal::KILL));
    events.for_each(drop);
    run.process.wait().unwrap();
}

#[test]
fn a_run_on_hosts_goes_on_after_a_kill_at_any_line_of_progress() {
    let Some(hosts) = TwoHosts::start() else { return };
    let plan = "[defaults]\nengines = 'mock'\nreliability = 'reliable'\nduration = '50ms'\nwarmup = '0s'\n\
                [[study]]\nname = 'one'\ntests = 'latency'\nsizes = [32, 64, 128, 256]\n";
    fs::write(hosts.path("plan.toml"), plan).unwrap();
    // A host, the coordinator, an end.
    for seed in [1, 4, 7] {
        let words = format!("run plan.toml --output results{seed} --verbose");
        run_and_kill(&hosts, &words, seed);
        hosts.await_end();
        let file = hosts.path(&format!("results{seed}/one/results.jsonl"));
        let whole = |text: String| text.rfind('\n').map_or_else(String::new, |end| text[..=end].to_owned());
        let before = whole(fs::read_to_string(&file).unwrap());
        assert_eq!(Run::load(&file).unwrap().cases.len(), before.lines().count() - 1, "seed {seed}");
        let code = if before.contains("\"not_measured\"") { 3 } else { 0 };
        hosts.weir(&words, &hosts.with_program()).expect_code(code);
        let after = fs::read_to_string(&file).unwrap();
        assert!(after.starts_with(&before) && after.lines().count() == 5, "seed {seed}: {before}\n{after}");
        hosts.await_end();
        for name in &hosts.names {
            let output = Command::new("ip").args(["-n", name, "-oneline", "link"]).output().unwrap().stdout;
            let devices = String::from_utf8(output).unwrap();
            assert_eq!(devices.lines().count(), 2, "seed {seed}: {devices}");
            // Only the sshd is left, once its sessions have noticed.
            let processes = || Command::new("ip").args(["netns", "pids", name]).output().unwrap().stdout;
            while processes().iter().filter(|byte| **byte == b'\n').count() > 1 {
                std::thread::yield_now();
            }
        }
    }
}
