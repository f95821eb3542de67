//! Another engine as the other side: a small program, built against the installed library.
//! It runs commands line by line and answers each. The head of its source lists the commands.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// The other side, running. Killed on drop, so that a failed test leaves nothing behind.
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

    /// Runs a command and waits for it; returns the text after the "ok".
    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.tell(command);
        self.answer()
    }

    /// Sends a command whose answer is for [`Peer::answer`] or [`Peer::answer_within`].
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

    /// Waits at most this long for the last command; `None` if it is not done.
    pub(crate) fn answer_within(&mut self, limit: Duration) -> Option<String> {
        let mut remarks = String::new();
        loop {
            match self.lines.recv_timeout(limit) {
                Ok(line) if !line.starts_with("ok") && !line.starts_with("failed") => {
                    remarks += &format!("\n{line}");
                }
                Ok(line) => {
                    let answer = line.strip_prefix("ok");
                    let answer = answer
                        .unwrap_or_else(|| panic!("to {:?}, the peer answered {line}{remarks}", self.told));
                    return Some(answer.trim_start().to_owned());
                }
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("the peer ended without an answer to {:?}{remarks}", self.told)
                }
            }
        }
    }

    /// Kills it: it cannot say goodbye.
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

/// Builds a program in a separate folder, so that two test runs do not disturb each other. `make`
/// creates `peer` there.
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

/// The folder of the peers' sources.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exchange")
}

/// Runs a tool until it ends.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Time limit for any answer; peers give up earlier.
const LIMIT: Duration = Duration::from_secs(240);
