//! One flow's sender: as fast as possible, or by a schedule.

use std::io;
use std::net::SocketAddr;

use weir_measure::{Burst, Idle, Schedule, Signal, nanos, now_ns, thread_cpu_ns, wait_until};
use weir_results::LatencyRecorder;
use weir_udp::{UdpSocket, affinity};

use super::header::Header;
use super::point::Point;
use super::reports::PingReport;
use crate::{SendCounts, Sender};

/// The result of one flow's sender.
#[derive(Debug, Default)]
pub(super) struct FlowSent {
    /// Datagrams and calls, warm-up included.
    pub(super) counts: SendCounts,
    /// Datagrams of the measured part.
    pub(super) offered: u64,
    /// The length of the measured part.
    pub(super) offered_in_ns: u64,
    /// The share of the time that its thread was on a processor; `None` with a schedule.
    pub(super) busy: Option<f64>,
    /// How late datagrams left.
    pub(super) lags: Option<LatencyRecorder>,
    /// Round trips, if these were what it measured.
    pub(super) ping: Option<PingReport>,
}

impl FlowSent {
    /// The result of a thread that measured round trips.
    pub(super) fn of_round_trips(ping: PingReport) -> Self {
        let counts = SendCounts { datagrams: ping.sent, ..SendCounts::default() };
        Self { counts, ping: Some(ping), ..Self::default() }
    }
}

/// Sends one flow until its time is over or `signal` stops it.
pub(super) fn run(
    socket: &UdpSocket,
    to: Option<SocketAddr>,
    point: &Point,
    flow: Flow,
    signal: &Signal,
) -> io::Result<FlowSent> {
    let sender = Sender::new(point.mode, to, &filling(point.size_bytes));
    let sender = FlowSender { socket, sender, mark: flow.mark, next: 0, signal };
    match schedule(point, &flow) {
        Some(schedule) => sender.keep(&schedule),
        None => sender.hurry(point, flow.start_ns),
    }
}

/// Which flow it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Its number, from 0.
    pub(super) index: u32,
    /// The mark of its datagrams.
    pub(super) mark: u32,
    /// Its start, by this end's clock.
    pub(super) start_ns: u64,
}

/// The schedule of a flow, if there is a rate. The flows of a measurement are interleaved.
fn schedule(point: &Point, flow: &Flow) -> Option<Schedule> {
    let rate = point.flow_rate()?;
    let phase_ns = 1e9 / rate * f64::from(flow.index) / f64::from(point.flows);
    let start_ns = flow.start_ns.saturating_add(phase_ns as u64);
    // A rate needs the time between two.
    Some(Schedule::of_run(rate, start_ns, point.warmup, point.duration, 2))
}

/// Random bytes: nothing on the path can compress them.
pub(super) fn filling(bytes: usize) -> Vec<u8> {
    let mut filling = vec![0; bytes];
    fastrand::fill(&mut filling);
    filling
}

struct FlowSender<'a> {
    socket: &'a UdpSocket,
    sender: Sender,
    mark: u32,
    /// The number of the next datagram.
    next: u64,
    signal: &'a Signal,
}

impl FlowSender<'_> {
    /// Sends as fast as possible.
    fn hurry(mut self, point: &Point, start_ns: u64) -> io::Result<FlowSent> {
        let (began_ns, began_cpu_ns) = (now_ns(), thread_cpu_ns());
        let mut now = wait_until(start_ns, Idle::SleepThenSpin, || self.signal.is_stopped());
        let measured_from_ns = now.saturating_add(nanos(point.warmup));
        let end_ns = measured_from_ns.saturating_add(nanos(point.duration));
        let (mut burst, mut from) = (Burst::new(), None);
        while now < end_ns && !self.signal.is_stopped() {
            if from.is_none() && now >= measured_from_ns {
                from = Some((now, self.next));
            }
            for _ in 0..burst.count() {
                self.send(self.sender.capacity() as u64, now, None)?;
            }
            let before = std::mem::replace(&mut now, now_ns());
            burst.adapt(now - before);
        }
        let (took_ns, cpu_ns) = (now_ns() - began_ns, thread_cpu_ns() - began_cpu_ns);
        let busy = (took_ns > 0).then(|| cpu_ns as f64 / took_ns as f64);
        Ok(FlowSent { busy, ..self.finished(from, now) })
    }

    /// Sends by the schedule: late datagrams leave at once; those not sent when the time is over are not sent.
    fn keep(mut self, schedule: &Schedule) -> io::Result<FlowSent> {
        // By default, sleeps end up to 50 us late; spinning covers the rest.
        let _ = affinity::set_timer_slack_ns(1);
        let capacity = self.sender.capacity() as u64;
        let mut lags = LatencyRecorder::new();
        let (mut now, mut from) = (now_ns(), None);
        while self.next < schedule.count() && now < schedule.end_ns() && !self.signal.is_stopped() {
            // A late call ends with the warm-up, or its later datagrams would not be counted.
            let rest =
                schedule.measured_from().checked_sub(self.next).filter(|&rest| rest > 0).unwrap_or(u64::MAX);
            let due = schedule.due(now).saturating_sub(self.next).min(capacity).min(rest);
            if due == 0 {
                let due_ns = schedule.intended_ns(self.next);
                now = wait_until(due_ns, Idle::SleepThenSpin, || self.signal.is_stopped());
                continue;
            }
            if self.next >= schedule.measured_from() {
                from.get_or_insert((now, self.next));
                for number in self.next..self.next + due {
                    lags.record(now.saturating_sub(schedule.intended_ns(number)));
                }
            }
            self.send(due, now, Some(schedule))?;
            now = now_ns();
        }
        let (next, first) = (self.next, from.map_or(self.next, |(_, first)| first));
        let sent = self.finished(from, now);
        // A schedule that was kept is over one interval after its last datagram.
        let scheduled_ns = schedule.intended_ns(next) - schedule.intended_ns(first);
        Ok(FlowSent { offered_in_ns: sent.offered_in_ns.max(scheduled_ns), lags: Some(lags), ..sent })
    }

    fn finished(self, from: Option<(u64, u64)>, now: u64) -> FlowSent {
        let (from_ns, first) = from.unwrap_or((now, self.next));
        FlowSent {
            counts: self.sender.counts(),
            offered: self.next - first,
            offered_in_ns: now - from_ns,
            ..FlowSent::default()
        }
    }

    /// Sends the next `count` datagrams, at most what one call takes.
    #[inline]
    fn send(&mut self, count: u64, now: u64, schedule: Option<&Schedule>) -> io::Result<()> {
        for number in self.next..self.next + count {
            let lag_ns = schedule.map_or(0, |schedule| now.saturating_sub(schedule.intended_ns(number)));
            let lag_ns = u32::try_from(lag_ns).unwrap_or(u32::MAX);
            let header = Header { mark: self.mark, number: number as u32, time_ns: now, lag_ns };
            self.sender.push(self.socket, |datagram| header.write(datagram))?;
        }
        self.next += count;
        self.sender.flush(self.socket)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_results::UdpMode;
    use weir_udp::{RecvBatch, SocketOptions, Wait};

    use super::super::point::tests::stream;
    use super::*;

    fn flow() -> Flow {
        Flow { index: 0, mark: 7, start_ns: now_ns() }
    }

    /// A socket, and one that is connected to it.
    fn pair() -> (UdpSocket, UdpSocket) {
        let options = SocketOptions {
            recv_buffer: Some(4 << 20),
            ..SocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))
        };
        let (one, other) = (UdpSocket::bind(&options).unwrap(), UdpSocket::bind(&options).unwrap());
        other.connect(one.local_addr()).unwrap();
        (one, other)
    }

    #[test]
    fn over_ipv6_every_mode_sends_without_being_connected() {
        let options = SocketOptions {
            recv_buffer: Some(4 << 20),
            ..SocketOptions::new(SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0)))
        };
        for mode in [UdpMode::Send, UdpMode::Sendmmsg, UdpMode::Gso] {
            let (receiver, sender) = (UdpSocket::bind(&options).unwrap(), UdpSocket::bind(&options).unwrap());
            let point = Point { datagrams_per_s: Some(1000.0), mode, ..stream() };
            let to = Some(receiver.local_address());
            let sent = run(&sender, to, &point, flow(), &Signal::new()).unwrap();
            assert!(sent.counts.datagrams >= 21 && sent.counts.refused == 0, "{mode}: {sent:?}");
            assert_eq!(arrived(&receiver).len() as u64, sent.counts.datagrams, "{mode}");
        }
    }

    /// The headers of what has arrived.
    fn arrived(socket: &UdpSocket) -> Vec<Header> {
        let mut batch = RecvBatch::with_buffer_bytes(64, 2048).without_sources();
        let mut headers = Vec::new();
        while socket.recv_batch(&mut batch, 64, Wait::DontWait).unwrap() > 0 {
            headers.extend(batch.messages().filter_map(|message| Header::read(message.bytes)));
        }
        headers
    }

    #[test]
    fn datagrams_are_due_at_their_times_and_flows_take_turns() {
        let point = Point { datagrams_per_s: Some(2000.0), flows: 2, ..stream() };
        let of = |index| schedule(&point, &Flow { index, mark: 0, start_ns: 1000 }).unwrap();
        let (first, second) = (of(0), of(1));
        assert_eq!((first.measured_from(), first.count(), first.start_ns()), (20, 120, 1000));
        assert_eq!(second.start_ns(), 501_000);
        assert_eq!(
            (first.due(999), first.due(1000), first.due(1_000_999), first.due(1_001_000)),
            (0, 1, 1, 2)
        );
        assert_eq!(first.due(u64::MAX), 120);
        assert!(schedule(&stream(), &flow()).is_none());
    }

    #[test]
    fn a_schedule_sends_what_it_says_in_every_mode() {
        for mode in [UdpMode::Send, UdpMode::Sendmmsg, UdpMode::Gso] {
            let (receiver, sender) = pair();
            let point = Point { datagrams_per_s: Some(1000.0), mode, ..stream() };
            let sent = run(&sender, None, &point, flow(), &Signal::new()).unwrap();
            // The last may be late on a busy machine, and is not sent then.
            assert!(
                (21..=120).contains(&sent.counts.datagrams) && sent.offered == sent.counts.datagrams - 20,
                "{mode}: {sent:?}"
            );
            assert_eq!(sent.lags.unwrap().count(), sent.offered);
            let headers = arrived(&receiver);
            let numbers: Vec<u64> = headers.iter().map(|header| header.number.into()).collect();
            assert_eq!(numbers, (0..sent.counts.datagrams).collect::<Vec<_>>(), "{mode}");
            assert!(headers.iter().all(|header| header.mark == 7));
            // The send time is the intended time plus the lag.
            let intended = |header: &Header| header.time_ns - u64::from(header.lag_ns);
            assert!(
                headers.windows(2).all(|two| intended(&two[1]) - intended(&two[0]) == 1_000_000),
                "{mode}"
            );
        }
    }

    #[test]
    fn without_a_schedule_as_much_as_it_goes_until_the_time_is_over() {
        for (mode, to_itself) in
            [(UdpMode::Send, false), (UdpMode::Sendmmsg, true), (UdpMode::Gso, true), (UdpMode::Send, true)]
        {
            let (receiver, connected) = pair();
            let alone = UdpSocket::bind(&SocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
            let to = to_itself.then(|| receiver.local_address());
            let sender = if to_itself { &alone } else { &connected };
            let point =
                Point { mode, duration: Duration::from_millis(5), warmup: Duration::ZERO, ..stream() };
            let sent = run(sender, to, &point, flow(), &Signal::new()).unwrap();
            assert!(sent.counts.datagrams > 0 && sent.offered == sent.counts.datagrams, "{mode}: {sent:?}");
            assert!(sent.offered_in_ns >= 5_000_000 && sent.counts.system_calls <= sent.counts.datagrams);
            assert!(!arrived(&receiver).is_empty());
        }
    }

    #[test]
    fn a_sender_that_is_told_to_stop_does_so() {
        let (_receiver, sender) = pair();
        let signal = Signal::new();
        signal.stop();
        let forever = Point { duration: Duration::from_secs(1 << 30), ..stream() };
        assert_eq!(run(&sender, None, &forever, flow(), &signal).unwrap().counts.datagrams, 0);
        let slow = Point { datagrams_per_s: Some(1e-3), ..forever };
        assert!(run(&sender, None, &slow, flow(), &signal).unwrap().counts.datagrams <= 1);
    }
}
