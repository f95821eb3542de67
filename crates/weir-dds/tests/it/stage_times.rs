//! Stage timestamps of a participant that records them.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use weir_dds::{DataReader, DataWriter, ParticipantSettings};

use crate::support::{Numbered, World, lossless_reader, lossless_writer, matched, settings, take_exactly};

fn pair(settings: ParticipantSettings) -> (DataWriter<Numbered>, DataReader<Numbered>) {
    let world = World::new();
    let writer = world.writer(&world.participant_with(settings.clone()), lossless_writer());
    let reader = world.reader(&world.participant_with(settings), lossless_reader());
    matched(&[&writer], &[&reader]);
    (writer, reader)
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_sample_has_its_times_in_their_order() {
    let (writer, reader) = pair(settings().with_stage_times());
    let mut sent_at_once = 0;
    for number in 0..20 {
        let (begin, wall_begin) = (monotonic_ns(), wall_ns());
        writer.write(&Numbered::new(1, number)).unwrap();
        // A sample held back for a burst leaves later: the times are still those of the previous
        // one.
        let sent = writer.last_send_times().filter(|sent| sent.called_ns >= begin);
        take_exactly(&reader, 1);
        let (end, wall_end) = (monotonic_ns(), wall_ns());
        let received = reader.last_receive_times().unwrap();
        if let Some(sent) = sent {
            sent_at_once += 1;
            assert!(sent.called_ns <= sent.returned_ns, "{sent:?}");
            assert!(sent.called_ns <= received.returned_ns, "{sent:?} {received:?}");
        }
        assert!(
            begin <= received.returned_ns
                && received.returned_ns <= received.sorted_ns
                && received.sorted_ns <= end,
            "{begin} {received:?} {end}"
        );
        // The wall clock may be slewed meanwhile.
        let stamped = received.stamped_ns.unwrap();
        assert!(stamped + 1_000_000 >= wall_begin && stamped <= wall_end + 1_000_000, "{received:?}");
    }
    assert!(sent_at_once > 0, "the first one has no burst to wait for");
}

#[test]
fn stage_times_are_not_kept_by_default() {
    let (writer, reader) = pair(settings());
    writer.write(&Numbered::new(1, 0)).unwrap();
    take_exactly(&reader, 1);
    assert_eq!((writer.last_send_times(), reader.last_receive_times()), (None, None));
}
