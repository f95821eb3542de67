//! Maps: the number of entries, then each key with its value.

use alloc::collections::BTreeMap;

use crate::sequence::within;
use crate::{CdrCollection, CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout, Result};

impl<K: CdrValue + Ord, V: CdrValue> CdrValue for BTreeMap<K, V> {
    // As for sequences: entries without bytes, and types that contain maps of themselves, do not
    // compile.
    const LAYOUT: Layout = {
        assert!(<Self as CdrCollection>::ELEMENT_LAYOUT.min_size() > 0, "an entry takes at least one byte");
        let entries = <Self as CdrCollection>::ELEMENT_LAYOUT.sequence();
        if Self::IS_DELIMITED { entries.delimited() } else { entries }
    };
    const KEY_IS_WHOLE: bool = K::KEY_IS_WHOLE && V::KEY_IS_WHOLE;
    const KEY_LAYOUT: Layout = if Self::KEY_IS_WHOLE {
        Self::LAYOUT
    } else {
        <Self as CdrCollection>::ELEMENT_KEY_LAYOUT.sequence().delimited()
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

    #[inline]
    fn end_offset_as_key(&self, offset: usize, encoding: Encoding) -> usize {
        let offset = if Self::IS_DELIMITED { encoding.delimiter_end(offset) } else { offset };
        self.iter().fold(encoding.align(offset, 4) + 4, |offset, (key, value)| {
            value.end_offset_as_key(key.end_offset_as_key(offset, encoding), encoding)
        })
    }

    #[inline]
    fn encode_as_key(&self, writer: &mut CdrWriter<'_>) -> Result {
        let open = if Self::IS_DELIMITED { Some(writer.open_delimited()?) } else { None };
        writer.write_length(self.len())?;
        for (key, value) in self {
            key.encode_as_key(writer)?;
            value.encode_as_key(writer)?;
        }
        open.map_or(Ok(()), |open| writer.close_delimited(open))
    }

    #[inline]
    fn decode_as_key(&mut self, reader: &mut CdrReader<'_>) -> Result {
        self.decode_as_key_bounded(reader, u32::MAX)
    }

    #[inline]
    fn decode_new_as_key(reader: &mut CdrReader<'_>) -> Result<Self> {
        let mut map = Self::new();
        map.decode_as_key(reader)?;
        Ok(map)
    }

    #[inline]
    fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result {
        Self::copy_as_key_bounded(reader, writer, u32::MAX)
    }
}

impl<K: CdrValue + Ord, V: CdrValue> CdrCollection for BTreeMap<K, V> {
    const ELEMENT_LAYOUT: Layout = K::LAYOUT.then(V::LAYOUT);
    const ELEMENT_KEY_LAYOUT: Layout = K::KEY_LAYOUT.then(V::KEY_LAYOUT);
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

    fn decode_as_key_bounded(&mut self, reader: &mut CdrReader<'_>, max_len: u32) -> Result {
        let open = if Self::IS_DELIMITED { Some(reader.open_delimited()?) } else { None };
        let count = reader.take_count(const { Self::ELEMENT_KEY_LAYOUT.min_sizes() })?;
        self.clear();
        for _ in 0..within(count, max_len)? {
            let key = K::decode_new_as_key(reader)?;
            if self.insert(key, V::decode_new_as_key(reader)?).is_some() {
                return Err(CdrError::DuplicateKey);
            }
        }
        if let Some(open) = open {
            reader.close_delimited(open);
        }
        Ok(())
    }

    #[inline]
    fn copy_as_key_bounded(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>, max_len: u32) -> Result {
        Self::decode_bounded(reader, max_len)?.encode_as_key(writer)
    }
}

fn take_count<K: CdrValue + Ord, V: CdrValue>(reader: &mut CdrReader<'_>, max_len: u32) -> Result<usize> {
    let min_sizes = const {
        // Evaluates the assertion in it: an unused constant is not evaluated.
        let _ = <BTreeMap<K, V> as CdrValue>::LAYOUT;
        <BTreeMap<K, V> as CdrCollection>::ELEMENT_LAYOUT.min_sizes()
    };
    within(reader.take_count(min_sizes)?, max_len)
}
