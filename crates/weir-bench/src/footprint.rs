//! The footprint of a program that waits for peers: resident memory and size on disk.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Returns the resident memory of a waiting program, bytes, once it has printed its first line.
pub fn resident_bytes(program: &Path, domain: u32) -> Result<u64, String> {
    let child = Command::new(program)
        .envs([("WEIR_INTERFACES", "lo"), ("WEIR_DOMAIN_ID", &domain.to_string())])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child =
        Ended(child.map_err(|error| format!("{} cannot be started: {error}", program.display()))?);
    let stdout = child.0.stdout.take().ok_or_else(|| "its output is not there".to_owned())?;
    let (says, said) = mpsc::channel();
    // Ends with the program at the latest.
    thread::spawn(move || says.send(BufReader::new(stdout).read_line(&mut String::new())));
    // The first line means that its threads run and its sockets are open.
    match said.recv_timeout(FIRST_LINE_WAIT) {
        Ok(Ok(0)) => return Err("it ended without a word".to_owned()),
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(format!("its output cannot be read: {error}")),
        Err(_) => return Err(format!("it did not say that it waits within {FIRST_LINE_WAIT:?}")),
    }
    let pid = child.0.id().cast_signed();
    let status = procfs::process::Process::new(pid).and_then(|process| process.status());
    let status = status.map_err(|error| format!("its memory is not known: {error}"))?;
    status.vmrss.map(|kib| kib * 1024).ok_or_else(|| "its memory is not known".to_owned())
}

/// The size of a program without its symbols, bytes.
pub fn stripped_bytes(program: &Path) -> Result<u64, String> {
    let copy = tempfile::NamedTempFile::new().map_err(|error| format!("no temporary file: {error}"))?;
    let stripped =
        Command::new("strip").arg("-o").arg(copy.path()).arg(program).stderr(Stdio::null()).status();
    match stripped {
        Ok(status) if status.success() => {}
        Ok(status) => return Err(format!("strip failed ({status})")),
        Err(error) => {
            return Err(format!("strip cannot be started: {error} (on Debian: apt install binutils)"));
        }
    }
    Ok(std::fs::metadata(copy.path()).map_err(|error| error.to_string())?.len())
}

/// How long a program may take to start.
const FIRST_LINE_WAIT: Duration = Duration::from_secs(30);

/// Kills its process when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_says_why() {
        let missing = Path::new("/weir/has/no/such/program");
        assert!(resident_bytes(missing, 0).unwrap_err().contains("cannot be started"));
        assert!(stripped_bytes(missing).is_err());
        assert_eq!(resident_bytes(Path::new("true"), 0).unwrap_err(), "it ended without a word");
    }
}
