//! A token bucket that several writers draw from in turn.

use std::collections::VecDeque;

use crate::config;
use crate::time::Time;

/// Bytes that may be sent, filled at the path's rate.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Negative after a datagram that exceeded what was there.
    tokens: f64,
    filled_at: Time,
    /// Writers that wait, in the order of their turns.
    waiting: VecDeque<Waiting>,
    /// The writer that last went before those that wait, and when.
    last_first: Option<(u32, Time)>,
}

#[derive(Debug)]
struct Waiting {
    flow: u32,
    /// It has lost its turn if it has not come by then.
    until: Time,
}

impl Bucket {
    /// Gives a writer the next train of up to `wanted` bytes, or says when to come again. `rate`: bytes per second.
    ///
    /// A writer that does not wait, and wants no more than a datagram or two, goes first: what is rare and small is
    /// mostly urgent, and costs the others little.
    pub(super) fn take_turn(&mut self, now: Time, rate: f64, flow: u32, wanted: u64) -> Result<u64, Time> {
        self.fill(now, rate);
        let train = train(rate);
        self.waiting.retain(|it| it.until > now || it.flow == flow);
        let place = self.waiting.iter().position(|it| it.flow == flow);
        if place.is_none() && self.goes_first(now, rate, flow, wanted) {
            return Ok(wanted);
        }
        let enough = train.min(wanted as f64).max(1.0);
        let is_next = place.map_or(self.waiting.is_empty(), |place| place == 0);
        if is_next && self.tokens >= enough {
            let share = self.tokens.min(train * 2.0);
            self.waiting.pop_front();
            return Ok((share as u64).min(wanted).max(1));
        }
        // Those before this one take a train each.
        let before = place.unwrap_or(self.waiting.len()) as f64;
        let missing = (enough + before * train - self.tokens).max(train / 4.0);
        let at = now.plus_nanos((missing / rate * 1e9) as u64 + 1);
        let until = at + config::PACING_TURN;
        match place.and_then(|place| self.waiting.get_mut(place)) {
            Some(waiting) => waiting.until = until,
            None => self.waiting.push_back(Waiting { flow, until }),
        }
        Err(at)
    }

    /// Returns whether a writer that did not wait may send before those that do.
    fn goes_first(&mut self, now: Time, rate: f64, flow: u32, wanted: u64) -> bool {
        let is_small = wanted <= config::PACING_SPARSE_BYTES && self.tokens > -2.0 * train(rate);
        // One writer gets an eighth of the rate in this way.
        let pause_ns = 8.0 * config::PACING_SPARSE_BYTES as f64 / rate * 1e9;
        let is_rare =
            self.last_first.is_none_or(|(last, at)| last != flow || now.nanos_since(at) as f64 >= pause_ns);
        let goes_first = is_small && is_rare && !self.waiting.is_empty();
        if goes_first {
            self.last_first = Some((flow, now));
        }
        goes_first
    }

    /// Records bytes sent.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.tokens -= bytes as f64;
    }

    fn fill(&mut self, now: Time, rate: f64) {
        let seconds = now.nanos_since(self.filled_at) as f64 / 1e9;
        let depth = rate * config::PACING_DEPTH.as_secs_f64() + 2.0 * config::PACING_TRAIN_MIN_BYTES;
        self.tokens = (self.tokens + seconds * rate).clamp(-depth, depth);
        self.filled_at = now;
    }
}

/// Returns the bytes that leave together at this rate.
fn train(rate: f64) -> f64 {
    (rate * config::PACING_TRAIN.as_secs_f64()).max(config::PACING_TRAIN_MIN_BYTES)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Bytes per second.
    const RATE: f64 = 10e6;
    const SECOND: Time = Time(1_000_000_000);

    /// Sends for `flows` writers that always have `wanted` bytes until a second has passed. Returns their bytes.
    fn send(bucket: &mut Bucket, flows: usize, wanted: u64) -> Vec<u64> {
        let mut sent = vec![0; flows];
        let mut due = vec![Time::ZERO; flows];
        while let Some((index, now)) = due.iter().copied().enumerate().min_by_key(|(_, at)| *at) {
            if now >= SECOND {
                return sent;
            }
            match bucket.take_turn(now, RATE, index as u32, wanted) {
                Ok(bytes) => {
                    bucket.spend(bytes);
                    sent[index] += bytes;
                    due[index] = now.plus_nanos(1);
                }
                Err(at) => due[index] = at,
            }
        }
        sent
    }

    #[test]
    fn what_leaves_keeps_to_the_rate() {
        for wanted in [1_500, 5_000, u64::MAX] {
            let sent = send(&mut Bucket::default(), 1, wanted)[0] as f64;
            assert!((0.98 * RATE..1.02 * RATE).contains(&sent), "{sent} of {wanted} at a time");
        }
    }

    #[test]
    fn writers_take_turns() {
        let sent = send(&mut Bucket::default(), 5, u64::MAX);
        let all: u64 = sent.iter().sum();
        assert!((0.95 * RATE..1.02 * RATE).contains(&(all as f64)), "{sent:?}");
        assert!(sent.iter().all(|bytes| (all / 6..all / 4).contains(bytes)), "{sent:?}");
    }

    #[test]
    fn what_is_rare_and_small_goes_first_and_what_is_frequent_does_not() {
        let mut bucket = Bucket::default();
        let _ = bucket.take_turn(SECOND, RATE, 1, u64::MAX).map(|bytes| bucket.spend(bytes + 20_000));
        assert!(bucket.take_turn(SECOND, RATE, 1, u64::MAX).is_err());
        assert_eq!(bucket.take_turn(SECOND, RATE, 2, 1_000), Ok(1_000));
        assert!(bucket.take_turn(SECOND, RATE, 2, 1_000).is_err());
        let later = SECOND + Duration::from_millis(3);
        assert!(bucket.take_turn(later, RATE, 3, 100_000).is_err(), "{bucket:?}");
    }

    #[test]
    fn a_writer_that_does_not_come_loses_its_turn() {
        let mut bucket = Bucket::default();
        bucket.spend(10_000);
        assert!(bucket.take_turn(SECOND, RATE, 1, u64::MAX).is_ok());
        bucket.spend(100_000);
        assert!(bucket.take_turn(SECOND, RATE, 1, u64::MAX).is_err());
        assert!(bucket.take_turn(SECOND, RATE, 2, u64::MAX).is_err());
        // The first one never comes back.
        let later = SECOND + Duration::from_millis(100);
        assert!(bucket.take_turn(later, RATE, 2, u64::MAX).is_ok());
    }
}
