//! The channel to a host: a process whose standard input and output carry the messages.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use weir_measure::shown;

use super::protocol::{FromHost, HostFacts, LINE_BYTES_MAX, ToHost};
use super::start::{self, Parcel};
use crate::control;
use crate::session::Heard;

/// A running `weir host`. Dropping it ends that program and all that it has started.
pub(super) struct HostLink {
    /// What messages call the host.
    name: String,
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    shared: Arc<Shared>,
    answers: Mutex<Receiver<FromHost>>,
}

/// What the reading thread shares with the program.
#[derive(Default)]
struct Shared {
    /// The case whose messages are passed on.
    route: Mutex<Option<(u32, Sender<Heard>)>>,
    /// Why the channel has ended.
    end: Mutex<Option<String>>,
}

impl HostLink {
    /// Starts the program, and waits until it has introduced itself.
    ///
    /// # Errors
    /// What went wrong and what to do; `None` when interrupted.
    pub(super) fn open(
        name: String,
        mut command: Command,
        parcel: Option<Arc<Parcel>>,
        interrupted: &AtomicBool,
    ) -> Result<(Self, HostFacts), Option<String>> {
        let program = command.get_program().to_string_lossy().into_owned();
        let started = command.spawn();
        let mut child = started.map_err(|error| Some(format!("{name}: cannot run `{program}`: {error}")))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Some(format!("{name}: `{program}` has no standard streams")));
        };
        let shared = Arc::new(Shared::default());
        let (to_answers, answers) = mpsc::channel();
        let (to_input, input_back) = mpsc::channel();
        let reader = Reader { name: name.clone(), shared: Arc::clone(&shared), answers: to_answers };
        let tail = read_tail(errors);
        let body = move || reader.run(output, input, parcel.as_deref(), &to_input, &tail);
        let thread = thread::Builder::new().name("host".to_owned()).spawn(body);
        let link = Self {
            name,
            child: Mutex::new(child),
            input: Mutex::new(None),
            shared,
            answers: Mutex::new(answers),
        };
        thread.map_err(|error| Some(format!("{}: {error}", link.name)))?;
        let facts = link.introduction(&input_back, interrupted)?;
        Ok((link, facts))
    }

    /// What messages call the host.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Passes the messages of a case to its session from now on.
    pub(super) fn route(&self, session: u32, sender: Sender<Heard>) {
        *self.shared.route.lock() = Some((session, sender));
    }

    /// Passes no messages any more.
    pub(super) fn unroute(&self) {
        *self.shared.route.lock() = None;
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Why the host cannot be reached any more.
    pub(super) fn send(&self, message: &ToHost) -> Result<(), String> {
        let mut input = self.input.lock();
        let sent =
            input.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |input| write_line(input, message));
        drop(input);
        sent.map_err(|error| {
            // The reading thread knows more, in a moment.
            let deadline = Instant::now() + TAIL_WAIT * 2;
            while Instant::now() < deadline {
                if let Some(reason) = self.end() {
                    return reason;
                }
                thread::sleep(Duration::from_millis(5));
            }
            format!("{}: {error}", self.name)
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// When the host does not answer in time, cannot, or is gone.
    pub(super) fn ask(&self, question: &ToHost, patience: Duration) -> Result<FromHost, String> {
        let answers = self.answers.lock();
        // Late answers to questions that were given up.
        while answers.try_recv().is_ok() {}
        self.send(question)?;
        match answers.recv_timeout(patience) {
            Ok(FromHost::Refused { reason }) => Err(format!("{}: {}", self.name, shown(&reason))),
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("{} did not answer within {} s", self.name, patience.as_secs()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.end().unwrap_or_else(|| self.name.clone())),
        }
    }

    /// Why the channel has ended, if it has.
    pub(super) fn end(&self) -> Option<String> {
        self.shared.end.lock().clone()
    }

    fn introduction(
        &self,
        input_back: &Receiver<ChildStdin>,
        interrupted: &AtomicBool,
    ) -> Result<HostFacts, Option<String>> {
        let deadline = Instant::now() + START_WAIT;
        let answers = self.answers.lock();
        loop {
            if interrupted.load(Ordering::Acquire) {
                return Err(None);
            }
            if let Ok(input) = input_back.try_recv() {
                *self.input.lock() = Some(input);
            }
            match answers.recv_timeout(Duration::from_millis(50)) {
                Ok(FromHost::Hello { schema, version, facts }) => {
                    // The input arrives before the first message.
                    if let Ok(input) = input_back.try_recv() {
                        *self.input.lock() = Some(input);
                    }
                    let checked = control::check_version(schema, &version);
                    return match checked {
                        Ok(()) => Ok(*facts),
                        Err(error) => Err(Some(format!("{}: {error}", self.name))),
                    };
                }
                Ok(_) => return Err(Some(format!("{} did not introduce itself", self.name))),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Some(self.end().unwrap_or_else(|| self.name.clone())));
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Timeout) => {
                    let seconds = START_WAIT.as_secs();
                    return Err(Some(format!("{}: weir did not start there within {seconds} s", self.name)));
                }
            }
        }
    }
}

impl Drop for HostLink {
    fn drop(&mut self) {
        // The end of its input ends the program there.
        drop(self.input.lock().take());
        let child = self.child.get_mut();
        let deadline = Instant::now() + EXIT_WAIT;
        while Instant::now() < deadline {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        // Both fail only when it has ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The thread that reads what a host says.
struct Reader {
    name: String,
    shared: Arc<Shared>,
    answers: Sender<FromHost>,
}

impl Reader {
    fn run(
        self,
        output: ChildStdout,
        mut input: ChildStdin,
        parcel: Option<&Parcel>,
        input_back: &Sender<ChildStdin>,
        tail: &Receiver<String>,
    ) {
        let mut output = BufReader::new(output);
        let reason = match start::greet(&mut output, &mut input, parcel) {
            Err(reason) => reason,
            Ok(()) => {
                // Fails only when the link has been given up.
                let _ = input_back.send(input);
                self.listen(output)
            }
        };
        // What it printed on standard error says more, and arrives until it ends.
        let said = tail.recv_timeout(TAIL_WAIT).unwrap_or_default();
        let said = shown(said.trim());
        let reason = if said.is_empty() { reason } else { format!("{reason} ({said})") };
        let reason = format!("{}: {reason}{}", self.name, advice(&said));
        *self.shared.end.lock() = Some(reason.clone());
        if let Some((_, sender)) = self.shared.route.lock().take() {
            // A session that has ended needs no reason.
            let _ = sender.send(Heard::Lost(reason));
        }
    }

    /// Passes messages on until the channel ends; returns why it has.
    fn listen(&self, mut output: BufReader<ChildStdout>) -> String {
        loop {
            let line = match read_line(&mut output) {
                Ok(Some(line)) => line,
                Ok(None) => return "its connection was closed".to_owned(),
                Err(error) => return error.to_string(),
            };
            match serde_json::from_slice(&line) {
                Ok(message) => self.pass(message),
                Err(_) => {
                    let line = String::from_utf8_lossy(&line);
                    return format!("it sent a line that makes no sense here: `{}`", shown(&line));
                }
            }
        }
    }

    fn pass(&self, message: FromHost) {
        let (session, heard) = match message {
            FromHost::Begun { session, awake } => {
                let awake = awake.map(|how| shown(&how).clone());
                (session, Heard::Begun { host: self.name.clone(), awake })
            }
            FromHost::NotBegun { session, reason } => (session, Heard::Lost(self.named(&reason))),
            FromHost::Said { session, id, message } => (session, Heard::Said(id, message)),
            FromHost::Gone { session, id, reason } => (session, Heard::Gone(id, self.named(&reason))),
            answer => {
                // Fails only when the link has been given up.
                let _ = self.answers.send(answer);
                return;
            }
        };
        if let Some((_, sender)) = self.shared.route.lock().as_ref().filter(|(of, _)| *of == session) {
            // A session that has ended needs no message.
            let _ = sender.send(heard);
        }
    }

    fn named(&self, reason: &str) -> String {
        format!("{}: {}", self.name, shown(reason))
    }
}

/// Writes a message and its line end in one piece.
pub(super) fn write_line(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// Reads a line, without its end; `None`: there is none any more.
pub(super) fn read_line(from: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = from.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) if count == LINE_BYTES_MAX => {
            Err(io::Error::other(format!("it sent a line of more than {LINE_BYTES_MAX} bytes")))
        }
        // It ended in the middle of a line.
        Some(_) => Ok(None),
    }
}

/// Reads standard error completely, and sends its last lines.
fn read_tail(mut errors: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let (mut tail, mut bytes) = (Vec::new(), [0; 1024]);
        while let Ok(count @ 1..) = errors.read(&mut bytes) {
            tail.extend_from_slice(&bytes[..count]);
            if tail.len() > TAIL_BYTES_MAX {
                tail.drain(..tail.len() - TAIL_BYTES_MAX);
            }
        }
        let text = String::from_utf8_lossy(&tail);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        // Fails only when the link has been given up.
        let _ = sender.send(lines.collect::<Vec<_>>().join("; "));
    };
    // Without the thread there is no text.
    let _ = thread::Builder::new().name("host errors".to_owned()).spawn(read);
    receiver
}

/// What to do about an error of OpenSSH, `ip netns` or `srun`.
fn advice(said: &str) -> &'static str {
    let has = |text: &str| said.contains(text);
    if has("Host key verification failed") {
        ": check the host's key, and connect once by hand to accept it"
    } else if has("Permission denied (") {
        ": weir starts ssh without prompts, so a key in an agent or file is needed (ssh-copy-id)"
    } else if has("Could not resolve hostname") {
        ": check the name, or give it in the configuration of ssh"
    } else if has("Connection refused") || has("timed out") || has("No route to host") {
        ": check that the host is on and runs sshd; --rsh 'ssh -p PORT' sets its port"
    } else if has("Cannot open network namespace") {
        ": `ip netns` lists those that there are"
    } else if has("Requested node configuration is not available") || has("Invalid node name") {
        ": `scontrol show hostnames` lists the nodes of the allocation"
    } else {
        ""
    }
}

/// How long a host may take to start: a copy of a large program over a slow network included.
const START_WAIT: Duration = Duration::from_secs(120);

/// How long the program may take to end after its input has.
const EXIT_WAIT: Duration = Duration::from_secs(3);

/// How long the end of the process's messages may take after that of its output.
const TAIL_WAIT: Duration = Duration::from_millis(500);

/// What is kept of them.
const TAIL_BYTES_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn open(script: &str) -> Result<(HostLink, HostFacts), Option<String>> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        for stream in [Command::stdin, Command::stdout, Command::stderr] {
            stream(&mut command, std::process::Stdio::piped());
        }
        HostLink::open("beta".to_owned(), command, None, &AtomicBool::new(false))
    }

    #[track_caller]
    fn check(script: &str, expected: &str) {
        let error = open(script).err().unwrap().unwrap();
        assert!(error.starts_with("beta: ") && error.contains(expected), "{error}");
    }

    #[test]
    fn a_host_that_does_not_start_is_reported_with_what_ssh_said_and_what_to_do() {
        check("echo 'Host key verification failed.' >&2; exit 255", "connect once by hand");
        check("echo 'me@beta: Permission denied (publickey).' >&2; exit 255", "ssh-copy-id");
        check("echo 'ssh: connect to host beta port 22: Connection refused' >&2; exit 255", "runs sshd");
        check(
            "echo 'srun: error: Unable to create step for job 5: Requested node configuration is not available' >&2; \
             exit 1",
            "lists the nodes of the allocation",
        );
        check("exit 1", "it ended before weir started there");
        check("yes", "that are not from weir");
    }

    #[test]
    fn a_host_of_another_version_is_refused_by_name() {
        let hello = r#"{"kind":"hello","schema":1,"version":"0.0.0","facts":{"interfaces":[],"cpus":[],"clock":"","reached":null}}"#;
        let script = format!("echo welcome; echo weir-host-ready; echo '{hello}'; exec cat");
        check(&script, "the other process is weir 0.0.0");
    }

    #[test]
    fn what_is_no_message_ends_the_channel() {
        check("echo weir-host-ready; echo hey; exec cat", "makes no sense here: `hey`");
    }
}
