//! Arbitrary bytes as a parameter list, with every value read in every form.

use weir_wire::{
    Duration, Endianness, Guid, Locator, Parameter, ParameterId, ParameterList, ParameterListWriter,
};

/// Parses a list and what follows it; the first byte chooses the byte order.
///
/// # Panics
///
/// If a copy of the list differs from it.
pub fn run(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let endianness = if choice & 1 == 0 { Endianness::Little } else { Endianness::Big };
    let Ok((list, consumed)) = ParameterList::parse(bytes, endianness) else { return };
    assert!((4..=bytes.len()).contains(&consumed));
    walk(&list);
    if list.iter().flatten().any(|parameter| parameter.value.len() > PADDED_MAX) {
        return;
    }
    let copied = copy(&list);
    let (again, consumed) = ParameterList::parse(&copied, Endianness::Little).expect("a copy can be parsed");
    assert_eq!(consumed, copied.len());
    assert_eq!(list.iter().count(), again.iter().count());
    for (one, other) in list.iter().flatten().zip(again.iter().flatten()) {
        assert_eq!(one.id, other.id);
        assert!(
            other.value.starts_with(one.value) && other.value.len() < one.value.len() + 4,
            "padded at most"
        );
    }
}

/// Reads every value in every form.
pub fn walk(list: &ParameterList<'_>) {
    for parameter in list.iter().flatten() {
        let _ = (parameter.u16(), parameter.u32(), parameter.i32(), parameter.bool(), parameter.u32s::<3>());
        let _ = (parameter.guid(), parameter.locator(), parameter.sequence_number(), parameter.bytes::<16>());
        let _ = (parameter.duration().map(Duration::to_nanos), parameter.kind_and_duration());
        let _ = parameter.locator().map(Locator::to_socket_addr_v4);
        let _ = (parameter.id.is_vendor_specific(), parameter.id.must_understand());
        assert!(parameter.byte_sequence().map_or(0, <[u8]>::len) <= parameter.value.len());
        assert!(parameter.string().map_or(0, str::len) <= parameter.value.len());
        assert!(parameter.i16s().map_or(0, Iterator::count) <= parameter.value.len());
        assert!(parameter.strings(16).map_or(0, |strings| strings.len()) <= 16);
    }
}

/// Writes the same list with our own emitter, if its values fit once padded.
pub fn copy(list: &ParameterList<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = ParameterListWriter::new(&mut out);
    for Parameter { id, value, .. } in list.iter().flatten() {
        writer.raw(id, value.get(..PADDED_MAX).unwrap_or(value));
    }
    writer.finish();
    out
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut little = vec![0];
    let mut list = ParameterListWriter::new(&mut little);
    list.u32(ParameterId::PARTICIPANT_LEASE_DURATION, 20);
    list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, Duration::INFINITE);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::UNKNOWN);
    list.locator(
        ParameterId::DEFAULT_UNICAST_LOCATOR,
        Locator::udp_v4("127.0.0.1:7411".parse().expect("an address")),
    );
    list.string(ParameterId::TOPIC_NAME, "Square");
    list.strings(ParameterId::PARTITION, ["a", "b*"].into_iter());
    list.byte_sequence(ParameterId::USER_DATA, &[1, 2, 3]);
    list.i16s(ParameterId::DATA_REPRESENTATION, &[0, 2]);
    list.finish();
    // Big-endian, made manually: topic name "Sq".
    let big = vec![1, 0, 5, 0, 8, 0, 0, 0, 3, b'S', b'q', 0, 0, 0, 1, 0, 0];
    vec![("little", little), ("big", big)]
}

/// Maximum length of a value, as lengths have 16 bits and values are padded to a multiple of four.
const PADDED_MAX: usize = 65_532;
