//! The type of service of what a writer sends.

use weir_wire::EcnCounts;

use super::*;
use crate::ecn::ECT0;
use crate::path::Path;

const EF: u8 = 46;

/// Returns the submessages of what the writer sends now, with the type of service of each message.
fn typed(writer: &mut WriterCore, now: Time) -> Vec<(u8, String)> {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    let mut all = Vec::new();
    out.for_each_with(|item, datagram| {
        let message = Message::parse(datagram).unwrap();
        let kinds = message.submessages().map(|it| it.unwrap().to_string());
        let kinds: Vec<_> = kinds.map(|it| it.split(' ').next().unwrap_or_default().to_owned()).collect();
        all.push((item.type_of_service, kinds.join(" ")));
    });
    all
}

fn writer(path: &Path, vendor: VendorId) -> WriterCore {
    let mut writer = WriterCore::new(WriterConfig { dscp: EF, ..config(Reliability::Reliable) });
    writer.match_reader(
        Time(0),
        ReaderProxyConfig { path: Some(path.clone()), vendor, ..reader(READER, true) },
    );
    writer
}

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

#[test]
fn everything_has_the_code_point_of_the_writer_as_it_is_then() {
    let mut writer = WriterCore::new(WriterConfig { dscp: EF, ..config(Reliability::Reliable) });
    writer.match_reader(Time(0), reader(READER, true));
    let types = |writer: &mut WriterCore, now| typed(writer, now).iter().map(|it| it.0).collect::<Vec<_>>();
    write(&mut writer, ms(1), b"\0\x01\0\0abcd").unwrap();
    let first = types(&mut writer, ms(1));
    assert!(!first.is_empty() && first.iter().all(|it| *it == EF << 2), "{first:?}");
    writer.set_dscp(255);
    writer.set_dscp(0);
    // The repair as well.
    acknack(&mut writer, 1, 1, &[1]);
    let repair = types(&mut writer, ms(2));
    assert!(!repair.is_empty() && repair.iter().all(|it| *it == 0), "{repair:?}");
}

#[test]
fn samples_are_ect_from_the_first_report_of_their_reader_on() {
    let path = Path::with_rate_max(1_000_000).with_ecn();
    let mut writer = writer(&path, VendorId::WEIR);
    typed(&mut writer, ms(0));
    let next = |writer: &mut WriterCore, now| {
        write(writer, now, b"\0\x01\0\0abcd").unwrap();
        typed(writer, now)
    };
    let has = |all: &[(u8, String)], word: &str| all.iter().any(|(_, words)| words.contains(word));
    let types = |all: &[(u8, String)]| {
        let samples = all.iter().filter(|(_, words)| words.contains("DATA"));
        samples.map(|it| it.0).collect::<Vec<_>>()
    };
    let asked = next(&mut writer, ms(200));
    assert!(has(&asked, "ECN"), "{asked:?}");
    let again = next(&mut writer, ms(210));
    assert_eq!((has(&again, "ECN"), types(&again)), (false, vec![EF << 2]), "{again:?}");
    writer.handle_ecn(ms(220), READER, EcnCounts::default());
    let marked = next(&mut writer, ms(230));
    assert_eq!(types(&marked), [EF << 2 | ECT0], "{marked:?}");
    assert_eq!(path.report().ecn_datagrams, 1);
    // No report has arrived for long.
    let silent = next(&mut writer, ms(220) + config::ECN_SILENCE);
    assert_eq!((has(&silent, "ECN"), types(&silent)), (true, vec![EF << 2]), "{silent:?}");
}

#[test]
fn readers_of_other_engines_are_not_asked_and_not_believed() {
    let path = Path::with_rate_max(1_000_000).with_ecn();
    let mut writer = writer(&path, VendorId::CYCLONE);
    for now in [0, 100, 200, 300] {
        write(&mut writer, ms(now), b"\0\x01\0\0abcd").unwrap();
        writer.handle_ecn(ms(now), READER, EcnCounts::default());
        let sent = typed(&mut writer, ms(now));
        assert!(sent.iter().all(|(tos, words)| *tos == EF << 2 && !words.contains("ECN")), "{sent:?}");
    }
}
