//! A separate network namespace for a test, with losses and a capture: the test runs itself again
//! inside.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::peer::run;

/// Runs `body` in a network namespace whose only interface is `lo`. Segmentation is not left to
/// hardware, so that every datagram is a packet.
///
/// `test` is the full name of the calling test: it is started again in the namespace, and calls
/// this function again.
pub(crate) fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        run(Command::new("ip").args(["link", "set", "lo", "up"]));
        run(Command::new("ethtool").args(["-K", "lo", "tx-udp-segmentation", "off"]));
        return body();
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
    let output = command.env(INSIDE, "1").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "in the namespace: {stdout}{stderr}");
    assert!(stdout.contains("1 passed"), "no test is called {test}: {stdout}");
    print!("{stdout}");
}

/// Loses `percent` percent of the datagrams to user traffic ports from now on, at random. Discovery
/// is not affected: its time under loss varies too much.
pub(crate) fn lose(percent: u32) {
    run(Command::new("nft").arg("add table inet loss"));
    run(Command::new("nft").arg("add chain inet loss input { type filter hook input priority 0; }"));
    let rule = format!("udp dport & 1 == 1 numgen random mod 100 < {percent} counter drop");
    run(Command::new("nft").arg(format!("add rule inet loss input {rule}")));
}

/// Returns how many datagrams were lost so far.
pub(crate) fn lost() -> u64 {
    let output = Command::new("nft").args(["list", "table", "inet", "loss"]).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    let mut words = table.split_whitespace().skip_while(|word| *word != "packets");
    words.nth(1).and_then(|word| word.parse().ok()).unwrap()
}

/// A capture of everything on `lo`.
#[derive(Debug)]
pub(crate) struct Capture(Child);

impl Capture {
    /// Starts a capture to a file; returns when it is running.
    pub(crate) fn start(file: &Path) -> Self {
        let mut command = Command::new("dumpcap");
        // Buffer in MiB: packets lost here would seem never to have been sent.
        command.args(["-i", "lo", "-B", "64", "-P", "-w"]).arg(file).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("File: ")), "dumpcap ended");
        // Ends with dumpcap.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }

    /// Ends the capture; the file is then complete.
    pub(crate) fn finish(mut self) {
        run(Command::new("kill").args(["-INT", &self.0.id().to_string()]));
        self.0.wait().unwrap();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Set for the inner test.
const INSIDE: &str = "WEIR_TEST_INSIDE_NAMESPACE";
