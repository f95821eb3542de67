//! Bytes that no peer should send. The single cases are classes of defects found in other
//! implementations.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use weir_wire::{
    Data, DataFrag, DataHeader, Emit, Endianness, EntityId, Header, InfoTimestamp, Message, Parameter,
    ParameterId, ParameterList, ParseError, Payload, Problem, SequenceNumber, SequenceNumberSet, Submessage,
    Submessages, push,
};

use crate::reference_writer::{ORDERS, ReferenceWriter};
use crate::values::{LAST, Part, any_part, header};

/// Parses everything in a message, and checks what must hold for accepted input.
fn read_all(datagram: &[u8]) -> Vec<Submessage<'_>> {
    let Ok(message) = Message::parse(datagram) else { return Vec::new() };
    assert!(!message.to_string().is_empty());
    let mut iterator = message.submessages();
    let mut read = Vec::new();
    // Every submessage takes at least its header.
    for _ in 0..=datagram.len() / 4 {
        check_stamped(&iterator);
        match iterator.next() {
            None => break,
            Some(Ok(submessage)) => read.push(submessage),
            Some(Err(error)) => {
                assert!(!error.to_string().is_empty());
                break;
            }
        }
    }
    assert!(iterator.next().is_none(), "the iterator does not end");
    read.iter().for_each(|submessage| check(submessage, datagram));
    read
}

/// The fast path parses the same as the general one, and so does what follows.
fn check_stamped(submessages: &Submessages<'_>) {
    let (mut quick, mut general) = (submessages.clone(), submessages.clone());
    let Some((timestamp, data)) = quick.next_stamped_data() else { return };
    let timestamp = Some(timestamp);
    assert_eq!(general.next(), Some(Ok(Submessage::InfoTimestamp(InfoTimestamp { timestamp }))));
    assert_eq!(general.next(), Some(Ok(Submessage::Data(data))));
    assert!(quick.eq(general));
}

fn check(submessage: &Submessage<'_>, datagram: &[u8]) {
    assert!(!submessage.to_string().is_empty() && !format!("{submessage:?}").is_empty());
    match submessage {
        Submessage::AckNack(it) => {
            check_set(&it.state);
            check_again(it, submessage);
        }
        Submessage::Gap(it) => {
            check_set(&it.list);
            assert!(it.start.0 >= 1 && it.start <= it.list.base());
            check_again(it, submessage);
        }
        Submessage::Heartbeat(it) => {
            assert!(it.first.0 >= 1 && it.last >= it.first.prev() && it.last.0 <= LAST);
            check_again(it, submessage);
        }
        Submessage::HeartbeatFrag(it) => {
            assert!(it.sequence_number.0 >= 1 && it.last_fragment >= 1);
            check_again(it, submessage);
        }
        Submessage::NackFrag(it) => {
            assert!(it.state.base().0 >= 1 && it.state.iter().count() <= 256);
            check_again(it, submessage);
        }
        Submessage::Echo(it) => check_again(it, submessage),
        Submessage::Receipt(it) => check_again(it, submessage),
        Submessage::Ecn(it) => check_again(it, submessage),
        Submessage::InfoDestination(it) => check_again(it, submessage),
        Submessage::InfoSource(it) => check_again(it, submessage),
        Submessage::InfoTimestamp(it) => check_again(it, submessage),
        Submessage::Data(data) => check_data(data, datagram),
        Submessage::DataFrag(frag) => check_frag(frag, datagram),
        Submessage::InfoReply(_) | Submessage::Pad => {}
        Submessage::Unknown { len, .. } => assert!(*len <= datagram.len()),
    }
}

/// Accepted input can be written, and is then parsed as the same.
fn check_again(it: &impl Emit, submessage: &Submessage<'_>) {
    let mut message = b"RTPS\x02\x05\x01\xf0............".to_vec();
    push(&mut message, it);
    assert_eq!(first(&message), Ok(*submessage));
}

fn first(message: &[u8]) -> Result<Submessage<'_>, ParseError> {
    Message::parse(message)?.submessages().next().expect("there is one")
}

fn check_set(set: &SequenceNumberSet) {
    let numbers: Vec<_> = set.iter().collect();
    assert!(set.num_bits() <= 256 && numbers.len() <= set.num_bits() as usize);
    assert_eq!(numbers.is_empty(), set.is_empty());
    assert!(numbers.iter().all(|number| set.contains(*number) && *number >= set.base()));
    assert!(numbers.is_sorted() && set.iter().rev().eq(numbers.into_iter().rev()));
}

fn check_data(data: &Data<'_>, datagram: &[u8]) {
    assert!((1..=LAST).contains(&data.sequence_number.0));
    match data.payload {
        Payload::None => {}
        Payload::Data(bytes) | Payload::Key(bytes) => assert!((4..datagram.len()).contains(&bytes.len())),
    }
    data.inline_qos.iter().for_each(walk);
}

fn check_frag(frag: &DataFrag<'_>, datagram: &[u8]) {
    let start = u64::from(frag.fragment_start - 1) * u64::from(frag.fragment_size);
    let end = start + frag.payload.len() as u64;
    assert!(!frag.payload.is_empty() && frag.payload.len() < datagram.len());
    assert!(end <= u64::from(frag.sample_size));
    // All fragments are complete, except the last one of the sample.
    let whole = u64::from(frag.fragments) * u64::from(frag.fragment_size);
    assert!(frag.payload.len() as u64 == whole || end == u64::from(frag.sample_size));
    frag.inline_qos.iter().for_each(walk);
    if frag.payload.len() <= 65_500 {
        let frag = DataFrag { inline_qos: None, ..*frag };
        check_again(&frag, &Submessage::DataFrag(frag));
    }
}

/// Reads every parameter through every accessor.
fn walk(list: &ParameterList<'_>) {
    for parameter in *list {
        access(&parameter.expect("the list was checked as a whole"));
    }
}

fn access(parameter: &Parameter<'_>) {
    let len = parameter.value.len();
    assert!(!parameter.id.to_string().is_empty());
    let _ = (parameter.id.is_vendor_specific(), parameter.id.must_understand());
    assert_eq!(parameter.u16().is_ok(), len >= 2);
    assert_eq!((parameter.u32().is_ok(), parameter.i32().is_ok()), (len >= 4, len >= 4));
    assert_eq!(parameter.u32s::<3>().is_ok(), len >= 12);
    assert_eq!((parameter.bool().is_ok(), parameter.bytes::<4>().is_ok()), (len >= 1, len >= 4));
    assert_eq!((parameter.guid().is_ok(), parameter.sequence_number().is_ok()), (len >= 16, len >= 8));
    assert_eq!(parameter.duration().is_ok(), len >= 8);
    assert_eq!(parameter.kind_and_duration().is_ok(), len >= 12);
    let _ = parameter.duration().map(weir_wire::Duration::to_nanos);
    assert_eq!(parameter.locator().map(weir_wire::Locator::to_socket_addr_v4).is_ok(), len >= 24);
    assert!(parameter.string().is_ok_and(|text| text.len() < len) || parameter.string().is_err() || len == 4);
    assert!(
        parameter.byte_sequence().is_ok_and(|bytes| bytes.len() + 4 <= len)
            || parameter.byte_sequence().is_err()
    );
    assert!(parameter.i16s().map_or(0, Iterator::count) * 2 <= len);
    for max in [0, 3, usize::MAX] {
        // Every string has a length field.
        assert!(parameter.strings(max).map_or(0, |strings| strings.len()) <= (len / 4).min(max));
    }
}

/// A way to corrupt a message.
#[derive(Debug, Clone)]
enum Spoil {
    Set(Index, u8),
    Flip(Index, u8),
    Fill(Index, usize, u8),
    Cut(Index),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
}

impl Spoil {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = bytes.len();
        if end == 0 {
            return;
        }
        let range = |at: &Index, len: usize| at.index(end)..(at.index(end) + len).min(end);
        match self {
            Self::Set(at, value) => bytes[at.index(end)] = *value,
            Self::Flip(at, bit) => bytes[at.index(end)] ^= 1 << bit,
            Self::Fill(at, len, value) => bytes[range(at, *len)].fill(*value),
            Self::Cut(at) => bytes.truncate(at.index(end)),
            Self::Insert(at, more) => drop(bytes.splice(range(at, 0), more.iter().copied())),
            Self::Remove(at, len) => drop(bytes.drain(range(at, *len))),
            Self::Repeat(at, len) => bytes.extend_from_within(range(at, *len)),
        }
    }
}

fn spoil() -> impl Strategy<Value = Spoil> {
    let at = any::<Index>;
    let value = || prop_oneof![Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    prop_oneof![
        4 => (at(), value()).prop_map(|(at, value)| Spoil::Set(at, value)),
        4 => (at(), 0u8..8).prop_map(|(at, bit)| Spoil::Flip(at, bit)),
        2 => (at(), 1usize..9, value()).prop_map(|(at, len, value)| Spoil::Fill(at, len, value)),
        1 => at().prop_map(Spoil::Cut),
        1 => (at(), vec(value(), 1..9)).prop_map(|(at, more)| Spoil::Insert(at, more)),
        1 => (at(), 1usize..9).prop_map(|(at, len)| Spoil::Remove(at, len)),
        1 => (at(), 1usize..40).prop_map(|(at, len)| Spoil::Repeat(at, len)),
    ]
}

fn message(header: &Header, parts: &[Part], endianness: Endianness) -> Vec<u8> {
    let mut writer = ReferenceWriter::new(endianness);
    parts.iter().for_each(|part| writer.part(part));
    let mut message = Vec::new();
    push(&mut message, header);
    message.extend(writer.bytes);
    message
}

const KNOWN: [u8; 12] = [0x01, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0e, 0x0f, 0x12, 0x13, 0x15, 0x16];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        for endianness in ORDERS {
            if let Ok((list, len)) = ParameterList::parse(&bytes, endianness) {
                prop_assert!(len <= bytes.len());
                walk(&list);
            }
            access(&Parameter { id: ParameterId(0), value: &bytes, endianness });
        }
    }

    #[test]
    fn arbitrary_bodies_of_every_submessage_are_read_or_refused(
        header in header(), id in prop::sample::select(&KNOWN[..]), flags in any::<u8>(),
        mut body in vec(any::<u8>(), 0..120), zeros in vec(any::<Index>(), 0..60),
    ) {
        let mut message = message(&header, &[], Endianness::Little);
        message.extend([id, flags, 0, 0]);
        // Most numbers in valid messages are small.
        if !body.is_empty() {
            zeros.iter().for_each(|at| *at.get_mut(&mut body) = 0);
        }
        message.extend(body);
        read_all(&message);
    }

    #[test]
    fn spoilt_messages_are_read_or_refused(
        header in header(), parts in vec(any_part(), 1..6), spoils in vec(spoil(), 1..6),
        is_little in any::<bool>(),
    ) {
        let mut message = message(&header, &parts, ORDERS[usize::from(!is_little)]);
        spoils.iter().for_each(|spoil| spoil.apply(&mut message));
        read_all(&message);
    }

    #[test]
    fn a_spoilt_body_leaves_the_submessages_before_it_alone(
        header in header(), parts in vec(any_part(), 0..4), rest in vec(any::<u8>(), 0..60),
    ) {
        for endianness in ORDERS {
            let whole = message(&header, &parts, endianness);
            let spoilt = [whole.as_slice(), &rest].concat();
            prop_assert_eq!(&read_all(&spoilt)[..parts.len()], read_all(&whole));
        }
    }

    #[test]
    fn a_message_that_is_cut_short_is_never_read_as_a_longer_one(
        header in header(), parts in vec(any_part(), 1..5), is_little in any::<bool>(),
    ) {
        let whole = message(&header, &parts, ORDERS[usize::from(!is_little)]);
        let read = read_all(&whole);
        for len in 0..whole.len() {
            let cut = read_all(&whole[..len]);
            prop_assert!(cut.len() <= read.len());
        }
    }
}

/// The result of a submessage with this id, these flags (little-endian) and this body.
fn outcome(id: u8, flags: u8, body: &[u8]) -> Result<String, Problem> {
    let mut message = b"RTPS\x02\x05\x01\xf0............".to_vec();
    message.extend([id, flags | 1, body.len() as u8, (body.len() >> 8) as u8]);
    message.extend(body);
    read_all(&message);
    first(&message).map(|submessage| submessage.to_string()).map_err(|error| error.problem)
}

/// Little-endian words after the two entity ids.
fn words(words: &[u32]) -> Vec<u8> {
    [0x0104, 0x0203].iter().chain(words).flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn sets_of_more_numbers_than_there_is_room_for() {
    for (num_bits, problem) in [
        (257, Problem::BadSet),
        (u32::MAX, Problem::BadSet),
        (256, Problem::Truncated),
        (32, Problem::Truncated),
    ] {
        let mut acknack = words(&[0, 1, num_bits]);
        assert_eq!(outcome(0x06, 0, &acknack), Err(problem), "ACKNACK with {num_bits} bits");
        acknack.extend([0xff; 28]);
        assert_eq!(outcome(0x06, 0, &acknack).is_err(), num_bits != 32, "ACKNACK with {num_bits} bits");
        let gap = words(&[0, 1, 0, 1, num_bits]);
        assert_eq!(outcome(0x08, 0, &gap), Err(problem), "GAP with {num_bits} bits");
        let nack_frag = words(&[0, 1, 1, num_bits]);
        assert_eq!(outcome(0x12, 0, &nack_frag), Err(problem), "NACK_FRAG with {num_bits} bits");
    }
}

#[test]
fn sequence_numbers_that_run_over() {
    for (high, low) in
        [(0, 0), (u32::MAX, 0), (1 << 31, 1), (0x7fff_ffff, u32::MAX), (0x7fff_ffff, u32::MAX - 255)]
    {
        let body = words(&[high, low, high, low, 256]);
        assert_eq!(outcome(0x08, 0, &body), Err(Problem::BadSequenceNumber), "GAP from {high:x} {low:x}");
        let body = words(&[high, low, 256, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(outcome(0x06, 0, &body), Err(Problem::BadSet), "ACKNACK from {high:x} {low:x}");
        let body = words(&[0, 1, high, low, 1]);
        let is_empty = (high, low) == (0, 0);
        assert_eq!(outcome(0x07, 0, &body).is_ok(), is_empty, "HEARTBEAT to {high:x} {low:x}");
        let body = [vec![0, 0, 16, 0], words(&[high, low])].concat();
        assert_eq!(outcome(0x15, 0, &body), Err(Problem::BadSequenceNumber), "DATA {high:x} {low:x}");
        let body = words(&[high, low, 1, 1]);
        assert_eq!(
            outcome(0x13, 0, &body),
            Err(Problem::BadSequenceNumber),
            "HEARTBEAT_FRAG {high:x} {low:x}"
        );
    }
    // The base may be 0 in the first ACKNACK of some vendors, if the set is empty.
    assert_eq!(outcome(0x06, 0, &words(&[0, 0, 0, 0])), Ok("ACKNACK 04010000->03020000 0/0: #0".into()));
    assert_eq!(outcome(0x06, 0, &words(&[0, 0, 1, 0, 0])), Err(Problem::BadSet));
}

/// A GAP over 2^63 numbers is two numbers and takes no longer than another.
#[test]
fn ranges_of_any_length_are_two_numbers() {
    let body = words(&[0, 1, 0x7fff_ffff, 0xffff_fbff, 0]);
    let expected = format!("GAP 03020000->04010000 1 to {LAST}/0:");
    assert_eq!(outcome(0x08, 0, &body), Ok(expected));
    let body = words(&[0, 1, 0x7fff_ffff, 0xffff_fbff, 1]);
    assert!(
        outcome(0x07, 0, &body).unwrap().starts_with(&format!("HEARTBEAT 03020000->04010000 1..{LAST} "))
    );
}

#[test]
fn offsets_and_lengths_that_lie() {
    let data = |to_inline_qos: u16, rest: &[u8]| {
        let [low, high] = to_inline_qos.to_le_bytes();
        [vec![0, 0, low, high], words(&[0, 1]), rest.to_vec()].concat()
    };
    assert!(outcome(0x15, 4, &data(16, &[0; 4])).is_ok());
    for to_inline_qos in [0, 4, 15] {
        assert_eq!(outcome(0x15, 4, &data(to_inline_qos, &[0; 4])), Err(Problem::BadLength));
    }
    for to_inline_qos in [17, 20, 21, 0x7fff, 0xffff] {
        assert_eq!(
            outcome(0x15, 4, &data(to_inline_qos, &[0; 4])),
            Err(Problem::Truncated),
            "{to_inline_qos}"
        );
    }
    // Parameters that exceed the list, have no end, or have an odd length.
    for (list, problem) in [
        (&[0x70, 0, 16, 0, 1, 2, 3, 4][..], Problem::Truncated),
        (&[0x70, 0, 0xff, 0xff], Problem::BadLength),
        (&[0x70, 0, 0xfc, 0xff, 1, 0, 0, 0], Problem::Truncated),
        (&[0x71, 0, 4, 0, 0, 0, 0, 1], Problem::NoSentinel),
        (&[0x71, 0, 3, 0, 0, 0, 0, 1, 0, 0, 0], Problem::BadLength),
        (&[1], Problem::NoSentinel),
        (&[], Problem::NoSentinel),
    ] {
        assert_eq!(outcome(0x15, 2, &data(16, list)), Err(problem), "{list:?}");
    }
    // A submessage that exceeds the message.
    let mut message = b"RTPS\x02\x05\x01\xf0............".to_vec();
    message.extend([0x80, 1, 5, 0, 1, 2, 3, 4]);
    assert_eq!(first(&message).unwrap_err().problem, Problem::Truncated);
}

#[test]
fn fragments_of_no_size_or_outside_of_their_sample() {
    let frag = |start: u32, count: u16, size: u16, sample: u32, len: usize| {
        let fixed = [vec![0, 0, 28, 0], words(&[0, 1, start])].concat();
        let sizes = [count.to_le_bytes(), size.to_le_bytes()].concat();
        outcome(0x16, 0, &[fixed, sizes, sample.to_le_bytes().to_vec(), vec![7; len]].concat())
    };
    assert!(frag(1, 1, 8, 16, 8).is_ok());
    assert!(frag(u32::MAX, 1, 1, u32::MAX, 1).is_ok());
    for (start, count, size, sample, len) in [
        (0, 1, 8, 16, 8),
        (1, 0, 8, 16, 8),
        (1, 1, 0, 16, 8),
        (1, 1, 8, 0, 8),
        (3, 1, 8, 16, 8),
        (2, 2, 8, 16, 16),
        (1, 1, 8, 16, 7),
        (1, 2, 8, 16, 15),
        (u32::MAX, u16::MAX, u16::MAX, u32::MAX, 100),
        (1, u16::MAX, u16::MAX, u32::MAX, 100),
        (0x8000_0001, 1, 2, 16, 2),
    ] {
        assert_eq!(
            frag(start, count, size, sample, len),
            Err(Problem::BadFragment),
            "{start} {count} {size} {sample}"
        );
    }
}

#[test]
fn payloads_that_are_not_encoded_the_standard_way_are_skipped() {
    let data = [vec![0, 0, 16, 0], words(&[0, 1]), vec![0, 0, 0, 2]].concat();
    assert_eq!(outcome(0x15, 0x14, &data), Ok("submessage 0x15 (24 B)".into()));
    assert_eq!(outcome(0x15, 0x0c, &data), Err(Problem::BadFlags));
    assert_eq!(outcome(0x16, 0x08, &data), Ok("submessage 0x16 (24 B)".into()));
}

#[test]
fn headers_of_something_else() {
    let problem = |bytes: &[u8]| Message::parse(bytes).unwrap_err().problem;
    assert_eq!(problem(b""), Problem::Truncated);
    assert_eq!(problem(b"RTP"), Problem::Truncated);
    assert_eq!(problem(b"RTPX\x02\x05\x01\xf0............"), Problem::BadMagic);
    assert_eq!(problem(b"RTPS\x01\x05\x01\xf0............"), Problem::UnsupportedVersion);
    assert_eq!(problem(b"RTPS\x03\x00\x01\xf0............"), Problem::UnsupportedVersion);
    assert_eq!(problem(b"RTPS\x02\x05\x01\xf0..........."), Problem::Truncated);
    assert!(Message::parse(b"RTPS\x02\xff\x01\xf0............").is_ok());
}

#[test]
fn the_longest_body_is_read_and_never_beyond_the_message() {
    let mut message = b"RTPS\x02\x05\x01\xf0............".to_vec();
    push(
        &mut message,
        &DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::user_writer(1, false),
            sequence_number: SequenceNumber::FIRST,
            inline_qos_len: 0,
            payload_len: 65_512,
            is_key: false,
        },
    );
    message.resize(message.len() + 65_512, 1);
    push(&mut message, &InfoTimestamp { timestamp: None });
    let read = read_all(&message);
    let [Submessage::Data(data), Submessage::InfoTimestamp(_)] = read[..] else { panic!("{read:?}") };
    assert_eq!(data.payload, Payload::Data(&[1; 65_512]));
    message.truncate(message.len() - 5);
    assert!(read_all(&message).is_empty());
}
