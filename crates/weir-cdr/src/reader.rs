//! A cursor that reads aligned values from a slice.

use bytes::Bytes;

use crate::copy::{self, Stage};
use crate::run::RunData;
use crate::shared::SharedMemory;
use crate::{CdrError, Encoding, Endianness, Result, Run};

/// Reads values from a slice. Offsets and alignment count from the start of the slice.
///
/// Every access is checked. After an error the position is unspecified, and the reader should be
/// dropped.
#[derive(Clone, Debug)]
pub struct CdrReader<'a> {
    data: &'a [u8],
    /// The memory of the data, if values may keep parts of it alive.
    shared: Option<&'a dyn SharedMemory>,
    position: usize,
    endianness: Endianness,
    encoding: Encoding,
    checks_bounds: bool,
}

/// Holds what follows a delimited value, for [`CdrReader::close_delimited`].
#[derive(Debug)]
#[must_use = "the delimiter must be closed"]
pub struct OpenDelimiter<'a>(Option<&'a [u8]>);

impl<'a> CdrReader<'a> {
    /// Creates a reader at offset 0 of `data`.
    #[inline(always)]
    pub fn new(data: &'a [u8], endianness: Endianness, encoding: Encoding) -> Self {
        Self { data, shared: None, position: 0, endianness, encoding, checks_bounds: true }
    }

    /// The same reader, for what a writer [without bounds](crate::CdrWriter::without_bounds) wrote.
    #[must_use]
    pub fn without_bounds(self) -> Self {
        self.checking_bounds(false)
    }

    /// The same reader, which refuses what exceeds its bound, or does not.
    #[inline(always)]
    pub(crate) fn checking_bounds(self, checks_bounds: bool) -> Self {
        Self { checks_bounds, ..self }
    }

    /// Whether a string that exceeds its bound is refused.
    #[inline(always)]
    pub(crate) fn checks_bounds(&self) -> bool {
        self.checks_bounds
    }

    /// The same reader, for data in `memory`: byte sequences refer to it instead of being copied.
    #[must_use]
    pub fn shared(self, memory: &'a dyn SharedMemory) -> Self {
        Self { shared: Some(memory), ..self }
    }

    /// Returns the number of bytes read, with padding.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the number of bytes not yet read; inside a delimited value, of that value.
    #[inline(always)]
    pub fn remaining(&self) -> usize {
        self.data.len().saturating_sub(self.position)
    }

    /// Returns the byte order.
    #[inline(always)]
    pub fn endianness(&self) -> Endianness {
        self.endianness
    }

    /// Returns the encoding.
    #[inline(always)]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Advances over `len` bytes that start at the next offset aligned for primitives of `size`
    /// bytes (1, 2, 4 or 8), and returns them.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if there are fewer bytes left.
    #[inline(always)]
    pub fn take(&mut self, size: usize, len: usize) -> Result<&'a [u8]> {
        let start = self.encoding.align(self.position, size);
        let end = start.checked_add(len).ok_or(CdrError::UnexpectedEnd)?;
        let bytes = self.data.get(start..end).ok_or(CdrError::UnexpectedEnd)?;
        self.position = end;
        Ok(bytes)
    }

    /// Advances over all members of a run and its leading padding, if their offsets are known and
    /// all members are there.
    #[inline(always)]
    pub fn run(&mut self, run: Run) -> RunData<'a> {
        let Some(extent) = run.at(self.position, self.encoding) else { return RunData::Unknown };
        match self.take(extent.first_alignment, extent.len) {
            // Shared memory never contains part of a run.
            Ok(data) => RunData::Whole(Self::new(data, self.endianness, self.encoding)),
            Err(_) => RunData::Short,
        }
    }

    /// Returns why the members of a run that is [`Short`](RunData::Short) cannot be read. Read one
    /// by one, they may fail before the data end.
    #[cold]
    #[inline(never)]
    pub fn why_short(mut self, read: impl FnOnce(&mut Self) -> Result) -> CdrError {
        read(&mut self).err().unwrap_or(CdrError::UnexpectedEnd)
    }

    /// Reads the bytes of one primitive, aligned to its size (1, 2, 4 or 8).
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if there are fewer bytes left.
    #[inline(always)]
    pub fn take_aligned<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N, N)?.first_chunk().copied().ok_or(CdrError::UnexpectedEnd)
    }

    /// Reads unaligned bytes.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if there are fewer bytes left.
    #[inline(always)]
    pub fn take_bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        self.take(1, len)
    }

    /// Reads unaligned bytes to be kept: without a copy if the data are in shared memory.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if there are fewer bytes left.
    pub fn take_shared(&mut self, len: usize) -> Result<Bytes> {
        let bytes = self.take_bytes(len)?;
        Ok(match self.shared {
            Some(memory) if !bytes.is_empty() => memory.share(bytes),
            _ => {
                copy::count_long(Stage::Decode, len);
                Bytes::copy_from_slice(bytes)
            }
        })
    }

    /// Advances over `count` primitives of `size` bytes each and returns their bytes.
    ///
    /// If `count` is 0, advances over nothing, not even padding.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if there are fewer bytes left.
    #[inline(always)]
    pub fn take_primitives(&mut self, size: usize, count: usize) -> Result<&'a [u8]> {
        if count == 0 {
            return Ok(&[]);
        }
        self.take(size, count.checked_mul(size).ok_or(CdrError::UnexpectedEnd)?)
    }

    /// Reads the length of a sequence or string whose elements take at least `min_size` bytes each.
    ///
    /// The length is never larger than what the rest of the data can hold, so it is safe to
    /// allocate that much.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if it would be, or if there are fewer than four bytes left.
    #[inline(always)]
    pub fn take_length(&mut self, min_size: usize) -> Result<usize> {
        let bytes = self.take_aligned()?;
        let length = match self.endianness {
            Endianness::Little => u32::from_le_bytes(bytes),
            Endianness::Big => u32::from_be_bytes(bytes),
        } as usize;
        // A product rather than a quotient: it is cheaper, and 64 bits always hold it for sizes
        // below 4 GiB.
        match length.checked_mul(min_size.max(1)) {
            Some(needed) if needed <= self.remaining() => Ok(length),
            _ => Err(CdrError::UnexpectedEnd),
        }
    }

    /// Reads the length of a collection whose elements take at least `min_sizes` bytes each: in all encodings but
    /// XCDR2, and in XCDR2.
    ///
    /// # Errors
    /// As [`take_length`](Self::take_length).
    #[inline(always)]
    pub(crate) fn take_count(&mut self, min_sizes: [usize; 2]) -> Result<usize> {
        // For most elements the two are the same constant, and nothing is left of the choice.
        let [min_size, min_size_2] = min_sizes;
        self.take_length(if self.encoding == Encoding::Xcdr2 { min_size_2 } else { min_size })
    }

    /// Starts a collection that XCDR2 delimits: reads its length and hides what follows. Does
    /// nothing in XCDR1.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if the delimited value exceeds the data.
    #[inline(always)]
    pub fn open_delimited(&mut self) -> Result<OpenDelimiter<'a>> {
        self.open_if(self.encoding.delimits_collections())
    }

    /// The same for an appendable struct or union, which not all encodings delimit.
    ///
    /// # Errors
    /// As [`open_delimited`](Self::open_delimited).
    #[inline(always)]
    pub fn open_appendable(&mut self) -> Result<OpenDelimiter<'a>> {
        self.open_if(self.encoding.delimits_appendables())
    }

    #[inline(always)]
    fn open_if(&mut self, is_delimited: bool) -> Result<OpenDelimiter<'a>> {
        if !is_delimited {
            return Ok(OpenDelimiter(None));
        }
        let length = self.take_length(1)?;
        let outer = self.data;
        self.data = outer.get(..self.position + length).ok_or(CdrError::UnexpectedEnd)?;
        Ok(OpenDelimiter(Some(outer)))
    }

    /// Ends a delimited value: skips its unread rest and reveals what follows.
    #[inline(always)]
    pub fn close_delimited(&mut self, open: OpenDelimiter<'a>) {
        if let Some(outer) = open.0 {
            self.position = self.data.len();
            self.data = outer;
        }
    }

    /// Skips a whole collection if the encoding delimits it; returns whether it did.
    ///
    /// # Errors
    /// [`CdrError::UnexpectedEnd`] if the delimited value exceeds the data.
    #[inline(always)]
    pub fn skip_delimited(&mut self) -> Result<bool> {
        let open = self.open_delimited()?;
        Ok(self.skip_opened(open))
    }

    /// The same for an appendable struct or union.
    ///
    /// # Errors
    /// As [`skip_delimited`](Self::skip_delimited).
    #[inline(always)]
    pub fn skip_appendable(&mut self) -> Result<bool> {
        let open = self.open_appendable()?;
        Ok(self.skip_opened(open))
    }

    #[inline(always)]
    fn skip_opened(&mut self, open: OpenDelimiter<'a>) -> bool {
        let is_delimited = open.0.is_some();
        self.close_delimited(open);
        is_delimited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_aligned_and_checked() {
        let data = [1, 0xff, 0xff, 0xff, 5, 0, 0, 0, 9];
        let mut reader = CdrReader::new(&data, Endianness::Little, Encoding::Xcdr1);
        assert_eq!(reader.take_bytes(1).unwrap(), [1]);
        assert_eq!(reader.take_aligned::<4>().unwrap(), [5, 0, 0, 0]);
        assert_eq!(reader.remaining(), 1);
        assert_eq!(reader.clone().take_aligned::<2>(), Err(CdrError::UnexpectedEnd));
        assert_eq!(reader.take_primitives(8, 0).unwrap(), []);
        assert_eq!(reader.take_bytes(1).unwrap(), [9]);
        assert_eq!(reader.take_bytes(usize::MAX), Err(CdrError::UnexpectedEnd));
        assert_eq!(reader.take_primitives(8, usize::MAX), Err(CdrError::UnexpectedEnd));
    }

    #[test]
    fn a_length_beyond_the_data_is_refused_before_anything_is_allocated() {
        let data = [0, 0, 0, 2, 1, 1, 1, 1];
        let length = |min_size| CdrReader::new(&data, Endianness::Big, Encoding::Xcdr1).take_length(min_size);
        assert_eq!(length(2), Ok(2));
        assert_eq!(length(3), Err(CdrError::UnexpectedEnd));
        assert_eq!(length(usize::MAX), Err(CdrError::UnexpectedEnd));
    }

    #[test]
    fn a_delimited_value_hides_what_is_behind_it() {
        let data = [0, 0, 0, 3, 1, 2, 3, 4];
        let mut reader = CdrReader::new(&data, Endianness::Big, Encoding::Xcdr2);
        let open = reader.open_delimited().unwrap();
        assert_eq!(reader.remaining(), 3);
        assert_eq!(reader.clone().take_bytes(4), Err(CdrError::UnexpectedEnd));
        reader.close_delimited(open);
        assert_eq!(reader.take_bytes(1).unwrap(), [4]);

        let mut too_long = CdrReader::new(&data[..6], Endianness::Big, Encoding::Xcdr2);
        assert_eq!(too_long.skip_delimited(), Err(CdrError::UnexpectedEnd));
    }
}
