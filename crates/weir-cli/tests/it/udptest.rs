//! `udptest` and `udpserver`: shortened commands of hpcbench's page, in a network namespace.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::is_missing;

/// A server in a separate network namespace; ends when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server in a new network namespace, or returns why that is not possible.
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
        Err(reason) => {
            assert!(is_missing(Some(reason)));
            return;
        }
    };
    let folder = TempDir::new().unwrap();
    let run = |words: &str| {
        let output = udptest(&server, &port, folder.path(), words);
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{words}: {stdout} {}", String::from_utf8_lossy(&output.stderr));
        stdout
    };
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
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
    let svg = read("output.txt.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("Message size (Bytes)"), "{svg}");
    // Twelve dots on each of two lines, and two in the legend.
    assert_eq!(svg.matches("<circle").count(), 26);
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
        ("-h 127.0.0.1 -c", 2, "name it with -o"),
        ("-h 127.0.0.1 -P", 2, "name it with -o"),
        ("-gh 127.0.0.1 -T 1M --secret-file output.txt", 2, "talks to no server"),
        ("-h 127.0.0.1 --secret-file missing", 2, "missing"),
        ("-h 127.0.0.1 --ipv6", 3, "IPv4 addresses only"),
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

/// A server on this host's loopback.
fn local_server(words: &str) -> (Server, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_udpserver"))
        .args(["-p", "0", "--bind", "127.0.0.1"])
        .args(words.split_whitespace())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port =
        line.trim().strip_prefix("TCP socket listening on port [").unwrap().trim_end_matches(']').to_owned();
    (Server(child), port)
}

#[test]
fn a_server_without_options_serves_all_hosts_and_warns() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_udpserver"))
        .args(["-p", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("TCP socket listening on port ["));
    let mut warnings = BufReader::new(child.stderr.take().unwrap()).lines();
    let warning = warnings.next().unwrap().unwrap();
    assert!(warning.starts_with("udpserver: everyone") && warning.contains("--secret-file"), "{warning}");
    drop(Server(child));
}

fn local_udptest(port: &str, folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_udptest"));
    command.args(["-h", "127.0.0.1", "-p", port]).args(words.split_whitespace()).current_dir(folder);
    command
}

#[track_caller]
fn expect(mut command: Command, code: i32, why: &str) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(code) && stderr.contains(why), "{:?}: {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn both_ends_prove_the_secret() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("secret"), "correct horse\n").unwrap();
    fs::write(folder.path().join("wrong"), "correct mouse\n").unwrap();
    let secret = folder.path().join("secret").display().to_string();
    let (_closed, closed) = local_server(&format!("--secret-file {secret}"));
    let (_open, open) = local_server("");
    let run = |port: &str, words: &str, code: i32, why: &str| {
        expect(local_udptest(port, folder.path(), &format!("-t 0.05 -r 1 {words}")), code, why)
    };
    assert!(run(&closed, "--secret-file secret", 0, "").contains("(1) Throughput: "));
    run(&closed, "--secret-file wrong", 3, "does not know the secret");
    run(&closed, "", 3, "asks for a secret (--secret-file)");
    run(&open, "--secret-file secret", 3, "does not prove that it knows the secret");
}

#[test]
fn a_server_that_is_killed_ends_the_test_and_what_was_measured_is_kept() {
    for words in ["-t 0.05 -r 100000", "-i -t 0.05 -r 100000", "-a -r 100000"] {
        let folder = TempDir::new().unwrap();
        let (server, port) = local_server("");
        let mut command = local_udptest(&port, folder.path(), &format!("{words} -o output.txt"));
        let mut client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("(1) ")), "{words}");
        drop(server);
        let output = client.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(3) && stderr.contains("lost the server"), "{words}: {stderr}");
        let report = fs::read_to_string(folder.path().join("output.txt")).unwrap();
        let kept = if words.starts_with("-a") { "UDP RTT min/avg/max" } else { "# Process information" };
        assert!(
            report.contains(kept) && report.contains("\n1 ") | report.contains("(1) "),
            "{words}: {report}"
        );
    }
}

#[test]
fn an_earlier_report_stays_until_the_test_ends_however_that_is() {
    for (signal, words) in [
        (Signal::KILL, "-t 0.05 -r 100000"),
        (Signal::KILL, "-a -r 100000"),
        (Signal::INT, "-t 0.05 -r 100000"),
        (Signal::INT, "-a -r 100000"),
    ] {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("output.txt");
        fs::write(&path, "earlier\n").unwrap();
        let (_server, port) = local_server("");
        let mut command = local_udptest(&port, folder.path(), &format!("{words} -o output.txt"));
        let mut client = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("(2) ")), "{words}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier\n");
        kill_process(Pid::from_child(&client), signal).unwrap();
        lines.for_each(drop);
        let code = client.wait().unwrap().code();
        let mut files: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let report = fs::read_to_string(&path).unwrap();
        if signal == Signal::INT {
            assert_eq!((code, files.len()), (Some(130), 1));
            assert!(report.contains("(1) ") || rows(&report) > 0, "{report}");
            continue;
        }
        assert_eq!((report.as_str(), files.len()), ("earlier\n", 2), "{files:?}");
        let partial = fs::read_to_string(&files[1]).unwrap();
        assert!(partial.contains("(1) ") || rows(&partial) > 0, "{partial}");
    }
}

#[test]
fn a_disk_that_is_full_and_a_client_that_is_killed_are_survived() {
    let folder = TempDir::new().unwrap();
    let (_server, port) = local_server("--max-sessions 1");
    // A limited file size acts as a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 4; exec {} -h 127.0.0.1 -p {port} -t 0 -m 1 -r 100000 -o output.txt",
        env!("CARGO_BIN_EXE_udptest")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder.path()).stdout(Stdio::null());
    expect(command, 3, "cannot write output.txt");
    let report = fs::read_to_string(folder.path().join("output.txt")).unwrap();
    assert!(rows(&report) > 2 && report.len() <= 4096, "{report}");
    // Of a row that did not fit, nothing is there.
    assert!(report.ends_with('\n'), "{report}");
    let mut command = local_udptest(&port, folder.path(), "-i -t 0.05 -r 100000");
    let mut client = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("(1) ")));
    client.kill().unwrap();
    client.wait().unwrap();
    // Until the session has ended, the server refuses new ones.
    loop {
        let output = local_udptest(&port, folder.path(), "-t 0.05 -r 1").output().unwrap();
        if output.status.success() {
            break;
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("try again later"), "{stderr}");
    }
}

#[test]
fn foreign_and_newer_servers_are_distinguished() {
    let folder = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let answers = std::thread::spawn(move || {
        for answer in
            ["SSH-2.0-OpenSSH\r\n", "WEIR-UDPSERVER version=2\n", "REFUSED this udpserver speaks version 2\n"]
        {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let run = |why: &str| expect(local_udptest(&port, folder.path(), "-r 1"), 3, why);
    run("does not answer like a udpserver of version 1: it said `SSH-2.0-OpenSSH`");
    run("does not answer like a udpserver of version 1: it said `WEIR-UDPSERVER version=2`");
    run("the server refuses: this udpserver speaks version 2");
    answers.join().unwrap();
    run("cannot reach a udpserver at 127.0.0.1");
}
