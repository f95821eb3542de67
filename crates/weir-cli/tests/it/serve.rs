//! `weir serve`: runs in a browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};

use crate::support::{KilledOnDrop, Scene};

/// A server of the runs in `results`, and its address.
fn serve(scene: &Scene, options: &str) -> (KilledOnDrop, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("weir"));
    command.args(["serve", "results", "--port", "0"]).args(options.split_whitespace());
    command.current_dir(scene.path("."));
    let mut server = KilledOnDrop::spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut line = String::new();
    BufReader::new(server.process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
    (server, address)
}

/// The whole answer to a request.
fn answer(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: &str, path: &str) -> String {
    answer(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"))
}

#[test]
fn a_run_is_shown_while_it_grows_and_slow_clients_hold_up_nobody() {
    let scene = Scene::new();
    std::fs::create_dir(scene.results()).unwrap();
    let (_server, address) = serve(&scene, "");
    assert!(get(&address, "/").contains("There are no runs yet"));
    // A client that never ends its request.
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let bench =
        "bench --engines mock --sizes 32 --tests latency --duration 50ms --warmup 0s --output results/one";
    scene.weir(bench).expect_code(0);
    assert!(!get(&address, "/").contains("<strong>live</strong>"));
    // As one that is being measured.
    let file = std::fs::File::options().append(true).open(scene.path("results/one/results.jsonl")).unwrap();
    file.try_lock().unwrap();
    let index = get(&address, "/");
    assert!(index.starts_with("HTTP/1.1 200 OK\r\n") && index.contains("<strong>live</strong>"), "{index}");
    let link = index.split("href=\"run/").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert!(get(&address, &format!("/run/{link}")).contains("http-equiv=\"refresh\""));
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("weir_latency_median_seconds{engine=\"mock\"") && metrics.ends_with("# EOF\n"));
    let head = answer(&address, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    assert!(answer(&address, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403"));
    assert!(answer(&address, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405"));
    let long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}", "x".repeat(10_000));
    assert!(answer(&address, &long).starts_with("HTTP/1.1 431"));
}

#[test]
fn other_addresses_need_a_token() {
    let scene = Scene::new();
    std::fs::create_dir(scene.results()).unwrap();
    scene.weir("serve results --bind 0.0.0.0").expect_code(2).expect_stderr("needs --token-file");
    std::fs::write(scene.path("short"), "secret\n").unwrap();
    scene.weir("serve results --token-file short").expect_code(2).expect_stderr("at least 16");
    scene.weir("serve nowhere").expect_code(2).expect_stderr("nowhere is not a folder of results");
    std::fs::write(scene.path("token"), "0123456789abcdef\n").unwrap();
    let (_server, address) = serve(&scene, "--token-file token");
    assert!(get(&address, "/").starts_with("HTTP/1.1 401"));
    let bearer = "GET / HTTP/1.1\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n";
    assert!(answer(&address, bearer).starts_with("HTTP/1.1 200"));
}
