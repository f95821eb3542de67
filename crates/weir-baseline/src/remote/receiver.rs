//! One flow's receiver: what arrived, in which order and how late.

use std::io;
use std::time::Duration;

use weir_measure::{Drain, Numbers, Signal, Window, now_ns, rounded};
use weir_results::{Arrival, LatencyKind, LatencyRecorder};
use weir_udp::UdpSocket;

use super::header::Header;
use super::point::Point;
use super::reports::ReceiveReport;
use crate::Receiver;

/// The result of one flow's receiver.
#[derive(Debug, Default)]
pub(super) struct FlowReceived {
    /// What it counted.
    report: ReceiveReport,
    /// The last arrival of the warm-up and the last counted one.
    window: Option<(u64, u64)>,
    times: Option<Times>,
}

/// Receives one flow until the sender is done (`signal`) and everything arrived or nothing arrives,
/// or until stopped. `ahead_ns` is how far this end's clock is ahead of the sender's.
pub(super) fn run(
    socket: &UdpSocket,
    point: &Point,
    flow: usize,
    mark: u32,
    ahead_ns: i64,
    signal: &Signal,
) -> io::Result<FlowReceived> {
    let mut arrivals = Arrivals::new(point, mark, ahead_ns);
    let mut receiver = Receiver::new(point.size_bytes, point.gro).without_sources();
    let mut drain = Drain::new(QUIET, DRAIN);
    while !signal.is_stopped() {
        let has_arrived = receiver.receive(socket, point.wait, RECEIVE_WAIT)?;
        let now = now_ns();
        if has_arrived {
            arrivals.took(&receiver, now);
            drain.arrived(now);
        }
        if let Some(sent) = signal.sent() {
            let sent = sent.get(flow).copied().unwrap_or(0);
            if arrivals.numbers.has_all(sent) || drain.is_over(now) {
                arrivals.numbers.finish(sent);
                break;
            }
        }
    }
    Ok(arrivals.finished())
}

/// The datagrams of one flow.
struct Arrivals {
    size: usize,
    mark: u32,
    numbers: Numbers,
    window: Window,
    ahead_ns: i64,
    seen: FlowReceived,
}

/// Delays of datagrams that follow a schedule.
#[derive(Debug, Default)]
struct Times {
    delays: LatencyRecorder,
    /// Jitter so far, and the previous transit time, nanoseconds.
    jitter_ns: f64,
    transit_ns: Option<i64>,
}

impl Times {
    /// `transit_ns` counts from the actual send time, `lag_ns` from the intended one. RFC 3550,
    /// 6.4.1 and A.8.
    #[inline]
    fn record(&mut self, transit_ns: i64, lag_ns: u32) {
        let delay_ns = transit_ns.saturating_add(i64::from(lag_ns));
        self.delays.record(u64::try_from(delay_ns).unwrap_or(0));
        if let Some(before_ns) = self.transit_ns.replace(transit_ns) {
            let difference_ns = transit_ns.abs_diff(before_ns) as f64;
            self.jitter_ns += (difference_ns - self.jitter_ns) / 16.0;
        }
    }
}

impl Arrivals {
    fn new(point: &Point, mark: u32, ahead_ns: i64) -> Self {
        let times = point.datagrams_per_s.map(|_| Times::default());
        Self {
            size: point.size_bytes,
            mark,
            numbers: Numbers::starting_at(0),
            window: Window::new(point.warmup),
            ahead_ns,
            seen: FlowReceived { times, ..FlowReceived::default() },
        }
    }

    /// Counts the datagrams of one call that returned at `now`.
    #[inline]
    fn took(&mut self, receiver: &Receiver, now: u64) {
        self.seen.report.system_calls += 1;
        for datagram in receiver.datagrams() {
            self.accept(datagram, now);
        }
        if self.numbers.expected() > 0 && self.window.arrived(now) {
            self.start_counting();
        }
    }

    #[inline]
    fn accept(&mut self, datagram: &[u8], now: u64) {
        self.seen.report.arrivals += 1;
        let Some(header) = Header::read(datagram).filter(|header| header.mark == self.mark) else {
            self.seen.report.foreign_datagrams += 1;
            return;
        };
        if datagram.len() != self.size {
            self.seen.report.corrupt += 1;
            return;
        }
        let (number, expected) = (self.numbers.extend(header.number), self.numbers.expected());
        let is_warmup = self.numbers.is_warmup(number);
        let arrival = self.numbers.record(number);
        if is_warmup {
            return;
        }
        match arrival {
            Arrival::InOrder => {}
            Arrival::AfterGap(missing) => {
                self.seen.report.longest_gap = self.seen.report.longest_gap.max(missing)
            }
            Arrival::Reordered => {
                let extent = (expected - 1).saturating_sub(number);
                self.seen.report.reorder_extent_max = self.seen.report.reorder_extent_max.max(extent);
                self.seen.report.reorder_extent_sum += extent;
            }
            Arrival::Duplicate | Arrival::Late => return,
        }
        if let Some(times) = &mut self.seen.times {
            let transit_ns = now.wrapping_sub(header.time_ns).cast_signed().saturating_sub(self.ahead_ns);
            times.record(transit_ns, header.lag_ns);
        }
    }

    /// Ends the warm-up.
    #[cold]
    fn start_counting(&mut self) {
        self.numbers.start_counting();
        let report = &mut self.seen.report;
        (report.reorder_extent_max, report.reorder_extent_sum, report.longest_gap) = (0, 0, 0);
        if let Some(times) = &mut self.seen.times {
            times.delays.clear();
        }
    }

    fn finished(self) -> FlowReceived {
        let (counts, lost_in_warmup) = (self.numbers.counts(), self.numbers.lost_in_warmup());
        let report = ReceiveReport { counts, lost_in_warmup, ..self.seen.report };
        FlowReceived { report, window: self.window.bounds_ns(), times: self.seen.times }
    }
}

/// Adds the flows of an end up.
pub(super) fn report(flows: &[FlowReceived]) -> ReceiveReport {
    let mut report = ReceiveReport::default();
    let mut delays: Option<LatencyRecorder> = None;
    let (mut jitter_ns, mut timed) = (0.0, 0_u32);
    for FlowReceived { report: flow, times, .. } in flows {
        report.counts.merge(&flow.counts);
        report.lost_in_warmup = report.lost_in_warmup.saturating_add(flow.lost_in_warmup);
        report.arrivals += flow.arrivals;
        report.system_calls += flow.system_calls;
        report.corrupt += flow.corrupt;
        report.foreign_datagrams += flow.foreign_datagrams;
        report.reorder_extent_max = report.reorder_extent_max.max(flow.reorder_extent_max);
        report.reorder_extent_sum += flow.reorder_extent_sum;
        report.longest_gap = report.longest_gap.max(flow.longest_gap);
        if let Some(times) = times {
            delays.get_or_insert_with(LatencyRecorder::new).merge(&times.delays);
            jitter_ns += times.jitter_ns;
            timed += 1;
        }
    }
    let windows = || flows.iter().filter_map(|flow| flow.window);
    let (from, to) = (windows().map(|(from, _)| from).min(), windows().map(|(_, to)| to).max());
    report.received_in_ns = from.zip(to).map_or(0, |(from, to)| to - from);
    let us = |ns: f64| rounded(ns / 1e3);
    report.jitter_us = (timed > 0).then(|| us(jitter_ns / f64::from(timed)));
    report.one_way_p99_9_us = delays.as_ref().map(|delays| us(delays.quantile_ns(0.999) as f64));
    report.one_way = delays.map(|delays| {
        let summary = delays.summary(LatencyKind::OneWay);
        weir_results::LatencySummary { lost: report.counts.lost, ..summary }
    });
    report
}

/// How often a receiver without datagrams checks whether it is over.
const RECEIVE_WAIT: Duration = Duration::from_millis(20);

/// Silence after the senders' end that means that nothing will arrive.
const QUIET: Duration = Duration::from_millis(200);

/// How long a receiver drains after the senders' end.
const DRAIN: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::super::point::tests::stream;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A receiver of a timed stream without a warm-up, whose clock is `ahead_ns` ahead.
    fn receiver(ahead_ns: i64) -> Arrivals {
        let point = Point { warmup: Duration::ZERO, datagrams_per_s: Some(1000.0), ..stream() };
        let mut receiver = Arrivals::new(&point, 7, ahead_ns);
        receiver.start_counting();
        receiver
    }

    fn datagram(number: u64, time_ns: u64, lag_ns: u32) -> Vec<u8> {
        let mut datagram = vec![0; 100];
        Header { mark: 7, number: number as u32, time_ns, lag_ns }.write(&mut datagram);
        datagram
    }

    #[test]
    fn order_and_gaps_have_extents() {
        let mut receiver = receiver(0);
        for number in [0, 1, 5, 2, 6, 3, 6, 20] {
            receiver.accept(&datagram(number, 0, 0), 0);
        }
        receiver.numbers.finish(22);
        let seen = receiver.finished().report;
        // 2 arrived after 5, 3 after 6.
        assert_eq!((seen.counts.reordered, seen.reorder_extent_max, seen.reorder_extent_sum), (2, 3, 6));
        assert_eq!((seen.counts.received, seen.counts.duplicates, seen.counts.lost), (7, 1, 15));
        assert_eq!(seen.longest_gap, 13);
    }

    #[test]
    fn delays_count_from_the_intended_time_and_by_the_senders_clock() {
        let mut receiver = receiver(-5_000_000);
        // Sent at 10 ms of its own clock, which is 5 ms ahead of the receiver's, 1 ms late; in flight for 2
        // ms.
        receiver.accept(&datagram(0, 10 * MS, 1_000_000), 7 * MS);
        let report = report(&[receiver.finished()]);
        let one_way = report.one_way.unwrap();
        assert_eq!((one_way.count, one_way.min, one_way.max), (1, 3000.0, 3000.0));
        assert_eq!(report.one_way_p99_9_us, Some(3000.0));
        assert_eq!(one_way.kind, LatencyKind::OneWay);
    }

    #[test]
    fn jitter_is_that_of_rfc_3550_and_no_matter_of_clocks() {
        for ahead_ns in [0, 77_777_777] {
            let mut receiver = receiver(ahead_ns);
            // Transit times of 10, 14, 14 and 6 us: differences 4, 0 and 8.
            for (number, transit_us) in [(0, 10), (1, 14), (2, 14), (3, 6)] {
                let sent_ns = (number + 1) * MS;
                receiver.accept(&datagram(number, sent_ns, 0), sent_ns + transit_us * 1000);
            }
            let report = report(&[receiver.finished()]);
            // 4/16 = 0.25; 0.25 - 0.25/16 = 0.234375; + (8 - 0.234375)/16 = 0.719727.
            assert_eq!(report.jitter_us, Some(0.72));
        }
    }

    #[test]
    fn forged_numbers_make_huge_losses_and_no_harm() {
        let flow = || {
            let point = Point { warmup: Duration::from_millis(10), ..stream() };
            let mut receiver = Arrivals::new(&point, 7, 0);
            for number in [u64::from(u32::MAX) - 1, u64::from(u32::MAX), 0] {
                receiver.accept(&datagram(number, 0, 0), 0);
            }
            receiver.start_counting();
            receiver.numbers.finish(u64::MAX);
            receiver.finished()
        };
        let report = report(&[flow(), flow()]);
        assert_eq!(report.lost_in_warmup, u64::MAX);
    }

    #[test]
    fn wrong_sizes_and_foreign_datagrams_are_counted_apart() {
        let mut receiver = receiver(0);
        receiver.accept(&datagram(0, 0, 0)[..99], 0);
        receiver.accept(&[0; 100], 0);
        receiver.accept(&[7], 0);
        let seen = receiver.finished().report;
        assert_eq!((seen.arrivals, seen.corrupt, seen.foreign_datagrams, seen.counts.received), (3, 1, 2, 0));
    }

    #[test]
    fn the_warm_up_is_in_no_count() {
        let point = Point { warmup: Duration::from_millis(10), ..stream() };
        let mut receiver = Arrivals::new(&point, 7, 0);
        receiver.window.arrived(0);
        for number in [0, 2] {
            receiver.accept(&datagram(number, 0, 0), 0);
        }
        assert!(receiver.window.arrived(20 * MS));
        receiver.start_counting();
        for number in [1, 3, 5] {
            receiver.accept(&datagram(number, 0, 0), 0);
        }
        assert!(!receiver.numbers.has_all(6));
        receiver.numbers.finish(6);
        receiver.window.arrived(30 * MS);
        let report = report(&[receiver.finished()]);
        assert_eq!((report.counts.received, report.counts.lost, report.received_in_ns), (2, 1, 10 * MS));
        assert_eq!(report.one_way, None);
    }
}
