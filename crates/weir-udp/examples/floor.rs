//! Measures UDP on the loopback interface of this host: datagrams per second by each way of
//! sending, and ping-pong times, between two threads on a core each.
//!
//! A quick check of the sockets, not a benchmark: one process, one run, no statistics.
//!
//! ```text
//! cargo run --release -p weir-udp --example floor -- [SIZE_BYTES] [SECONDS]
//! ```

#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use weir_udp::{
    MAX_BATCH, MAX_GSO_BYTES, MAX_GSO_SEGMENTS, Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket,
    Wait, affinity,
};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u16>());
    let size_bytes = arguments.next().and_then(Result::ok).unwrap_or(32).max(1);
    let seconds = arguments.next().and_then(Result::ok).unwrap_or(2).max(1);
    let duration = Duration::from_secs(seconds.into());
    // Read before any thread is pinned: threads started by a pinned one inherit its CPU.
    let allowed = affinity::allowed_cpus()?;
    let cpus = Cpus { sender: allowed[allowed.len() - 1], receiver: allowed[0] };
    println!(
        "{size_bytes} bytes, {seconds} s each, sender on CPU {}, receiver on CPU {}",
        cpus.sender, cpus.receiver
    );
    affinity::pin_current_thread(cpus.sender)?;
    for way in [Way::Send, Way::SendTo, Way::SendAll, Way::Gso, Way::GsoGro, Way::GsoGroTo] {
        throughput(way, size_bytes, duration, cpus)?;
    }
    for wait in [Wait::Block, Wait::DontWait] {
        ping_pong(wait, size_bytes, duration, cpus)?;
    }
    Ok(())
}

/// The CPUs of the two threads.
#[derive(Clone, Copy)]
struct Cpus {
    sender: usize,
    receiver: usize,
}

/// How the sender passes its datagrams to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// `send`: one datagram per system call.
    Send,
    /// `sendmsg` with an address on an unconnected socket: a route lookup each.
    SendTo,
    /// `sendmmsg`.
    SendAll,
    /// `UDP_SEGMENT`; the receiver gets single datagrams.
    Gso,
    /// `UDP_SEGMENT`; the receiver gets them coalesced.
    GsoGro,
    /// The same, unconnected.
    GsoGroTo,
}

/// Sends at full speed by `way` and prints the sent and received rates.
fn throughput(way: Way, size_bytes: u16, duration: Duration, cpus: Cpus) -> io::Result<()> {
    let options = loopback(matches!(way, Way::GsoGro | Way::GsoGroTo));
    let receiver = UdpSocket::bind(&options)?;
    receiver.set_recv_timeout(Some(Duration::from_millis(100)))?;
    let sender = UdpSocket::bind(&options)?;
    let to = receiver.local_addr();
    let start = Barrier::new(2);
    let done = AtomicBool::new(false);
    let (sent, received) = thread::scope(|scope| {
        let receiving = scope.spawn(|| count_received(&receiver, cpus.receiver, &start, &done));
        let sent = send_for(way, &sender, to, size_bytes, duration, &start);
        done.store(true, Ordering::Release);
        let received = receiving.join().unwrap_or_else(|_| Err(io::Error::other("the receiver panicked")));
        (sent, received)
    });
    let (sent, received) = (sent?, received?);
    println!(
        "{:8}  sent {:>11.0}/s  received {:>11.0}/s  lost {:>5.2} %  {:>5.1} datagrams per send, {:>6.1} per receive",
        format!("{way:?}"),
        sent.datagrams as f64 / sent.elapsed.as_secs_f64(),
        received.datagrams as f64 / received.elapsed.as_secs_f64(),
        (1.0 - received.datagrams as f64 / sent.datagrams as f64) * 100.0,
        sent.datagrams as f64 / sent.system_calls as f64,
        received.datagrams as f64 / received.system_calls as f64,
    );
    Ok(())
}

/// One side's figures.
#[derive(Default)]
struct Count {
    datagrams: u64,
    system_calls: u64,
    elapsed: Duration,
}

fn send_for(
    way: Way,
    sender: &UdpSocket,
    to: SocketAddrV4,
    size_bytes: u16,
    duration: Duration,
    start: &Barrier,
) -> io::Result<Count> {
    let to = match way {
        Way::SendTo | Way::GsoGroTo => Some(to),
        Way::Send | Way::SendAll | Way::Gso | Way::GsoGro => {
            sender.connect(to)?;
            None
        }
    };
    let size = usize::from(size_bytes);
    let segments = (MAX_GSO_BYTES / size).clamp(1, MAX_GSO_SEGMENTS);
    let payload = vec![0x5a_u8; size * segments];
    let one = Outgoing::datagram(to, &payload[..size]);
    let many = [one; MAX_BATCH];
    let cut = [Outgoing { to, head: &payload, tail: &[], segment: size_bytes, joins: false }];
    let mut scratch = SendScratch::new();
    let mut count = Count::default();
    start.wait();
    let begin = Instant::now();
    while count.elapsed < duration {
        // The clock is read once per 16 calls, so that its cost is negligible.
        for _ in 0..16 {
            let outcome = match way {
                Way::Send => sender.send(one.head).map(|_| (1, 1))?,
                Way::SendTo => sender.send_one(&one).map(|_| (1, 1))?,
                Way::SendAll => totals(sender.send_all(&many, &mut scratch))?,
                Way::Gso | Way::GsoGro | Way::GsoGroTo => totals(sender.send_all(&cut, &mut scratch))?,
            };
            count.datagrams += outcome.0;
            count.system_calls += outcome.1;
        }
        count.elapsed = begin.elapsed();
    }
    Ok(count)
}

fn totals(outcome: weir_udp::SendOutcome) -> io::Result<(u64, u64)> {
    match outcome.last_error {
        Some(error) => Err(error),
        None => Ok((outcome.datagrams, outcome.system_calls)),
    }
}

fn count_received(receiver: &UdpSocket, cpu: usize, start: &Barrier, done: &AtomicBool) -> io::Result<Count> {
    affinity::pin_current_thread(cpu)?;
    let mut batch = RecvBatch::new(64);
    let mut count = Count::default();
    start.wait();
    let begin = Instant::now();
    loop {
        let received = receiver.recv_batch(&mut batch, 64, Wait::Block)?;
        if received == 0 && done.load(Ordering::Acquire) {
            return Ok(count);
        }
        if received != 0 {
            count.datagrams += batch.messages().map(|message| message.datagram_count() as u64).sum::<u64>();
            count.system_calls += 1;
            count.elapsed = begin.elapsed();
        }
    }
}

/// Bounces one datagram and prints half the round trip, receiving as `wait` says.
fn ping_pong(wait: Wait, size_bytes: u16, duration: Duration, cpus: Cpus) -> io::Result<()> {
    let ping = UdpSocket::bind(&loopback(false))?;
    let pong = UdpSocket::bind(&loopback(false))?;
    ping.connect(pong.local_addr())?;
    pong.connect(ping.local_addr())?;
    ping.set_recv_timeout(Some(Duration::from_secs(1)))?;
    let payload = vec![0x5a_u8; usize::from(size_bytes)];
    let mut round_trips_ns = Vec::with_capacity(1 << 20);
    thread::scope(|scope| -> io::Result<()> {
        let echo = scope.spawn(|| -> io::Result<()> {
            affinity::pin_current_thread(cpus.receiver)?;
            let mut buffer = vec![0; MAX_GSO_BYTES];
            // An empty datagram ends it.
            loop {
                match receive(&pong, &mut buffer, wait)? {
                    0 => return Ok(()),
                    len => pong.send(&buffer[..len])?,
                };
            }
        });
        let mut buffer = vec![0; MAX_GSO_BYTES];
        let begin = Instant::now();
        let mut sent = begin;
        while sent - begin < duration {
            ping.send(&payload)?;
            receive(&ping, &mut buffer, wait)?;
            let now = Instant::now();
            round_trips_ns.push((now - sent).as_nanos() as u64);
            sent = now;
        }
        ping.send(&[])?;
        echo.join().unwrap_or_else(|_| Err(io::Error::other("the echo panicked")))
    })?;
    round_trips_ns.sort_unstable();
    let half_us = |share: f64| {
        let index = ((round_trips_ns.len() - 1) as f64 * share) as usize;
        round_trips_ns[index] as f64 / 2000.0
    };
    println!(
        "ping-pong, {wait:?}: RTT/2 min {:.2} us, p50 {:.2}, p99 {:.2} ({} round trips)",
        half_us(0.0),
        half_us(0.5),
        half_us(0.99),
        round_trips_ns.len()
    );
    Ok(())
}

fn receive(socket: &UdpSocket, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
    loop {
        match socket.recv(buffer, wait) {
            Err(error) if wait == Wait::DontWait && error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

fn loopback(gro: bool) -> SocketOptions {
    SocketOptions {
        gro,
        recv_buffer: Some(4 << 20),
        ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
    }
}
