//! `udptest` and `udpserver`: the commands of hpcbench's page, shortened, in a network namespace.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A server in a network namespace of its own, ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server in a new network namespace; an error says why there is none.
fn server() -> Result<(Server, String), String> {
    let can = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return Err("no new network namespace (needs root, unshare and ip)".to_owned());
    }
    let script =
        format!("ip link set lo up && exec {} --bind 127.0.0.1 -p 0", env!("CARGO_BIN_EXE_udpserver"));
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("TCP socket listening on port [").unwrap();
    Ok((Server(child), port.trim_end_matches(']').to_owned()))
}

fn udptest(server: &Server, port: &str, folder: &Path, words: &str) -> Output {
    let pid = server.0.id().to_string();
    Command::new("nsenter")
        .args(["--net", "--target", &pid, env!("CARGO_BIN_EXE_udptest"), "-p", port])
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// How many rows of figures a report has.
fn rows(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count()
}

#[test]
fn the_commands_of_the_page_work() {
    let (server, port) = match server() {
        Ok(started) => started,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let folder = TempDir::new().unwrap();
    let run = |words: &str| {
        let output = udptest(&server, &port, folder.path(), words);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words}: {stdout} {}", String::from_utf8_lossy(&output.stderr));
        stdout
    };
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let stored = "Test done! The results are stored in file \"output.txt\"\n";

    for (words, trials) in [
        ("-h 127.0.0.1 -t 0.05 -r 6 -o output.txt", 6),
        ("-ih 127.0.0.1 -t 0.05 -r 6 -o output.txt", 6),
        ("-h 127.0.0.1 -t 0.05 -b 500k -l 8k -q 2 -r 5 -o output.txt", 5),
        ("-h 127.0.0.1 -t 0.05 -b 10k -d 500 -o output.txt", 10),
    ] {
        let stdout = run(words);
        assert_eq!(stdout.matches(") Throughput: ").count(), trials, "{words}: {stdout}");
        assert!(stdout.ends_with(stored), "{stdout}");
        let report = read("output.txt");
        assert_eq!(rows(&report), trials, "{report}");
        assert!(report.contains("\n# Network Average: "), "{report}");
    }
    assert_eq!(run("-eh 127.0.0.1 -t 0.02 -o output.txt -P"), stored);
    assert_eq!(rows(&read("output.txt")), 12);
    let gnuplot = Command::new("gnuplot").arg("output.txt.plot").current_dir(folder.path()).output();
    if let Ok(gnuplot) = gnuplot {
        assert!(gnuplot.status.success(), "{}", String::from_utf8_lossy(&gnuplot.stderr));
        assert!(read("output.txt.ps").starts_with("%!PS"));
    }
    assert!(
        run("-ah 127.0.0.1 -r 1").contains("\n1 trials with message size 64 Bytes.\nUDP RTT min/avg/max = ")
    );
    run("-h 127.0.0.1 -A 1k -r 1 -o output.txt");
    assert!(read("output.txt").contains("\n# Message-size: 1024 Iteration: "));
    let verbose = run("-v -h 127.0.0.1 -t 0.1 -T 150M -r 1");
    assert!(
        verbose.contains("\n\n[Client] Sent-bytes: ") && verbose.ends_with("\n\nTest done!\n"),
        "{verbose}"
    );
    assert!(run("-gh 127.0.0.1 -p 3000 -t 0.1 -T 200M").contains("Target-througput(Mbps): 200.00\nDone! "));
    assert!(run("-ch 127.0.0.1 -t 0.05 -r 5 -o output").contains("server-syslog: \"output.s_log\"\n"));
    for log in ["output.c_log", "output.s_log"] {
        assert!(read(log).contains("\n# Watch times: 7\n# Network devices (interface): "), "{}", read(log));
    }

    for (words, code, why) in [
        ("-h 127.0.0.1 -o missing/output", 3, "cannot write missing/output"),
        ("-h 127.0.0.1 -p 1", 3, "cannot reach a udpserver"),
        ("-h 127.0.0.1 -b 4k -l 65000", 2, "does not fit"),
        ("-gh 127.0.0.1", 2, "needs a rate"),
        ("-gh 239.1.1.1 -T 1M", 2, "--allow-multicast"),
    ] {
        let output = udptest(&server, &port, folder.path(), words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && stderr.contains(why), "{words}: {stderr}");
    }
}
