//! Round trips of one datagram at a time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use weir_measure::{Signal, nanos, now_ns};
use weir_results::{LatencyKind, LatencyRecorder, UdpMode};
use weir_udp::UdpSocket;

use super::header::Header;
use super::point::Point;
use super::reports::PingReport;
use super::sender::filling;
use crate::{Sender, await_answer};

/// Sends a datagram when the previous one is back, until the time is over.
pub(super) fn ping(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    point: &Point,
    mark: u32,
    signal: &Signal,
) -> io::Result<PingReport> {
    let mut datagram = filling(point.size_bytes);
    // One byte more, so that a longer one is noticed.
    let mut answer = vec![0; point.size_bytes + 1];
    let mut recorder = LatencyRecorder::new();
    let mut now = now_ns();
    let measured_from_ns = now.saturating_add(nanos(point.warmup));
    let end_ns = measured_from_ns.saturating_add(nanos(point.duration));
    let (mut number, mut lost_in_a_row) = (0_u64, 0);
    let lost_after = lost_after(point);
    while now < end_ns && !signal.is_stopped() && lost_in_a_row < LOST_IN_A_ROW_MAX {
        let header = Header { mark, number: number as u32, time_ns: now, lag_ns: 0 };
        header.write(&mut datagram);
        number += 1;
        let sent_ns = now;
        crate::send(socket, to, &datagram)?;
        let is_back = await_answer(socket, point.wait, (sent_ns, lost_after), &mut answer, |datagram| {
            is_answer(datagram, point, &header)
        })?;
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

/// How long an answer may take.
fn lost_after(point: &Point) -> Duration {
    LOST + point.echo_wait
}

/// Answers to earlier datagrams do not count.
#[inline]
fn is_answer(datagram: &[u8], point: &Point, header: &Header) -> bool {
    datagram.len() == point.size_bytes && Header::read(datagram) == Some(*header)
}

/// Sends every datagram of this measurement back until the other end is done; returns how many.
pub(super) fn echo(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    point: &Point,
    mark: u32,
    signal: &Signal,
) -> io::Result<u64> {
    let mut datagram = vec![0; point.size_bytes + 1];
    let mut sender = Sender::new(UdpMode::Send, to, &datagram);
    let is_asked = |datagram: &[u8]| Header::read(datagram).is_some_and(|header| header.mark == mark);
    let is_over = || signal.is_stopped() || signal.sent().is_some();
    crate::echo(socket, point.wait, &mut sender, &mut datagram, is_asked, is_over)
}

/// A datagram that takes longer is lost, unless an emulated link delays it.
const LOST: Duration = Duration::from_millis(200);

/// After so many lost ones in a row, there is no peer.
const LOST_IN_A_ROW_MAX: u32 = 25;

#[cfg(test)]
mod tests {
    use std::thread;

    use weir_results::WaitStrategy;
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
    fn an_answer_over_a_slow_link_is_waited_for() {
        let second = Duration::from_secs(1);
        assert_eq!(lost_after(&stream()), LOST);
        assert_eq!(lost_after(&Point { echo_wait: second, ..stream() }), LOST + second);
    }

    #[test]
    fn an_absent_peer_ends_it_and_answers_to_earlier_ones_do_not_count() {
        let (one, other) = pair();
        let point = Point { test: PointTest::RoundTrip, ..stream() };
        let mut old = vec![0; 100];
        Header { mark: 7, number: 9, time_ns: 1, lag_ns: 0 }.write(&mut old);
        other.send(&old).unwrap();
        let header = Header { mark: 7, number: 10, time_ns: 2, lag_ns: 0 };
        let is_answer = |datagram: &[u8]| is_answer(datagram, &point, &header);
        assert!(!await_answer(&one, point.wait, (now_ns(), LOST), &mut [0; 101], is_answer).unwrap());
        drop(other);
        let forever = Point { duration: Duration::from_secs(1 << 30), ..point };
        let report = ping(&one, None, &forever, 7, &Signal::new()).unwrap();
        assert_eq!((report.sent, report.summary.count), (25, 0));
    }
}
