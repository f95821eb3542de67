//! Child processes that end when they should, and at the latest when their guard is dropped.

use std::fs;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::CaseError;

/// A running program.
pub(super) struct Process {
    name: String,
    child: Child,
}

/// The kernel's tables of sockets.
pub(super) const TCP_SOCKETS: &str = "/proc/net/tcp";
pub(crate) const UDP_SOCKETS: &str = "/proc/net/udp";

impl Process {
    /// Starts `command`, on processor `cpu` if there is one.
    ///
    /// A child inherits where its parent thread may run: no other program is needed for pinning.
    pub(super) fn start(mut command: Command, cpu: Option<usize>) -> Result<Self, CaseError> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let spawn = || {
            cpu.map_or(Ok(()), weir_udp::affinity::pin_current_thread)?;
            command.spawn()
        };
        let spawned = thread::scope(|scope| scope.spawn(spawn).join());
        let child = spawned
            .unwrap_or_else(|_| Err(io::Error::other("the starting thread panicked")))
            .map_err(|error| CaseError::Failed(format!("cannot start {name}: {error}")))?;
        Ok(Self { name, child })
    }

    /// Waits until the program, a server, has bound `port`, as this table says.
    pub(super) fn wait_for_port(&mut self, sockets: &str, port: u16) -> Result<(), CaseError> {
        let deadline = Instant::now() + START_WAIT;
        while !fs::read_to_string(sockets).is_ok_and(|table| lists_port(&table, port)) {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(&format!("ended at once ({status})")));
            }
            if Instant::now() >= deadline {
                return Err(self.failed(&format!("did not listen within {START_WAIT:?}")));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Waits until the program succeeds, and returns its output. `on_tick` is called regularly with
    /// the elapsed time.
    pub(super) fn wait_for_end(
        mut self,
        timeout: Duration,
        interrupted: &AtomicBool,
        on_tick: &mut dyn FnMut(Duration),
    ) -> Result<String, CaseError> {
        let output = self.child.stdout.take();
        // Its own thread reads, so that a full pipe never blocks the program.
        let reader = thread::spawn(move || {
            let mut text = String::new();
            output.map(|mut output| output.read_to_string(&mut text));
            text
        });
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(reader.join().unwrap_or_default()),
                Ok(Some(status)) => return Err(self.failed(&format!("failed ({status})"))),
                Ok(None) => {}
                Err(error) => return Err(self.failed(&error.to_string())),
            }
            if interrupted.load(Ordering::Acquire) {
                return Err(CaseError::Interrupted);
            }
            if start.elapsed() >= timeout {
                return Err(self.failed(&format!("did not end within {timeout:?}")));
            }
            on_tick(start.elapsed());
            thread::sleep(POLL);
        }
    }

    /// The error, with the last line that the program complained with.
    fn failed(&mut self, what: &str) -> CaseError {
        let _ = self.child.kill();
        let mut complaint = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut complaint);
        }
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let colon = if last.is_empty() { "" } else { ": " };
        CaseError::Failed(format!("{} {what}{colon}{}", self.name, last.trim()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the child has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much longer than its measurement a client may run.
pub(super) const END_WAIT: Duration = Duration::from_secs(30);

/// How long a server may take to listen.
const START_WAIT: Duration = Duration::from_secs(20);

/// How often a child is checked: seldom enough not to disturb its measurement.
const POLL: Duration = Duration::from_millis(20);

/// Whether a line of the kernel's table has `port` as its local one (second column, `address:port`
/// in hexadecimal).
pub(crate) fn lists_port(table: &str, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    table.lines().filter_map(|line| line.split_whitespace().nth(1)).any(|local| local.ends_with(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_port_is_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue\n\
                     1: 0100007F:2B67 00000000:0000 07 00000000:00000000\n\
                     2: 00000000:0035 0100007F:2B68 07 00000000:00000000\n";
        assert!(lists_port(table, 0x2b67));
        assert!(lists_port(table, 53));
        assert!(!lists_port(table, 0x2b68));
        assert!(!lists_port("", 53));
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo 'no such luck' >&2; exit 3"]);
        let process = Process::start(command, None).unwrap();
        let error =
            process.wait_for_end(Duration::from_secs(10), &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "sh failed (exit status: 3): no such luck");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Process::start(Command::new("no-such-program"), None).err().unwrap().to_string();
        assert!(error.starts_with("cannot start no-such-program: "), "{error}");
    }
}
