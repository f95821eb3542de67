use super::*;

const LIMIT: Duration = Duration::from_secs(2);
const STUCK: Guid = Guid::new(GuidPrefix([3; 12]), READER.entity);

/// A KEEP_ALL writer with a healthy reader and one that will acknowledge nothing.
fn writer(reader_inactivity: Option<Duration>) -> WriterCore {
    writer_with(reader_inactivity, None, &[READER, STUCK])
}

fn writer_with(
    reader_inactivity: Option<Duration>,
    batch: Option<BatchPolicy>,
    readers: &[Guid],
) -> WriterCore {
    let config = WriterConfig { reader_inactivity, batch, ..config(Reliability::Reliable) };
    let mut writer = WriterCore::new(config);
    for &guid in readers {
        writer.match_reader(Time(0), reader(guid, true));
        answer(&mut writer, Time(0), guid, 1, 1, &[]);
    }
    sent(&mut writer, Time(0));
    writer
}

fn answer(writer: &mut WriterCore, now: Time, reader: Guid, count: u32, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: reader.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(now, reader, &acknack);
}

/// Has the healthy reader acknowledge everything.
fn acknowledge(writer: &mut WriterCore, now: Time, count: &mut u32) {
    *count += 1;
    let next = writer.last_sequence_number().next().0;
    answer(writer, now, READER, *count, next, &[]);
}

/// Writes until the writer refuses, and returns how many samples that were.
fn fill(writer: &mut WriterCore, now: Time, count: &mut u32) -> usize {
    let mut written = 0;
    while write(writer, now, &[0; 1000]).is_ok() {
        written += 1;
        sent(writer, now);
        acknowledge(writer, now, count);
        assert!(written < 100_000, "never refused");
    }
    written
}

/// Does what is due until then, and returns how many HEARTBEATs were sent.
fn pass(writer: &mut WriterCore, until: Time) -> usize {
    let mut heartbeats = 0;
    while let Some(now) = writer.next_timeout().filter(|at| *at <= until) {
        writer.handle_timeout(now);
        heartbeats += sent(writer, now).iter().filter(|word| word.starts_with("HEARTBEAT")).count();
    }
    heartbeats
}

#[test]
fn a_reader_that_acknowledges_nothing_holds_up_a_writer_as_long_as_its_policy_says() {
    let mut writer = writer(Some(LIMIT));
    let mut count = 1;
    let written = fill(&mut writer, Time(0), &mut count);
    assert!(written > 0);
    assert_eq!(writer.lagging_readers().collect::<Vec<_>>(), [STUCK]);
    // It answers, but acknowledges nothing new.
    let almost = Time(0) + LIMIT;
    pass(&mut writer, almost);
    answer(&mut writer, almost, STUCK, 2, 1, &[]);
    assert!(write(&mut writer, almost, &[0; 1000]).is_err());
    assert_eq!(writer.inactive_readers().count(), 0);
    // The time counts from the first HEARTBEAT that was due.
    let over = almost + config::HEARTBEAT_DELAY_MIN;
    pass(&mut writer, over);
    assert!(writer.take_silence().has_stalled && !writer.has_silence());
    assert_eq!(writer.lagging_readers().next(), None);
    assert_eq!(writer.inactive_readers().collect::<Vec<_>>(), [STUCK]);
    assert!(writer.is_acknowledged(SequenceNumber(written as i64)));
    assert_eq!((writer.counters().readers_stalled, writer.kept()), (1, 0));
    assert!(write(&mut writer, over, &[0; 1000]).is_ok());
    sent(&mut writer, over);
    acknowledge(&mut writer, over, &mut count);
    // Meanwhile it is sent a HEARTBEAT per second.
    let later = over + Duration::from_secs(60);
    let heartbeats = pass(&mut writer, later);
    assert!((58..=61).contains(&heartbeats), "{heartbeats}");
    // It comes back: what was released it gets as a GAP, and it is waited for again.
    answer(&mut writer, later, STUCK, 3, 5, &[5, 6]);
    assert_eq!((writer.counters().readers_resumed, writer.inactive_readers().count()), (1, 0));
    let words = sent(&mut writer, later);
    assert!(words.iter().any(|word| word.starts_with("GAP 1 to")), "{words:?}");
    write(&mut writer, later, &[0; 1000]).unwrap();
    sent(&mut writer, later);
    acknowledge(&mut writer, later, &mut count);
    assert_eq!(writer.lagging_readers().collect::<Vec<_>>(), [STUCK]);
    let next = writer.last_sequence_number().next();
    answer(&mut writer, later, STUCK, 4, next.0, &[]);
    assert!(writer.is_acknowledged(writer.last_sequence_number()));
}

#[test]
fn the_last_awaited_reader_that_stalls_leaves_a_writer_that_prompts_it() {
    let settings = WriterConfig { reader_inactivity: Some(LIMIT), ..config(Reliability::Reliable) };
    let mut writer = WriterCore::new(settings);
    writer.match_reader(Time(0), reader(READER, true));
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    while write(&mut writer, Time(0), &[0; 1000]).is_ok() {
        sent(&mut writer, Time(0));
    }
    let over = Time(0) + LIMIT + config::HEARTBEAT_DELAY_MIN;
    pass(&mut writer, over);
    assert!(!writer.has_reliable && writer.kept() == 0);
    for _ in 0..1000 {
        write(&mut writer, over, &[0; 1000]).unwrap();
        sent(&mut writer, over);
    }
    let heartbeats = pass(&mut writer, over + Duration::from_secs(10));
    assert!((9..=11).contains(&heartbeats), "{heartbeats}");
    // Another reader that changes nothing about it does not end that.
    writer.match_reader(over, reader(Guid::new(GuidPrefix([9; 12]), READER.entity), false));
    assert!(writer.next_timeout().is_some());
    acknack(&mut writer, 2, 7, &[]);
    assert!(writer.has_reliable && writer.inactive_readers().next().is_none());
}

#[test]
fn without_the_policy_a_reader_is_waited_for_as_long_as_it_is_matched() {
    let mut writer = writer(None);
    fill(&mut writer, Time(0), &mut 1);
    let later = Time(0) + Duration::from_secs(3600);
    pass(&mut writer, later);
    assert!(write(&mut writer, later, &[0; 1000]).is_err());
    assert_eq!(writer.counters().readers_stalled, 0);
    // It is silent, of which the participant is notified.
    assert_eq!(writer.take_silence(), Silence { silent: vec![STUCK], has_stalled: false });
    answer(&mut writer, later, STUCK, 2, 1, &[]);
    assert_eq!(writer.take_silence(), Silence::default());
}

#[test]
fn progress_of_any_size_keeps_a_reader_awaited() {
    let mut writer = writer(Some(LIMIT));
    let mut count = 1;
    fill(&mut writer, Time(0), &mut count);
    let mut now = Time(0);
    for step in 0..20 {
        now = now + LIMIT / 2;
        pass(&mut writer, now);
        answer(&mut writer, now, STUCK, 2 + step, 2 + i64::from(step), &[]);
        fill(&mut writer, now, &mut count);
    }
    assert_eq!((writer.counters().readers_stalled, writer.inactive_readers().count()), (0, 0));
}

/// A batch that stays open for longer than the tests last.
const OPEN: Option<BatchPolicy> =
    Some(BatchPolicy { max_bytes: 8192, max_samples: 1000, max_delay: Duration::from_secs(60) });

#[test]
fn a_reader_that_has_all_but_the_open_batch_is_not_silent() {
    let mut writer = writer_with(None, OPEN, &[READER, STUCK]);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    writer.end_burst(Time(1), &mut Outbox::new());
    answer(&mut writer, Time(1), READER, 2, 2, &[]);
    write(&mut writer, Time(2), &[0; 8]).unwrap();
    assert!(pass(&mut writer, Time(2) + LIMIT) > config::UNANSWERED_HEARTBEATS as usize);
    assert_eq!(writer.take_silence().silent, [STUCK]);
}

#[test]
fn a_reader_that_is_not_waited_for_is_prompted_although_a_batch_is_open() {
    for readers in [&[STUCK][..], &[READER, STUCK]] {
        is_prompted_beside(readers);
    }
}

fn is_prompted_beside(readers: &[Guid]) {
    let mut writer = writer_with(Some(LIMIT), OPEN, readers);
    write(&mut writer, Time(1), &[0; 8]).unwrap();
    writer.end_burst(Time(1), &mut Outbox::new());
    answer(&mut writer, Time(1), READER, 2, 2, &[]);
    let stalled = Time(1) + 2 * LIMIT;
    pass(&mut writer, stalled);
    assert_eq!(writer.inactive_readers().collect::<Vec<_>>(), [STUCK]);
    write(&mut writer, stalled, &[0; 8]).unwrap();
    assert!(pass(&mut writer, stalled + 3 * config::HEARTBEAT_DELAY_MAX) >= 2);
}
