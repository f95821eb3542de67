//! Key hashes of samples.

use weir_cdr::{CdrWriter, DdsType, Encoding, Endianness};

use crate::error::Result;

/// The key hash of a sample (RTPS 2.5 §9.6.4.8). Keys up to 64 bytes are serialized on the stack.
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
