//! Maps: the number of entries, then each key with its value.

use alloc::collections::BTreeMap;

use crate::{CdrCollection, CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result};

impl<K: CdrValue + Ord, V: CdrValue> CdrValue for BTreeMap<K, V> {
    // As for sequences: entries without bytes, and types that contain maps of themselves, do not
    // compile.
    const LAYOUT: Layout = {
        assert!(<Self as CdrCollection>::ELEMENT_LAYOUT.min_size() > 0, "an entry takes at least one byte");
        <Self as CdrCollection>::ELEMENT_LAYOUT.sequence()
    };

    #[inline]
    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        let offset = if Self::IS_DELIMITED { encoding.delimiter_end(offset) } else { offset };
        self.iter().fold(encoding.align(offset, 4) + 4, |offset, (key, value)| {
            value.end_offset(key.end_offset(offset, encoding), encoding)
        })
    }

    #[inline]
    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result {
        let open = if Self::IS_DELIMITED { Some(writer.open_delimited()?) } else { None };
        writer.write_length(self.len())?;
        for (key, value) in self {
            key.encode(writer)?;
            value.encode(writer)?;
        }
        open.map_or(Ok(()), |open| writer.close_delimited(open))
    }

    #[inline]
    fn decode(reader: &mut CdrReader<'_>) -> Result<Self> {
        Self::decode_bounded(reader, u32::MAX)
    }

    #[inline]
    fn skip(reader: &mut CdrReader<'_>) -> Result {
        if Self::IS_DELIMITED && reader.skip_delimited()? {
            return Ok(());
        }
        for _ in 0..take_count::<K, V>(reader, u32::MAX)? {
            K::skip(reader)?;
            V::skip(reader)?;
        }
        Ok(())
    }

    #[inline]
    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy_bounded(reader, writer, u32::MAX)
    }
}

impl<K: CdrValue + Ord, V: CdrValue> CdrCollection for BTreeMap<K, V> {
    const ELEMENT_LAYOUT: Layout = K::LAYOUT.then(V::LAYOUT);
    const HAS_TERMINATOR: bool = false;
    const IS_DELIMITED: bool = !(K::IS_PRIMITIVE && V::IS_PRIMITIVE);

    #[inline]
    fn element_count(&self) -> usize {
        self.len()
    }

    fn decode_bounded(reader: &mut CdrReader<'_>, max_len: u32) -> Result<Self> {
        let open = if Self::IS_DELIMITED { Some(reader.open_delimited()?) } else { None };
        let mut map = Self::new();
        for _ in 0..take_count::<K, V>(reader, max_len)? {
            let key = K::decode(reader)?;
            if map.insert(key, V::decode(reader)?).is_some() {
                return Err(CdrError::DuplicateKey);
            }
        }
        if let Some(open) = open {
            reader.close_delimited(open);
        }
        Ok(map)
    }

    /// Decodes and encodes: peers may write entries in another order, and the same map must give
    /// the same bytes.
    #[inline]
    fn copy_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        Self::decode_bounded(reader, max_len)?.encode(writer)
    }
}

fn take_count<K: CdrValue + Ord, V: CdrValue>(reader: &mut CdrReader<'_>, max_len: u32) -> Result<usize> {
    let min_sizes = const {
        // Evaluates the assertion in it: an unused constant is not evaluated.
        let _ = <BTreeMap<K, V> as CdrValue>::LAYOUT;
        <BTreeMap<K, V> as CdrCollection>::ELEMENT_LAYOUT.min_sizes()
    };
    let count = reader.take_count(min_sizes)?;
    if count > max_len as usize { Err(CdrError::BoundExceeded { max: max_len }) } else { Ok(count) }
}
