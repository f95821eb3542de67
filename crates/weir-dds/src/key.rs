//! Keys of samples: which instance they identify, and their hashes on the wire.
//!
//! An instance is identified by the hash of its key in one form, [`INSTANCE`], whatever the representation and the byte
//! order of the sample are: all writers of a topic then write the same instances. On the wire, the key hash is in the
//! form of the writer's representation (RTPS 2.5, 9.6.4.8; DDS-XTypes 1.3, 7.6.8).

use weir_cdr::{CdrReader, CdrWriter, DdsType, Encoding, Endianness};
use weir_rtps::reader::HashOfKey;

use crate::error::Result;

/// The form of keys by which instances are identified: XCDR2, in the order of member ids.
const INSTANCE: Encoding = Encoding::PlainXcdr2;

/// Returns what identifies the instance of a sample.
pub(crate) fn instance_of<T: DdsType>(sample: &T) -> Result<[u8; 16]> {
    key_hash_of(sample, INSTANCE)
}

/// Returns the key hash of a sample on the wire (RTPS 2.5, 9.6.4.8). Keys up to 64 bytes are serialized on the stack.
pub(crate) fn key_hash_of<T: DdsType>(sample: &T, encoding: Encoding) -> Result<[u8; 16]> {
    const ON_STACK: usize = 64;
    let form = encoding.of_key_hash();
    let len = sample.key_size(form);
    let mut on_stack = [0; ON_STACK];
    let mut on_heap;
    let key = if len <= ON_STACK {
        &mut on_stack[..len]
    } else {
        on_heap = vec![0; len];
        &mut on_heap[..]
    };
    sample.encode_key(&mut CdrWriter::new(key, Endianness::Big, form))?;
    Ok(weir_cdr::key_hash::<T>(key, encoding))
}

/// Returns what identifies the instance of a payload.
///
/// Copies the key out of the payload without decoding the rest.
pub(crate) fn instance_of_payload<T: DdsType>(payload: &[u8], is_key: bool) -> Option<[u8; 16]> {
    hash_of_payload::<T>(payload, is_key, |_| INSTANCE)
}

/// Returns the key hash of a payload on the wire, in its own encoding.
pub(crate) fn key_hash_of_payload<T: DdsType>(payload: &[u8], is_key: bool) -> Option<[u8; 16]> {
    hash_of_payload::<T>(payload, is_key, Encoding::of_key_hash)
}

/// Returns whether the key hashes of a type on the wire are digests, from which the instance does not follow.
pub(crate) const fn hashes_are_digests<T: DdsType>() -> bool {
    match T::MAX_KEY_SIZE {
        Some(len) => len > size_of::<[u8; 16]>(),
        None => T::HAS_KEY,
    }
}

/// Returns what identifies an instance of which only the key hash on the wire is known. `None`: the hash is a digest.
pub(crate) fn instance_of_key_hash<T: DdsType>(hash: [u8; 16]) -> Option<[u8; 16]> {
    let len = T::MAX_KEY_SIZE.filter(|len| *len <= hash.len())?;
    let key = T::decode_key(&mut CdrReader::new(&hash[..len], Endianness::Big, Encoding::Xcdr1)).ok()?;
    instance_of(&key).ok()
}

/// Returns the function that computes the key hash in XCDR1 from a payload of [`key_payload_of`], for types where that
/// hash is a digest of other bytes than what identifies an instance.
pub(crate) fn hash_of_key<T: DdsType>() -> Option<HashOfKey> {
    let differs = hashes_are_digests::<T>() && !T::KEY_LAYOUT.is_same_in_xcdr2();
    differs.then_some(|key| {
        hash_of_received::<T>(&weir_cdr::from_converted_key_payload(key).ok()?, Encoding::Xcdr1)
    })
}

#[inline(always)]
fn hash_of_payload<T: DdsType>(
    payload: &[u8],
    is_key: bool,
    form: impl Fn(Encoding) -> Encoding,
) -> Option<[u8; 16]> {
    const ON_STACK: usize = 64;
    let mut on_stack = [0; ON_STACK];
    if !is_key {
        let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
        let form = form(body.encoding());
        let mut key = CdrWriter::new(&mut on_stack, Endianness::Big, form).without_bounds();
        if T::copy_key(&mut body, &mut key).is_ok() {
            return Some(weir_cdr::key_hash::<T>(key.written(), form));
        }
    }
    let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
    let form = form(body.encoding());
    if is_key {
        return hash_of_received::<T>(&weir_cdr::from_key_payload(payload).ok()?, form);
    }
    // The key in a payload is no longer than twice the payload, apart from padding: text that is not UTF-8 grows.
    let mut on_heap = vec![0; 2 * payload.len() + ON_STACK];
    let mut key = CdrWriter::new(&mut on_heap, Endianness::Big, form).without_bounds();
    T::copy_key(&mut body, &mut key).ok()?;
    Some(weir_cdr::key_hash::<T>(key.written(), form))
}

/// Returns the key hash of a key that was received: its strings may exceed their bounds.
fn hash_of_received<T: DdsType>(key: &T, form: Encoding) -> Option<[u8; 16]> {
    let mut bytes = vec![0; key.key_size(form)];
    let mut writer = CdrWriter::new(&mut bytes, Endianness::Big, form).without_bounds();
    key.encode_key(&mut writer).ok()?;
    Some(weir_cdr::key_hash::<T>(writer.written(), form))
}

/// Makes a payload of the key in another one, always in XCDR1, without decoding the rest.
pub(crate) fn key_payload_of<T: DdsType>(payload: &[u8], is_key: bool) -> Option<Box<[u8]>> {
    if is_key {
        let key = weir_cdr::convert_key_payload::<T>(payload, Encoding::Xcdr1).ok()?;
        return Some(key.into_boxed_slice());
    }
    let bound = 2 * payload.len() + KEY_ROOM;
    let mut room = vec![0; KEY_ROOM];
    loop {
        let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
        let mut key = CdrWriter::new(&mut room[4..], Endianness::Little, Encoding::Xcdr1).without_bounds();
        if T::copy_key(&mut body, &mut key).is_ok() {
            let len = 4 + key.position();
            room[..4].copy_from_slice(&[0, 1, 0, 0]);
            return Some(room[..len].into());
        }
        if room.len() >= bound {
            return None;
        }
        room.resize((room.len() * 8).min(bound), 0);
    }
}

/// First guess at the length of a key, in bytes.
const KEY_ROOM: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Aligned {
        #[dds(key)]
        a: u32,
        #[dds(key)]
        b: u64,
    }

    #[test]
    fn a_key_hash_that_is_the_key_names_the_instance() {
        let sample = Aligned { a: 0x0102_0304, b: 0x0506_0708_090a_0b0c };
        let on_wire = key_hash_of(&sample, Encoding::Xcdr1).unwrap();
        assert_eq!(on_wire, [1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 9, 10, 11, 12]);
        let instance = instance_of(&sample).unwrap();
        assert_eq!(instance, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 0]);
        assert_eq!(instance_of_key_hash::<Aligned>(on_wire), Some(instance));
    }

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Named {
        #[dds(key)]
        name: String,
        #[dds(key)]
        id: i64,
    }

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Text {
        #[dds(key)]
        name: String,
    }

    #[test]
    fn the_digest_in_xcdr1_is_known_from_the_key_that_a_reader_keeps() {
        let sample = Named { name: "abcd".to_owned(), id: 1 };
        let on_wire = key_hash_of(&sample, Encoding::Xcdr1).unwrap();
        // Padded to a multiple of eight before the number, which XCDR2 does not do.
        let key = [0, 0, 0, 5, b'a', b'b', b'c', b'd', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(on_wire, weir_cdr::key_hash_md5(&key));
        assert_ne!(on_wire, instance_of(&sample).unwrap());
        assert_eq!(instance_of_key_hash::<Named>(on_wire), None);
        for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
            let mut payload = Vec::new();
            weir_cdr::to_payload_in(&sample, encoding, &mut payload).unwrap();
            let kept = key_payload_of::<Named>(&payload, false).unwrap();
            assert_eq!(hash_of_key::<Named>().unwrap()(&kept), Some(on_wire));
        }
        assert!(hash_of_key::<Text>().is_none(), "the digest is what identifies the instance");
        assert!(hash_of_key::<Aligned>().is_none(), "the hash is no digest");
    }

    #[derive(Debug, DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Short {
        #[dds(key, max_len = 3, id = 2)]
        name: String,
        #[dds(key, id = 1)]
        id: u8,
    }

    #[test]
    fn a_key_in_iso_8859_1_may_outgrow_its_bound() {
        let payload = [0, 1, 0, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0, 7];
        let instance = instance_of_payload::<Short>(&payload, false);
        assert!(instance.is_some());
        assert_eq!(instance_of_payload::<Short>(&payload, true), instance);
        for is_key in [false, true] {
            let kept = key_payload_of::<Short>(&payload, is_key).unwrap();
            let key: Short = weir_cdr::from_converted_key_payload(&kept).unwrap();
            assert_eq!((&*key.name, key.id), ("G\u{dc}N", 7));
        }
        let too_long = [0, 1, 0, 0, 5, 0, 0, 0, b'a', b'b', b'c', b'd', 0, 7];
        assert_eq!(instance_of_payload::<Short>(&too_long, true), None);
        assert_eq!(instance_of_payload::<Short>(&too_long, false), None);
    }

    /// All of it belongs to the key.
    #[derive(Debug, DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Inner {
        #[dds(max_len = 3)]
        name: String,
    }

    /// All of it belongs to the key, too.
    #[derive(Debug, DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Perhaps {
        inner: Option<Inner>,
    }

    #[derive(Debug, DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Optional {
        #[dds(key)]
        perhaps: Perhaps,
    }

    #[test]
    fn a_key_in_iso_8859_1_may_outgrow_its_bound_in_an_optional_member() {
        let payload = [0, 1, 0, 0, 0, 0, 8, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0];
        let instance = instance_of_payload::<Optional>(&payload, false);
        assert!(instance.is_some());
        assert_eq!(instance_of_payload::<Optional>(&payload, true), instance);
        let kept = key_payload_of::<Optional>(&payload, true).unwrap();
        let key: Optional = weir_cdr::from_converted_key_payload(&kept).unwrap();
        assert_eq!(key.perhaps.inner.unwrap().name, "G\u{dc}N");
    }

    #[derive(Debug, DdsType, Default)]
    #[dds(extensibility = "final", crate = "weir_cdr")]
    struct Outer {
        #[dds(key)]
        inner: Inner,
        #[dds(key)]
        list: Vec<Inner>,
        #[dds(key)]
        id: u64,
    }

    #[test]
    fn a_key_in_iso_8859_1_may_outgrow_its_bound_in_a_struct_of_the_key() {
        #[rustfmt::skip]
        let payload = [
            0, 1, 0, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0,
            0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
        ];
        let instance = instance_of_payload::<Outer>(&payload, false);
        assert!(instance.is_some());
        assert_eq!(instance_of_payload::<Outer>(&payload, true), instance);
        let on_wire = key_hash_of_payload::<Outer>(&payload, false);
        assert!(on_wire.is_some());
        assert_eq!(key_hash_of_payload::<Outer>(&payload, true), on_wire);
        for is_key in [false, true] {
            let kept = key_payload_of::<Outer>(&payload, is_key).unwrap();
            assert_eq!(hash_of_key::<Outer>().unwrap()(&kept), on_wire);
            let key: Outer = weir_cdr::from_converted_key_payload(&kept).unwrap();
            assert_eq!((&*key.inner.name, &*key.list[0].name, key.id), ("G\u{dc}N", "G\u{dc}N", 7));
        }
    }
}
