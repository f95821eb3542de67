//! Another engine as the other side: a small program of ours, built against the installed library, that does what it is told line by line
//! and answers each line. What it can do stands at the top of its source.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The other side, running. It is killed when this value goes, so that a test that failed leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The last command.
    told: String,
}

impl Peer {
    /// Starts a program and waits until it has joined its domain.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        // Ends with the peer.
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let stdin = child.stdin.take();
        let mut peer = Self { child, stdin, lines, told: String::new() };
        let _ = peer.answer();
        peer
    }

    /// Gives a command and waits until it is done; gives what stands behind the "ok".
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }

    /// Gives a command, whose answer is for [`Peer::answer`] or [`Peer::answer_within`].
    pub(crate) fn tell(&mut self, command: &str) {
        command.clone_into(&mut self.told);
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{command}")
            .unwrap_or_else(|_| panic!("the peer is gone: {:?}", self.lines.try_iter().collect::<Vec<_>>()));
    }

    /// Waits until the last command is done.
    pub(crate) fn answer(&mut self) -> String {
        self.answer_within(LIMIT)
            .unwrap_or_else(|| panic!("the peer has not answered {:?} within {LIMIT:?}", self.told))
    }

    /// Waits so long for the last command to be done; `None` if it is not.
    pub(crate) fn answer_within(&mut self, limit: Duration) -> Option<String> {
        let mut remarks = String::new();
        loop {
            match self.lines.recv_timeout(limit) {
                Ok(line) if !line.starts_with("ok") && !line.starts_with("failed") => {
                    remarks += &format!("\n{line}");
                }
                Ok(line) => {
                    let answer = line.strip_prefix("ok");
                    let answer =
                        answer.unwrap_or_else(|| panic!("told {:?}, the peer {line}{remarks}", self.told));
                    return Some(answer.trim_start().to_owned());
                }
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the peer ended without an answer to {:?}{remarks}", self.told)
                }
            }
        }
    }

    /// Ends it on the spot: it has no chance to say goodbye.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Lets it leave its domain, and waits for its end.
    pub(crate) fn quit(mut self) {
        let _ = self.ask("quit");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the peer ended with {status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds a program in a folder of its own, so that two test runs do not disturb each other. `make` leaves it as `peer` in the folder.
pub(crate) fn build(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let here = folder.join(format!("{name}-{}", std::process::id()));
    std::fs::create_dir_all(&here).unwrap();
    make(&here);
    let program = folder.join(name);
    std::fs::rename(here.join("peer"), &program).unwrap();
    std::fs::remove_dir_all(&here).unwrap();
    program
}

/// Where the sources of the peers are.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchange")
}

/// Runs a tool to its end.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Longest that any answer may take; peers give up earlier.
const LIMIT: Duration = Duration::from_secs(240);
