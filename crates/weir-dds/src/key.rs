//! Key hashes of samples.

use weir_cdr::{CdrWriter, DdsType, Encoding, Endianness};

use crate::error::Result;

/// The key hash of a sample (RTPS 2.5, 9.6.4.8). Keys up to 64 bytes are serialized on the stack.
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

/// Computes the key hash of a payload (RTPS 2.5, 9.6.4.8) in its writer's encoding.
///
/// Copies the key out of the payload without decoding the rest.
pub(crate) fn key_of_payload<T: DdsType>(payload: &[u8], is_key: bool) -> Option<[u8; 16]> {
    const ON_STACK: usize = 64;
    let mut on_stack = [0; ON_STACK];
    if !is_key {
        let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
        let encoding = body.encoding();
        let mut key = CdrWriter::new(&mut on_stack, Endianness::Big, encoding.of_key_hash());
        if T::copy_key(&mut body, &mut key).is_ok() {
            return Some(weir_cdr::key_hash::<T>(key.written(), encoding));
        }
    }
    let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
    let encoding = body.encoding();
    // The key in a payload is no longer than the payload, apart from padding.
    let mut on_heap = vec![0; 2 * payload.len() + ON_STACK];
    let mut key = CdrWriter::new(&mut on_heap, Endianness::Big, encoding.of_key_hash());
    if is_key {
        weir_cdr::from_key_payload::<T>(payload).ok()?.encode_key(&mut key).ok()?;
    } else {
        T::copy_key(&mut body, &mut key).ok()?;
    }
    Some(weir_cdr::key_hash::<T>(key.written(), encoding))
}

/// Makes a payload of the key in another one, always in XCDR1, without decoding the rest.
pub(crate) fn key_payload_of<T: DdsType>(payload: &[u8], is_key: bool) -> Option<Box<[u8]>> {
    if is_key {
        let value: T = weir_cdr::from_key_payload(payload).ok()?;
        return Some(weir_cdr::key_payload(&value, Encoding::Xcdr1).ok()?.into_boxed_slice());
    }
    let bound = 2 * payload.len() + KEY_ROOM;
    let mut room = vec![0; KEY_ROOM];
    loop {
        let mut body = weir_cdr::payload_reader_of::<T>(payload).ok()?;
        let mut key = CdrWriter::new(&mut room[4..], Endianness::Little, Encoding::Xcdr1);
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
