//! What subscribers say of themselves, as a publisher hears it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, Guid, SampleSeq};

use super::message::Kind;
use crate::engine::test_data::Owned;

/// Who has announced what.
#[derive(Debug, Default)]
pub(super) struct Roll {
    subscribers: Mutex<BTreeMap<i32, Entry>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    writer: Guid,
    said: Kind,
}

impl Roll {
    /// Notes what subscriber `sid` says. Another subscriber with the same number that comes while one is there is
    /// heard only if it waits to be served and the other one is done.
    fn note(&self, sid: i32, writer: Guid, said: Kind) {
        let mut subscribers = self.subscribers.lock();
        let known = subscribers.get(&sid).copied();
        let is_other = known.is_some_and(|entry| entry.writer != writer);
        if !is_other || said == Kind::Here {
            subscribers.insert(sid, Entry { writer, said });
        }
    }

    /// How many subscribers wait to be served.
    pub(super) fn here(&self) -> u32 {
        self.count(Kind::Here)
    }

    /// How many subscribers are done.
    pub(super) fn finished(&self) -> u32 {
        self.count(Kind::Final)
    }

    fn count(&self, said: Kind) -> u32 {
        let count = self.subscribers.lock().values().filter(|entry| entry.said == said).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// Listens to announcements.
pub(super) struct RollListener(pub(super) Arc<Roll>);

impl<T: Owned> DataReaderListener<T> for RollListener {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut samples = SampleSeq::new();
        while reader.take_into(&mut samples, 16) > 0 {
            for sample in samples.iter().filter(|sample| sample.info.valid_data) {
                let header = sample.data.header();
                self.0.note(header.entity_id, sample.info.publication_handle, Kind::of(&header));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guid(byte: u8) -> Guid {
        let mut bytes = [0; 16];
        bytes[0] = byte;
        Guid::from_bytes(bytes)
    }

    #[test]
    fn a_subscriber_that_serves_somebody_else_is_not_here() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Here);
        roll.note(1, guid(2), Kind::Here);
        assert_eq!((roll.here(), roll.finished()), (2, 0));
        roll.note(0, guid(1), Kind::Serving);
        assert_eq!(roll.here(), 1);
        roll.note(0, guid(1), Kind::Final);
        assert_eq!((roll.here(), roll.finished()), (1, 1));
    }

    #[test]
    fn the_next_subscriber_takes_the_place_of_the_one_before() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Final);
        roll.note(0, guid(2), Kind::Here);
        assert_eq!((roll.here(), roll.finished()), (1, 0));
        // What the one before says late means nothing.
        roll.note(0, guid(1), Kind::Final);
        assert_eq!((roll.here(), roll.finished()), (1, 0));
    }
}
