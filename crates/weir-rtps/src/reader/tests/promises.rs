//! What policies require of timers, of records and of limits: each test names the rule that would fail without notice.

use core::time::Duration;

use super::policies::{STRONG, Source, WEAK, at, keyed, two_writers, values};
use super::*;
use crate::qos::{INFINITE, Liveliness, LivelinessKind, Ownership, Presentation, ReaderDataLifecycle};
use crate::qos::{PresentationScope, Qos};

/// Takes what is reported, so that only news follow.
fn settled(reader: &mut ReaderCore) {
    while reader.take_timeout().is_some() {}
    assert_eq!(reader.take_timeout(), None);
}

/// The thread that handles timeouts sleeps until the last one that was reported.
#[test]
fn each_policy_reports_a_timeout_that_is_earlier_than_those_before_and_no_later_one() {
    let separation = Duration::from_millis(10);
    let lifecycle = ReaderDataLifecycle {
        autopurge_disposed_samples_delay: separation,
        ..ReaderDataLifecycle::default()
    };
    let configs = [
        ("TIME_BASED_FILTER", ReaderConfig { minimum_separation: separation, ..keyed() }, INFINITE),
        ("DEADLINE", ReaderConfig { deadline: separation, ..keyed() }, INFINITE),
        ("READER_DATA_LIFECYCLE", ReaderConfig { lifecycle, ..keyed() }, INFINITE),
        ("LIFESPAN", keyed(), separation),
    ];
    for (policy, config, lifespan) in configs {
        let mut reader = two_writers(config);
        reader.set_writer_policies(WEAK, WriterPolicies { lifespan, strength: 0 });
        let mut writer = Source::new(WEAK);
        let mut begin = |reader: &mut ReaderCore, now, key| {
            match policy {
                // The first value is delivered; the second one waits.
                "TIME_BASED_FILTER" => _ = writer.send(reader, at(now), key),
                "READER_DATA_LIFECYCLE" => {
                    writer.send(reader, at(now), key);
                    return writer.end(reader, at(now), key, 1);
                }
                _ => {}
            }
            writer.send(reader, at(now), key);
        };
        // Their HEARTBEATs are not requested any more.
        for writer in [WEAK, STRONG] {
            let of = Heartbeat { writer: writer.entity, ..heartbeat_of(EntityId::UNKNOWN, 1, 1, 0) };
            reader.handle_heartbeat(at(0), writer, &Heartbeat { is_final: true, ..of });
        }
        settled(&mut reader);
        begin(&mut reader, 5, 1);
        assert_eq!(reader.take_timeout(), Some(at(15)), "{policy}");
        begin(&mut reader, 7, 2);
        assert_eq!(reader.take_timeout(), None, "{policy}: it is later");
        reader.handle_timeout(at(15));
        assert_eq!(reader.take_timeout(), Some(at(17)), "{policy}");
    }
}

/// An owner that is back begins another lease, after all others were found to be endless.
#[test]
fn the_second_lease_of_an_owner_ends_before_the_timer_says_so() {
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
    let lease = Duration::from_millis(100);
    reader.set_liveliness(at(0), STRONG, Liveliness { kind: LivelinessKind::ManualByTopic, lease });
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let first = strong.send(&mut reader, at(0), 1);
    let second = weak.send(&mut reader, at(100), 1);
    let third = strong.send(&mut reader, at(110), 1);
    weak.send(&mut reader, at(209), 1);
    let fourth = weak.send(&mut reader, at(210), 1);
    let mut taken: Vec<u8> = Vec::new();
    while reader.take_next(|sample| taken.extend(sample.payload.get(5))) {}
    assert_eq!(taken, [first, second, third, fourth]);
}

#[test]
fn what_is_recorded_of_writers_that_have_left_is_forgotten() {
    let scope = PresentationScope::Group;
    let presentation = Presentation { scope, coherent_access: true, ordered_access: true };
    let ownership = Ownership::Exclusive;
    for config in [ReaderConfig { ownership, ..keyed() }, ReaderConfig { presentation, ..keyed() }] {
        let mut reader = two_writers(config);
        let mut come_and_go = |number: u32| {
            let guid = Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(number, true));
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
            let config = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            reader.match_writer(at(0), config);
            reader.set_writer_policies(guid, WriterPolicies { lifespan: Duration::MAX, strength: 1 });
            reader.set_writer_group(guid, STRONG);
            let mut source = Source::new(guid);
            source.send(&mut reader, at(1), 1);
            reader.unmatch_writer(at(2), guid);
            values_or_states(&mut reader);
            reader.memory()
        };
        // The positions of writers that may be back are bounded by a constant.
        (0..2 * DEPARTED_WRITERS_MAX as u32).for_each(|number| _ = come_and_go(number));
        let before = come_and_go(1_000_000);
        let after = (1_000_001..1_003_000).map(come_and_go).last();
        assert_eq!(after, Some(before));
    }
}

fn values_or_states(reader: &mut ReaderCore) {
    while reader.access(usize::MAX, SampleSelection::default(), true, |_| true) > 0 {}
}

#[test]
fn a_policy_of_a_writer_that_was_forgotten_does_not_apply_to_its_successor() {
    let mut reader = two_writers(ReaderConfig { ownership: Ownership::Exclusive, ..keyed() });
    let mut strong = Source::new(STRONG);
    strong.send(&mut reader, at(0), 1);
    reader.unmatch_writer(at(1), STRONG);
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let config = WriterProxyConfig { guid: STRONG, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(at(2), config);
    let mut weak = Source::new(WEAK);
    weak.send(&mut reader, at(3), 1);
    strong.send(&mut reader, at(4), 1);
    assert_eq!(reader.counters().samples_not_owned, 1, "its strength is 0 now");
}

/// A policy that a reader only has because a writer has a lifespan leaves the samples of others alone.
#[test]
fn a_lifespan_brings_no_other_policy() {
    let mut reader = two_writers(keyed());
    assert!(!reader.has_policies() && !reader.has_expiring());
    let policies = |lifespan| WriterPolicies { lifespan, strength: 0 };
    reader.set_writer_policies(WEAK, policies(Duration::from_millis(10)));
    assert!(reader.has_policies());
    let (mut weak, mut strong) = (Source::new(WEAK), Source::new(STRONG));
    let lasting = strong.send(&mut reader, at(0), 1);
    assert!(!reader.has_expiring());
    weak.send(&mut reader, at(0), 1);
    assert!(reader.has_expiring() && !reader.has_deadline_news());
    reader.expire(at(10));
    assert_eq!(values(&mut reader), [lasting]);
    assert_eq!(Qos::for_writer().lifespan, INFINITE);
}
