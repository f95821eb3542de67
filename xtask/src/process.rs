//! Running a program: output kept together, time limited so that a hang is a failure and not a stuck machine.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ci::Outcome;

/// What a program said and whether it was content.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Whether it ended by itself with exit code zero.
    pub(crate) is_success: bool,
    /// Standard output and standard error, mixed as they came, after the command line.
    pub(crate) text: String,
    /// Standard output alone.
    pub(crate) stdout: String,
}

/// Runs a command to its end, or until `limit` has passed, when it is killed.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Finished {
    let shown = format!("$ {}\n", line(command));
    match command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => watch(child, shown, limit),
        Err(error) => Finished {
            is_success: false,
            text: format!("{shown}cannot be started: {error}\n"),
            stdout: String::new(),
        },
    }
}

/// Runs a command as a whole step: passed, or failed with everything that it said.
pub(crate) fn check(command: &mut Command, limit: Duration) -> Outcome {
    let finished = run(command, limit);
    if finished.is_success { Outcome::Passed(String::new()) } else { Outcome::Failed(finished.text) }
}

fn watch(mut child: Child, shown: String, limit: Duration) -> Finished {
    let mixed = Kept::default();
    let only_stdout = Kept::default();
    let (ended, all_read) = mpsc::channel::<()>();
    if let Some(stdout) = child.stdout.take() {
        collect(stdout, vec![mixed.clone(), only_stdout.clone()], ended.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        collect(stderr, vec![mixed.clone()], ended.clone());
    }
    drop(ended);
    let deadline = Instant::now() + limit;
    // Both readers hang up when the program and all that it started have closed their output.
    let is_late = all_read.recv_timeout(deadline.saturating_duration_since(Instant::now()))
        == Err(RecvTimeoutError::Timeout);
    if is_late {
        // A failure here means that it has just ended by itself.
        let _ = child.kill();
    }
    let status = child.wait();
    let mut text = shown + &mixed.text();
    if is_late {
        text += &format!("\nkilled after {} s\n", limit.as_secs());
    }
    Finished {
        is_success: !is_late && status.is_ok_and(|status| status.success()),
        text,
        stdout: only_stdout.text(),
    }
}

/// Bytes that a reading thread adds to.
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

/// Copies a stream to its end. `ended` is only held, never used: its drop is the message.
fn collect(mut stream: impl Read + Send + 'static, kept: Vec<Kept>, ended: mpsc::Sender<()>) {
    std::thread::spawn(move || {
        let mut chunk = [0; 8192];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            kept.iter().for_each(|kept| kept.add(&chunk[..count]));
        }
        drop(ended);
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
}
