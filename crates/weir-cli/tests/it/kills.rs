//! Processes killed at random moments of a run: nothing is left of it, its results can be read, and it goes on.
//!
//! Moments are counted in events: lines of progress, or programs that make a link. Each follows from a seed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use weir_results::Run;

use crate::support::{Finished, KilledOnDrop, Random, Scene, await_end, children, has_no_links};

/// Two studies of two cases. With a mock engine, whose figures do not depend on the machine.
const PLAN: &str = "[defaults]\nengines = 'mock'\nreliability = 'reliable'\nduration = '50ms'\nwarmup = '0s'\n\
                    cpus = 'none'\nsizes = [32, 64]\n\
                    [[study]]\nname = 'times'\ntests = 'latency'\n\
                    [[study]]\nname = 'rates'\ntests = 'throughput'\nbatch = 0\n";
/// Cases of each study.
const CASES: usize = 2;
const RUN: &str = "run plan.toml --output results --verbose";

/// The whole lines of the results file of a study.
fn whole_lines(scene: &Scene, study: &str) -> String {
    let text = fs::read_to_string(results_file(scene, study)).unwrap_or_default();
    text.rfind('\n').map_or_else(String::new, |end| text[..=end].to_owned())
}

fn results_file(scene: &Scene, study: &str) -> PathBuf {
    scene.results().join(study).join("results.jsonl")
}

/// Checks that what was measured can be read, and that the same command keeps it and measures the rest.
#[track_caller]
fn check_results(scene: &Scene, studies: &[&str], seed: u64, go_on: impl FnOnce() -> Finished) {
    let before: Vec<String> = studies.iter().map(|study| whole_lines(scene, study)).collect();
    for (study, lines) in studies.iter().zip(&before).filter(|(_, lines)| !lines.is_empty()) {
        let run = Run::load(results_file(scene, study));
        let cases = run.unwrap_or_else(|error| panic!("seed {seed}, {study}: {error}")).cases;
        assert_eq!(cases.len(), lines.lines().count() - 1, "seed {seed}, {study}");
    }
    let finished = go_on();
    // A case that was killed is not measured again.
    let has_failed = |lines: &String| lines.contains("\"not_measured\"");
    let code = if before.iter().any(has_failed) { 3 } else { 0 };
    assert_eq!(finished.code, Some(code), "seed {seed}: {}", finished.stderr);
    for (study, lines) in studies.iter().zip(&before) {
        let after = whole_lines(scene, study);
        assert!(after.starts_with(lines.as_str()), "seed {seed}, {study}: {lines}\n{after}");
        assert_eq!(after.lines().count(), 1 + CASES, "seed {seed}, {study}: {after}");
    }
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Coordinator(Signal),
    /// The publisher or the subscriber of a case that runs.
    End(&'static str),
}

/// Runs the plan, and kills the victim at a line of progress.
fn run_and_kill(scene: &Scene, victim: Victim, at_line: usize) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(RUN.split(' ')).current_dir(scene.path("")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = KilledOnDrop::spawn(&mut command);
    let id = run.process.id();
    let lines = BufReader::new(run.process.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut events = lines.filter(|line| line.starts_with('['));
    let event = events.nth(at_line);
    match victim {
        Victim::Coordinator(signal) => {
            kill_process(Pid::from_raw(id.try_into().unwrap()).unwrap(), signal).unwrap();
        }
        Victim::End(role) => {
            assert!(event.is_some_and(|line| line.ends_with("started")));
            // A case that was too fast for this is over, and nothing is killed.
            let ends = std::iter::repeat_with(|| children(id, role)).map(|found| found.first().copied());
            let mut is_over = || run.process.try_wait().unwrap().is_some();
            if let Some(end) = ends.take_while(|_| !is_over()).find_map(|end| end) {
                let _ = kill_process(end, Signal::KILL);
            }
        }
    }
    // What it says later is of no use, but it has to be read.
    events.for_each(drop);
    run.process.wait().unwrap();
}

#[test]
fn a_run_goes_on_after_a_kill_at_any_line_of_progress() {
    for seed in 1..=6 {
        let mut random = Random::new(seed);
        let scene = Scene::new();
        fs::write(scene.path("plan.toml"), PLAN).unwrap();
        let victims = [
            Victim::Coordinator(Signal::KILL),
            Victim::Coordinator(Signal::INT),
            Victim::Coordinator(Signal::TERM),
            Victim::End("publisher"),
            Victim::End("subscriber"),
        ];
        // Each case has two lines, of which the first says that it has started.
        let (victim, case) = (victims[random.below(victims.len())], random.below(4));
        let at_line = 2 * case + if matches!(victim, Victim::End(_)) { 0 } else { random.below(2) };
        run_and_kill(&scene, victim, at_line);
        await_end(&scene);
        check_results(&scene, &["times", "rates"], seed, || scene.weir(RUN));
        await_end(&scene);
    }
}

/// The file of a program.
fn program(name: &str) -> PathBuf {
    let folders = std::env::var("PATH").unwrap();
    let files = folders.split(':').map(|folder| Path::new(folder).join(name));
    files.into_iter().find(|file| file.exists()).unwrap_or_else(|| panic!("no {name}"))
}

/// Programs that make links, with one of them killing its caller.
struct KillingPrograms {
    folder: PathBuf,
}

impl KillingPrograms {
    const NAMES: [&str; 3] = ["unshare", "nsenter", "ip"];

    /// Puts them into a folder of the scene.
    fn new(scene: &Scene) -> Self {
        let folder = scene.path("bin");
        fs::create_dir(&folder).unwrap();
        for name in Self::NAMES {
            let program = program(name);
            // `unshare` keeps a namespace until its input ends; the others end by themselves.
            let call = if name == "unshare" {
                format!("{KILL}PATH=$WEIR_TEST_PATH exec {} \"$@\"\n", program.display())
            } else {
                format!("PATH=$WEIR_TEST_PATH {} \"$@\"\ncode=$?\n{KILL}exit $code\n", program.display())
            };
            let path = folder.join(name);
            fs::write(&path, format!("#!/bin/sh\n{call}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self { folder }
    }

    /// Makes a command count its calls, and be killed at one of them; 0: at none.
    fn apply(&self, command: &mut Command, at_call: usize) {
        fs::write(self.folder.join("calls"), "").unwrap();
        let others = std::env::var("PATH").unwrap();
        let path = format!("{}:{others}", self.folder.display());
        command
            .env("PATH", path)
            .env("WEIR_TEST_PATH", others)
            .env("WEIR_TEST_CALLS", self.folder.join("calls"));
        command.env("WEIR_TEST_KILL", at_call.to_string());
    }

    /// How many calls there were.
    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.join("calls")).unwrap().lines().count()
    }
}

/// Counts a call, and kills the caller at one of them. Calls follow each other, so the count needs no lock.
const KILL: &str = "echo call >> \"$WEIR_TEST_CALLS\"\n\
                    if [ \"$(wc -l < \"$WEIR_TEST_CALLS\")\" -eq \"$WEIR_TEST_KILL\" ]; then kill -KILL $PPID; fi\n";

/// A network namespace with a name of its own, which ends with the test.
struct Network(String);

impl Network {
    fn new(number: u64) -> Self {
        let name = format!("weir-it-{}-kill{number}", std::process::id());
        let added = Command::new("ip").args(["netns", "add", &name]).status().unwrap();
        assert!(added.success());
        let is_up = Command::new("ip").args(["-n", &name, "link", "set", "lo", "up"]).status().unwrap();
        assert!(is_up.success());
        Self(name)
    }

    /// A command inside.
    fn command(&self, scene: &Scene, words: &str) -> Command {
        // Not one that kills its caller, which is this test.
        let mut command = Command::new(program("ip"));
        command.args(["netns", "exec", &self.0]).args(words.split(' ')).current_dir(scene.path(""));
        command
    }

    fn output(&self, scene: &Scene, words: &str) -> String {
        String::from_utf8(self.command(scene, words).output().unwrap().stdout).unwrap()
    }

    /// Checks that only the loopback interface is there, without sockets.
    #[track_caller]
    fn check_empty(&self, scene: &Scene, seed: u64) {
        let devices = self.output(scene, "ip -oneline link");
        assert_eq!(devices.lines().count(), 1, "seed {seed}: {devices}");
        for file in ["udp", "tcp", "udp6", "tcp6"] {
            let sockets = self.output(scene, &format!("cat /proc/net/{file}"));
            // The state 06 is TIME_WAIT, which belongs to no process.
            let open = |line: &&str| line.split_whitespace().nth(3) != Some("06");
            assert_eq!(sockets.lines().skip(1).filter(open).count(), 0, "seed {seed}: {sockets}");
        }
        let pids = Command::new("ip").args(["netns", "pids", &self.0]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(pids).unwrap(), "", "seed {seed}");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[test]
fn no_namespace_device_or_socket_is_left_of_a_link_whenever_its_run_is_killed() {
    if has_no_links() {
        return;
    }
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let (scene, network) = (Scene::new(), Network::new(seed));
        let link = ["veth,rate=1G,loss=1%", "tun,rate=50M,rtt=1ms"][random.below(2)];
        // Of the first study, since making links takes most of the time.
        let plan = PLAN.split("[[study]]\nname = 'rates'").next().unwrap();
        let plan = plan.replace("[defaults]\n", &format!("[defaults]\nlink = '{link}'\n"));
        fs::write(scene.path("plan.toml"), plan).unwrap();
        let programs = KillingPrograms::new(&scene);
        let run = |at_call| {
            let mut command = network.command(&scene, &format!("{} {RUN}", env!("CARGO_BIN_EXE_weir")));
            programs.apply(&mut command, at_call);
            Finished::from(command.output().unwrap())
        };
        run(0).expect_code(0);
        let calls = programs.calls();
        fs::remove_dir_all(scene.results()).unwrap();
        let killed = run(1 + random.below(calls));
        // A link that is up at once takes fewer calls, so that the run may have ended before.
        assert!(matches!(killed.code, None | Some(0)), "seed {seed}: {}", killed.stderr);
        await_end(&scene);
        network.check_empty(&scene, seed);
        check_results(&scene, &["times"], seed, || run(0));
        await_end(&scene);
        network.check_empty(&scene, seed);
    }
}

#[test]
fn a_lab_that_was_killed_while_it_was_made_is_removed_by_its_name() {
    if has_no_links() {
        return;
    }
    let scene = Scene::new();
    let programs = KillingPrograms::new(&scene);
    for seed in 1..=3 {
        let mut random = Random::new(seed);
        let name = format!("k{}n{seed}", std::process::id());
        let hosts = ["--link veth,rate=1G a b c", "--link lan1g a b"][random.below(2)];
        let up = |at_call| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
            command.args(format!("lab up --name {name} {hosts}").split(' ')).current_dir(scene.path(""));
            programs.apply(&mut command, at_call);
            Finished::from(command.output().unwrap())
        };
        let left = || {
            let names =
                |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.file_name());
            let mut all = names("/run/netns").chain(names("/run/weir"));
            all.any(|file| file.to_string_lossy().contains(&name))
        };
        up(0).expect_code(0);
        let calls = programs.calls();
        scene.weir(&format!("lab down --name {name}")).expect_code(0);
        assert!(!left(), "seed {seed}");
        // The emulator is another process, which ends with the lab.
        up(1 + random.below(calls));
        scene.weir(&format!("lab down --name {name}")).expect_code(0);
        await_end(&scene);
        assert!(!left(), "seed {seed}");
    }
}
