//! A TCP connection that sends all the time, with CUBIC (RFC 9438), selective acknowledgements (RFC 6675) and time-outs
//! (RFC 6298): what our writers meet on links that others use as well.
//!
//! Segments and acknowledgements are datagrams of the simulated network. There is no handshake, no flow control, and no
//! pacing: segments leave as acknowledgements come, as from a Linux host without `fq`.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddrV4;

use weir_netsim::Network;
use weir_rtps::time::Time;

/// The payload of a datagram that fills a packet of 1500 bytes.
const SEGMENT_BYTES: usize = 1472;
/// Ranges of an acknowledgement. TCP has room for three or four, and names them in turn.
const RANGES_MAX: usize = 32;
/// A segment is lost if so many later ones have arrived.
const REORDERED_MAX: u64 = 3;
/// The growth of a window, segments per second cubed, and what is left of it after a loss (RFC 9438, 4.2 and 4.6).
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const WINDOW_FIRST: f64 = 10.0;
const TIMEOUT_MIN: Duration = Duration::from_millis(200);

/// A connection.
pub(crate) struct Tcp {
    pub(crate) sender: SocketAddrV4,
    pub(crate) receiver: SocketAddrV4,
    /// Segments that have arrived: all before this one, and those beyond.
    arrived: u64,
    beyond: BTreeSet<u64>,
    is_acknowledgement_owed: bool,
    /// Segments in flight or lost, with what is known of them.
    segments: BTreeMap<u64, Segment>,
    next: u64,
    window: f64,
    threshold: f64,
    /// The window before the last loss, and when it began to grow again.
    window_max: f64,
    grows_since: Option<Time>,
    /// Until this segment is acknowledged, losses are those that the window was reduced for.
    recovers_until: u64,
    round_trip: Option<f64>,
    deviation: f64,
    timeout_at: Time,
    backoff: u32,
}

#[derive(Clone, Copy)]
struct Segment {
    sent_at: Time,
    is_again: bool,
    is_lost: bool,
    has_arrived: bool,
}

impl Tcp {
    pub(crate) fn new(sender: SocketAddrV4, receiver: SocketAddrV4) -> Self {
        Self {
            sender,
            receiver,
            arrived: 0,
            beyond: BTreeSet::new(),
            is_acknowledgement_owed: false,
            segments: BTreeMap::new(),
            next: 0,
            window: WINDOW_FIRST,
            threshold: f64::INFINITY,
            window_max: 0.0,
            grows_since: None,
            recovers_until: 0,
            round_trip: None,
            deviation: 0.0,
            timeout_at: Time::ZERO,
            backoff: 0,
        }
    }

    /// Bytes that have arrived in order, with headers.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        self.arrived * (SEGMENT_BYTES as u64 + 28)
    }

    pub(crate) fn next_event(&self) -> Time {
        self.timeout_at
    }

    /// Takes a datagram that arrived at one of its ends.
    pub(crate) fn receive(&mut self, now: Time, at: SocketAddrV4, bytes: &[u8], network: &mut Network) {
        if at == self.sender {
            self.acknowledged(now, bytes);
        } else {
            self.segment_arrived(now, bytes, network);
        }
    }

    /// Sends what the window allows, and what is lost.
    pub(crate) fn send(&mut self, now: Time, network: &mut Network) {
        if self.timeout_at <= now {
            self.timed_out(now);
        }
        let mut in_flight = self.segments.values().filter(|it| !it.is_lost && !it.has_arrived).count();
        while (in_flight as f64) < self.window.floor() {
            let lost = self.segments.iter().find(|(_, it)| it.is_lost).map(|(number, _)| *number);
            let number = lost.unwrap_or(self.next);
            self.next = self.next.max(number + 1);
            let is_again = lost.is_some();
            let segment = Segment { sent_at: now, is_again, is_lost: false, has_arrived: false };
            self.segments.insert(number, segment);
            let mut bytes = vec![0; SEGMENT_BYTES];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            let at = Duration::from_nanos(now.0);
            network.send(at, self.sender, self.receiver, &bytes).expect("it fits a packet");
            in_flight += 1;
        }
    }

    fn segment_arrived(&mut self, now: Time, bytes: &[u8], network: &mut Network) {
        let number = u64::from_be_bytes(bytes[..8].try_into().expect("a number"));
        let is_in_order = number == self.arrived && self.beyond.is_empty();
        if number >= self.arrived {
            self.beyond.insert(number);
        }
        while self.beyond.remove(&self.arrived) {
            self.arrived += 1;
        }
        // Every second segment is acknowledged, and at once what is out of order.
        self.is_acknowledgement_owed = is_in_order && !self.is_acknowledgement_owed;
        if self.is_acknowledgement_owed {
            return;
        }
        let mut ranges: Vec<[u64; 2]> = Vec::new();
        for number in self.beyond.iter().rev() {
            let count = ranges.len();
            match ranges.last_mut() {
                Some(range) if range[0] == number + 1 => range[0] = *number,
                _ if count == RANGES_MAX => break,
                _ => ranges.push([*number, number + 1]),
            }
        }
        let numbers = core::iter::once(self.arrived).chain(ranges.into_iter().flatten());
        let bytes: Vec<u8> = numbers.flat_map(u64::to_be_bytes).collect();
        let at = Duration::from_nanos(now.0);
        network.send(at, self.receiver, self.sender, &bytes).expect("it fits a packet");
    }

    fn acknowledged(&mut self, now: Time, bytes: &[u8]) {
        let numbers: Vec<u64> =
            bytes.chunks_exact(8).map(|it| u64::from_be_bytes(it.try_into().expect("a number"))).collect();
        let [until, ranges @ ..] = &*numbers else { return };
        let open = self.segments.split_off(until);
        let before = core::mem::replace(&mut self.segments, open);
        let mut latest = None;
        let mut count = before.values().filter(|it| !it.has_arrived).count();
        let mut note = |segment: &Segment| latest = latest.max(Some((segment.sent_at, segment.is_again)));
        before.values().filter(|it| !it.has_arrived).for_each(&mut note);
        for range in ranges.chunks_exact(2) {
            for segment in self.segments.range_mut(range[0]..range[1]).map(|(_, segment)| segment) {
                if !segment.has_arrived {
                    note(segment);
                    (segment.has_arrived, segment.is_lost) = (true, false);
                    count += 1;
                }
            }
        }
        let Some((sent_at, is_again)) = latest else { return };
        if !is_again {
            self.measured(now.since(sent_at).as_secs_f64());
        }
        (self.timeout_at, self.backoff) = (now + self.timeout(), 0);
        self.find_losses(sent_at);
        if *until >= self.recovers_until {
            self.grow(now, count as f64);
        }
    }

    fn measured(&mut self, sample: f64) {
        let mean = self.round_trip.unwrap_or(sample);
        let deviation = if self.round_trip.is_none() { sample / 2.0 } else { self.deviation };
        self.deviation = deviation * 0.75 + (mean - sample).abs() * 0.25;
        self.round_trip = Some(mean * 0.875 + sample * 0.125);
    }

    fn timeout(&self) -> Duration {
        let round_trip = self.round_trip.unwrap_or(1.0);
        let timeout = Duration::from_secs_f64(round_trip + 4.0 * self.deviation).max(TIMEOUT_MIN);
        timeout * 2u32.pow(self.backoff.min(6))
    }

    /// Finds what was lost: later segments have arrived. What was sent again is lost if something sent after it, by
    /// more than a quarter of a round trip, has (as in RFC 8985).
    fn find_losses(&mut self, latest: Time) {
        let Some(highest) = self.segments.iter().rev().find(|(_, it)| it.has_arrived).map(|(n, _)| *n) else {
            return;
        };
        let patience = Duration::from_secs_f64(self.round_trip.unwrap_or(1.0) / 4.0);
        let mut first_lost = None;
        for (number, segment) in self.segments.range_mut(..highest) {
            let is_late = if segment.is_again {
                latest.since(segment.sent_at) > patience
            } else {
                highest - number >= REORDERED_MAX
            };
            if is_late && !segment.has_arrived && !segment.is_lost {
                segment.is_lost = true;
                first_lost.get_or_insert(*number);
            }
        }
        if first_lost.is_some_and(|number| number >= self.recovers_until) {
            self.reduce();
        }
    }

    /// Reduces the window once for all losses of a round trip.
    fn reduce(&mut self) {
        let is_smaller = self.window < self.window_max;
        self.window_max = if is_smaller { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
        self.grows_since = None;
        self.recovers_until = self.next;
    }

    fn grow(&mut self, now: Time, count: f64) {
        if self.window < self.threshold {
            self.window += count;
            return;
        }
        let began = *self.grows_since.get_or_insert(now);
        let start = self.threshold.min(self.window_max);
        let until_max = ((self.window_max - start).max(0.0) / C).cbrt();
        let round_trip = self.round_trip.unwrap_or(0.1);
        let elapsed = now.since(began).as_secs_f64();
        let cubic = |at: f64| C * (at - until_max).powi(3) + self.window_max.max(start);
        // What Reno would have (RFC 9438, 4.3).
        let reno = start + 3.0 * (1.0 - BETA) / (1.0 + BETA) * elapsed / round_trip;
        let target = cubic(elapsed + round_trip).max(reno).min(self.window * 1.5);
        if target > self.window {
            self.window += (target - self.window) / self.window * count;
        }
    }

    fn timed_out(&mut self, now: Time) {
        if self.segments.values().any(|it| !it.has_arrived) {
            self.reduce();
            self.window = 1.0;
            self.segments.values_mut().filter(|it| !it.has_arrived).for_each(|it| it.is_lost = true);
            self.backoff += 1;
        }
        self.timeout_at = now + self.timeout();
    }
}
