//! Written values read back as the same, in every form.

use proptest::prelude::*;
use weir_cdr::{CdrReader, CdrValue, CdrWriter, DdsType};

use crate::kinds::{any_kinds, any_limited};
use crate::types::{Collections, FORMS, any_collections, any_primitives, any_shape, decode, encode};

/// Checks that all functions agree, in every form; `used` is any value, to be overwritten.
fn check<T: DdsType + PartialEq + Clone + std::fmt::Debug>(value: &T, used: &T) -> Result<(), TestCaseError> {
    for (endianness, encoding) in FORMS {
        let bytes = encode(value, endianness, encoding)?;
        prop_assert_eq!(&decode::<T>(&bytes, endianness, encoding)?, value);

        let mut reused = used.clone();
        reused.decode_into(&mut CdrReader::new(&bytes, endianness, encoding))?;
        prop_assert_eq!(&reused, value);

        let mut reader = CdrReader::new(&bytes, endianness, encoding);
        T::skip(&mut reader)?;
        prop_assert_eq!(reader.remaining(), 0);

        for (to_endianness, to_encoding) in FORMS {
            let mut copied = vec![0xee; value.serialized_size(to_encoding)];
            let mut writer = CdrWriter::new(&mut copied, to_endianness, to_encoding);
            T::copy(&mut CdrReader::new(&bytes, endianness, encoding), &mut writer)?;
            prop_assert_eq!(&copied, &encode(value, to_endianness, to_encoding)?);
        }

        for len in 0..bytes.len() {
            let mut too_small = vec![0; len];
            prop_assert!(value.encode(&mut CdrWriter::new(&mut too_small, endianness, encoding)).is_err());
            prop_assert!(T::decode(&mut CdrReader::new(&bytes[..len], endianness, encoding)).is_err());
        }
    }
    Ok(())
}

/// Checks that a value reads the same wherever it starts, and that its size is within its layout's
/// bounds.
fn check_offsets<T: DdsType + PartialEq + std::fmt::Debug>(value: &T) -> Result<(), TestCaseError> {
    for (endianness, encoding) in FORMS {
        for start in 0..9 {
            let end = value.end_offset(start, encoding);
            let mut bytes = vec![0xee; end];
            let mut writer = CdrWriter::new(&mut bytes, endianness, encoding);
            writer.write_bytes(&vec![0; start])?;
            value.encode(&mut writer)?;
            prop_assert_eq!(writer.position(), end);
            let mut reader = CdrReader::new(&bytes, endianness, encoding);
            reader.take_bytes(start)?;
            prop_assert_eq!(&T::decode(&mut reader)?, value);
        }
    }
    let size = value.serialized_size(weir_cdr::Encoding::Xcdr1);
    prop_assert!(size >= T::LAYOUT.min_size());
    prop_assert!(T::MAX_SIZE.is_none_or(|max| size <= max));
    prop_assert!(T::FIXED_SIZE.is_none_or(|fixed| size == fixed));
    let plain = weir_cdr::Encoding::PlainXcdr2;
    prop_assert!(T::LAYOUT.max_size_in(plain).is_none_or(|max| value.serialized_size(plain) <= max));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn primitives(value in any_primitives(), used in any_primitives()) {
        check(&value, &used)?;
        check_offsets(&value)?;
    }

    #[test]
    fn shapes(value in any_shape(), used in any_shape()) {
        check(&value, &used)?;
        check_offsets(&value)?;
    }

    #[test]
    fn collections(value in any_collections(), used in any_collections()) {
        check(&value, &used)?;
        check_offsets(&value)?;
    }

    #[test]
    fn limited(value in any_limited(), used in any_limited()) {
        check(&value, &used)?;
        check_offsets(&value)?;
        const { assert!(crate::kinds::Limited::MAX_SIZE.is_some()) };
    }

    #[test]
    fn kinds(value in any_kinds(), used in any_kinds()) {
        check(&value, &used)?;
        check_offsets(&value)?;
    }
}

#[test]
fn decoding_over_a_value_reuses_its_memory() {
    let forms = (weir_cdr::Endianness::Little, weir_cdr::Encoding::Xcdr1);
    let big = Collections { bytes: vec![1; 100], texts: vec!["x".repeat(50)], ..Collections::default() };
    let small = Collections { bytes: vec![2; 3], texts: vec!["y".to_owned()], ..Collections::default() };
    let bytes = encode(&small, forms.0, forms.1).unwrap();
    let mut value = big;
    let addresses = (value.bytes.as_ptr(), value.texts[0].as_ptr());
    value.decode_into(&mut CdrReader::new(&bytes, forms.0, forms.1)).unwrap();
    assert_eq!(value, small);
    assert_eq!((value.bytes.as_ptr(), value.texts[0].as_ptr()), addresses);
}
