//! Arbitrary bytes from a client to `udpserver` or `weir udp server`: the lines on their own, and a
//! session that receives them.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use weir_baseline::{self as baseline, WeirUdp};
use weir_compat::hpcbench::{Request, Response, Udptest};
use weir_measure::{Message, Protocol, Server, ServerSettings};

/// Maximum duration of a measurement here.
const TRIAL_MAX: Duration = Duration::from_millis(5);

/// Inputs are small: everything fits the buffers of a connection.
const BYTES_MAX: usize = 4096;

/// Runs a client's input; the first byte chooses the server, if any.
///
/// # Panics
///
/// If a line does not read back as what it was written from, or a session does not end with its
/// client.
pub fn run(data: &[u8]) {
    let Some((choice, said)) = data.split_first() else { return };
    let said = &said[..said.len().min(BYTES_MAX)];
    for line in String::from_utf8_lossy(said).lines() {
        lines(line);
    }
    match choice % 4 {
        2 => session::<Udptest>(said),
        3 => session::<WeirUdp>(said),
        // Sessions wait often: testing lines finds more in the same time.
        _ => {}
    }
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let udptest = [
        Request::Hello { version: 1, nonce: None }.line(),
        Request::Setup { port: 9, datagram: 1460, buffer: 0, tos: 8 }.line(),
        Request::Watch.line(),
        Request::Trial { trial: 1, size: 1460, both: 1, time_ns: 1000, message: 1, rate: 1 }.line(),
        Request::Sent.line(),
        Request::Log.line(),
    ];
    let point = "{\"message\":\"point\",\"point\":{\"test\":\"stream\",\"size_bytes\":64,\"mode\":\"gso\",\"flows\":2,\"gro\":true,\
                 \"connected\":true,\"wait\":\"block\",\"server_cpu\":null,\"dscp\":46,\"multicast\":null,\"multicast_ttl\":1,\
                 \"forward\":true,\"reverse\":true,\"datagrams_per_s\":1000.0,\"warmup\":{\"secs\":0,\"nanos\":0},\
                 \"duration\":{\"secs\":0,\"nanos\":1000000},\"buffer_bytes\":65536}}";
    let weir_udp = [
        baseline::Request::Hello { version: 1, nonce: "00".repeat(16) }.line(),
        baseline::Request::Clock.line(),
        point.to_owned(),
        baseline::Request::Connect { ports: vec![9, 9] }.line(),
        baseline::Request::Start { ahead_ns: -5 }.line(),
        baseline::Request::Go.line(),
        baseline::Request::Finish { sent: vec![3, 4] }.line(),
    ];
    vec![("udptest", seed(2, &udptest)), ("weir-udp", seed(3, &weir_udp))]
}

fn seed(choice: u8, lines: &[String]) -> Vec<u8> {
    let mut data = vec![choice];
    for line in lines {
        data.extend_from_slice(line.as_bytes());
        data.push(b'\n');
    }
    data
}

/// Parses a line as either kind of message; valid ones must survive writing and reading.
fn lines(line: &str) {
    if let Some(request) = Request::parse(line) {
        assert_eq!(Request::parse(&request.line()), Some(request));
    }
    if let Some(response) = Response::parse(line) {
        assert_eq!(Response::parse(&response.line()), Some(response));
    }
    if let Some(request) = baseline::Request::parse(line) {
        // Numbers with fractions may differ in the last digit.
        assert!(baseline::Request::parse(&request.line()).is_some());
        if let baseline::Request::Point { point } = request {
            // Valid or refused, but no panic.
            let _ = (point.check(false), point.check(true));
        }
    }
    if let Some(response) = baseline::Response::parse(line) {
        assert!(baseline::Response::parse(&response.line()).is_some());
    }
}

/// Runs a server that receives all of it at once, and then the end of the connection.
fn session<P: Protocol>(said: &[u8]) {
    let settings = ServerSettings {
        bind: Some(Ipv4Addr::LOCALHOST.into()),
        port: 0,
        trial_max: TRIAL_MAX,
        ..ServerSettings::new::<P>()
    };
    let server = Server::<P>::bind(settings).expect("loopback can be listened on");
    let address = server.address().expect("a listener has an address");
    let mut client = TcpStream::connect(address).expect("a listener can be reached");
    client.write_all(said).expect("so little fits a connection");
    client.shutdown(Shutdown::Write).expect("an open connection can be half closed");
    server.serve_one(&|_| {}).expect("the connection is there");
}
