//! The fast path leaves the same bytes and state as the general path.

use super::*;

const LATER: Guid = Guid::new(GuidPrefix([3; 12]), EntityId::user_reader(1, false));

/// Two writers with the same history, one of which uses the fast path where it applies.
struct Twins {
    one: WriterCore,
    other: WriterCore,
    now: Time,
    state: u32,
    count: u32,
    lone: usize,
    sent: [Vec<Vec<u8>>; 2],
}

impl Twins {
    fn new(config: &WriterConfig) -> Self {
        let writer = || WriterCore::new(config.clone());
        let (one, other) = (writer(), writer());
        Self { one, other, now: Time(1), state: 1, count: 0, lone: 0, sent: Default::default() }
    }

    fn random(&mut self, below: u32) -> u32 {
        self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.state >> 8) % below
    }

    fn both(&mut self, mut each: impl FnMut(&mut WriterCore, Time)) {
        each(&mut self.one, self.now);
        each(&mut self.other, self.now);
    }

    fn write(&mut self) {
        let size = match self.random(40) {
            0 => 70_000,
            1 => 60_000,
            more => more as usize,
        };
        let mut key = [0; 16];
        key[0] = self.random(3) as u8;
        let key = Some(key).filter(|_| self.one.config.guid.entity.is_keyed());
        let (now, payload) = (self.now, vec![key.map_or(7, |key| key[0]); size]);
        let fill = |room: &mut [u8]| {
            room.copy_from_slice(&payload);
            Ok::<_, ()>(())
        };
        let first = self.one.write(now, Stamp { key, ..STAMP }, size, fill);
        // A part of the payload may be sent without being copied.
        let start = self.random(size as u32 + 1) as usize;
        let bulk = &payload[start..][..self.random((size - start) as u32 + 1) as usize];
        let fill_around = |room: &mut [u8]| {
            let stays = start..start + bulk.len();
            let outside = room.iter_mut().enumerate().filter(|(at, _)| !stays.contains(at));
            outside.for_each(|(at, byte)| *byte = payload[at]);
            Ok::<_, ()>(start)
        };
        let mut sent = None;
        let send = |datagram: DirectDatagram<'_>| {
            sent = Some([datagram.front, datagram.bulk, datagram.back].concat());
        };
        let lone = DirectPayload { len: size, bulk };
        if self.other.write_direct(now, Stamp { key, ..STAMP }, lone, fill_around, send).unwrap() {
            self.lone += 1;
            self.sent[1].push(sent.unwrap());
            assert_eq!(first, Ok(Ok(self.other.last_sequence_number())));
        } else {
            assert_eq!(sent, None);
            assert_eq!(first, self.other.write(now, Stamp { key, ..STAMP }, size, fill));
        }
    }

    /// Makes something other than a write happen.
    fn event(&mut self) {
        let last = self.one.last_sequence_number().0;
        let known = self.one.acknowledged.0;
        match self.random(12) {
            0..6 => {
                self.count += 1;
                let base = known + 1 + i64::from(self.random((last - known).max(0) as u32 + 1));
                let missing: &[i64] = if self.random(8) == 0 && base <= last { &[base] } else { &[] };
                let count = self.count;
                self.both(|writer, _| acknack(writer, count, base, missing));
            }
            6..10 => {
                if let Some(at) = self.one.next_timeout() {
                    self.now = self.now.max(at);
                    self.both(WriterCore::handle_timeout);
                }
            }
            10 => self.both(|writer, now| writer.match_reader(now, reader(LATER, true))),
            _ => self.both(|writer, now| writer.unmatch_reader(now, LATER)),
        }
    }

    fn transmit(&mut self) {
        for (writer, sent) in [&mut self.one, &mut self.other].into_iter().zip(&mut self.sent) {
            let mut out = Outbox::new();
            writer.poll_transmit(self.now, &mut out);
            out.for_each_datagram(|_, datagram| sent.push(datagram.to_vec()));
        }
    }

    fn compare(&mut self) {
        let [one, other] = &mut self.sent;
        assert_eq!(one, other);
        one.clear();
        other.clear();
        let what = |writer: &WriterCore| {
            let numbers = (writer.last_sequence_number(), writer.unsent, writer.acknowledged);
            let history = (writer.kept(), writer.span(), writer.history.first(), writer.history.live_bytes());
            let burst = (writer.burst.queued_since, writer.burst.datagrams, writer.burst.bytes);
            let instances = writer.instances.memory();
            (numbers, history, burst, instances, writer.window(), writer.counters(), writer.next_timeout())
        };
        assert_eq!(what(&self.one), what(&self.other));
    }

    fn run(mut self, gaps: &[u32], is_reliable: bool) -> usize {
        self.both(|writer, now| writer.match_reader(now, reader(READER, is_reliable)));
        for step in 0..4_000 {
            self.now = self.now.plus_nanos(gaps[(step / 50) % gaps.len()].into());
            match self.random(10) {
                // Its consequences may be due when the next sample is written.
                0 => self.event(),
                1 => {
                    self.event();
                    self.transmit();
                }
                _ => {
                    self.write();
                    self.transmit();
                }
            }
            self.now = self.now.plus_nanos(300);
            self.both(|writer, now| {
                writer.note_sent(now);
                writer.note_send_time(Duration::from_nanos(300));
            });
            self.compare();
        }
        self.lone
    }
}

#[test]
fn samples_that_leave_alone_are_the_same_with_the_same_state_behind_them() {
    let keyed = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
    let mut lone = 0;
    for (index, history) in
        [History::KeepAll, History::KeepLast(1), History::KeepLast(3)].into_iter().enumerate()
    {
        for (reliability, is_reliable) in [
            (Reliability::BestEffort, false),
            (Reliability::Reliable, true),
            // A reader that requests less than is offered.
            (Reliability::Reliable, false),
        ] {
            for durability in [Durability::Volatile, Durability::TransientLocal] {
                for (guid, coalescing, max_samples) in [
                    (WRITER, None, None),
                    (WRITER, Some(Coalescing::default()), None),
                    (WRITER, Some(Coalescing::default()), Some(40)),
                    (keyed, Some(Coalescing::default()), None),
                    (keyed, None, Some(40)),
                ] {
                    let config = WriterConfig {
                        guid,
                        history,
                        durability,
                        coalescing,
                        max_samples,
                        ..config(reliability)
                    };
                    let gaps =
                        [[100_000, 500, 1_000_000], [5_000, 2_000, 100], [20_000_000, 3_000, 0]][index];
                    let count = Twins::new(&config).run(&gaps, is_reliable);
                    assert!(count > 0, "{config:?}");
                    lone += count;
                }
            }
        }
    }
    assert!(lone > 10_000, "{lone}");
}
