//! A host that is slower than its network.

use core::time::Duration;
use std::collections::VecDeque;

use weir_rtps::receiver::Arrival;
use weir_rtps::time::Time;

/// A socket whose thread takes some time for each datagram.
pub(crate) struct Busy {
    time: Duration,
    /// Bytes that the socket holds at most.
    room: usize,
    waiting: VecDeque<(Arrival, Vec<u8>)>,
    bytes: usize,
    free_at: Time,
    drops: u32,
}

impl Busy {
    pub(crate) fn new(time: Duration, room: usize) -> Self {
        Self { time, room, waiting: VecDeque::new(), bytes: 0, free_at: Time::ZERO, drops: 0 }
    }

    /// Suspends the thread.
    pub(crate) fn pause(&mut self, until: Time) {
        self.free_at = self.free_at.max(until);
    }

    /// Puts a datagram into the socket.
    pub(super) fn add(&mut self, now: Time, datagram: Vec<u8>) {
        if self.bytes + datagram.len() > self.room {
            self.drops += 1;
            return;
        }
        self.bytes += datagram.len();
        self.waiting.push_back((Arrival { at: now, drops: self.drops }, datagram));
    }

    /// Takes the next datagram, if the thread has time for it.
    pub(super) fn take(&mut self, now: Time) -> Option<(Arrival, Vec<u8>)> {
        if now < self.free_at {
            return None;
        }
        let next = self.waiting.pop_front()?;
        self.bytes -= next.1.len();
        self.free_at = now + self.time;
        Some(next)
    }

    /// Returns when the next one is taken.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.waiting.front().map(|(arrival, _)| self.free_at.max(arrival.at))
    }
}
