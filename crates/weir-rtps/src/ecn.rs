//! Explicit congestion notification, the receiving end (RFC 3168; for UDP: RFC 8085, section 3.1.7).
//!
//! A router that uses ECN does not drop a datagram when its queue grows; it marks the datagram as having met congestion
//! (CE), if the sender has declared that its ends understand that (ECT). The receiver counts the marks and returns the
//! counts, as in QUIC (RFC 9000, section 13.4). [`path`](crate::path) has the sending end.
//!
//! The kernel reports the field of a datagram only if a socket requests that, because it costs time for each. A writer
//! therefore first asks its readers to report marks, when it begins to pace what it sends. Without a paced path,
//! nothing of this is in use.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, Ordering};

use weir_wire::{EcnCounts, GuidPrefix};

use crate::config;
use crate::lock::{Guard, Lock};

/// The bits of ECN in the type of service of an IPv4 packet.
pub const ECN_BITS: u8 = 3;
/// The sender understands marks: ECT(0).
pub const ECT0: u8 = 2;
/// Marked: CE.
pub const CE: u8 = 3;

/// The marks of what a participant receives, by sending participant. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct EcnMarks(Arc<Shared>);

/// Whether marks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnUse {
    /// No writer has requested them.
    Unused,
    /// A writer has asked. Have the kernel report them, then call [`EcnMarks::begin`].
    Wanted,
    /// Pass each datagram to [`EcnMarks::note`].
    Counted,
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    /// At most [`config::ECN_SENDERS_MAX`], the one that asked last at the end.
    senders: Lock<Vec<(GuidPrefix, EcnCounts)>>,
}

impl EcnMarks {
    /// Returns whether marks are counted.
    #[inline]
    pub fn usage(&self) -> EcnUse {
        match self.0.state.load(Ordering::Relaxed) {
            UNUSED => EcnUse::Unused,
            WANTED => EcnUse::Wanted,
            _ => EcnUse::Counted,
        }
    }

    /// Counts from now on: the kernel reports the field.
    pub fn begin(&self) {
        self.0.state.store(COUNTED, Ordering::Relaxed);
    }

    /// Does not count, although a writer has requested it: the kernel cannot report the field.
    pub fn give_up(&self) {
        self.0.state.store(UNUSED, Ordering::Relaxed);
    }

    /// Counts `datagrams` datagrams of one sender, which have the same type of service. `datagram`: the first of them.
    pub fn note(&self, datagram: &[u8], datagrams: usize, type_of_service: u8) {
        let ecn = type_of_service & ECN_BITS;
        let Some(prefix) = source(datagram).filter(|_| ecn == ECT0 || ecn == CE) else { return };
        let mut senders = self.lock();
        if let Some((_, counts)) = senders.iter_mut().find(|(known, _)| *known == prefix) {
            let count = if ecn == CE { &mut counts.ce } else { &mut counts.ect0 };
            *count = count.wrapping_add(datagrams as u32);
        }
    }

    /// Counts what this participant sends from now on.
    pub(crate) fn want(&self, sender: GuidPrefix) {
        let mut senders = self.lock();
        if !senders.iter().any(|(known, _)| *known == sender) {
            if senders.len() >= config::ECN_SENDERS_MAX {
                // It will ask again if it is still there.
                senders.remove(0);
            }
            senders.push((sender, EcnCounts::default()));
        }
        let _ = self.0.state.compare_exchange(UNUSED, WANTED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns what was counted of a participant's datagrams since it asked; `None`: nothing is counted.
    pub(crate) fn of(&self, sender: GuidPrefix) -> Option<EcnCounts> {
        if self.usage() != EcnUse::Counted {
            return None;
        }
        self.lock().iter().find(|(known, _)| *known == sender).map(|(_, counts)| *counts)
    }

    fn lock(&self) -> Guard<'_, Vec<(GuidPrefix, EcnCounts)>> {
        self.0.senders.lock()
    }
}

/// Returns the participant that sent an RTPS message.
fn source(datagram: &[u8]) -> Option<GuidPrefix> {
    let header = datagram.first_chunk::<20>()?;
    header.starts_with(b"RTPS").then(|| header.last_chunk().copied().map(GuidPrefix))?
}

const UNUSED: u8 = 0;
const WANTED: u8 = 1;
const COUNTED: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(prefix: GuidPrefix) -> Vec<u8> {
        [b"RTPS\x02\x05\x01\xf0", &prefix.0[..], b"the rest"].concat()
    }

    #[test]
    fn only_what_was_asked_for_is_counted_and_reported() {
        let marks = EcnMarks::default();
        let (known, other) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        assert_eq!(marks.usage(), EcnUse::Unused);
        marks.want(known);
        assert_eq!((marks.usage(), marks.of(known)), (EcnUse::Wanted, None));
        marks.begin();
        for (prefix, tos) in [(known, 2), (known, 0xba), (known, 3), (known, 0), (known, 1), (other, 3)] {
            marks.note(&datagram(prefix), 5, tos);
        }
        marks.note(b"RTPX\x02\x05\x01\xf0\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", 1, 3);
        marks.note(b"RTPS", 1, 3);
        assert_eq!(marks.of(known), Some(EcnCounts { ect0: 10, ce: 5 }));
        assert_eq!(marks.of(other), None);
        // Asking again does not change the counts.
        marks.want(known);
        assert_eq!(marks.of(known), Some(EcnCounts { ect0: 10, ce: 5 }));
    }

    #[test]
    fn the_oldest_of_too_many_senders_is_forgotten() {
        let marks = EcnMarks::default();
        let prefix = |number: usize| GuidPrefix([number as u8; 12]);
        (0..=config::ECN_SENDERS_MAX).for_each(|number| marks.want(prefix(number)));
        marks.begin();
        assert_eq!(marks.of(prefix(0)), None);
        assert!(marks.of(prefix(1)).is_some() && marks.of(prefix(config::ECN_SENDERS_MAX)).is_some());
    }
}
