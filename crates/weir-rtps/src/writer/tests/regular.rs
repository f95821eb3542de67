//! Writers with samples at regular intervals.

use super::*;

const INTERVAL: Duration = Duration::from_millis(5);

/// A writer with a reader of this engine on this host, which answers every HEARTBEAT at once.
fn writer() -> WriterCore {
    writer_with(History::KeepAll)
}

fn writer_with(history: History) -> WriterCore {
    let mut writer = WriterCore::new(WriterConfig { history, ..config(Reliability::Reliable) });
    let near = ReaderProxyConfig { vendor: VendorId::WEIR, path: None, ..reader(READER, true) };
    writer.match_reader(Time(0), near);
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 1, &[]);
    writer
}

/// Writes `bursts` bursts of `samples` samples, one each `interval`. Returns when HEARTBEATs were sent, which are
/// answered unless `is_deaf`.
fn write_bursts(writer: &mut WriterCore, bursts: u64, samples: usize, interval: Duration) -> Vec<Duration> {
    let mut asked = Vec::new();
    for burst in 1..=bursts {
        let at = Time(0) + interval * burst as u32;
        run(writer, at, &mut asked);
        for _ in 0..samples {
            write(writer, at, &[0; 8]).unwrap();
            send(writer, at, &mut asked);
        }
    }
    run(writer, Time(0) + interval * bursts as u32 + Duration::from_secs(1), &mut asked);
    asked
}

/// Handles the timeouts before a time.
fn run(writer: &mut WriterCore, until: Time, asked: &mut Vec<Duration>) {
    while let Some(at) = writer.next_timeout().filter(|at| *at < until) {
        writer.handle_timeout(at);
        send(writer, at, asked);
    }
}

fn send(writer: &mut WriterCore, now: Time, asked: &mut Vec<Duration>) {
    if sent(writer, now).last().is_some_and(|last| last.starts_with("HEARTBEAT")) {
        asked.push(now.since(Time(0)));
        let next = writer.history.next().0;
        answer(writer, now, asked.len() as u32 + 1, next, &[]);
    }
}

fn answer(writer: &mut WriterCore, now: Time, count: u32, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(now, READER, &acknack);
}

#[test]
fn regular_samples_are_asked_about_eight_at_a_time() {
    for (interval, most) in [(INTERVAL, 30), (INTERVAL * 2, 45), (INTERVAL / 5, 30)] {
        let mut writer = writer();
        let asked = write_bursts(&mut writer, 200, 1, interval);
        assert!(asked.len() <= most && asked.len() >= 20, "{interval:?}: {asked:?}");
        assert!(writer.is_acknowledged(SequenceNumber(200)));
        // The last one belongs to the last samples.
        let end = interval * 200;
        let last = asked.last().copied().unwrap();
        assert!(last >= end && last <= end + config::HEARTBEAT_DELAY_REGULAR_MAX, "{interval:?}: {last:?}");
    }
}

#[test]
fn single_samples_with_long_pauses_are_asked_about_one_by_one() {
    let asked = write_bursts(&mut writer(), 40, 1, INTERVAL * 5);
    assert_eq!(asked.len(), 40, "{asked:?}");
}

/// Asserts that each of forty bursts has one HEARTBEAT, soon after its end.
fn check_bursts(samples: usize, interval: Duration) {
    let asked = write_bursts(&mut writer(), 40, samples, interval);
    assert_eq!(asked.len(), 40, "{samples} each {interval:?}: {asked:?}");
    for (at, burst) in asked.iter().zip(1..) {
        let after = at.saturating_sub(interval * burst);
        assert!(after <= config::HEARTBEAT_DELAY_MIN, "burst {burst} of {samples}: after {after:?}");
    }
}

#[test]
fn the_end_of_each_burst_is_asked_about_at_once() {
    check_bursts(10, Duration::from_millis(50));
}

#[test]
fn readers_of_other_engines_are_asked_as_before() {
    for vendor in [VendorId::CYCLONE, VendorId::EPROSIMA, VendorId::RTI] {
        let mut writer = WriterCore::new(config(Reliability::Reliable));
        writer.match_reader(Time(0), ReaderProxyConfig { vendor, ..reader(READER, true) });
        sent(&mut writer, Time(0));
        acknack(&mut writer, 1, 1, &[]);
        let asked = write_bursts(&mut writer, 200, 1, INTERVAL * 2);
        assert!(asked.len() >= 190, "{vendor:?}: {}", asked.len());
    }
}

#[test]
fn readers_on_other_hosts_are_asked_as_before() {
    let mut writer = writer();
    assert!(writer.may_wait(Time(0)));
    let far = Guid::new(GuidPrefix([9; 12]), READER.entity);
    writer.match_reader(
        Time(0),
        ReaderProxyConfig { path: Some(crate::path::Path::new()), ..reader(far, true) },
    );
    assert!(!writer.may_wait(Time(0)));
    writer.unmatch_reader(Time(0), far);
    assert!(writer.may_wait(Time(0)));
}

#[test]
fn short_bursts_are_not_regular_samples() {
    for (samples, interval) in [(2, 40), (2, 10), (3, 20), (3, 60), (4, 20)] {
        check_bursts(samples, Duration::from_millis(interval));
    }
}

#[test]
fn a_history_that_replaces_samples_at_once_is_asked_about_at_once() {
    let asked = |depth| write_bursts(&mut writer_with(History::KeepLast(depth)), 200, 1, INTERVAL * 2).len();
    assert!(asked(1) >= 190 && asked(2) >= 190);
    assert!(asked(10) <= 45);
}

#[test]
fn after_a_loss_regular_samples_are_asked_about_soon() {
    let mut writer = writer();
    let before = write_bursts(&mut writer, 40, 1, INTERVAL).len() as u32;
    let mut now = Time(0) + INTERVAL * 40 + Duration::from_secs(1);
    for sn in 41..60 {
        now = now + INTERVAL;
        write(&mut writer, now, &[0; 8]).unwrap();
        sent(&mut writer, now);
        if sn == 50 {
            answer(&mut writer, now, before + 2, 50, &[50]);
            let next = writer.next_timeout().unwrap();
            assert!(next <= now + config::HEARTBEAT_DELAY_MIN, "{next:?} at {now:?}");
        }
    }
}
