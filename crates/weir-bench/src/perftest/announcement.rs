//! What subscribers say of themselves, as a publisher hears it.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, Guid, SampleSeq};

use super::message::{self, Kind};
use crate::engine::test_data::Owned;

/// Who has announced what.
#[derive(Debug, Default)]
pub(super) struct Roll {
    subscribers: Mutex<Vec<Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    sid: i32,
    writer: Guid,
    said: Kind,
    /// Numbers of the publishers that it knows to be done.
    done: Vec<i32>,
    /// It was heard to wait. Who was not is still there from an earlier run, and knows the end of that one.
    was_here: bool,
    /// Another subscriber with its number has come.
    is_followed: bool,
}

impl Entry {
    fn knows_done(&self, pid: u32) -> bool {
        self.said == Kind::Final || self.done.contains(&pid.cast_signed())
    }
}

impl Roll {
    /// Notes what subscriber `sid` says. Another subscriber with the same number that comes while one is there is
    /// heard only if it waits to be served. What the one before has said is kept: the next run's subscriber may be there before
    /// this run's publisher has looked.
    fn note(&self, sid: i32, writer: Guid, said: Kind, done: Vec<i32>) {
        let mut subscribers = self.subscribers.lock();
        let was_here = said == Kind::Here;
        if let Some(entry) = subscribers.iter_mut().find(|entry| entry.sid == sid && entry.writer == writer) {
            (entry.said, entry.done) = (said, done);
            entry.was_here |= was_here;
            return;
        }
        let mut before = subscribers.iter_mut().filter(|entry| entry.sid == sid).peekable();
        if before.peek().is_some() && !was_here {
            return;
        }
        before.for_each(|entry| entry.is_followed = true);
        if subscribers.len() >= ENTRIES_MAX
            && let Some(oldest) = subscribers.iter().position(|entry| entry.is_followed)
        {
            subscribers.remove(oldest);
        }
        subscribers.push(Entry { sid, writer, said, done, was_here, is_followed: false });
    }

    /// How many subscribers wait to be served.
    pub(super) fn here(&self) -> u32 {
        self.count(|entry| entry.said == Kind::Here && !entry.is_followed)
    }

    /// How many subscribers know that publisher `pid` is done.
    pub(super) fn finished(&self, pid: u32) -> u32 {
        self.count(|entry| entry.was_here && entry.knows_done(pid))
    }

    /// The writers by which the subscribers announce themselves that are served when publisher `pid` begins: those that do
    /// not know yet that it is done.
    pub(super) fn served(&self, pid: u32) -> Vec<Guid> {
        let is_served = |entry: &&Entry| !entry.is_followed && !entry.knows_done(pid);
        self.subscribers.lock().iter().filter(is_served).map(|entry| entry.writer).collect()
    }

    /// Whether the subscriber that announces itself by `writer` knows that publisher `pid` is done.
    pub(super) fn knows_done(&self, writer: Guid, pid: u32) -> bool {
        self.subscribers.lock().iter().any(|entry| entry.writer == writer && entry.knows_done(pid))
    }

    /// How many numbers subscribers have of which this is true.
    fn count(&self, is_meant: impl Fn(&Entry) -> bool) -> u32 {
        let subscribers = self.subscribers.lock();
        let numbers: BTreeSet<i32> =
            subscribers.iter().filter(|entry| is_meant(entry)).map(|entry| entry.sid).collect();
        u32::try_from(numbers.len()).unwrap_or(u32::MAX)
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

/// Beyond as many subscribers, those in whose place another one has come are forgotten.
const ENTRIES_MAX: usize = 4096;

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
        roll.note(0, guid(1), Kind::Here, Vec::new());
        roll.note(1, guid(2), Kind::Here, Vec::new());
        roll.note(0, guid(1), Kind::Serving, vec![3, 1]);
        assert_eq!((roll.finished(0), roll.finished(1), roll.finished(3)), (0, 1, 1));
        roll.note(1, guid(2), Kind::Serving, vec![3]);
        assert_eq!((roll.finished(1), roll.finished(3)), (1, 2));
        assert_eq!(roll.served(1), [guid(2)]);
        assert_eq!(roll.served(3), []);
        assert!(roll.knows_done(guid(1), 1) && !roll.knows_done(guid(2), 1));
    }

    #[test]
    fn the_next_subscriber_takes_the_place_of_the_one_before() {
        let roll = Roll::default();
        // The end that it knows is that of the run before.
        roll.note(0, guid(1), Kind::Final, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (0, 0));
        roll.note(0, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.here(), roll.finished(0), roll.served(0)), (1, 0, vec![guid(2)]));
        // What the one before says late means nothing, and neither does one that comes and serves somebody else.
        roll.note(0, guid(1), Kind::Final, Vec::new());
        roll.note(0, guid(3), Kind::Final, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (1, 0));
    }

    #[test]
    fn that_a_subscriber_was_done_is_known_when_the_next_one_is_there() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Here, Vec::new());
        roll.note(0, guid(1), Kind::Serving, Vec::new());
        roll.note(0, guid(1), Kind::Final, Vec::new());
        roll.note(0, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.here(), roll.finished(0)), (1, 1));
        assert!(roll.knows_done(guid(1), 0));
    }

    #[test]
    fn subscribers_that_come_and_go_take_bounded_memory() {
        let roll = Roll::default();
        for number in 0..2 * ENTRIES_MAX as u64 {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            roll.note(7, Guid::from_bytes(bytes), Kind::Here, Vec::new());
        }
        assert_eq!((roll.here(), roll.subscribers.lock().len()), (1, ENTRIES_MAX));
    }
}
