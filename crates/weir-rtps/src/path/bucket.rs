//! A token bucket that several writers share, and whose turn it is.
//!
//! Writers ask when they have something to send, and are granted bytes, or learn when to ask again. Among those that
//! wait, three rules apply, in this order:
//!
//! 1. **Some of it for all.** While writers of higher priority send, those of lower priority that wait are owed an
//!    eighth as much. What is owed goes to the one that has waited longest. Strict priority alone would starve them
//!    for as long as something more urgent saturates the path. A reader that gets nothing at all requests repairs,
//!    and fills its writer's history.
//! 2. **Priority** (TRANSPORT_PRIORITY; DDS 1.4, 2.2.3.15). The highest goes first. Weights, as in weighted fair
//!    queueing, would need a scale, and DDS has none: any `i32` is a priority, and only the order means something.
//!    Rules 1 and 2 are a priority queue with a guaranteed share, as the tins of CAKE are (Høiland-Jørgensen et al.,
//!    2018).
//! 3. **Fair queueing** at equal priority: start-time fair queueing (Goyal, Vin and Cheng, 1996). Each writer has a
//!    tag, which grows with the bytes that it sends, and is raised to the present when it begins to wait. The lowest
//!    tag goes first. Saturated writers thus send as many bytes each, whatever the sizes of their samples. A writer
//!    that sends less than its share is never ahead of the present, and so goes before them, as the new flows of
//!    FQ-CoDel (RFC 8290) do, without a threshold for what is small or rare. The method needs no knowledge of the
//!    rate, which changes here all the time. Deficit round robin, which FQ-CoDel uses, needs queues to look into;
//!    here writers only ask.
//!
//! A writer that has its turn, and has paused since it had its share, need not wait for the tokens with a sample of a
//! datagram or two. The others pay for it later.
//!
//! LATENCY_BUDGET (DDS 1.4, 2.2.3.8) moves the tag of a writer that begins to wait by what the path carries meanwhile.
//! Others of its priority go before it for that time, and it still gets its share.

use alloc::vec::Vec;
use core::time::Duration;

use crate::config;
use crate::time::Time;

/// A writer that shares a path, and how urgent its samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flow {
    pub(crate) number: u32,
    /// TRANSPORT_PRIORITY.
    pub(crate) priority: i32,
    /// LATENCY_BUDGET.
    pub(crate) budget: Duration,
}

/// Bytes that may be sent, filled at the path's rate.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Negative after a datagram that exceeded what was there.
    tokens: f64,
    filled_at: Time,
    /// Bytes per second.
    rate: f64,
    /// The writers that have asked lately.
    accounts: Vec<Account>,
    /// So many at most.
    accounts_max: usize,
    /// Bytes that those of lower priority may send before the others.
    owed: f64,
    /// See [`Bucket::be_strict`].
    is_strict: bool,
    /// The same when tokens were last added.
    was_strict: bool,
}

/// What a writer has had.
#[derive(Debug)]
struct Account {
    flow: Flow,
    /// Bytes, by the clock of its priority.
    tag: f64,
    /// The tag when it last had its turn.
    began: f64,
    /// Until then, what it has sent is more than its share.
    rests_until: Time,
    /// When it last asked.
    asked_at: Time,
    waits: Option<Wait>,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    since: Time,
    /// It has lost its turn if it has not come by then.
    until: Time,
    /// It has its turn, and has not sent anything yet.
    is_served: bool,
}

impl Default for Bucket {
    fn default() -> Self {
        let accounts_max = usize::MAX;
        Self {
            tokens: 0.0,
            filled_at: Time::ZERO,
            rate: 0.0,
            accounts: Vec::new(),
            accounts_max,
            owed: 0.0,
            is_strict: false,
            was_strict: false,
        }
    }
}

impl Bucket {
    /// Reserves memory for the accounts of so many writers.
    pub(super) fn reserve(&mut self, writers: usize) {
        self.accounts_max = Self::room(writers);
        self.accounts.reserve_exact(self.accounts_max);
    }

    /// A writer that was unmatched and matched again has another account for a while.
    fn room(writers: usize) -> usize {
        writers.saturating_mul(2).max(1)
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn bytes(writers: usize) -> usize {
        Self::room(writers).saturating_mul(size_of::<Account>())
    }

    /// Returns an empty one with the same memory.
    pub(super) fn into_empty(self) -> Self {
        let (mut accounts, accounts_max) = (self.accounts, self.accounts_max);
        accounts.clear();
        Self { accounts, accounts_max, ..Self::default() }
    }

    /// Sets whether writers wait for all that was sent beyond the rate, however long that takes, so that the rate is
    /// kept over any time. Otherwise they wait no longer than a late sender may catch up: a measured rate may have been
    /// too low.
    pub(super) fn be_strict(&mut self, is_strict: bool) {
        self.is_strict = is_strict;
    }

    /// Gives a writer the next train of up to `wanted` bytes, or says when to come again. `rate`: bytes per second;
    /// `train`: how long trains are, as time.
    pub(super) fn take_turn(
        &mut self,
        now: Time,
        (rate, train): (f64, Duration),
        flow: Flow,
        wanted: u64,
    ) -> Result<u64, Time> {
        self.fill(now, rate);
        let train = (rate * train.as_secs_f64()).max(config::PACING_TRAIN_MIN_BYTES);
        let index = self.begin_to_wait(now, rate, flow);
        let before = self.before(index, train) as f64;
        let enough = train.min(wanted as f64).max(1.0);
        // Those before this one take a train each, and do not hold it up if they are late.
        let missing = enough + before * train - self.tokens;
        let account = &mut self.accounts[index];
        // What is small and rare may go ahead of the tokens: it costs the others little.
        let is_sparse = wanted <= config::PACING_SPARSE_BYTES && account.rests_until <= now;
        let is_first = before == 0.0 && is_sparse && self.tokens > -2.0 * train;
        if is_first || missing <= 0.0 {
            account.began = account.tag;
            if let Some(wait) = &mut account.waits {
                // It may ask for a sample, and then for its first fragment.
                (wait.until, wait.is_served) = (now.plus_nanos(1), true);
            }
            let share =
                if is_first { wanted } else { (self.tokens - before * train).min(train * 2.0) as u64 };
            return Ok(share.min(wanted).max(1));
        }
        let at = now.plus_nanos((missing.max(train / 4.0) / rate * 1e9) as u64 + 1);
        if let Some(wait) = &mut account.waits {
            (wait.until, wait.is_served) = (at + config::PACING_TURN, false);
        }
        Err(at)
    }

    /// Returns whether a writer waits for its turn.
    pub(super) fn is_waited_for(&self) -> bool {
        self.accounts.iter().any(|it| it.waits.is_some_and(|wait| !wait.is_served))
    }

    /// Records bytes sent.
    pub(super) fn spend(&mut self, flow: Flow, bytes: u64) {
        let bytes = bytes as f64;
        let flows = self.accounts.len();
        self.tokens -= bytes;
        let Some(account) = self.accounts.iter_mut().find(|it| it.flow.number == flow.number) else { return };
        account.tag += bytes;
        let seconds = bytes * flows as f64 / self.rate.max(1.0);
        account.rests_until = account.rests_until.max(self.filled_at).plus_nanos((seconds * 1e9) as u64);
        account.waits = account.waits.filter(|wait| !wait.is_served);
        let priority = account.flow.priority;
        if self.accounts.iter().any(|it| it.flow.priority > priority) {
            self.owed = (self.owed - bytes).max(-OWED_MAX);
        }
        if self.accounts.iter().any(|it| it.waits.is_some() && it.flow.priority < priority) {
            self.owed = (self.owed + bytes * config::PACING_SHARE_LOWER).min(OWED_MAX);
        }
    }

    /// Returns the place of a writer's account. It waits from now on, if it did not before.
    fn begin_to_wait(&mut self, now: Time, rate: f64, flow: Flow) -> usize {
        self.accounts.retain_mut(|it| {
            it.waits = it.waits.filter(|wait| wait.until > now || it.flow.number == flow.number);
            it.waits.is_some()
                || now.since(it.asked_at) < config::PACING_MEMORY
                || it.flow.number == flow.number
        });
        let index = self.accounts.iter().position(|it| it.flow.number == flow.number).unwrap_or_else(|| {
            if self.accounts.len() >= self.accounts_max {
                self.forget_one();
            }
            self.accounts.push(Account {
                flow,
                tag: 0.0,
                began: 0.0,
                rests_until: now,
                asked_at: now,
                waits: None,
            });
            self.accounts.len() - 1
        });
        let budget = flow.budget.min(config::LATENCY_BUDGET_MAX).as_secs_f64();
        let start = self.present(flow.priority) + rate * budget / self.accounts.len() as f64;
        let account = &mut self.accounts[index];
        if account.flow.priority != flow.priority {
            // By the clock of another priority, its tag means nothing.
            (account.tag, account.began, account.waits) = (0.0, 0.0, None);
        }
        (account.flow, account.asked_at) = (flow, now);
        if account.waits.is_none() {
            account.tag = account.tag.max(start);
            account.waits = Some(Wait { since: now, until: Time::MAX, is_served: false });
        }
        index
    }

    /// Forgets the writer that asked first, if possible one that does not wait: it has asked by another number since,
    /// or is gone.
    fn forget_one(&mut self) {
        let accounts = self.accounts.iter().enumerate();
        let first = accounts.min_by_key(|(_, it)| (it.waits.is_some(), it.asked_at));
        if let Some((place, _)) = first {
            self.accounts.remove(place);
        }
    }

    /// Returns the present by the clock of a priority: the tag of the writer that had its turn last.
    fn present(&self, priority: i32) -> f64 {
        let of_priority = || self.accounts.iter().filter(|it| it.flow.priority == priority);
        let began = of_priority().map(|it| it.began).fold(0.0, f64::max);
        let next = of_priority().filter(|it| it.waits.is_some()).map(|it| it.tag).reduce(f64::min);
        next.map_or(began, |next| began.max(next))
    }

    /// Returns how many writers go before one that waits.
    fn before(&self, index: usize, train: f64) -> usize {
        let favoured = self.favoured(train);
        if favoured == Some(index) {
            return 0;
        }
        let this = &self.accounts[index];
        let goes_before = |place: usize, it: &Account| {
            let is_more_urgent = it.flow.priority > this.flow.priority;
            let is_equal = it.flow.priority == this.flow.priority;
            let is_earlier = it.tag < this.tag || it.tag == this.tag && place < index;
            it.waits.is_some() && (favoured == Some(place) || is_more_urgent || is_equal && is_earlier)
        };
        let others = self.accounts.iter().enumerate().filter(|(place, _)| *place != index);
        others.filter(|(place, it)| goes_before(*place, it)).count()
    }

    /// Returns who goes first although its priority is not the highest.
    fn favoured(&self, train: f64) -> Option<usize> {
        if self.owed < train {
            return None;
        }
        let waiting =
            || self.accounts.iter().enumerate().filter_map(|(place, it)| Some((place, it, it.waits?)));
        let highest = waiting().map(|(_, it, _)| it.flow.priority).max()?;
        let lower = waiting().filter(|(_, it, _)| it.flow.priority < highest);
        lower.min_by_key(|(.., wait)| wait.since).map(|(place, ..)| place)
    }

    fn fill(&mut self, now: Time, rate: f64) {
        let seconds = now.nanos_since(self.filled_at) as f64 / 1e9;
        let depth = rate * config::PACING_DEPTH.as_secs_f64() + 2.0 * config::PACING_TRAIN_MIN_BYTES;
        // What was sent before the rate was limited does not count.
        let least = if self.is_strict && self.was_strict { f64::MIN } else { -depth };
        self.tokens = (self.tokens + seconds * rate).clamp(least, depth);
        (self.filled_at, self.rate, self.was_strict) = (now, rate, self.is_strict);
    }
}

/// Bytes that are owed at most, in either direction: a datagram of the maximum size.
const OWED_MAX: f64 = 65_536.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes per second.
    const RATE: f64 = 10e6;
    const PACE: (f64, Duration) = (RATE, config::PACING_TRAIN);
    const SECOND: Time = Time(1_000_000_000);

    fn flow(number: u32, priority: i32) -> Flow {
        Flow { number, priority, budget: Duration::ZERO }
    }

    /// A writer that sends `bytes` at a time, `gap` after it has sent the last.
    #[derive(Clone, Copy)]
    struct Sender {
        flow: Flow,
        bytes: u64,
        gap: Duration,
    }

    impl Sender {
        fn saturated(number: u32, priority: i32) -> Self {
            Self { flow: flow(number, priority), bytes: u64::MAX, gap: Duration::ZERO }
        }
    }

    /// Lets writers send for a second. Returns the bytes of each, and the longest time that one had to wait.
    fn send(bucket: &mut Bucket, senders: &[Sender]) -> Vec<(u64, Duration)> {
        let mut sent = vec![(0, Duration::ZERO); senders.len()];
        let mut due = vec![(Time::ZERO, Time::ZERO); senders.len()];
        while let Some((index, (now, since))) = due.iter().copied().enumerate().min_by_key(|(_, (at, _))| *at)
        {
            if now >= SECOND {
                return sent;
            }
            let Sender { flow, bytes, gap } = senders[index];
            match bucket.take_turn(now, PACE, flow, bytes) {
                Ok(bytes) => {
                    bucket.spend(flow, bytes);
                    sent[index] = (sent[index].0 + bytes, sent[index].1.max(now.since(since)));
                    due[index] = (now.plus_nanos(1) + gap, now.plus_nanos(1) + gap);
                }
                Err(at) => due[index].0 = at,
            }
        }
        sent
    }

    /// The shares of the rate that saturated writers of these priorities get.
    fn shares(priorities: &[i32]) -> Vec<f64> {
        let senders = priorities.iter().enumerate().map(|(at, it)| Sender::saturated(at as u32, *it));
        let sent = send(&mut Bucket::default(), &senders.collect::<Vec<_>>());
        sent.iter().map(|(bytes, _)| *bytes as f64 / RATE).collect()
    }

    #[test]
    fn what_leaves_keeps_to_the_rate() {
        for bytes in [1_500, 5_000, u64::MAX] {
            let sender = Sender { bytes, ..Sender::saturated(1, 0) };
            let sent = send(&mut Bucket::default(), &[sender])[0].0 as f64;
            assert!((0.98 * RATE..1.02 * RATE).contains(&sent), "{sent} of {bytes} at a time");
        }
        let sum: f64 = shares(&[3, 0, 0, -5]).iter().sum();
        assert!((0.98..1.02).contains(&sum), "{sum}");
    }

    #[test]
    fn writers_of_equal_priority_get_equal_shares_whatever_their_sizes() {
        let sizes = [1_500, 3_000, 5_000, 63_000, u64::MAX];
        let senders = sizes.map(|bytes| Sender { bytes, ..Sender::saturated(bytes as u32, 7) });
        let sent = send(&mut Bucket::default(), &senders);
        let all: u64 = sent.iter().map(|(bytes, _)| bytes).sum();
        assert!((0.95 * RATE..1.02 * RATE).contains(&(all as f64)), "{sent:?}");
        assert!(sent.iter().all(|(bytes, _)| (all / 6..all / 4).contains(bytes)), "{sent:?}");
    }

    #[test]
    fn a_higher_priority_takes_nearly_all_and_no_lower_one_starves() {
        let two = shares(&[1, 0]);
        assert!((0.86..0.91).contains(&two[0]) && two[1] > 0.09, "{two:?}");
        // The place among the writers does not decide.
        let two = shares(&[0, 1]);
        assert!((0.86..0.91).contains(&two[1]) && two[0] > 0.09, "{two:?}");
        let levels = shares(&[i32::MAX, 5, 4, i32::MIN]);
        assert!(levels[0] > 0.86 && levels[1..].iter().all(|share| *share > 0.02), "{levels:?}");
    }

    #[test]
    fn a_writer_that_sends_less_than_its_share_does_not_wait_for_the_others() {
        for priority in [0, 1] {
            let sparse = Sender { flow: flow(0, priority), bytes: 1_100, gap: Duration::from_millis(1) };
            let mut senders = vec![sparse];
            senders.extend((1..6).map(|number| Sender::saturated(number, 0)));
            let sent = send(&mut Bucket::default(), &senders);
            // At most for a train of each.
            assert!(sent[0].1 < config::PACING_TRAIN * 5, "{sent:?}");
            assert!(sent[0].0 > 600_000, "{sent:?}");
        }
    }

    #[test]
    fn a_writer_with_a_latency_budget_lets_others_go_first_for_that_time() {
        let sparse = |number, budget_ms| Sender {
            flow: Flow { budget: Duration::from_millis(budget_ms), ..flow(number, 0) },
            bytes: 1_100,
            gap: Duration::from_millis(20),
        };
        let mut senders = vec![sparse(0, 0), sparse(1, 20), sparse(2, u64::MAX / 1_000_000)];
        senders.extend((3..6).map(|number| Sender::saturated(number, 0)));
        let sent = send(&mut Bucket::default(), &senders);
        let waits: Vec<_> = sent.iter().map(|(_, wait)| wait.as_millis()).collect();
        assert!(waits[0] < 2 && (10..40).contains(&waits[1]) && (30..130).contains(&waits[2]), "{waits:?}");
    }

    #[test]
    fn a_writer_whose_priority_changes_goes_on_with_the_others_of_its_new_one() {
        let mut bucket = Bucket::default();
        let _ = send(&mut bucket, &[Sender::saturated(0, 1), Sender::saturated(1, 0)]);
        bucket.filled_at = Time::ZERO;
        bucket.accounts.iter_mut().for_each(|it| it.asked_at = Time::ZERO);
        let sent = send(&mut bucket, &[Sender::saturated(0, 0), Sender::saturated(1, 0)]);
        assert!(sent.iter().all(|(bytes, _)| *bytes as f64 > 0.45 * RATE), "{sent:?}");
    }

    #[test]
    fn a_writer_that_was_silent_has_nothing_saved_up() {
        let mut bucket = Bucket::default();
        let first = send(&mut bucket, &[Sender::saturated(0, 0)]);
        assert!(first[0].0 > 0);
        bucket.filled_at = Time::ZERO;
        bucket.accounts.iter_mut().for_each(|it| it.asked_at = Time::ZERO);
        let sent = send(&mut bucket, &[Sender::saturated(0, 0), Sender::saturated(1, 0)]);
        assert!(sent.iter().all(|(bytes, _)| *bytes as f64 > 0.45 * RATE), "{sent:?}");
    }

    #[test]
    fn a_writer_that_does_not_come_loses_its_turn_and_is_forgotten() {
        let mut bucket = Bucket::default();
        let [first, second] = [flow(1, 1), flow(2, 0)];
        bucket.spend(first, 10_000);
        assert!(bucket.take_turn(SECOND, PACE, first, u64::MAX).is_ok());
        bucket.spend(first, 100_000);
        assert!(bucket.take_turn(SECOND, PACE, first, u64::MAX).is_err());
        assert!(bucket.take_turn(SECOND, PACE, second, u64::MAX).is_err());
        // The first one never comes back.
        let later = SECOND + Duration::from_millis(100);
        assert!(bucket.take_turn(later, PACE, second, u64::MAX).is_ok());
        let _ = bucket.take_turn(later + config::PACING_MEMORY, PACE, second, u64::MAX);
        assert_eq!(bucket.accounts.len(), 1);
    }
}
