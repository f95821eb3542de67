//! Starts this program on another host, and copies it there first if it is not there.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use sha2::{Digest, Sha256};
use weir_measure::shown;

use super::protocol::READY;
use super::spec::Place;

/// How hosts are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// This program.
    pub program: PathBuf,
    /// The remote shell and its options: `ssh`.
    pub rsh: String,
    /// The program on remote hosts; `None`: this one, copied there.
    pub remote_program: Option<String>,
}

/// What is sent to a remote host that has not got it.
pub(super) struct Parcel {
    path: PathBuf,
    bytes: u64,
    /// SHA-256, in hexadecimal.
    hash: String,
    /// As `uname -sm` prints it.
    machine: String,
}

impl Parcel {
    /// Reads the program.
    pub(super) fn pack(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let bytes = io::copy(&mut file, &mut hasher)?;
        let hash = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let machine = format!("Linux {}", std::env::consts::ARCH);
        Ok(Self { path: path.to_owned(), bytes, hash, machine })
    }

    /// The script that runs the program on a remote host, in one line for all shells: no quote, no `!`.
    ///
    /// It reads the program if there is none with its hash in the cache folder. Copies that were not used for a month
    /// are removed, so each use renews the time of its copy. Hosts may share the folder.
    fn script(&self) -> String {
        let (hash, bytes) = (&self.hash, self.bytes);
        let name = &hash[..16];
        format!(
            "d=\"${{XDG_CACHE_HOME:-$HOME/.cache}}/weir\"; f=\"$d/weir-{name}\"; \
             h() {{ sha256sum \"$1\" 2>/dev/null | cut -c1-64; }}; \
             if [ \"$(h \"$f\")\" = {hash} ]; then touch -c \"$f\" 2>/dev/null; else \
             echo \"{NEEDED} $(uname -sm)\"; mkdir -p \"$d\" || exit 3; t=\"$f.$(uname -n).$$\"; \
             head -c {bytes} > \"$t\"; \
             if [ \"$(h \"$t\")\" = {hash} ]; then chmod 755 \"$t\" && mv -f \"$t\" \"$f\"; \
             else rm -f \"$t\"; echo {DAMAGED}; exit 3; fi; \
             find \"$d\" -name \"weir-*\" -mtime +30 -exec rm -f {{}} +; fi; \
             exec \"$f\" host"
        )
    }

    /// Sends the program.
    fn send(&self, to: &mut ChildStdin) -> io::Result<()> {
        let mut file = File::open(&self.path)?.take(self.bytes);
        io::copy(&mut file, to)?;
        to.flush()
    }
}

/// The command that runs `weir host` at a place, with its standard input and output as the channel.
pub(super) fn command(place: &Place, reach: &Reach, parcel: Option<&Parcel>) -> Command {
    let mut command = match place {
        Place::Local => Command::new(&reach.program),
        Place::Namespace(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(&reach.program);
            command
        }
        Place::Slurm(node) => {
            let mut command = Command::new("srun");
            command.args(["--quiet", "--overlap", "--nodes=1", "--ntasks=1", "--unbuffered"]);
            command.arg(format!("--nodelist={node}")).arg(&reach.program);
            command
        }
        Place::Ssh(host) => {
            let mut words = reach.rsh.split_whitespace();
            let program = words.next().unwrap_or("ssh");
            let mut command = Command::new(program);
            command.args(words);
            if Path::new(program).file_name().is_some_and(|name| name == "ssh") {
                // The first value of an option counts: those of the user stand.
                command.args(SSH_OPTIONS);
            }
            command.arg(host);
            match (&reach.remote_program, parcel) {
                (None, Some(parcel)) => command.arg(format!("exec sh -c '{}'", parcel.script())),
                (program, _) => command.arg(format!("exec {} host", program.as_deref().unwrap_or("weir"))),
            };
            command
        }
    };
    if !matches!(place, Place::Ssh(_)) {
        command.arg("host");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A terminal's Ctrl-C is for the coordinator, which then ends its hosts.
    command.process_group(0);
    command
}

/// Reads what a host prints until its messages begin, and sends the program if it is needed.
///
/// # Errors
/// With what went wrong there.
pub(super) fn greet(
    output: &mut impl BufRead,
    input: &mut ChildStdin,
    parcel: Option<&Parcel>,
) -> Result<(), String> {
    let mut limited = output.take(GREETING_BYTES_MAX);
    loop {
        let mut line = Vec::new();
        match limited.read_until(b'\n', &mut line) {
            Ok(0) if limited.limit() == 0 => {
                return Err(format!(
                    "it printed {GREETING_BYTES_MAX} bytes that are not from weir: does its login shell print much?"
                ));
            }
            Ok(0) => return Err("it ended before weir started there".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line == READY {
            return Ok(());
        }
        if line == DAMAGED {
            return Err(
                "the copy of weir in its cache folder has another hash than this program: is the disk full, \
                        or `sha256sum` not installed there?"
                    .to_owned(),
            );
        }
        if let (Some(machine), Some(parcel)) = (line.strip_prefix(NEEDED), parcel) {
            check_machine(machine.trim(), &parcel.machine)?;
            // The reason is on its standard error, or in the next line.
            let _ = parcel.send(input);
        }
    }
}

fn check_machine(there: &str, here: &str) -> Result<(), String> {
    if there == here {
        return Ok(());
    }
    Err(format!(
        "it is `{}` and this host `{here}`: install weir there, and name it with --remote-weir PATH",
        shown(there)
    ))
}

/// The namespaces that there are, for an error message.
pub(super) fn namespaces() -> String {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) }
}

/// Without prompts, which no terminal would show; a host that is not there is noticed in time.
const SSH_OPTIONS: [&str; 7] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-oServerAliveInterval=15",
    "-oServerAliveCountMax=3",
];

/// A line of the script: the program is not there. The kind of machine follows.
const NEEDED: &str = "weir-host-needs-program";

/// A line of the script: what arrived is not the program.
const DAMAGED: &str = "weir-host-got-damaged-program";

/// What login shells may print.
const GREETING_BYTES_MAX: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn parcel(folder: &Path, content: &str) -> Parcel {
        let path = folder.join("program");
        fs::write(&path, content).unwrap();
        Parcel::pack(&path).unwrap()
    }

    fn reach() -> Reach {
        Reach { program: "/opt/weir".into(), rsh: "ssh -p 2222".to_owned(), remote_program: None }
    }

    fn words(command: &Command) -> Vec<String> {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_users_options_of_ssh_come_first() {
        let folder = tempfile::tempdir().unwrap();
        let parcel = parcel(folder.path(), "x");
        let ssh = words(&command(&Place::Ssh("me@beta".to_owned()), &reach(), Some(&parcel)));
        assert_eq!(ssh[..4], ["ssh", "-p", "2222", "-T"]);
        let [.., host, script] = &ssh[..] else { panic!("{ssh:?}") };
        assert_eq!(host, "me@beta");
        assert!(script.starts_with("exec sh -c '") && script.contains(&parcel.hash), "{script}");
        // Other remote shells get none of them.
        let other = Reach { rsh: "rsh".to_owned(), remote_program: Some("/opt/w".to_owned()), ..reach() };
        let rsh = words(&command(&Place::Ssh("beta".to_owned()), &other, None));
        assert_eq!(rsh, ["rsh", "beta", "exec /opt/w host"]);
        let inside = words(&command(&Place::Namespace("x".to_owned()), &reach(), None));
        assert_eq!(inside, ["ip", "netns", "exec", "x", "/opt/weir", "host"]);
    }

    #[test]
    fn every_shell_reads_the_script_as_one_word() {
        let folder = tempfile::tempdir().unwrap();
        let script = parcel(folder.path(), "x").script();
        assert!(!script.contains(['\'', '!', '\n']), "{script}");
    }

    /// Runs the script as a remote host would; returns what a host printed and whether the program was sent.
    fn run(folder: &Path, parcel: &Parcel) -> (Result<(), String>, String) {
        let mut command = Command::new("sh");
        command.args(["-c", &parcel.script()]).env("XDG_CACHE_HOME", folder.join("cache"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = io::BufReader::new(child.stdout.take().unwrap());
        let greeted = greet(&mut output, child.stdin.as_mut().unwrap(), Some(parcel));
        drop(child.stdin.take());
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        child.wait().unwrap();
        (greeted, rest)
    }

    #[test]
    fn a_program_is_copied_once_and_again_when_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let parcel = parcel(folder.path(), &format!("#!/bin/sh\necho {READY}\necho ran $1\nexec cat\n"));
        let cached = || {
            let mut entries = fs::read_dir(folder.path().join("cache/weir")).unwrap();
            let path = entries.next().unwrap().unwrap().path();
            assert!(entries.next().is_none());
            path
        };
        assert_eq!(run(folder.path(), &parcel), (Ok(()), "ran host\n".to_owned()));
        let copied = fs::metadata(cached()).unwrap().ino();
        let year_ago = SystemTime::now() - Duration::from_secs(365 * 24 * 3600);
        File::options().append(true).open(cached()).unwrap().set_modified(year_ago).unwrap();
        assert_eq!(run(folder.path(), &parcel), (Ok(()), "ran host\n".to_owned()));
        let found = fs::metadata(cached()).unwrap();
        // The same file, which is in use again.
        assert_eq!(found.ino(), copied);
        assert!(found.modified().unwrap() > year_ago + Duration::from_secs(3600));
        fs::write(cached(), "damaged").unwrap();
        assert_eq!(run(folder.path(), &parcel), (Ok(()), "ran host\n".to_owned()));
        assert_eq!(fs::read(cached()).unwrap(), fs::read(&parcel.path).unwrap());
    }

    #[test]
    fn what_arrives_damaged_is_not_run_and_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let parcel = parcel(folder.path(), &format!("#!/bin/sh\necho {READY}\n"));
        let parcel = Parcel { hash: "0".repeat(64), ..parcel };
        let (greeted, _) = run(folder.path(), &parcel);
        assert!(greeted.unwrap_err().contains("another hash"));
        assert_eq!(fs::read_dir(folder.path().join("cache/weir")).unwrap().count(), 0);
    }

    #[test]
    fn another_kind_of_machine_is_named() {
        assert_eq!(check_machine("Linux x86_64", "Linux x86_64"), Ok(()));
        let error = check_machine("Linux aarch64", "Linux x86_64").unwrap_err();
        assert!(error.contains("`Linux aarch64`") && error.contains("--remote-weir"), "{error}");
    }
}
