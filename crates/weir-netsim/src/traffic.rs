//! What a link carried, lost and queued: counters and a time series.

use core::time::Duration;

/// Packets and their bytes, IP headers included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a link was offered and what became of it.
///
/// `offered + duplicated = delivered + queue_full + lost + too_big`, in packets and in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traffic {
    /// Given to the link.
    pub offered: Count,
    /// Let through, second copies included; counted when given to the link, so that some may still
    /// be in flight.
    pub delivered: Count,
    /// Dropped because the queue was full.
    pub queue_full: Count,
    /// Lost by the loss models.
    pub lost: Count,
    /// Second copies made.
    pub duplicated: Count,
    /// Held back, so that later ones may overtake them; contained in `delivered`.
    pub held_back: Count,
    /// Marked as having met congestion (ECN); contained in `delivered`, unless lost after that.
    pub marked: Count,
    /// Refused because they are over the MTU.
    pub too_big: Count,
    /// The queue as the offered packets found it.
    pub queue: Queue,
    /// The time series; empty unless [`Link::series`](crate::Link::series) was called.
    pub series: Series,
}

/// The queue in front of a link as the offered packets found it, dropped ones included. A packet's
/// own bytes do not count.
///
/// Means are per packet, not over time: what the traffic met, whatever the pauses in between.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Queue {
    packets: u64,
    sum_bytes: u128,
    sum_wait_ns: u128,
    max_bytes: u64,
    max_wait: Duration,
}

/// The traffic of a link in steps of equal width.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    width: Duration,
    bins: Vec<Bin>,
    /// Bins whose end has passed.
    closed: usize,
}

/// One step of a [`Series`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// Bytes given to the link.
    pub offered_bytes: u64,
    /// Bytes that reached the far end.
    pub delivered_bytes: u64,
    /// Bytes in the queue at the end of the step.
    pub queue_bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

impl Queue {
    pub(crate) fn note(&mut self, bytes: u64, wait: Duration) {
        self.packets += 1;
        self.sum_bytes += u128::from(bytes);
        self.sum_wait_ns += wait.as_nanos();
        self.max_bytes = self.max_bytes.max(bytes);
        self.max_wait = self.max_wait.max(wait);
    }

    /// Returns the mean over the offered packets, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.sum_bytes as f64 / self.packets.max(1) as f64
    }

    /// Returns the mean time that an offered packet had to wait, or would have had to.
    pub fn mean_wait(&self) -> Duration {
        let mean_ns = self.sum_wait_ns / u128::from(self.packets.max(1));
        Duration::from_nanos(u64::try_from(mean_ns).unwrap_or(u64::MAX))
    }

    /// Returns the longest queue that a packet found, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Returns the longest time that a packet had to wait, or would have had to.
    pub fn max_wait(&self) -> Duration {
        self.max_wait
    }
}

impl Series {
    pub(crate) fn new(width: Duration) -> Self {
        Self { width, ..Self::default() }
    }

    /// Returns the width of a step. It doubles when there are more than [`Series::BINS_MAX`].
    pub fn width(&self) -> Duration {
        self.width
    }

    /// Returns the steps, from time zero on.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The largest number of steps.
    pub const BINS_MAX: usize = 4096;

    pub(crate) fn offered(&mut self, at: Duration, bytes: usize) {
        if let Some(bin) = self.bin(at) {
            bin.offered_bytes += bytes as u64;
        }
    }

    pub(crate) fn delivered(&mut self, at: Duration, bytes: usize) {
        if let Some(bin) = self.bin(at) {
            bin.delivered_bytes += bytes as u64;
        }
    }

    /// Notes the queue at the end of each step that has passed.
    pub(crate) fn advance(&mut self, now: Duration, queue_at: impl Fn(Duration) -> u64) {
        while !self.width.is_zero() {
            let end = self.width * u32::try_from(self.closed + 1).unwrap_or(u32::MAX);
            if end > now {
                break;
            }
            let queue_bytes = queue_at(end);
            let Some(bin) = self.bin(end - Duration::from_nanos(1)) else { break };
            bin.queue_bytes = queue_bytes;
            // A step that was merged with the one before ends as late.
            self.closed = self.index(end);
        }
    }

    fn index(&self, at: Duration) -> usize {
        usize::try_from(at.as_nanos() / self.width.as_nanos()).unwrap_or(usize::MAX)
    }

    /// The step at a time; `None` without a series.
    fn bin(&mut self, at: Duration) -> Option<&mut Bin> {
        if self.width.is_zero() {
            return None;
        }
        while self.index(at) >= Self::BINS_MAX {
            self.merge();
        }
        let index = self.index(at);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        self.bins.get_mut(index)
    }

    /// Makes one step of two.
    fn merge(&mut self) {
        self.width *= 2;
        self.closed /= 2;
        let merged = self.bins.chunks(2).map(|pair| Bin {
            offered_bytes: pair.iter().map(|bin| bin.offered_bytes).sum(),
            delivered_bytes: pair.iter().map(|bin| bin.delivered_bytes).sum(),
            queue_bytes: pair.last().map_or(0, |bin| bin.queue_bytes),
        });
        self.bins = merged.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn means_are_per_packet() {
        let mut queue = Queue::default();
        queue.note(0, Duration::ZERO);
        queue.note(3000, 3 * MS);
        assert_eq!((queue.mean_bytes(), queue.mean_wait()), (1500.0, 3 * MS / 2));
        assert_eq!((queue.max_bytes(), queue.max_wait()), (3000, 3 * MS));
        assert_eq!(Queue::default().mean_wait(), Duration::ZERO);
    }

    #[test]
    fn a_series_has_what_happened_in_each_step_and_the_queue_at_its_end() {
        let mut series = Series::new(10 * MS);
        series.offered(MS, 100);
        series.delivered(25 * MS, 100);
        series.advance(30 * MS, |at| u64::try_from(at.as_millis()).unwrap());
        let bin =
            |offered_bytes, delivered_bytes, queue_bytes| Bin { offered_bytes, delivered_bytes, queue_bytes };
        assert_eq!(series.bins(), [bin(100, 0, 10), bin(0, 0, 20), bin(0, 100, 30)]);
    }

    #[test]
    fn a_long_series_gets_wider_steps() {
        let mut series = Series::new(MS);
        let seconds = 60;
        for second in 0..seconds {
            series.offered(Duration::from_secs(second), 1);
            series.advance(Duration::from_secs(second + 1), |_| 7);
        }
        assert_eq!(series.width(), 16 * MS);
        assert!(series.bins().len() <= Series::BINS_MAX);
        assert_eq!(series.bins().iter().map(|bin| bin.offered_bytes).sum::<u64>(), seconds);
        assert!(series.bins()[..3700].iter().all(|bin| bin.queue_bytes == 7));
    }

    #[test]
    fn there_is_no_series_unless_it_was_asked_for() {
        let mut series = Series::default();
        series.offered(MS, 1);
        series.advance(MS, |_| 1);
        assert!(series.bins().is_empty());
    }
}
