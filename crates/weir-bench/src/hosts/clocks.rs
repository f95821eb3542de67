//! Compares the clocks of two hosts by UDP round trips between them.
//!
//! One host answers questions with its time; the other one asks, and takes the shortest of many round trips.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use weir_baseline::{ClockExchange, ClockOffset};
use weir_measure::clock;

/// Answers questions for the time until it is dropped.
pub(super) struct ClockServer {
    address: SocketAddrV4,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ClockServer {
    /// Answers at this address, on a port that is free.
    pub(super) fn start(address: Ipv4Addr) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        let port = socket.local_addr()?.port();
        // It wakes up at the end; this time is for a wake-up that is lost.
        socket.set_read_timeout(Some(CHECK))?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let body = move || {
            while !is_over.load(Ordering::Acquire) {
                let mut question = [0; DATAGRAM_BYTES];
                // A time-out is no datagram, and so is one of another length.
                let Ok((DATAGRAM_BYTES, from)) = socket.recv_from(&mut question) else { continue };
                let heard_ns = clock::now_ns();
                let [marker, number, ..] = words(&question);
                if marker == MARKER {
                    let answer = datagram([MARKER, number, heard_ns, clock::now_ns()]);
                    // As if it had been lost.
                    let _ = socket.send_to(&answer, from);
                }
            }
        };
        let thread = thread::Builder::new().name("clock".to_owned()).spawn(body)?;
        Ok(Self { address: SocketAddrV4::new(address, port), stop, thread: Some(thread) })
    }

    /// Where it answers.
    pub(super) fn address(&self) -> SocketAddrV4 {
        self.address
    }
}

impl Drop for ClockServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread; without it, that takes longer.
        let _ =
            UdpSocket::bind((*self.address.ip(), 0)).and_then(|socket| socket.send_to(&[0], self.address));
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Asks a host for its time many times; `None`: it did not answer.
pub(super) fn compare(from: Ipv4Addr, to: SocketAddrV4) -> io::Result<Option<ClockOffset>> {
    let socket = UdpSocket::bind((from, 0))?;
    socket.connect(to)?;
    let mut exchanges = Vec::with_capacity(EXCHANGES);
    let deadline = Instant::now() + COMPARE_WAIT;
    for number in 0..EXCHANGES as u64 {
        if Instant::now() >= deadline {
            break;
        }
        let asked_ns = clock::now_ns();
        if socket.send(&datagram([MARKER, number, 0, 0])).is_err() {
            continue;
        }
        let answered = await_answer(&socket, number, Instant::now() + ANSWER_WAIT)?;
        exchanges.extend(answered.map(|(heard_ns, answered_ns, got_ns)| ClockExchange {
            asked_ns,
            heard_ns,
            answered_ns,
            got_ns,
        }));
    }
    Ok(ClockOffset::of(&exchanges))
}

/// Waits for the answer of this number. Others are late.
fn await_answer(socket: &UdpSocket, number: u64, deadline: Instant) -> io::Result<Option<(u64, u64, u64)>> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        let mut answer = [0; DATAGRAM_BYTES];
        // A refusal counts as lost, too.
        let Ok(DATAGRAM_BYTES) = socket.recv(&mut answer) else { continue };
        let got_ns = clock::now_ns();
        let [marker, of, heard_ns, answered_ns] = words(&answer);
        if marker == MARKER && of == number {
            return Ok(Some((heard_ns, answered_ns, got_ns)));
        }
    }
}

fn datagram(words: [u64; 4]) -> [u8; DATAGRAM_BYTES] {
    let mut bytes = [0; DATAGRAM_BYTES];
    for (part, word) in bytes.chunks_exact_mut(8).zip(words) {
        part.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn words(bytes: &[u8; DATAGRAM_BYTES]) -> [u64; 4] {
    let mut parts = bytes.chunks_exact(8).map(|part| part.try_into().map_or(0, u64::from_be_bytes));
    [(); 4].map(|()| parts.next().unwrap_or_default())
}

/// Four numbers: the marker, the number of the question, and two times of the answer.
const DATAGRAM_BYTES: usize = 32;

/// `weirtime`.
const MARKER: u64 = u64::from_be_bytes(*b"weirtime");

/// Round trips: the shortest of so many is near the least that the network can do.
const EXCHANGES: usize = 200;

/// How long one answer may take.
const ANSWER_WAIT: Duration = Duration::from_millis(200);

/// How long all may take.
const COMPARE_WAIT: Duration = Duration::from_secs(2);

/// How often the answering thread checks whether it is to end: too seldom to disturb a measurement.
const CHECK: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_one_host_is_not_ahead_of_itself() {
        let server = ClockServer::start(Ipv4Addr::LOCALHOST).unwrap();
        let offset = compare(Ipv4Addr::LOCALHOST, server.address()).unwrap().unwrap();
        assert!(offset.offset_ns.unsigned_abs() <= offset.error_ns, "{offset:?}");
    }

    #[test]
    fn numbers_survive_a_datagram() {
        assert_eq!(words(&datagram([MARKER, 1, 2, u64::MAX])), [MARKER, 1, 2, u64::MAX]);
    }
}
