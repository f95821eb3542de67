//! Shared by the tests: the command, its output, and a results folder.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use assert_cmd::Command;
use rustix::fs::FlockOperation;
use rustix::process::Pid;
use serde_json::Value;
use tempfile::TempDir;

/// Whether a requirement is missing, which is reported on stderr. With `WEIR_REQUIRE_NETNS` set,
/// that fails the test.
pub(crate) fn is_missing(reason: Option<String>) -> bool {
    let Some(reason) = reason else { return false };
    assert!(std::env::var_os("WEIR_REQUIRE_NETNS").is_none(), "{reason}, and WEIR_REQUIRE_NETNS is set");
    skip(&reason);
    true
}

/// Reports that a test is skipped.
pub(crate) fn skip(reason: &str) {
    let line = format!("skipped {}: {reason}\n", thread::current().name().unwrap_or("a test"));
    // Bypasses the output capture of the test harness, so that a skipped test is visible. In one piece, as `xtask`
    // counts such lines.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Whether virtual links are unavailable.
pub(crate) fn has_no_links() -> bool {
    let works = |words: &[&str]| {
        std::process::Command::new(words[0])
            .args(&words[1..])
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let needed: [&[&str]; 4] = [
        &["unshare", "--net", "ip", "link"],
        &["nft", "--version"],
        &["ethtool", "--version"],
        &["tc", "-V"],
    ];
    let missing = needed.iter().find(|words| !works(words));
    is_missing(
        missing.map(|words| {
            format!("`{}` does not work here (root, iproute2, nftables, ethtool)", words.join(" "))
        }),
    )
}

/// A DDS domain that no other test on this machine uses while this value lives, because
/// participants of two tests in one domain would discover each other.
pub(crate) struct Domain {
    id: u32,
    /// A locked file; the system unlocks it when the process ends.
    _lock: File,
}

impl Domain {
    /// Up to 99, since the ports of higher domains are in the ephemeral range.
    const IDS: std::ops::RangeInclusive<u32> = 1..=99;

    pub(crate) fn claim() -> Self {
        let folder = std::env::temp_dir().join("weir-test-domains");
        std::fs::create_dir_all(&folder).unwrap();
        // Starts at a different id each time, so that a domain is not reused right after another
        // test.
        let from = std::process::id().wrapping_mul(31) + CLAIMED.fetch_add(1, Ordering::Relaxed);
        let ids = Self::IDS.map(|step| 1 + (from + step) % *Self::IDS.end());
        let free = ids.filter_map(|id| {
            let lock = File::create(folder.join(id.to_string())).unwrap();
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
            Some(Self { id, _lock: lock })
        });
        free.into_iter().next().expect("99 tests have a domain each at the same time")
    }
}

static CLAIMED: AtomicU32 = AtomicU32::new(0);

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.id.fmt(f)
    }
}

/// A folder for one test, which commands run in.
pub(crate) struct Scene {
    folder: TempDir,
}

/// The output and exit code of a finished command.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// The results folder, which the command creates.
    pub(crate) fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `weir` with these arguments.
    pub(crate) fn weir(&self, words: &str) -> Finished {
        let mut command = Command::cargo_bin("weir").unwrap();
        command.current_dir(self.folder.path()).args(words.split_whitespace());
        Finished::from(command.output().unwrap())
    }

    /// Runs `weir` with files of at most so many KiB, as on a disk that is nearly full.
    pub(crate) fn weir_with_room(&self, kib: u32, words: &str) -> Finished {
        let weir = assert_cmd::cargo::cargo_bin("weir");
        // Without the signal, a write beyond the limit is an error.
        let script = format!("trap '' XFSZ; ulimit -f {}; exec {} {words}", 2 * kib, weir.display());
        let mut command = std::process::Command::new("sh");
        Finished::from(command.current_dir(self.folder.path()).args(["-c", &script]).output().unwrap())
    }

    /// Runs a short `weir bench` with its results in the folder.
    pub(crate) fn bench(&self, words: &str) -> Finished {
        self.weir(&format!("bench --output results {BRIEF} {words}"))
    }

    /// The lines of the results file: the header, then one per case.
    pub(crate) fn result_lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.results().join("results.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The places of lost samples in `loss_attribution`.
pub(crate) const PLACES: [&str; 8] = [
    "sender_left_out",
    "sender_refused",
    "sender_queue",
    "path",
    "receiver_host",
    "receiver_socket",
    "receiver_rejected",
    "unplaced",
];

/// With a mock engine, whose time is simulated, this takes milliseconds. Without a warm-up, so that on a machine that
/// stops this process now and then, not everything can have arrived during it.
pub(crate) const BRIEF: &str = "--duration 50ms --warmup 0s";

/// A process that is killed at the end of the test, or after [`KilledOnDrop::LIMIT`].
pub(crate) struct KilledOnDrop {
    pub(crate) process: Child,
    /// Ends the watching thread when dropped.
    _is_there: mpsc::Sender<()>,
}

impl KilledOnDrop {
    /// Longer than any process of a test takes, and below xtask's limit of a test, so that a
    /// hanging process fails its test.
    const LIMIT: Duration = Duration::from_secs(400);

    #[track_caller]
    pub(crate) fn spawn(command: &mut std::process::Command) -> Self {
        let process = command.spawn().unwrap();
        let pid = Pid::from_child(&process);
        let (is_there, watched) = mpsc::channel();
        thread::spawn(move || {
            if watched.recv_timeout(Self::LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                // Fails if the process has just ended.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        Self { process, _is_there: is_there }
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        // Both fail only when the process is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Finished {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }

    /// Checks the exit code, and shows the output if it differs.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Checks that stderr contains `text`.
    #[track_caller]
    pub(crate) fn expect_stderr(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "no `{text}` in: {}", self.stderr);
        self
    }
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Numbers that follow from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number from 0 to `count - 1`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % count as u64) as usize
    }
}

/// The processes that run in a folder, other than zombies: those that a command there left behind.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let is_inside = |process: &PathBuf| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|current| current.starts_with(&folder))
    };
    let line = |process: PathBuf| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
    entries.filter(is_inside).map(line).filter(|line| !line.is_empty()).collect()
}

/// Waits until nothing runs in the folder of a scene; the time limit of the test run catches a hang.
pub(crate) fn await_end(scene: &Scene) {
    while !processes_in(scene.folder.path()).is_empty() {
        thread::yield_now();
    }
}

/// The children of a process whose arguments have `word`.
pub(crate) fn children(process: u32, word: &str) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<i32> = texts
        .flat_map(|text| text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let is_it = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    pids.into_iter().filter(is_it).filter_map(Pid::from_raw).collect()
}
