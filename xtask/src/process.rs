//! Runs a program with its output kept and its time limited, so that a hang is a failure.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::watchdog::Watchdog;

/// The output of a program that succeeded. That of one that did not is an error text.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Standard output and standard error in the order of arrival, after the command line.
    pub(crate) text: String,
    /// Standard output only.
    pub(crate) stdout: String,
}

/// Runs a command until it ends, or kills it with its descendants after `limit`.
///
/// # Errors
/// The complete output, unless the program exits with code zero.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Finished, String> {
    start(command, Watchdog::of_program(Instant::now(), limit))
}

/// Runs a command that runs libtest binaries. `limit` applies to a single test; the total is
/// unlimited.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_tests(command: &mut Command, limit: Duration) -> Result<Finished, String> {
    start(command, Watchdog::of_tests(Instant::now(), limit))
}

/// Runs something for each item, as many at a time as there are processors. Returns the results in order.
///
/// # Errors
/// The first one in the order of the items.
pub(crate) fn in_parallel<I: Sync, T: Send>(
    items: &[I],
    run: impl Fn(&I) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut done = Vec::new();
    for some in items.chunks(processors) {
        let results: Vec<_> = thread::scope(|scope| {
            let running: Vec<_> = some.iter().map(|item| scope.spawn(|| run(item))).collect();
            running.into_iter().map(|it| it.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        for result in results {
            done.push(result?);
        }
    }
    Ok(done)
}

/// Finds the program of this target in cargo's messages about artifacts (`--message-format json`).
///
/// # Errors
/// If there is none.
pub(crate) fn executable(messages: &str, target: &str) -> Result<PathBuf, String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == target);
    let found = programs.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.ok_or_else(|| format!("cargo does not report the path of {target}\n"))
}

/// Returns the complete output of a program, whether it succeeded or not.
pub(crate) fn text(finished: Result<Finished, String>) -> String {
    finished.map_or_else(|text| text, |finished| finished.text)
}

fn start(command: &mut Command, watchdog: Watchdog) -> Result<Finished, String> {
    let shown = format!("$ {}\n", line(command));
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => watch(child, shown, watchdog),
        Err(error) => Err(format!("{shown}cannot be started: {error}\n")),
    }
}

fn watch(mut child: Child, shown: String, mut watchdog: Watchdog) -> Result<Finished, String> {
    let mut output = Output { text: shown.into_bytes(), stdout: Vec::new() };
    let (sender, pieces) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        collect(stdout, true, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        collect(stderr, false, sender.clone());
    }
    drop(sender);
    // Both readers end when the program and its descendants have closed their output.
    let is_late = loop {
        match pieces.recv_timeout(watchdog.remaining(Instant::now())) {
            Ok(piece) => output.add(&piece, &mut watchdog),
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if is_late {
        kill_with_descendants(&mut child);
        while let Ok(piece) = pieces.recv_timeout(KILLED_WAIT) {
            output.add(&piece, &mut watchdog);
        }
    }
    let status = child.wait();
    let [text, stdout] =
        [output.text, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if is_late {
        return Err(format!("{text}\n{}\n", watchdog.verdict()));
    }
    let is_success = status.is_ok_and(|status| status.success());
    if is_success { Ok(Finished { text, stdout }) } else { Err(text) }
}

/// Kills descendants of a hung cargo, too: a test left behind would disturb the next step.
fn kill_with_descendants(child: &mut Child) {
    let pids: Vec<String> = descendants(child.id(), &parents()).iter().map(u32::to_string).collect();
    // A failure of either means that it has just ended on its own.
    let _ = child.kill();
    if !pids.is_empty() {
        let _ = Command::new("sh").arg("-c").arg(format!("kill -KILL {}", pids.join(" "))).output();
    }
}

/// Returns every process of this host with its parent.
fn parents() -> BTreeMap<u32, u32> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid| parent(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// Parses the fourth field of `/proc/PID/stat`; the second one, the name, may contain anything.
fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(pid: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let children: Vec<u32> =
        parents.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child).collect();
    let below: Vec<u32> = children.iter().flat_map(|child| descendants(*child, parents)).collect();
    [children, below].concat()
}

/// Output as it arrives.
struct Piece {
    is_stdout: bool,
    bytes: Vec<u8>,
}

/// What has arrived: everything after the command line, and standard output only.
struct Output {
    text: Vec<u8>,
    stdout: Vec<u8>,
}

impl Output {
    fn add(&mut self, Piece { is_stdout, bytes }: &Piece, watchdog: &mut Watchdog) {
        self.text.extend_from_slice(bytes);
        if *is_stdout {
            self.stdout.extend_from_slice(bytes);
            watchdog.read(Instant::now(), bytes);
        }
    }
}

/// Sends a stream on until it ends. Dropping `sender` reports the end.
fn collect(mut stream: impl Read + Send + 'static, is_stdout: bool, sender: mpsc::Sender<Piece>) {
    thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            // The receiver is gone if the program was killed: ignore the rest.
            let _ = sender.send(Piece { is_stdout, bytes: chunk[..count].to_vec() });
        }
    });
}

fn line(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line += &argument.to_string_lossy();
    }
    line
}

/// How long the output of a killed program may take to close.
const KILLED_WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_of_both_kinds_is_kept() {
        let finished = run(&mut shell("echo out; echo err >&2"), LONG).unwrap();
        assert!(finished.text.starts_with("$ sh -c echo out"));
        assert!(finished.text.contains("\nout\n") && finished.text.contains("err\n"), "{}", finished.text);
        assert_eq!(finished.stdout, "out\n");
    }

    #[test]
    fn a_failure_shows_what_was_said() {
        assert!(run(&mut shell("true"), LONG).is_ok());
        assert!(run(&mut shell("echo why; exit 3"), LONG).unwrap_err().contains("\nwhy\n"));
    }

    #[test]
    fn a_missing_program_is_a_failure() {
        let text = run(&mut Command::new("weir-has-no-such-program"), LONG).unwrap_err();
        assert!(text.contains("cannot be started"), "{text}");
    }

    #[test]
    fn results_are_in_order_and_the_first_error_counts() {
        let half =
            |number: &u32| if number.is_multiple_of(2) { Ok(number / 2) } else { Err(number.to_string()) };
        assert_eq!(in_parallel(&[6, 2, 8, 4, 0], half), Ok(vec![3, 1, 4, 2, 0]));
        assert_eq!(in_parallel(&[6, 2, 9, 4, 7], half), Err("9".to_owned()));
    }

    #[test]
    fn a_program_is_found_among_those_that_cargo_built() {
        let messages = r#"{"target":{"name":"soak"},"executable":null}
            {"target":{"name":"it"},"executable":"/t/it-1"}
            {"target":{"name":"soak"},"executable":"/t/soak-1"}
            {"success":true}"#;
        assert_eq!(executable(messages, "soak"), Ok(PathBuf::from("/t/soak-1")));
        assert_eq!(executable(messages, "sim").unwrap_err(), "cargo does not report the path of sim\n");
    }

    #[test]
    fn a_hanging_program_is_killed() {
        let ended = run(Command::new("tail").args(["-f", "/dev/null"]), Duration::from_millis(1));
        let text = ended.unwrap_err();
        assert!(text.contains("killed after"), "{text:.100}");
    }

    #[test]
    fn tests_of_which_none_finishes_are_killed() {
        let ended = run_tests(Command::new("tail").args(["-f", "/dev/null"]), Duration::from_millis(1));
        let text = ended.unwrap_err();
        assert!(text.ends_with("\nkilled: no test finished for 0 s\n"), "{text}");
    }

    #[test]
    fn tests_that_end_by_themselves_are_not_killed() {
        let finished = run_tests(&mut shell("echo running 1 test; echo test a ... ok"), LONG).unwrap();
        assert!(finished.stdout.ends_with("test a ... ok\n"), "{}", finished.text);
    }

    #[test]
    fn what_a_killed_program_has_started_is_killed_with_it() {
        // The shell waits for a child that holds the output open.
        let mut command = shell("tail -f /dev/null & echo $!; wait");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        let started: u32 = line.trim().parse().unwrap();
        assert_eq!(descendants(child.id(), &parents()), [started]);
        kill_with_descendants(&mut child);
        // Ends only when no process has the pipe open any more.
        assert_eq!(stdout.read_to_end(&mut Vec::new()).unwrap(), 0);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn descendants_are_found_through_any_name() {
        assert_eq!(parent("17 (a) S 3) S 9 17 0"), Some(9));
        assert_eq!(parent("nonsense"), None);
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 2), (5, 3), (6, 1)]);
        assert_eq!(descendants(2, &parents), [3, 4, 5]);
        assert_eq!(descendants(6, &parents), [0; 0]);
    }
}
