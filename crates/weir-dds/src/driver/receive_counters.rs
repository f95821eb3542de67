//! Counters of received datagrams.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_rtps::receiver::batch::Counters;

/// Counters of received datagrams.
///
/// ```no_run
/// # use weir_dds::DomainParticipant;
/// # fn f(participant: &DomainParticipant) {
/// let received = participant.receive_counters();
/// println!("{} datagrams by {} system calls", received.datagrams, received.batches);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveCounters {
    /// Datagrams, counted as sent, before the kernel coalesced them.
    pub datagrams: u64,
    /// Datagrams that arrived by multicast.
    pub multicast: u64,
    /// System calls that received something.
    pub batches: u64,
    /// Datagrams that are not RTPS messages, or that contain a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that do not exist here, or of unknown kind.
    pub ignored: u64,
}

/// Counted by the driver. The message receiver counts the rest.
#[derive(Clone, Copy, Default)]
pub(crate) struct DriverCounters {
    pub(crate) multicast: u64,
    pub(crate) batches: u64,
}

/// The counters as of the last batch, readable by any thread.
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
