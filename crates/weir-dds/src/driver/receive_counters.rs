//! What is counted about received datagrams, and where others see it.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_rtps::receiver::batch::Counters;

/// What is counted about received datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Datagrams, as they were sent.
    pub datagrams: u64,
    /// Those of them that came by multicast.
    pub multicast: u64,
    /// System calls that received something.
    pub batches: u64,
    /// Datagrams that are no RTPS message, or one with a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that are not there, or of a kind that is not understood.
    pub ignored: u64,
}

/// What the driver counts; the message receiver counts the rest.
#[derive(Clone, Copy, Default)]
pub(crate) struct DriverCounters {
    pub(crate) multicast: u64,
    pub(crate) batches: u64,
}

/// The counters as others see them: after the last batch.
#[derive(Default)]
pub(crate) struct PublishedCounters([AtomicU64; 5]);

impl PublishedCounters {
    pub(crate) fn store(&self, driver: DriverCounters, receiver: Counters) {
        let DriverCounters { multicast, batches } = driver;
        let Counters { datagrams, malformed, ignored } = receiver;
        for (published, count) in self.0.iter().zip([datagrams, multicast, batches, malformed, ignored]) {
            published.store(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> ReceiveCounters {
        let [datagrams, multicast, batches, malformed, ignored] =
            self.0.each_ref().map(|published| published.load(Ordering::Relaxed));
        ReceiveCounters { datagrams, multicast, batches, malformed, ignored }
    }
}
