//! The path of values that policies only count and record does what the general one does.

use core::time::Duration;

use weir_cdr::{CdrValue, DdsType};
use weir_filter::{Expression, Filter};

use super::policies::{STRONG, Source, WEAK, at, keyed, two_writers};
use super::*;
use crate::qos::{INFINITE, Ownership};
use crate::reader::plain::Plainness;

#[derive(Default, DdsType)]
#[dds(extensibility = "final")]
struct Value {
    id: u8,
    x: u8,
}

fn filter() -> Arc<Filter> {
    let expression = Expression::filter("x < 150").unwrap();
    Arc::new(Filter::new::<&str>(&expression, &Value::DESCRIPTION, &[]).unwrap())
}

/// Two readers that receive the same, one of which takes the general path always.
struct Twins([ReaderCore; 2]);

impl Twins {
    fn new(config: &ReaderConfig, lifespans: [Duration; 2]) -> Self {
        Self([(); 2].map(|()| {
            let mut reader = two_writers(config.clone());
            for ((writer, strength), lifespan) in [(WEAK, 1), (STRONG, 2)].into_iter().zip(lifespans) {
                reader.set_writer_policies(writer, WriterPolicies { lifespan, strength });
                let of = Heartbeat { writer: writer.entity, ..heartbeat_of(EntityId::UNKNOWN, 1, 0, 1) };
                reader.handle_heartbeat(at(0), writer, &Heartbeat { is_final: true, ..of });
            }
            reader
        }))
    }

    fn both<T: PartialEq + core::fmt::Debug>(&mut self, mut each: impl FnMut(&mut ReaderCore) -> T) -> T {
        let [plain, general] = &mut self.0;
        if let Some(enforced) = &mut general.delivery.cache.enforced {
            enforced.plainness = Plainness::Decides;
        }
        let (one, other) = (each(plain), each(general));
        assert_eq!(one, other);
        one
    }
}

fn random(state: &mut u32, below: u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 8) % below
}

/// One sample of either writer, or something else that changes what the policies know. Returns whether it was a value.
fn step(twins: &mut Twins, sources: &mut [Source; 2], now: Time, state: &mut u32) -> bool {
    let which = random(state, 4).min(1) as usize;
    let key = random(state, 3) as u8;
    let (guid, next) = (sources[which].guid, sources[which].next);
    let action = random(state, 20);
    twins.both(|reader| {
        let mut source = Source { guid, next };
        match action {
            0 => source.end(reader, now, key, 1 + (next % 3) as u8),
            1 => reader.handle_timeout(now),
            2 => reader.expire(now),
            3 => reader.unmatch_writer(now, Guid::UNKNOWN),
            _ => _ = source.send(reader, now, key),
        }
        (reader.available(), reader.next_timeout(), reader.has_left())
    });
    sources[which].next += i64::from(action == 0 || action > 3);
    action > 3
}

#[test]
fn values_that_are_only_counted_leave_the_same_behind_them() {
    let ms = Duration::from_millis;
    let exclusive = ReaderConfig { ownership: Ownership::Exclusive, ..keyed() };
    let cases = [
        (ReaderConfig { deadline: ms(4), ..keyed() }, [INFINITE; 2]),
        (keyed(), [ms(3), ms(3)]),
        (ReaderConfig { history: History::KeepLast(2), ..keyed() }, [ms(3), ms(9)]),
        (keyed(), [ms(9), INFINITE]),
        (exclusive.clone(), [INFINITE; 2]),
        (ReaderConfig { deadline: ms(4), ..exclusive }, [ms(2), ms(5)]),
        (ReaderConfig { content_filter: Some(filter()), ..keyed() }, [INFINITE; 2]),
    ];
    for (config, lifespans) in cases {
        let mut twins = Twins::new(&config, lifespans);
        let (mut sources, mut state) = ([Source::new(WEAK), Source::new(STRONG)], 1);
        let (mut values, mut now) = (0, Time(1));
        for _ in 0..5_000 {
            now = now.plus_nanos(u64::from(random(&mut state, 1_000_000)));
            values += u32::from(step(&mut twins, &mut sources, now, &mut state));
            if random(&mut state, 4) == 0 {
                twins.both(|reader| {
                    let mut taken = Vec::new();
                    reader.expire(now);
                    let state =
                        |it: RawSample<'_>| (it.payload.to_vec(), it.instance_state, it.reception_time);
                    _ = reader.take_next(|sample| taken.push(state(sample)));
                    taken
                });
            }
            twins.both(|reader| (reader.counters(), reader.take_deadline_missed(), reader.take_removed()));
        }
        assert!(values > 3_000);
    }
}

/// One instance is written once, and stays at the front of the queue. The values of the other are replaced, and from
/// time to time the queue is compacted.
#[test]
fn a_value_that_replaces_another_expires_whatever_the_queue_does_meanwhile() {
    for count in [1, 10, 1_000, 1_026, 1_027, 1_028, 1_029, 2_000, 2_100, 3_000] {
        let mut reader = two_writers(ReaderConfig { history: History::KeepLast(1), ..keyed() });
        let lifespan = Duration::from_secs(10);
        reader.set_writer_policies(WEAK, WriterPolicies { lifespan, strength: 1 });
        let of = Heartbeat { writer: WEAK.entity, ..heartbeat_of(EntityId::UNKNOWN, 1, 0, 1) };
        reader.handle_heartbeat(at(0), WEAK, &Heartbeat { is_final: true, ..of });
        let mut source = Source::new(WEAK);
        source.send(&mut reader, at(0), 1);
        for _ in 0..count {
            source.send(&mut reader, at(0), 2);
        }
        assert_eq!(reader.available(), 2, "{count}");
        reader.expire(at(10_001));
        assert_eq!((reader.available(), reader.counters().samples_expired), (0, 2), "{count}");
    }
}

#[test]
fn a_deadline_that_is_set_later_names_the_instance_that_misses_it() {
    let mut reader = two_writers(keyed());
    let mut source = Source::new(WEAK);
    source.send(&mut reader, at(0), 5);
    let period = Duration::from_millis(10);
    reader.set_policies(at(1), period, Duration::ZERO, reader.config.lifecycle);
    source.send(&mut reader, at(2), 5);
    reader.handle_timeout(at(13));
    assert_eq!(reader.take_deadline_missed().last_key, Some([5; 16]));
}
