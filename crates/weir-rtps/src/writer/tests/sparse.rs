//! Writers whose samples come one by one, with long pauses.

use super::*;

/// Longer than the intervals of what counts as a regular stream.
const PAUSE: Duration = Duration::from_millis(25);

/// A writer with a reliable reader that answers every HEARTBEAT at once.
struct Link {
    writer: WriterCore,
    now: Time,
    count: u32,
}

impl Link {
    fn new() -> Self {
        Self::with(config(Reliability::Reliable))
    }

    fn with(config: WriterConfig) -> Self {
        let mut writer = WriterCore::new(config);
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

/// Whether each of five single samples had its HEARTBEAT from the timer.
fn timed(link: &mut Link) -> [bool; 5] {
    [1, 2, 3, 4, 5].map(|sn| {
        let written_at = link.now + PAUSE;
        assert_eq!(link.burst(1), [format!("DATA {sn}"), format!("HEARTBEAT {sn}..{sn}")]);
        link.now > written_at
    })
}

#[test]
fn a_sparse_sample_brings_its_heartbeat_once_two_before_were_alone() {
    assert_eq!(timed(&mut Link::new()), [true, true, false, false, false]);
}

#[test]
fn readers_that_answer_slowly_are_asked_by_the_timer_only() {
    let config = WriterConfig { answer_time: Duration::from_millis(1), ..config(Reliability::Reliable) };
    assert_eq!(timed(&mut Link::with(config)), [true; 5]);
}

#[test]
fn bursts_have_one_heartbeat_at_their_end() {
    let mut link = Link::new();
    for _ in 0..3 {
        let words = link.burst(3);
        assert_eq!(words.iter().filter(|word| word.starts_with("HEARTBEAT")).count(), 1, "{words:?}");
        assert!(words[3].starts_with("HEARTBEAT"));
    }
    // After single samples, the first one of a burst seems to be single, too.
    let mut link = Link::new();
    (0..3).for_each(|_| _ = link.burst(1));
    assert_eq!(link.burst(2), ["DATA 4", "HEARTBEAT 4..4", "DATA 5", "HEARTBEAT 5..5"]);
    assert_eq!(link.burst(2), ["DATA 6", "DATA 7", "HEARTBEAT 6..7"]);
}

#[test]
fn the_heartbeat_of_a_lost_sparse_sample_is_repeated() {
    let mut link = Link::new();
    (0..3).for_each(|_| _ = link.burst(1));
    link.now = link.now + PAUSE;
    write(&mut link.writer, link.now, &[0; 8]).unwrap();
    assert_eq!(sent(&mut link.writer, link.now), ["DATA 4", "HEARTBEAT 4..4"]);
    let at = link.writer.next_timeout().unwrap();
    assert_eq!(at.since(link.now), config::HEARTBEAT_DELAY_MIN * 2);
    link.writer.handle_timeout(at);
    assert_eq!(sent(&mut link.writer, at), ["HEARTBEAT 4..4"]);
}
