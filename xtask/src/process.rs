//! Runs a program with its output kept and its time limited, so that a hang is a failure.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ci::Outcome;
use crate::watchdog::Watchdog;

/// The output of a program and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Whether it exited with code zero.
    pub(crate) is_success: bool,
    /// Standard output and standard error in the order of arrival, after the command line.
    pub(crate) text: String,
    /// Standard output only.
    pub(crate) stdout: String,
}

/// Runs a command until it ends, or kills it with its descendants after `limit`.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    start(command, Watchdog::of_program(Instant::now(), limit))
}

/// Runs a command that runs libtest binaries. `limit` applies to a single test; the total is
/// unlimited.
pub(crate) fn run_tests(command: &mut Command, limit: Duration) -> Finished {
    start(command, Watchdog::of_tests(Instant::now(), limit))
}

/// Runs a command as a whole step: passed, or failed with its complete output.
pub(crate) fn check(command: &mut Command, limit: Duration) -> Outcome {
    let finished = run(command, limit);
    if finished.is_success { Outcome::Passed(String::new()) } else { Outcome::Failed(finished.text) }
}

fn start(command: &mut Command, watchdog: Watchdog) -> Finished {
    let shown = format!("$ {}\n", line(command));
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => watch(child, shown, watchdog),
        Err(error) => Finished {
            is_success: false,
            text: format!("{shown}cannot be started: {error}\n"),
            stdout: String::new(),
        },
    }
}

fn watch(mut child: Child, shown: String, mut watchdog: Watchdog) -> Finished {
    let mixed = Kept::default();
    let only_stdout = Kept::default();
    let (sender, output) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        collect(stdout, vec![mixed.clone(), only_stdout.clone()], Piece::Stdout, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        collect(stderr, vec![mixed.clone()], |_| Piece::Stderr, sender.clone());
    }
    drop(sender);
    // Both readers end when the program and its descendants have closed their output.
    let is_late = loop {
        match output.recv_timeout(watchdog.remaining(Instant::now())) {
            Ok(Piece::Stdout(bytes)) => watchdog.read(Instant::now(), &bytes),
            Ok(Piece::Stderr) => {}
            Err(RecvTimeoutError::Disconnected) => break false,
            Err(RecvTimeoutError::Timeout) => break true,
        }
    };
    if is_late {
        kill_with_descendants(&mut child);
        while let Ok(piece) = output.recv_timeout(KILLED_WAIT) {
            if let Piece::Stdout(bytes) = piece {
                watchdog.read(Instant::now(), &bytes);
            }
        }
    }
    let status = child.wait();
    let mut text = shown + &mixed.text();
    if is_late {
        text += &format!("\n{}\n", watchdog.verdict());
    }
    Finished {
        is_success: !is_late && status.is_ok_and(|status| status.success()),
        text,
        stdout: only_stdout.text(),
    }
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
enum Piece {
    Stdout(Vec<u8>),
    Stderr,
}

/// Bytes appended by a reading thread.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

/// Copies a stream until it ends. Dropping `sender` reports the end.
fn collect(
    mut stream: impl Read + Send + 'static,
    kept: Vec<Kept>,
    piece: impl Fn(Vec<u8>) -> Piece + Send + 'static,
    sender: mpsc::Sender<Piece>,
) {
    std::thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            let bytes = &chunk[..count];
            kept.iter().for_each(|kept| kept.add(bytes));
            // The receiver is gone if the program was killed: ignore the rest.
            let _ = sender.send(piece(bytes.to_vec()));
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
        let finished = run(&mut shell("echo out; echo err >&2"), LONG);
        assert!(finished.is_success);
        assert!(finished.text.starts_with("$ sh -c echo out"));
        assert!(finished.text.contains("\nout\n") && finished.text.contains("err\n"), "{}", finished.text);
        assert_eq!(finished.stdout, "out\n");
    }

    #[test]
    fn a_failure_shows_what_was_said() {
        assert_eq!(check(&mut shell("true"), LONG), Outcome::Passed(String::new()));
        assert!(
            matches!(check(&mut shell("echo why; exit 3"), LONG), Outcome::Failed(text) if text.contains("why"))
        );
    }

    #[test]
    fn a_missing_program_is_a_failure() {
        let finished = run(&mut Command::new("weir-has-no-such-program"), LONG);
        assert!(!finished.is_success && finished.text.contains("cannot be started"));
    }

    #[test]
    fn a_hanging_program_is_killed() {
        let finished = run(Command::new("tail").args(["-f", "/dev/null"]), Duration::from_millis(1));
        assert!(!finished.is_success && finished.text.contains("killed after"), "{:.100}", finished.text);
    }

    #[test]
    fn tests_of_which_none_finishes_are_killed() {
        let finished = run_tests(Command::new("tail").args(["-f", "/dev/null"]), Duration::from_millis(1));
        assert!(!finished.is_success);
        assert!(finished.text.ends_with("\nkilled: no test finished for 0 s\n"), "{}", finished.text);
    }

    #[test]
    fn tests_that_end_by_themselves_are_not_killed() {
        let finished = run_tests(&mut shell("echo running 1 test; echo test a ... ok"), LONG);
        assert!(finished.is_success && finished.stdout.ends_with("test a ... ok\n"), "{}", finished.text);
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
