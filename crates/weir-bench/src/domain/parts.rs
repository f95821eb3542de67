//! The processes of a measured domain, from start to end.

use std::io::{self, BufRead, BufReader, Write};
use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::processes::ended_with_the_terminal;

use super::{Answer, DomainError, DomainPlan, Joined, PartPlan, Request};

/// What processes with participants use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Used {
    /// Resident memory.
    pub(super) resident_bytes: u64,
    /// Processor time since the start.
    pub(super) cpu_ns: u64,
    /// Matches of all endpoints together.
    pub(super) matches: u64,
    /// Limits of the engine that were reached.
    pub(super) limits: Vec<String>,
}

/// The running processes of a domain. All have ended when this is dropped.
pub(super) struct Parts<'a> {
    processes: Vec<Process>,
    /// What each of them says, in the order of its arrival.
    events: Receiver<(usize, Event)>,
    domain_id: u32,
    interrupted: &'a AtomicBool,
}

/// A message of a process, or its end.
enum Event {
    Answer(Answer),
    Ended,
}

impl<'a> Parts<'a> {
    /// Starts a process for each share of a domain, and waits until they are ready.
    pub(super) fn start(
        command: &dyn Fn() -> Command,
        plan: &DomainPlan,
        shares: &[u32],
        interrupted: &'a AtomicBool,
    ) -> Result<Self, DomainError> {
        let (sender, events) = mpsc::channel();
        let mut parts = Self { processes: Vec::new(), events, domain_id: plan.domain_id, interrupted };
        for (index, &participants) in shares.iter().enumerate() {
            let plan = PartPlan {
                participants,
                of: shares.iter().sum(),
                endpoints: plan.endpoints,
                domain_id: plan.domain_id,
                interface: plan.interface.clone(),
                patience: plan.patience,
            };
            parts.processes.push(Process::start(command(), &plan, index, &sender)?);
        }
        let ready = |answer: &Answer| matches!(answer, Answer::Ready).then_some(());
        parts.answers(0..shares.len(), ready).map(|_| parts)
    }

    /// Returns the use of each process.
    pub(super) fn used(&mut self) -> Result<Vec<Used>, DomainError> {
        self.ask(0..self.processes.len(), Request::Use, |answer| match answer {
            Answer::Used(used) => Some(used.clone()),
            _ => None,
        })
    }

    /// Has all processes do something. Returns the time until the last has done it.
    pub(super) fn all(&mut self, request: Request) -> Result<Duration, DomainError> {
        let began_at = Instant::now();
        self.ask(0..self.processes.len(), request, took)?;
        Ok(began_at.elapsed())
    }

    /// Has the first process replace a participant. Returns how long the new one took for each step.
    pub(super) fn restart(&mut self) -> Result<Joined, DomainError> {
        let joined = |answer: &Answer| match answer {
            Answer::Joined(joined) => Some(*joined),
            _ => None,
        };
        Ok(self.ask(0..1, Request::Restart, joined)?.first().copied().unwrap_or_default())
    }

    /// Does nothing for so long.
    pub(super) fn rest(&mut self, time: Duration) -> Result<(), DomainError> {
        match self.next(Instant::now().checked_add(time))? {
            Some((_, answer)) => Err(unexpected(&answer)),
            None => Ok(()),
        }
    }

    /// Requests something of these processes. Returns their answers, in this order.
    fn ask<T>(
        &mut self,
        whom: Range<usize>,
        request: Request,
        read: impl Fn(&Answer) -> Option<T>,
    ) -> Result<Vec<T>, DomainError> {
        let line = serde_json::to_string(&request).map_err(io::Error::from)?;
        for process in &mut self.processes[whom.clone()] {
            // Fails only when the process has ended, which is an event.
            let _ = writeln!(process.requests, "{line}").and_then(|()| process.requests.flush());
        }
        self.answers(whom, read)
    }

    fn answers<T>(
        &mut self,
        whom: Range<usize>,
        read: impl Fn(&Answer) -> Option<T>,
    ) -> Result<Vec<T>, DomainError> {
        let mut answers: Vec<(usize, T)> = Vec::new();
        while answers.len() < whom.len() {
            let Some((index, answer)) = self.next(None)? else { continue };
            let value = read(&answer).filter(|_| whom.contains(&index));
            answers.push((index, value.ok_or_else(|| unexpected(&answer))?));
        }
        answers.sort_by_key(|(index, _)| *index);
        Ok(answers.into_iter().map(|(_, value)| value).collect())
    }

    /// Waits for the next answer; `None`: there was none until the deadline. The end of a process is an error.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<(usize, Answer)>, DomainError> {
        loop {
            if self.interrupted.load(Ordering::Acquire) {
                return Err(DomainError::Interrupted);
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.events.recv_timeout(left.map_or(TICK, |left| left.min(TICK))) {
                Ok((_, Event::Answer(Answer::Failed(error)))) => return Err(DomainError::Part(error)),
                Ok((_, Event::Answer(Answer::InUse))) => return Err(DomainError::InUse(self.domain_id)),
                Ok((index, Event::Answer(answer))) => return Ok(Some((index, answer))),
                Ok((index, Event::Ended)) => return Err(self.ended(index)),
                Err(RecvTimeoutError::Timeout) if left.is_none_or(|left| left > TICK) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(0)),
            }
        }
    }

    /// Returns the error for a process that has closed its output.
    fn ended(&mut self, index: usize) -> DomainError {
        let count = self.processes.len();
        let how = self.processes.get_mut(index).map(Process::end);
        let status = match how {
            Some(Ok(status)) if ended_with_the_terminal(status) => return DomainError::Interrupted,
            Some(Ok(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        DomainError::Part(format!("process {} of {count} with participants ended early{status}", index + 1))
    }
}

/// A process with participants. Ends when it is dropped.
struct Process {
    child: Child,
    requests: ChildStdin,
}

impl Process {
    fn start(
        mut command: Command,
        plan: &PartPlan,
        index: usize,
        events: &Sender<(usize, Event)>,
    ) -> Result<Self, DomainError> {
        command.arg(plan.to_argument()?).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A terminal's Ctrl-C is for this process, which then ends the others.
        command.process_group(0);
        let mut child = command.spawn()?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = (requests, answers) else {
            return Err(DomainError::Process(io::ErrorKind::BrokenPipe.into()));
        };
        let (process, events) = (Self { child, requests }, events.clone());
        thread::Builder::new()
            .name(format!("part {index}"))
            .spawn(move || read_answers(index, answers, &events))?;
        Ok(process)
    }

    /// Kills the process unless it has ended. Returns its exit status.
    fn end(&mut self) -> io::Result<std::process::ExitStatus> {
        // Fails only when the process has ended. Participants need no goodbye: all end.
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Passes on what a process says, until it ends.
fn read_answers(index: usize, output: ChildStdout, events: &Sender<(usize, Event)>) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        let answer = serde_json::from_str(&line).unwrap_or_else(|error| {
            Answer::Failed(format!("a process with participants sent `{line}`, which is no answer: {error}"))
        });
        if events.send((index, Event::Answer(answer))).is_err() {
            return;
        }
    }
    // Fails only when no one waits.
    let _ = events.send((index, Event::Ended));
}

fn took(answer: &Answer) -> Option<Duration> {
    match answer {
        Answer::Done { took_ns } => Some(Duration::from_nanos(*took_ns)),
        _ => None,
    }
}

fn unexpected(answer: &Answer) -> DomainError {
    DomainError::Part(format!("a process with participants gave an unexpected answer: {answer:?}"))
}

/// How often an interruption is looked for.
const TICK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn plan() -> DomainPlan {
        DomainPlan {
            participants: 2,
            endpoints: 2,
            processes: 2,
            domain_id: 9,
            interface: "lo".to_owned(),
            rest: Duration::ZERO,
            patience: Duration::ZERO,
        }
    }

    /// Starts two processes that run these instead of a part, and requests something of them.
    fn start(scripts: [&str; 2], is_interrupted: bool) -> Result<Duration, DomainError> {
        let scripts = RefCell::new(scripts.into_iter());
        let command = || {
            let mut command = Command::new("sh");
            command.arg("-c").args(scripts.borrow_mut().next());
            command
        };
        let interrupted = AtomicBool::new(is_interrupted);
        let mut parts = Parts::start(&command, &plan(), &[1, 1], &interrupted)?;
        parts.all(Request::Start)
    }

    /// Checks what is reported of a second process beside one that says nothing.
    #[track_caller]
    fn check(script: &str, expected: &str) {
        let error = start([WAITS, script], false).unwrap_err().to_string();
        assert_eq!(error, expected);
    }

    /// Is ready, and does not answer.
    const WAITS: &str = "echo '\"Ready\"'; read line; read line";

    #[test]
    fn all_answers_are_waited_for() {
        let script = "echo '\"Ready\"'; read line; echo '{\"Done\":{\"took_ns\":5}}'; read line";
        start([script, script], false).unwrap();
    }

    #[test]
    fn the_end_of_a_process_is_noticed_while_another_one_is_awaited() {
        check("exit 7", "process 2 of 2 with participants ended early (exit status: 7)");
        let killed = "echo '\"Ready\"'; read line; kill -9 $$";
        check(killed, "process 2 of 2 with participants ended early (signal: 9 (SIGKILL))");
    }

    #[test]
    fn the_end_of_a_process_is_noticed_at_rest() {
        let script = "echo '\"Ready\"'; read line";
        let command = || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let interrupted = AtomicBool::new(false);
        let mut parts = Parts::start(&command, &plan(), &[1, 1], &interrupted).unwrap();
        parts.rest(Duration::ZERO).unwrap();
        let _ = writeln!(parts.processes[1].requests, "end");
        let error = parts.rest(Duration::MAX).unwrap_err().to_string();
        assert_eq!(error, "process 2 of 2 with participants ended early (exit status: 0)");
    }

    #[test]
    fn what_a_process_reports_is_an_error_at_once() {
        check("echo '{\"Failed\":\"no luck\"}'; read line", "no luck");
        let in_use = "domain 9 is in use by another program: choose another one with --domain";
        check("echo '\"InUse\"'; read line", in_use);
        let unexpected = "a process with participants gave an unexpected answer: Done { took_ns: 5 }";
        check("echo '{\"Done\":{\"took_ns\":5}}'; read line", unexpected);
        let error = start([WAITS, "echo hello; read line"], false).unwrap_err().to_string();
        assert!(error.contains("sent `hello`, which is no answer"), "{error}");
    }

    #[test]
    fn an_interruption_ends_the_wait() {
        let error = start([WAITS, WAITS], true).unwrap_err();
        assert!(matches!(error, DomainError::Interrupted), "{error}");
    }

    #[test]
    fn a_process_that_ctrl_c_ends_before_it_has_its_own_group_interrupts_the_measurement() {
        // A shell starts programs in the background, such as these tests, with the signal ignored.
        let ends = "echo '\"Ready\"'; read line; exec env --default-signal=INT sh -c 'kill -INT $$'";
        let error = start([WAITS, ends], false).unwrap_err();
        assert!(matches!(error, DomainError::Interrupted), "{error}");
    }
}
