//! What untrusted clients can do to a server.

#![expect(clippy::unwrap_used, reason = "a helper of tests that cannot go on fails the test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use weir_baseline::WeirUdp;
use weir_compat::hpcbench::{Response, Udptest};
use weir_measure::{Family, LINE_BYTES_MAX, Message, Protocol, Secret, Server, ServerSettings, connect};

fn settings<P: Protocol>() -> ServerSettings {
    ServerSettings {
        bind: Some(Ipv4Addr::LOCALHOST.into()),
        port: 0,
        sessions_max: 2,
        trial_max: Duration::from_secs(1000),
        ..ServerSettings::new::<P>()
    }
}

/// A server on its own thread, and what it logs.
fn start<P: Protocol>() -> (SocketAddr, mpsc::Receiver<String>) {
    start_with::<P>(settings::<P>())
}

fn start_with<P: Protocol>(settings: ServerSettings) -> (SocketAddr, mpsc::Receiver<String>) {
    let server = Server::<P>::bind(settings).unwrap();
    let address = server.address().unwrap();
    let (sender, log) = mpsc::channel();
    std::thread::spawn(move || {
        server.run(move |event| {
            let _ = sender.send(event.to_owned());
        })
    });
    (address, log)
}

fn wait_for(log: &mpsc::Receiver<String>, text: &str) -> String {
    loop {
        let event = log.recv().unwrap();
        if event.contains(text) {
            return event;
        }
    }
}

struct Peer {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Peer {
    fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Self { stream, lines }
    }

    fn say(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.hear()
    }
}

#[test]
fn sessions_beyond_the_limit_are_told_so_and_places_become_free() {
    let (address, log) = start::<Udptest>();
    let mut served: Vec<Peer> = (0..2).map(|_| Peer::new(address)).collect();
    for peer in &mut served {
        assert_eq!(peer.ask("WEIR-UDPTEST version=1"), "WEIR-UDPSERVER version=1");
    }
    let refusal = Peer::new(address).ask("WEIR-UDPTEST version=1");
    assert!(refusal.starts_with("REFUSED it serves 2 sessions at a time"), "{refusal}");
    wait_for(&log, "session ended");
    drop(served.pop());
    wait_for(&log, "session ended");
    assert_eq!(Peer::new(address).ask("WEIR-UDPTEST version=1"), "WEIR-UDPSERVER version=1");
}

#[test]
fn idle_connections_do_not_keep_out_a_client_that_knows_the_secret() {
    let is_kept_out =
        [is_kept_out_by_idle_connections::<Udptest>(), is_kept_out_by_idle_connections::<WeirUdp>()];
    assert_eq!(is_kept_out, [false, false]);
}

fn is_kept_out_by_idle_connections<P: Protocol>() -> bool {
    let secret = Secret::new(b"correct horse").unwrap();
    let settings = ServerSettings { secret: Some(secret.clone()), ..settings::<P>() };
    let (address, _log) = start_with::<P>(settings);
    // Connections are accepted in order, so all of them are there before the client.
    let mut idle: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    let client = connect::<P>("127.0.0.1", address.port(), Family::Any, Some(&secret));
    // The oldest made room.
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
    client.is_err()
}

#[test]
fn a_flood_of_connections_is_dropped() {
    let (address, _log) = start::<WeirUdp>();
    let mut flood: Vec<Peer> = (0..50).map(|_| Peer::new(address)).collect();
    // Two are served, some are refused, the others are dropped.
    let hello = "{\"message\":\"hello\",\"version\":1,\"nonce\":\"\"}";
    let mut answers = Vec::new();
    for peer in &mut flood {
        let _ = peer.stream.write_all(format!("{hello}\n").as_bytes());
        let mut line = String::new();
        let _ = peer.lines.read_line(&mut line);
        answers.push(line);
    }
    let served = answers.iter().filter(|line| line.contains("\"welcome\"")).count();
    assert_eq!(served, 2, "{answers:?}");
    assert!(answers.iter().any(String::is_empty), "{answers:?}");
}

#[test]
fn a_bidirectional_trial_ends_when_its_client_vanishes() {
    let (address, log) = start::<Udptest>();
    let mut peer = Peer::new(address);
    peer.ask("WEIR-UDPTEST version=1");
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = udp.local_addr().unwrap().port();
    let setup = peer.ask(&format!("SETUP port={port} datagram=1000 buffer=0 tos=0"));
    let Some(Response::Setup { port, .. }) = Response::parse(&setup) else { panic!("{setup}") };
    assert_eq!(peer.ask("TRIAL trial=1 size=1000 both=1 time=900000000000 message=0 rate=0"), "READY");
    // Data starts the trial.
    udp.connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    udp.send(b"data").unwrap();
    let mut bytes = [0; 1000];
    assert!(udp.recv(&mut bytes).unwrap() > 0);
    drop(peer);
    // Were it to send for its 900 s, this test would be stopped from outside.
    wait_for(&log, "session ended");
    // Its socket is closed: datagrams in flight can be drained, then the kernel reports it.
    udp.set_nonblocking(true).unwrap();
    while udp.recv(&mut bytes).is_ok() {}
    // A process that another test starts at this moment may hold the socket for a while.
    udp.set_nonblocking(false).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let is_refused = || {
        let _ = udp.send(b"anybody?");
        udp.recv(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    while !is_refused() {}
}

#[test]
fn a_receiver_does_not_listen_for_ever_to_who_goes_on_sending() {
    let (address, _log) = start::<Udptest>();
    let mut peer = Peer::new(address);
    peer.ask("WEIR-UDPTEST version=1");
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let setup =
        peer.ask(&format!("SETUP port={} datagram=1000 buffer=0 tos=0", udp.local_addr().unwrap().port()));
    let Some(Response::Setup { port, .. }) = Response::parse(&setup) else { panic!("{setup}") };
    assert_eq!(peer.ask("TRIAL trial=1 size=1000 both=0 time=1000 message=0 rate=0"), "READY");
    udp.connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    peer.say("SENT");
    peer.stream.set_nonblocking(true).unwrap();
    let mut answer = String::new();
    // Sends on until the server has had enough.
    while peer.lines.read_line(&mut answer).is_err() {
        let _ = udp.send(b"more");
    }
    assert!(answer.starts_with("RESULT rp="), "{answer}");
}

#[test]
fn what_a_client_asks_for_has_bounds() {
    let (address, log) = start::<Udptest>();
    let mut peer = Peer::new(address);
    peer.ask("WEIR-UDPTEST version=1");
    let setup = peer.ask(&format!("SETUP port=9 datagram=1000 buffer={} tos=0", u64::MAX));
    let Some(Response::Setup { recv_buffer, send_buffer, .. }) = Response::parse(&setup) else {
        panic!("{setup}")
    };
    assert!(recv_buffer <= 64 << 20 && send_buffer <= 64 << 20, "{setup}");
    let refusal = peer.ask(&format!("TRIAL trial=1 size=1000 both=1 time={} message=0 rate=0", u64::MAX));
    assert!(refusal.contains("at most 1000 s"), "{refusal}");
    wait_for(&log, "session ended");
    // A line without an end.
    let mut peer = Peer::new(address);
    peer.stream.write_all(&[b'x'; LINE_BYTES_MAX]).unwrap();
    assert!(wait_for(&log, "session ended").contains("a line of more than 512 bytes"));
    refuses_nonsense::<WeirUdp>("{}");
    refuses_nonsense::<WeirUdp>("GET / HTTP/1.1");
    refuses_nonsense::<Udptest>("\u{0}");
}

fn refuses_nonsense<P: Protocol>(first: &str) {
    let (address, log) = start::<P>();
    let answer = Peer::new(address).ask(first);
    assert!(answer.contains("version 1 of its"), "{answer}");
    wait_for(&log, "session ended");
}

#[test]
fn a_connection_can_be_served_on_the_callers_thread() {
    serves_one::<Udptest>();
    serves_one::<WeirUdp>();
}

fn serves_one<P: Protocol>() {
    let server = Server::<P>::bind(settings::<P>()).unwrap();
    let mut peer = Peer::new(server.address().unwrap());
    peer.say("nonsense");
    peer.stream.shutdown(Shutdown::Write).unwrap();
    let ended = std::cell::RefCell::new(String::new());
    server.serve_one(&|event| ended.borrow_mut().push_str(event)).unwrap();
    assert!(ended.borrow().contains("session ended: refused"), "{}", ended.borrow());
    let mut answer = String::new();
    peer.lines.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("version 1"), "{answer}");
}
