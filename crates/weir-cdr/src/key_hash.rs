//! Key hashes: 16 bytes that identify a key on the wire (RTPS 2.5, 9.6.4.8).

use md5::{Digest, Md5};

use crate::{DdsType, Encoding};

/// Returns the hash of a serialized key.
///
/// `key_be` is the key in big-endian order from offset 0, in the [`Encoding::of_key_hash`] of the
/// writer's samples' `encoding`. The type decides, not the value: if no key of the type is longer
/// than 16 bytes, the hash is the key itself, padded with zeros. Otherwise it is the MD5 digest,
/// even of a short key.
///
/// ```
/// # use weir_cdr::DdsType;
/// #[derive(Default, DdsType)]
/// #[dds(extensibility = "final")]
/// struct Small {
///     #[dds(key)]
///     id: u16,
/// }
///
/// let hash = weir_cdr::key_hash::<Small>(&[1, 2], weir_cdr::Encoding::Xcdr1);
/// assert_eq!(hash, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
/// ```
pub fn key_hash<T: DdsType>(key_be: &[u8], encoding: Encoding) -> [u8; 16] {
    let max_size = match encoding {
        Encoding::Xcdr1 => T::MAX_KEY_SIZE,
        Encoding::Xcdr2 | Encoding::PlainXcdr2 => T::MAX_KEY_SIZE_XCDR2,
    };
    match (max_size, key_be.len()) {
        (Some(0..=16), 0..=16) => padded(key_be),
        _ => key_hash_md5(key_be),
    }
}

/// Pads at most 16 bytes with zeros. Lengths of integers are special cases: a copy of variable
/// length costs more than the rest of the function.
#[inline]
fn padded(bytes: &[u8]) -> [u8; 16] {
    if let Some(four) = whole(bytes) {
        return u128::from(u32::from_le_bytes(four)).to_le_bytes();
    }
    if let Some(eight) = whole(bytes) {
        return u128::from(u64::from_le_bytes(eight)).to_le_bytes();
    }
    let mut hash = [0; 16];
    for (to, from) in hash.iter_mut().zip(bytes) {
        *to = *from;
    }
    hash
}

/// Returns the bytes if there are exactly `N`.
#[inline]
fn whole<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Returns the MD5 digest of a serialized key (big-endian, from offset 0).
pub fn key_hash_md5(key_be: &[u8]) -> [u8; 16] {
    Md5::digest(key_be).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_padded_with_zeros_whatever_their_length() {
        for len in 0..=16_u8 {
            let key: Vec<u8> = (1..=len).collect();
            let mut expected = [0; 16];
            expected[..key.len()].copy_from_slice(&key);
            assert_eq!(padded(&key), expected);
        }
    }
}
