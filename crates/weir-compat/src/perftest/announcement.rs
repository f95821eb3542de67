//! Announcements of subscribers, as a publisher receives them.

use std::sync::Arc;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, InstanceHandle, SampleSeq};

use super::message::{self, Kind};
use weir_bench::test_data::Owned;

/// The subscribers, with their last announcements.
#[derive(Debug, Default)]
pub(super) struct Roll {
    subscribers: Mutex<Vec<Entry>>,
    /// Held from taking announcements to recording them.
    hearing: Mutex<()>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    sid: i32,
    writer: InstanceHandle,
    said: Kind,
    /// Numbers of the publishers that it knows to be done.
    done: Vec<i32>,
    /// Another subscriber with its number waits.
    is_followed: bool,
    /// It waited when this publisher began.
    is_served: bool,
}

impl Entry {
    fn knows_done(&self, pid: u32) -> bool {
        self.said == Kind::Final || self.done.contains(&pid.cast_signed())
    }

    /// Whether it waits for publisher `pid`: one that knows that publisher to be done waits for
    /// others.
    fn waits_for(&self, pid: u32) -> bool {
        self.said == Kind::Here && !self.is_followed && !self.knows_done(pid)
    }
}

impl Roll {
    /// Records an announcement of subscriber `sid`. A second subscriber with the same number counts
    /// only if it waits to be served. The announcements of the first one are kept: the next run's
    /// subscriber may arrive before this run's publisher has checked.
    fn note(&self, sid: i32, writer: InstanceHandle, said: Kind, done: Vec<i32>) {
        let mut subscribers = self.subscribers.lock();
        let known = subscribers.iter_mut().find(|entry| entry.sid == sid && entry.writer == writer);
        if let Some(entry) = known {
            (entry.said, entry.done) = (said, done);
        } else {
            if said != Kind::Here && subscribers.iter().any(|entry| entry.sid == sid) {
                return;
            }
            if subscribers.len() >= ENTRIES_MAX {
                let is_over = |entry: &Entry| entry.is_followed && !entry.is_served;
                let Some(oldest) = subscribers.iter().position(is_over) else { return };
                subscribers.remove(oldest);
            }
            let (is_followed, is_served) = (false, false);
            subscribers.push(Entry { sid, writer, said, done, is_followed, is_served });
        }
        if said == Kind::Here {
            let same = subscribers.iter_mut().filter(|entry| entry.sid == sid);
            same.for_each(|entry| entry.is_followed = entry.writer != writer);
        }
    }

    /// How many subscribers wait to be served by publisher `pid`.
    pub(super) fn waiting_for(&self, pid: u32) -> u32 {
        self.count(|entry| entry.waits_for(pid))
    }

    /// Starts publisher `pid` if enough subscribers wait for it: those are served from now on.
    pub(super) fn begin(&self, pid: u32, wanted: u32) -> bool {
        let mut subscribers = self.subscribers.lock();
        let waiting: Vec<_> = subscribers.iter_mut().filter(|entry| entry.waits_for(pid)).collect();
        if waiting.len() < wanted as usize {
            return false;
        }
        waiting.into_iter().for_each(|entry| entry.is_served = true);
        true
    }

    /// The numbers of the subscribers that are served, in order.
    pub(super) fn served(&self) -> Vec<u32> {
        let subscribers = self.subscribers.lock();
        let served = subscribers.iter().filter(|entry| entry.is_served);
        let mut numbers: Vec<u32> = served.map(|entry| entry.sid.cast_unsigned()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// How many of the subscribers that are served know that publisher `pid` is done.
    pub(super) fn finished(&self, pid: u32) -> u32 {
        self.count(|entry| entry.is_served && entry.knows_done(pid))
    }

    /// Whether a subscriber that is served does not know that publisher `pid` is done, and its
    /// writer is not among these.
    pub(super) fn misses_one(&self, pid: u32, there: &[InstanceHandle]) -> bool {
        let is_missed =
            |entry: &Entry| entry.is_served && !entry.knows_done(pid) && !there.contains(&entry.writer);
        self.subscribers.lock().iter().any(is_missed)
    }

    fn count(&self, is_meant: impl Fn(&Entry) -> bool) -> u32 {
        let count = self.subscribers.lock().iter().filter(|entry| is_meant(entry)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

/// Listens to announcements.
pub(super) struct RollListener(pub(super) Arc<Roll>);

impl<T: Owned> DataReaderListener<T> for RollListener {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let _hearing = self.0.hearing.lock();
        let mut samples = SampleSeq::new();
        while reader.take_into(&mut samples, 16) > 0 {
            for sample in &samples {
                let Some(data) = sample.data() else { continue };
                let header = data.header();
                let done = message::read_numbers(data.payload()).take(DONE_MAX).collect();
                self.0.note(header.entity_id, sample.info.publication_handle, Kind::of(&header), done);
            }
        }
    }
}

/// As many publishers as a subscriber can serve.
const DONE_MAX: usize = 1024;

/// The most subscribers. Beyond that, replaced ones are forgotten; if there are none, new ones are
/// ignored.
const ENTRIES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn guid(byte: u8) -> InstanceHandle {
        let mut bytes = [0; 16];
        bytes[0] = byte;
        weir_dds::Guid::from_bytes(bytes).into()
    }

    #[test]
    fn a_subscriber_that_serves_somebody_else_does_not_wait() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Here, Vec::new());
        assert!(!roll.begin(0, 2));
        roll.note(1, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.waiting_for(0), roll.finished(0)), (2, 0));
        assert!(roll.begin(0, 2));
        roll.note(0, guid(1), Kind::Serving, Vec::new());
        assert_eq!(roll.waiting_for(0), 1);
        roll.note(0, guid(1), Kind::Final, Vec::new());
        assert_eq!((roll.waiting_for(0), roll.finished(0)), (1, 1));
    }

    #[test]
    fn a_publisher_that_is_done_need_not_wait_for_the_others() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Here, Vec::new());
        roll.note(1, guid(2), Kind::Here, Vec::new());
        assert!(roll.begin(3, 2));
        roll.note(0, guid(1), Kind::Here, vec![3]);
        assert_eq!((roll.finished(3), roll.waiting_for(3), roll.waiting_for(0)), (1, 1, 2));
        roll.note(0, guid(1), Kind::Serving, vec![3, 1]);
        roll.note(1, guid(2), Kind::Serving, vec![3]);
        assert_eq!((roll.finished(0), roll.finished(1), roll.finished(3)), (0, 1, 2));
        assert!(roll.misses_one(1, &[guid(1)]) && !roll.misses_one(1, &[guid(2)]));
        assert!(!roll.misses_one(3, &[]));
    }

    #[test]
    fn the_end_of_an_earlier_run_is_none_of_this_one() {
        let roll = Roll::default();
        // One that waits for another publisher, one that has left.
        roll.note(0, guid(1), Kind::Here, vec![5]);
        roll.note(1, guid(2), Kind::Final, Vec::new());
        assert!(!roll.begin(5, 1));
        roll.note(0, guid(3), Kind::Here, Vec::new());
        roll.note(1, guid(4), Kind::Here, Vec::new());
        assert!(roll.begin(5, 2));
        // Late announcements of earlier ones are ignored, and so is a new one that serves another
        // publisher.
        roll.note(0, guid(1), Kind::Final, vec![5]);
        roll.note(0, guid(9), Kind::Final, Vec::new());
        assert_eq!((roll.waiting_for(5), roll.finished(5)), (2, 0));
    }

    #[test]
    fn subscribers_are_served_by_the_numbers_that_they_announce() {
        let roll = Roll::default();
        for (sid, byte) in [(7, 1), (1, 2), (4, 3)] {
            roll.note(sid, guid(byte), Kind::Here, Vec::new());
        }
        roll.note(4, guid(3), Kind::Serving, Vec::new());
        assert_eq!(roll.served(), Vec::<u32>::new());
        assert!(roll.begin(0, 2));
        assert_eq!(roll.served(), [1, 7]);
    }

    #[test]
    fn that_a_subscriber_was_done_is_known_when_the_next_one_is_there() {
        let roll = Roll::default();
        roll.note(0, guid(1), Kind::Here, Vec::new());
        assert!(roll.begin(0, 1));
        roll.note(0, guid(1), Kind::Serving, Vec::new());
        roll.note(0, guid(1), Kind::Final, Vec::new());
        roll.note(0, guid(2), Kind::Here, Vec::new());
        assert_eq!((roll.waiting_for(0), roll.finished(0)), (1, 1));
        assert!(!roll.misses_one(0, &[guid(2)]));
    }

    #[test]
    fn of_two_with_one_number_the_one_that_goes_on_waiting_is_heard() {
        let roll = Roll::default();
        // The remaining one announced itself first.
        for byte in [1, 2, 1] {
            roll.note(0, guid(byte), Kind::Here, Vec::new());
            assert_eq!(roll.waiting_for(0), 1);
        }
        assert!(roll.begin(0, 1));
        assert!(roll.misses_one(0, &[guid(2)]) && !roll.misses_one(0, &[guid(1)]));
    }

    #[test]
    fn subscribers_that_come_and_go_take_bounded_memory() {
        for sid in [|_| 7, |number| number] {
            let roll = Roll::default();
            for number in 0..2 * ENTRIES_MAX as i32 {
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&number.to_le_bytes());
                roll.note(sid(number), weir_dds::Guid::from_bytes(bytes).into(), Kind::Here, Vec::new());
            }
            assert_eq!(roll.subscribers.lock().len(), ENTRIES_MAX);
        }
    }
}
