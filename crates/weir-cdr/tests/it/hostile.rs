//! Bytes that no peer should send.

use proptest::prelude::*;
use weir_cdr::{CdrError, CdrReader, CdrValue, CdrWriter, DdsType, Encoding, Endianness, from_payload};

use crate::kinds::{Kinds, any_kinds};
use crate::types::{Collections, FORMS, Shape, any_collections, encode};

/// Runs every read function on arbitrary bytes. The value is overwritten in place, so that its
/// memory can be checked even if reading failed midway.
fn read_all(bytes: &[u8]) -> Result<(), TestCaseError> {
    for (endianness, encoding) in FORMS {
        let reader = CdrReader::new(bytes, endianness, encoding);
        let mut value = Collections::default();
        let into = value.decode_into(&mut reader.clone());
        prop_assert!(memory(&value) <= bytes.len() * 32 + 1024, "{} of {}", memory(&value), bytes.len());

        let decoded = Collections::decode(&mut reader.clone());
        prop_assert_eq!(decoded.is_ok(), into.is_ok());
        let skipped = Collections::skip(&mut reader.clone());
        prop_assert!(decoded.is_err() || skipped.is_ok());
        let mut out = vec![0; bytes.len() * 2 + 64];
        let mut writer = CdrWriter::new(&mut out, Endianness::Big, Encoding::Xcdr1);
        let copied = Collections::copy(&mut reader.clone(), &mut writer);
        prop_assert!(decoded.is_ok() || copied.is_err());

        let _ = Shape::decode_key(&mut reader.clone());
        let mut writer = CdrWriter::new(&mut out, Endianness::Big, Encoding::Xcdr1);
        let _ = Shape::copy_key(&mut reader.clone(), &mut writer);
    }
    let _ = from_payload::<Shape>(bytes);
    Ok(())
}

/// The same for types other than collections.
fn read_kinds(bytes: &[u8]) -> Result<(), TestCaseError> {
    for (endianness, encoding) in FORMS {
        let reader = CdrReader::new(bytes, endianness, encoding);
        let decoded = Kinds::decode(&mut reader.clone());
        prop_assert_eq!(Kinds::default().decode_into(&mut reader.clone()).is_ok(), decoded.is_ok());
        prop_assert!(decoded.is_err() || Kinds::skip(&mut reader.clone()).is_ok());
        let Ok(value) = decoded else { continue };
        let bytes = match encode(&value, endianness, encoding) {
            // A text that was read as ISO 8859-1 has up to twice as many bytes in UTF-8, and a bound counts bytes.
            Err(CdrError::BoundExceeded { .. }) if bytes.iter().any(|byte| !byte.is_ascii()) => continue,
            encoded => encoded?,
        };
        prop_assert_eq!(Kinds::decode(&mut CdrReader::new(&bytes, endianness, encoding)), Ok(value));
    }
    Ok(())
}

/// The bytes that the collections of a value occupy.
fn memory(value: &Collections) -> usize {
    let texts: usize = value.texts.iter().chain(&value.names).map(String::capacity).sum();
    let matrix: usize = value.matrix.iter().map(|row| row.capacity() * 8).sum();
    value.bytes.capacity()
        + value.doubles.capacity() * 8
        + value.flags.capacity()
        + value.points.capacity() * 8
        + value.matrix.capacity() * size_of::<Vec<u64>>()
        + value.texts.capacity() * size_of::<String>()
        + value.few.capacity() * 2
        + value.short_text.capacity()
        + texts
        + matrix
}

proptest! {
    #[test]
    fn arbitrary_bytes_give_a_value_or_an_error(bytes in any::<Vec<u8>>()) {
        read_all(&bytes)?;
    }

    #[test]
    fn small_numbers_reach_further(bytes in proptest::collection::vec(0_u8..4, 0..400)) {
        read_all(&bytes)?;
    }

    #[test]
    fn damaged_values_give_a_value_or_an_error(
        value in any_collections(),
        form in 0..FORMS.len(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        len in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&value, FORMS[form].0, FORMS[form].1)?;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        read_all(&bytes)?;
        bytes.truncate(len.index(bytes.len()));
        read_all(&bytes)?;
    }

    #[test]
    fn arbitrary_bytes_give_values_of_all_kinds_or_an_error(bytes in proptest::collection::vec(0_u8..6, 0..200)) {
        read_kinds(&bytes)?;
    }

    #[test]
    fn damaged_values_of_all_kinds_give_a_value_or_an_error(
        value in any_kinds(),
        form in 0..FORMS.len(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = encode(&value, FORMS[form].0, FORMS[form].1)?;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        read_kinds(&bytes)?;
    }
}

#[test]
fn a_huge_length_is_refused_at_once() {
    let bytes = [0xff; 64];
    for (endianness, encoding) in FORMS {
        let reader = || CdrReader::new(&bytes, endianness, encoding);
        assert_eq!(Vec::<u8>::decode(&mut reader()), Err(CdrError::UnexpectedEnd));
        assert_eq!(Vec::<[u64; 1000]>::decode(&mut reader()), Err(CdrError::UnexpectedEnd));
        assert_eq!(Vec::<String>::skip(&mut reader()), Err(CdrError::UnexpectedEnd));
        assert_eq!(String::decode(&mut reader()), Err(CdrError::UnexpectedEnd));
    }
}

#[test]
fn a_length_that_only_the_smallest_elements_could_have_costs_memory_in_proportion() {
    // 1000 strings announced in 5000 bytes, none of which is a string.
    let mut bytes = vec![0xff; 5004];
    bytes[..4].copy_from_slice(&1000_u32.to_be_bytes());
    let mut texts = Vec::<String>::new();
    let mut reader = CdrReader::new(&bytes, Endianness::Big, Encoding::Xcdr1);
    assert_eq!(texts.decode_into(&mut reader), Err(CdrError::UnexpectedEnd));
    assert!(texts.capacity() <= 1000);
}

#[test]
fn a_length_that_only_elements_without_members_could_have_costs_memory_in_proportion() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Large {
        numbers: [[u64; 25]; 4],
    }
    // 1000 structs of 800 bytes announced in 4000 bytes, none of which is one.
    let mut bytes = vec![0xff; 4008];
    bytes[..4].copy_from_slice(&4004_u32.to_be_bytes());
    bytes[4..8].copy_from_slice(&1000_u32.to_be_bytes());
    let mut values = Vec::<Large>::new();
    let mut reader = CdrReader::new(&bytes, Endianness::Big, Encoding::Xcdr2);
    assert_eq!(values.decode_into(&mut reader), Err(CdrError::UnexpectedEnd));
    assert!(values.capacity() <= 5, "{}", values.capacity());
}
