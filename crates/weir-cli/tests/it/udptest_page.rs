//! The commands of hpcbench's page, unchanged, between two network namespaces with host names,
//! joined by a link. `mk4` is resolved as on a real host. The namespaces end with their processes.
//!
//! The quick commands run in every test. With `WEIR_PAGE_NOTE=FILE` all of them run, which takes
//! five minutes, and their output is written to FILE, such as
//! docs/reference/generated/hpcbench-session.md.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// The commands of the page, each with text that it prints and the files that it writes.
const COMMANDS: &[(&str, &str, &[&str])] = &[
    ("./udptest -h mk4 -r 6 -o output.txt", " (6) Throughput: ", &["output.txt"]),
    ("./udptest -ih mk4 -r 6 -o output.txt", " (6) Throughput: ", &["output.txt"]),
    ("./udptest -eh mk4 -o output.txt", STORED, &["output.txt"]),
    ("./udptest -ah mk4", "\n10 trials with message size 64 Bytes.\nUDP RTT min/avg/max = ", &[]),
    (
        "./udptest -h mk4 -A 1k -r 5 -o output.txt",
        "\n5 trials with message size 1024 Bytes.\n",
        &["output.txt"],
    ),
    ("udptest -v -h mk4 -t 10 -T 150M -r 1", "\nNetwork-throughput(Mbps): 1", &[]),
    ("udptest -g -h mk2 -t 10 -T 200M", "\nSent-packets: ", &[]),
    ("udptest -gh mk6 -p 3000 -t 10 -T 200M", "Try to send UDP packets to mk6 on port 3000\n", &[]),
    ("udptest -ch mk4 -r 5 -o output", SERVER_LOG, &["output", "output.c_log", "output.s_log"]),
    ("udptest -h mk4 -b 500k -l 8k -q 2 -r 5 -o output.txt", " (5) Throughput: ", &["output.txt"]),
    ("udptest -h mk4 -b 10k -d 500 -o output.txt", " (10) Throughput: ", &["output.txt"]),
];
const STORED: &str = "Test done! The results are stored in file \"output.txt\"\n";
const SERVER_LOG: &str = "server-syslog: \"output.s_log\"\n";

/// Commands of a few seconds at most.
const QUICK: &[&str] = &["./udptest -ah mk4", "./udptest -h mk4 -A 1k -r 5 -o output.txt"];

/// A host: namespaces held by a process that waits for the end of its input.
struct Host(Child);

impl Host {
    fn new(name: &str, hosts: &Path) -> Self {
        let script = format!(
            "hostname {name} && mount --bind {} /etc/hosts && ip link set lo up && echo inside && exec cat",
            hosts.display()
        );
        let mut child = Command::new("unshare")
            .args(["--net", "--uts", "--mount", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "inside", "no namespaces for {name}");
        Self(child)
    }

    /// A shell command line on this host, in a folder.
    fn command(&self, folder: &Path, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--net", "--uts", "--mount", "sh", "-c"]);
        let tools = Path::new(env!("CARGO_BIN_EXE_udptest")).parent().unwrap();
        command.arg(format!("cd {} && export PATH={}:$PATH && {line}", folder.display(), tools.display()));
        command
    }

    fn run(&self, folder: &Path, line: &str) -> String {
        let output = self.command(folder, line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two linked hosts with a server on the second; ends when dropped.
struct Testbed {
    mk1: Host,
    mk4: Host,
    folder: TempDir,
    server: Child,
}

impl Testbed {
    fn lay() -> Self {
        let folder = TempDir::new().unwrap();
        let hosts = folder.path().join("hosts");
        let names = "127.0.0.1 localhost\n10.78.0.1 mk1\n10.78.0.2 mk2\n10.78.0.4 mk4\n10.78.0.6 mk6\nfd00:78::4 mk4six\n";
        fs::write(&hosts, names).unwrap();
        let (mk1, mk4) = (Host::new("mk1", &hosts), Host::new("mk4", &hosts));
        let at = folder.path();
        mk1.run(at, &format!("ip link add eth0 type veth peer name eth0 netns {}", mk4.0.id()));
        mk1.run(at, "ip address add 10.78.0.1/24 dev eth0 && ip -6 address add fd00:78::1/64 dev eth0 nodad");
        // mk2 and mk6 are hosts without a server.
        mk4.run(at, "for n in 2 4 6; do ip address add 10.78.0.$n/24 dev eth0; done");
        mk4.run(at, "ip -6 address add fd00:78::4/64 dev eth0 nodad");
        for host in [&mk1, &mk4] {
            host.run(at, "ip link set eth0 up");
        }
        // The kernel reports the state up to a second later and drops packets until then.
        while !mk1.run(at, "ip -oneline link show dev eth0").contains(" state UP ") {
            std::thread::yield_now();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_udptest"), folder.path().join("udptest")).unwrap();
        let mut server = mk4.command(at, "exec udpserver").stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "TCP socket listening on port [5678]\n");
        Self { mk1, mk4, folder, server }
    }

    /// Runs a command on mk1 and checks its output and files.
    fn check(&self, line: &str, printed: &str, files: &[&str]) -> String {
        let stdout = self.mk1.run(self.folder.path(), line);
        assert!(stdout.contains(printed), "{line}: {stdout}");
        for file in files {
            let text = fs::read_to_string(self.folder.path().join(file)).unwrap();
            assert!(text.lines().next().unwrap().starts_with("# "), "{file}: {text}");
            assert!(file.contains("_log") || text.contains("mk1") && text.contains("mk4"), "{file}: {text}");
        }
        stdout
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn is_refused() -> bool {
    let script = "hostname mk0 && mount --bind /dev/null /etc/hosts && ip link set lo up";
    let can = Command::new("unshare").args(["--net", "--uts", "--mount", "sh", "-c", script]).output();
    let refused = !can.is_ok_and(|output| output.status.success());
    assert!(!refused || std::env::var_os("WEIR_REQUIRE_NETNS").is_none(), "no namespaces here");
    refused
}

#[test]
fn the_pages_commands_work_between_two_hosts_as_they_stand() {
    if is_refused() {
        return;
    }
    let testbed = Testbed::lay();
    let note = std::env::var_os("WEIR_PAGE_NOTE");
    let mut text = String::from(HEADING);
    for (line, printed, files) in COMMANDS {
        if note.is_none() && !QUICK.contains(line) {
            continue;
        }
        let stdout = testbed.check(line, printed, files);
        text += &format!("\n```\n[mk1 ~/hpcbench/udp]$ {line}\n{stdout}");
        for file in *files {
            let content = fs::read_to_string(testbed.folder.path().join(file)).unwrap();
            text += &format!("[mk1 ~/hpcbench/udp]$ cat {file}\n{content}");
        }
        text += "```\n";
    }
    if let Some(note) = note {
        let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
        fs::write(note, trimmed.join("\n") + "\n").unwrap();
    }
    // The same over IPv6, by a name with an IPv6 address only.
    testbed.check("./udptest -ah mk4six -r 1", "\n1 trials with message size 64 Bytes.\n", &[]);
    testbed.check("./udptest -ih mk4six -t 0.1 -r 1", " (1) Throughput: ", &[]);
    // A server on a port chosen by the system.
    let mut other = testbed
        .mk4
        .command(testbed.folder.path(), "exec udpserver -p 0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut line).unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(line.starts_with("TCP socket listening on port [") && !line.contains("[0]"), "{line}");
}

const HEADING: &str = "\
# A session of hpcbench's commands

Every command of hpcbench's UDP page that runs a test, with what it printed and wrote. Both ends ran on one machine
with two processors, in the network namespaces `mk1` and `mk4`, joined by virtual Ethernet. `udpserver` ran on `mk4`.
The machine had other work, so only the form of the output matters, not its figures. A test makes this page:

```sh
WEIR_PAGE_NOTE=$PWD/docs/reference/generated/hpcbench-session.md cargo test -p weir-cli --test it udptest_page
```
";
