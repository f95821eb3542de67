//! Datagrams: data, which is any bytes, and marks of 32 bytes for its beginning and end.
//!
//! ```text
//! 0       8       16      20      24      32
//! | magic | token | trial | kind  | zeros |
//! ```
//!
//! The token is the session's; marks of other sessions and trials are late and ignored. Data may be
//! a single byte, so it has no header; its first byte is never that of the magic.

/// Bytes of a mark: 32, as in hpcbench, whose columns count them.
pub(crate) const MARK_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"WeirUdp1";

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Data follows at once.
    Sync,
    /// No data follows.
    Fin,
}

/// Which trial of which session a mark belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrialId {
    pub(crate) token: u64,
    pub(crate) trial: u32,
}

impl TrialId {
    /// The bytes of a mark.
    pub(crate) fn mark(self, mark: Mark) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.token.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.trial.to_be_bytes());
        bytes[20..24].copy_from_slice(&(mark as u32).to_be_bytes());
        bytes
    }

    /// Classifies a datagram of this trial.
    pub(crate) fn classify(self, bytes: &[u8]) -> Datagram {
        if bytes.len() != MARK_BYTES || bytes[..8] != MAGIC {
            return Datagram::Data;
        }
        let mark = [Mark::Sync, Mark::Fin].into_iter().find(|mark| bytes == self.mark(*mark));
        mark.map_or(Datagram::Stale, Datagram::Mark)
    }
}

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Datagram {
    Data,
    Mark(Mark),
    /// A mark of another trial.
    Stale,
}

/// Data of this length: random, so that nothing on the path can compress it, and never a mark.
pub(crate) fn payload(bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes];
    fastrand::fill(&mut payload);
    if payload.first() == Some(&MAGIC[0]) {
        payload[0] = !MAGIC[0];
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_known_by_their_own_trial_only() {
        let id = TrialId { token: 7, trial: 3 };
        let other = TrialId { token: 7, trial: 4 };
        for mark in [Mark::Sync, Mark::Fin] {
            assert_eq!(id.classify(&id.mark(mark)), Datagram::Mark(mark));
            assert_eq!(id.classify(&other.mark(mark)), Datagram::Stale);
            assert_eq!(id.classify(&id.mark(mark)[..31]), Datagram::Data);
        }
    }

    #[test]
    fn data_is_never_a_mark() {
        let id = TrialId { token: 0, trial: 0 };
        for bytes in [1, 31, 32, 33, 1460] {
            for _ in 0..600 {
                let payload = payload(bytes);
                assert_eq!(payload.len(), bytes);
                assert_ne!(payload[0], MAGIC[0]);
                assert_eq!(id.classify(&payload), Datagram::Data);
            }
        }
    }
}
