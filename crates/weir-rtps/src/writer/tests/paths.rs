//! Readers behind paths with small MTUs.

use super::*;

const OTHER: Guid = Guid::new(GuidPrefix([3; 12]), READER.entity);
/// MTU 1280, less the headers of IP and UDP.
const NARROW: u16 = 1252;

fn narrow() -> ReaderProxyConfig {
    ReaderProxyConfig { segment_max: NARROW, ..reader(OTHER, false) }
}

/// Writes a sample of 60 KB. Returns the lengths of the datagrams that the writer sends.
fn datagrams(writer: &mut WriterCore) -> Vec<usize> {
    write(writer, Time(1), &[7; 60_000]).unwrap();
    poll(writer)
}

fn poll(writer: &mut WriterCore) -> Vec<usize> {
    let mut out = Outbox::new();
    writer.flush(Time(1), &mut out);
    let mut lengths = Vec::new();
    out.for_each_datagram(|_, datagram| lengths.push(datagram.len()));
    lengths
}

#[test]
fn a_reader_behind_a_narrow_path_that_comes_and_goes_leaves_no_trace() {
    let batch = BatchPolicy { max_bytes: 8_192, max_samples: 1_000, max_delay: Duration::from_millis(1) };
    let coalescing = Some(Coalescing { segment_max: 9_000, ..Coalescing::default() });
    let config = WriterConfig {
        batch: Some(batch),
        coalescing,
        history: History::KeepLast(1),
        ..config(Reliability::Reliable)
    };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, false));
    poll(&mut writer);
    let before = (datagrams(&mut writer), writer.datagram_max, writer.config.batch, writer.config.coalescing);
    assert_eq!(before.0.len(), 1);
    for is_moved in [false, true] {
        if is_moved {
            writer.match_reader(Time(1), ReaderProxyConfig { segment_max: u16::MAX, ..narrow() });
            writer.move_reader(Time(1), OTHER, narrow().destinations, None, NARROW, None);
        } else {
            writer.match_reader(Time(1), narrow());
        }
        poll(&mut writer);
        let lengths = datagrams(&mut writer);
        assert!(lengths.len() > 50 && lengths.iter().all(|len| *len <= usize::from(NARROW)), "{lengths:?}");
        let limits = writer.config.batch.unwrap().max_bytes + 32;
        assert_eq!((limits, writer.config.coalescing.unwrap().segment_max), (NARROW.into(), NARROW));
        if is_moved {
            writer.move_reader(Time(1), OTHER, narrow().destinations, None, u16::MAX, None);
            poll(&mut writer);
            assert_eq!(datagrams(&mut writer), before.0);
        }
        writer.unmatch_reader(Time(1), OTHER);
        poll(&mut writer);
        let after =
            (datagrams(&mut writer), writer.datagram_max, writer.config.batch, writer.config.coalescing);
        assert_eq!(after, before);
    }
}

#[test]
fn a_large_sample_in_transmission_keeps_the_size_of_its_fragments() {
    for is_narrow_first in [true, false] {
        let mut writer = WriterCore::new(config(Reliability::Reliable));
        writer.match_reader(Time(0), ReaderProxyConfig { receive_buffer: Some(0), ..reader(READER, true) });
        let change = |writer: &mut WriterCore, is_narrow: bool| {
            if is_narrow {
                writer.match_reader(Time(1), narrow());
            } else {
                writer.unmatch_reader(Time(1), OTHER);
            }
        };
        change(&mut writer, is_narrow_first);
        poll(&mut writer);
        write(&mut writer, Time(1), &[7; 1_000_000]).unwrap();
        let mut lengths = poll(&mut writer);
        assert!(writer.is_amid_sample());
        let size = lengths[0];
        assert_eq!(size <= usize::from(NARROW), is_narrow_first);
        change(&mut writer, !is_narrow_first);
        let mut count = 0;
        while writer.is_amid_sample() {
            count += 1;
            let seen = writer.fragments.sent;
            let base = weir_wire::FragmentNumber(seen + 1);
            let state = weir_wire::FragmentNumberSet::new(base);
            let (reader, writer_id) = (READER.entity, WRITER.entity);
            let sequence_number = SequenceNumber(1);
            let nack = weir_wire::NackFrag { reader, writer: writer_id, sequence_number, state, count };
            writer.handle_nack_frag(Time(1), READER, &nack);
            lengths.extend(poll(&mut writer));
        }
        let fragments: Vec<_> = lengths.into_iter().filter(|len| *len > 100).collect();
        let (last, whole) = fragments.split_last().unwrap();
        assert!(whole.iter().all(|len| *len == size) && *last <= size, "{fragments:?}");
        let headers = 68;
        assert_eq!(fragments.iter().map(|len| len - headers).sum::<usize>(), 1_000_000);
    }
}

#[test]
fn fragments_of_a_sample_without_a_time_stamp_say_so() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), narrow());
    let change = Change { kind: ChangeKind::Alive, key: None, payload: &[7; 5_000] };
    writer.write_change(Time(1), None, change).unwrap();
    let mut out = Outbox::new();
    writer.flush(Time(1), &mut out);
    let (mut fragments, mut bytes) = (0, Vec::new());
    out.for_each_datagram(|_, datagram| {
        bytes.clear();
        bytes.extend_from_slice(datagram);
        for submessage in Message::parse(&bytes).unwrap().submessages() {
            match submessage.unwrap() {
                Submessage::DataFrag(_) => fragments += 1,
                // Not the invalid time, which other engines take for malformed.
                Submessage::InfoTimestamp(_) => assert_eq!(bytes[20..24], [0x09, 0x03, 0, 0]),
                _ => {}
            }
        }
    });
    assert!(fragments > 3, "{fragments}");
}
