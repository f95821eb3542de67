//! What subscribers say of themselves, as a publisher hears it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, Guid, SampleSeq};

use super::message::{self, Kind};
use crate::engine::test_data::Owned;

/// Who has announced what.
#[derive(Debug, Default)]
pub(super) struct Roll {
    subscribers: Mutex<BTreeMap<i32, Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    writer: Guid,
    said: Kind,
    /// Numbers of the publishers that it knows to be done.
    done: Vec<i32>,
}

impl Entry {
    fn knows_done(&self, pid: u32) -> bool {
        self.said == Kind::Final || self.done.contains(&pid.cast_signed())
    }
}

impl Roll {
    /// Notes what subscriber `sid` says. Another subscriber with the same number that comes while one is there is
    /// heard only if it waits to be served and the other one is done.
    fn note(&self, sid: i32, writer: Guid, said: Kind, done: Vec<i32>) {
        let mut subscribers = self.subscribers.lock();
        let is_other = subscribers.get(&sid).is_some_and(|entry| entry.writer != writer);
        if !is_other || said == Kind::Here {
            subscribers.insert(sid, Entry { writer, said, done });
        }
    }

    /// How many subscribers wait to be served.
    pub(super) fn here(&self) -> u32 {
        self.count(|entry| entry.said == Kind::Here)
    }

    /// How many subscribers know that publisher `pid` is done.
    pub(super) fn finished(&self, pid: u32) -> u32 {
        self.count(|entry| entry.knows_done(pid))
    }

    /// The writers by which the subscribers announce themselves that do not know yet that publisher `pid` is done.
    pub(super) fn unfinished(&self, pid: u32) -> Vec<Guid> {
        let knows = |entry: &Entry| entry.knows_done(pid);
        self.subscribers.lock().values().filter(|entry| !knows(entry)).map(|entry| entry.writer).collect()
    }

    fn count(&self, is_meant: impl Fn(&Entry) -> bool) -> u32 {
        let count = self.subscribers.lock().values().filter(|entry| is_meant(entry)).count();
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
                let done = message::read_numbers(sample.data.octets()).take(DONE_MAX).collect();
                self.0.note(header.entity_id, sample.info.publication_handle, Kind::of(&header), done);
            }
        }
    }
}

/// As many publishers as a subscriber can serve.
const DONE_MAX: usize = 1024;

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
        roll.note(0, guid(1), Kind::Here, Vec::new());
        roll.note(1, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (2, 0));
        roll.note(0, guid(1), Kind::Serving, Vec::new());
        assert_eq!(roll.here(), 1);
        roll.note(0, guid(1), Kind::Final, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (1, 1));
    }

    #[test]
    fn a_publisher_that_is_done_need_not_wait_for_the_others() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Serving, vec![3, 1]);
        assert_eq!((roll.finished(0), roll.finished(1), roll.finished(3)), (0, 1, 1));
        roll.note(1, guid(2), Kind::Serving, vec![3]);
        assert_eq!((roll.finished(1), roll.finished(3)), (1, 2));
        assert_eq!(roll.unfinished(1), [guid(2)]);
        assert_eq!(roll.unfinished(3), []);
    }

    #[test]
    fn the_next_subscriber_takes_the_place_of_the_one_before() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Final, Vec::new());
        roll.note(0, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (1, 0));
        // What the one before says late means nothing.
        roll.note(0, guid(1), Kind::Final, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (1, 0));
    }
}
