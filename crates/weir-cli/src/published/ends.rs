//! The two processes of a row.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The exit code and the output of a process.
#[derive(Debug)]
pub(super) struct Left {
    /// `None`: the process was killed.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A running end; ends with this value and with this process.
pub(super) struct End {
    child: Child,
    /// Closing its standard input stops it.
    lifeline: Option<ChildStdin>,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

impl End {
    /// Starts this program as one end with these options of `perftest`, in `namespace` if any.
    pub(super) fn start(namespace: Option<&Path>, wait: &str, options: &[String]) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let mut command = match namespace {
            Some(file) => {
                let mut command = Command::new("nsenter");
                command.arg(format!("--net={}", file.display())).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.arg("published-end").args(options).env("WEIR_WAIT", wait);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (lifeline, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Self { child, lifeline, stdout: collect(stdout), stderr: collect(stderr) })
    }

    fn has_ended(&mut self) -> bool {
        // An error means that there is no such process.
        self.child.try_wait().map_or(true, |status| status.is_some())
    }

    fn leave(mut self) -> Left {
        // Fails if the process has ended.
        let _ = self.child.kill();
        let code = self.child.wait().ok().and_then(|status| status.code());
        let text = |collected: JoinHandle<String>| collected.join().unwrap_or_default();
        Left { code, stdout: text(self.stdout), stderr: text(self.stderr) }
    }
}

fn collect(from: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // Output before an error is kept.
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits for both ends until `limit`. Once one has ended, or on an interruption, the other has a few seconds left.
pub(super) fn wait_for_both(mut ends: [End; 2], limit: Duration, interrupted: &AtomicBool) -> [Left; 2] {
    let mut deadline = Instant::now() + limit;
    let mut is_closing = false;
    loop {
        let ended = ends.each_mut().map(End::has_ended);
        if ended == [true, true] || Instant::now() >= deadline {
            return ends.map(End::leave);
        }
        let is_interrupted = interrupted.load(Ordering::Relaxed);
        if !is_closing && (ended != [false, false] || is_interrupted) {
            is_closing = true;
            deadline = deadline.min(Instant::now() + GRACE);
        }
        if is_interrupted {
            ends.iter_mut().for_each(|end| drop(end.lifeline.take()));
        }
        thread::sleep(TICK);
    }
}

const TICK: Duration = Duration::from_millis(10);
/// How long an end may outlive the other one.
const GRACE: Duration = Duration::from_secs(8);
