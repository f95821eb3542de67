//! One datagram to and fro.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use weir_measure::{Signal, nanos, now_ns};
use weir_results::{LatencyKind, LatencyRecorder, WaitStrategy};
use weir_udp::{UdpSocket, receive_within};

use super::header::{Header, filling};
use super::point::Point;
use super::reports::PingReport;
use super::sender::is_passing;

/// Sends datagrams one after the other, each when the one before is back, until the time is over.
///
/// # Errors
/// When the socket fails.
pub(super) fn ping(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    point: &Point,
    mark: u32,
    signal: &Signal,
) -> io::Result<PingReport> {
    let mut datagram = filling(point.size_bytes);
    // One octet more, so that a longer one is noticed.
    let mut answer = vec![0; point.size_bytes + 1];
    let mut recorder = LatencyRecorder::new();
    let mut now = now_ns();
    let measured_from_ns = now.saturating_add(nanos(point.warmup));
    let end_ns = measured_from_ns.saturating_add(nanos(point.duration));
    let (mut number, mut lost_in_a_row) = (0_u64, 0);
    while now < end_ns && !signal.is_stopped() && lost_in_a_row < LOST_IN_A_ROW_MAX {
        let header = Header { mark, number: number as u32, time_ns: now, lag_ns: 0 };
        header.write(&mut datagram);
        number += 1;
        let sent_ns = now;
        send(socket, to, &datagram)?;
        let is_back = await_answer(socket, point, &header, &mut answer, sent_ns)?;
        now = now_ns();
        lost_in_a_row = if is_back { 0 } else { lost_in_a_row + 1 };
        match is_back {
            _ if sent_ns < measured_from_ns => {}
            true => recorder.record(now - sent_ns),
            false => recorder.record_lost(),
        }
    }
    Ok(PingReport {
        summary: recorder.summary(LatencyKind::Rtt),
        sent: number,
        measured_in_ns: now.saturating_sub(measured_from_ns),
        ..PingReport::default()
    })
}

/// Waits for the answer to `header`; false when it does not come. Those to earlier ones are passed over.
#[inline]
fn await_answer(
    socket: &UdpSocket,
    point: &Point,
    header: &Header,
    answer: &mut [u8],
    sent_ns: u64,
) -> io::Result<bool> {
    loop {
        let Some(length) = receive(socket, point.wait, LOST, answer)? else { return Ok(false) };
        if length == point.size_bytes && Header::read(answer) == Some(*header) {
            return Ok(true);
        }
        if now_ns().saturating_sub(sent_ns) >= nanos(LOST) {
            return Ok(false);
        }
    }
}

/// Sends every datagram of this measurement back until the other end is done; returns how many.
///
/// # Errors
/// When the socket fails.
pub(super) fn echo(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    point: &Point,
    mark: u32,
    signal: &Signal,
) -> io::Result<u64> {
    let mut datagram = vec![0; point.size_bytes + 1];
    let mut echoed = 0;
    while !signal.is_stopped() && signal.sent().is_none() {
        let Some(length) = receive(socket, point.wait, LOOK, &mut datagram)? else { continue };
        if Header::read(&datagram[..length]).is_some_and(|header| header.mark == mark) {
            send(socket, to, &datagram[..length])?;
            echoed += 1;
        }
    }
    Ok(echoed)
}

#[inline]
fn send(socket: &UdpSocket, to: Option<SocketAddr>, datagram: &[u8]) -> io::Result<()> {
    let sent = match to {
        None => socket.send(datagram),
        Some(to) => socket.send_to(datagram, to),
    };
    match sent {
        Err(error) if !is_passing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// One datagram, or none when `timeout` is over.
#[inline]
fn receive(
    socket: &UdpSocket,
    strategy: WaitStrategy,
    timeout: Duration,
    buffer: &mut [u8],
) -> io::Result<Option<usize>> {
    receive_within(socket, strategy.spin(timeout), timeout, |wait| match socket.recv(buffer, wait) {
        Ok(length) => Ok(Some(length)),
        // Refused: an earlier send met a closed port, and nothing was received.
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    })
}

/// A datagram that takes longer is lost.
const LOST: Duration = Duration::from_millis(200);

/// After so many lost ones in a row, nobody is there.
const LOST_IN_A_ROW_MAX: u32 = 25;

/// How long an echo waits before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::thread;

    use weir_udp::SocketOptions;

    use super::super::point::{PointTest, tests::stream};
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let options = SocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (one, other) = (UdpSocket::bind(&options).unwrap(), UdpSocket::bind(&options).unwrap());
        one.connect(other.local_addr()).unwrap();
        other.connect(one.local_addr()).unwrap();
        (one, other)
    }

    #[test]
    fn datagrams_come_back_with_every_way_of_waiting() {
        for wait in [WaitStrategy::Block, WaitStrategy::Spin, WaitStrategy::SpinThenBlock { spin_us: 20 }] {
            let (one, other) = pair();
            let duration = Duration::from_millis(20);
            let point =
                Point { test: PointTest::RoundTrip, wait, warmup: Duration::ZERO, duration, ..stream() };
            let signal = Signal::new();
            thread::scope(|scope| {
                let echo = scope.spawn(|| echo(&other, None, &point, 7, &signal));
                let report = ping(&one, None, &point, 7, &Signal::new()).unwrap();
                signal.finish(vec![report.sent]);
                assert_eq!(echo.join().unwrap().unwrap(), report.sent);
                assert_eq!((report.summary.count, report.summary.lost), (report.sent, 0), "{wait}");
                assert_eq!(report.summary.kind, LatencyKind::Rtt);
            });
        }
    }

    #[test]
    fn nobody_there_ends_and_answers_to_earlier_ones_do_not_count() {
        let (one, other) = pair();
        let point = Point { test: PointTest::RoundTrip, ..stream() };
        let mut old = vec![0; 100];
        Header { mark: 7, number: 9, time_ns: 1, lag_ns: 0 }.write(&mut old);
        other.send(&old).unwrap();
        let header = Header { mark: 7, number: 10, time_ns: 2, lag_ns: 0 };
        assert!(!await_answer(&one, &point, &header, &mut [0; 101], now_ns()).unwrap());
        drop(other);
        let forever = Point { duration: Duration::from_secs(1 << 30), ..point };
        let report = ping(&one, None, &forever, 7, &Signal::new()).unwrap();
        assert_eq!((report.sent, report.summary.count), (25, 0));
    }
}
