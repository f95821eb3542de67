//! Key hashes: the 16 octets that stand for a key on the wire (RTPS 2.5 §9.6.4.8).

use md5::{Digest, Md5};

use crate::{DdsType, Encoding};

/// The hash of a serialized key: big endian, from offset 0, in the [`Encoding::of_key_hash`] of the writer's samples,
/// which is `encoding`.
///
/// The type decides, not the value: if no key of the type is longer than 16 bytes the hash is the key itself, padded
/// with zeros; otherwise it is the MD5 digest, even of a short key.
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
    let mut hash = [0; 16];
    match (max_size, hash.get_mut(..key_be.len())) {
        (Some(0..=16), Some(start)) => {
            start.copy_from_slice(key_be);
            hash
        }
        _ => key_hash_md5(key_be),
    }
}

/// The MD5 digest of a serialized key (big endian, from offset 0).
pub fn key_hash_md5(key_be: &[u8]) -> [u8; 16] {
    Md5::digest(key_be).into()
}
