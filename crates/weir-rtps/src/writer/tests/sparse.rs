//! Writers whose samples come one by one, with long pauses.

use super::*;

const PAUSE: Duration = config::HEARTBEAT_DELAY_MIN;

/// A writer with a reliable reader that answers every HEARTBEAT at once.
struct Link {
    writer: WriterCore,
    now: Time,
    count: u32,
}

impl Link {
    fn new() -> Self {
        let mut writer = WriterCore::new(config(Reliability::Reliable));
        writer.match_reader(Time(0), reader(READER, true));
        sent(&mut writer, Time(0));
        acknack(&mut writer, 1, 1, &[]);
        let mut link = Self { writer, now: Time(1), count: 1 };
        // The timer of the first HEARTBEAT.
        link.burst(0);
        link
    }

    /// Writes samples at once, after a pause. Returns what leaves with them, and when the timer expires.
    fn burst(&mut self, samples: usize) -> Vec<String> {
        self.now = self.now + PAUSE;
        let mut words = Vec::new();
        for _ in 0..samples {
            write(&mut self.writer, self.now, &[0; 8]).unwrap();
            words.extend(sent(&mut self.writer, self.now));
            self.acknowledge(&words);
        }
        // What the timer sends.
        while let Some(at) = self.writer.next_timeout() {
            self.now = at;
            self.writer.handle_timeout(at);
            words.extend(sent(&mut self.writer, at));
            self.acknowledge(&words);
        }
        words
    }

    fn acknowledge(&mut self, words: &[String]) {
        if words.last().is_some_and(|last| last.starts_with("HEARTBEAT")) {
            self.count += 1;
            let next = self.writer.history.next().0;
            acknack(&mut self.writer, self.count, next, &[]);
        }
    }
}

#[test]
fn a_sparse_sample_brings_its_heartbeat_once_two_before_were_alone() {
    let mut link = Link::new();
    for (samples, expected) in [
        (1, "DATA 1, HEARTBEAT 1..1"),
        (1, "DATA 2, HEARTBEAT 2..2"),
        (1, "DATA 3, HEARTBEAT 3..3"),
        (1, "DATA 4, HEARTBEAT 4..4"),
    ] {
        assert_eq!(link.burst(samples).join(", "), expected);
    }
    // The first two by the timer.
    let timed = |link: &mut Link| {
        let before = link.now + PAUSE;
        link.burst(1);
        link.now > before
    };
    assert!(!timed(&mut link));
    assert_eq!([(); 3].map(|()| timed(&mut Link::new())), [true; 3]);
}

#[test]
fn bursts_have_one_heartbeat_at_their_end() {
    let mut link = Link::new();
    for _ in 0..3 {
        let words = link.burst(3);
        assert_eq!(words.iter().filter(|word| word.starts_with("HEARTBEAT")).count(), 1, "{words:?}");
        assert!(words[3].starts_with("HEARTBEAT"));
    }
    // It is not known that the first one of these is not alone.
    let mut link = Link::new();
    (0..3).for_each(|_| _ = link.burst(1));
    assert_eq!(link.burst(2), ["DATA 4", "HEARTBEAT 4..4", "DATA 5", "HEARTBEAT 5..5"]);
    assert_eq!(link.burst(2), ["DATA 6", "DATA 7", "HEARTBEAT 6..7"]);
}

#[test]
fn a_lost_sparse_sample_is_asked_for_again() {
    let mut link = Link::new();
    (0..3).for_each(|_| _ = link.burst(1));
    link.now = link.now + PAUSE;
    write(&mut link.writer, link.now, &[0; 8]).unwrap();
    assert_eq!(sent(&mut link.writer, link.now), ["DATA 4", "HEARTBEAT 4..4"]);
    let at = link.writer.next_timeout().unwrap();
    assert_eq!(at.since(link.now), PAUSE * 2);
    link.writer.handle_timeout(at);
    assert_eq!(sent(&mut link.writer, at), ["HEARTBEAT 4..4"]);
}
