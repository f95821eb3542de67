//! A cursor that writes aligned values into a slice.

use crate::{CdrError, Encoding, Endianness, Result, Run, copy};

/// Writes values into a slice. Offsets and alignment count from the start of the slice.
///
/// Padding is written as zeros: the same value always gives the same bytes. After an error the
/// content after the writer's position is unspecified, and the writer should be dropped.
#[derive(Debug)]
pub struct CdrWriter<'a> {
    out: &'a mut [u8],
    position: usize,
    endianness: Endianness,
    encoding: Encoding,
    checks_bounds: bool,
}

/// Holds the position of a delimiter to be filled in by [`CdrWriter::close_delimited`].
#[derive(Debug)]
#[must_use = "the delimiter must be closed"]
pub struct OpenDelimiter(Option<usize>);

impl<'a> CdrWriter<'a> {
    /// Creates a writer at offset 0 of `out`.
    #[inline(always)]
    pub fn new(out: &'a mut [u8], endianness: Endianness, encoding: Encoding) -> Self {
        Self { out, position: 0, endianness, encoding, checks_bounds: true }
    }

    /// The same writer, for keys that were received: their strings may exceed their bounds, as they have more bytes in
    /// UTF-8 than in ISO 8859-1.
    #[inline(always)]
    #[must_use]
    pub fn without_bounds(self) -> Self {
        self.checking_bounds(false)
    }

    /// The same writer, which refuses what exceeds its bound, or does not.
    #[inline(always)]
    pub(crate) fn checking_bounds(self, checks_bounds: bool) -> Self {
        Self { checks_bounds, ..self }
    }

    /// Whether what exceeds its bound is refused.
    #[inline(always)]
    pub(crate) fn checks_bounds(&self) -> bool {
        self.checks_bounds
    }

    /// Returns the number of bytes written, with padding.
    #[inline(always)]
    pub fn position(&self) -> usize {
        self.position
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

    /// Returns the bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.out.get(..self.position).unwrap_or_default()
    }

    /// Advances over `len` bytes that start at the next offset aligned for primitives of `size`
    /// bytes (1, 2, 4 or 8), and returns them to be filled.
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`] if there are fewer bytes left.
    #[inline(always)]
    pub fn reserve(&mut self, size: usize, len: usize) -> Result<&mut [u8]> {
        let start = self.encoding.align(self.position, size);
        let end = start.checked_add(len).ok_or(CdrError::BufferTooSmall)?;
        if end > self.out.len() {
            return Err(CdrError::BufferTooSmall);
        }
        // Usually there is no padding, and a call to fill nothing costs more than the value.
        if start != self.position {
            self.out.get_mut(self.position..start).unwrap_or_default().fill(0);
        }
        let room = self.out.get_mut(start..end).ok_or(CdrError::BufferTooSmall)?;
        self.position = end;
        Ok(room)
    }

    /// Advances over all members of a run and its leading padding; returns a writer for them.
    ///
    /// `None`, without advancing, if the offsets here differ from the known ones: the members are
    /// then written one by one.
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`] if there are fewer bytes left.
    #[inline(always)]
    pub fn run(&mut self, run: Run) -> Result<Option<CdrWriter<'_>>> {
        let Some(extent) = run.at(self.position, self.encoding) else { return Ok(None) };
        let (endianness, encoding) = (self.endianness, self.encoding);
        let room = self.reserve(extent.first_alignment, extent.len)?;
        Ok(Some(CdrWriter::new(room, endianness, encoding)))
    }

    /// Writes the bytes of one primitive, aligned to its size (1, 2, 4 or 8).
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`] if there are fewer bytes left.
    #[inline(always)]
    pub fn write_aligned<const N: usize>(&mut self, bytes: [u8; N]) -> Result {
        self.reserve(N, N)?.copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes unaligned bytes.
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`] if there are fewer bytes left.
    #[inline(always)]
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result {
        copy::copy(copy::Stage::Encode, self.reserve(1, bytes.len())?, bytes);
        Ok(())
    }

    /// Writes the length of a sequence or string.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`] if it does not fit into 32 bits, [`CdrError::BufferTooSmall`]
    /// if there is no room.
    #[inline(always)]
    pub fn write_length(&mut self, len: usize) -> Result {
        let len = u32::try_from(len).map_err(|_| CdrError::LengthOverflow)?;
        self.write_aligned(match self.endianness {
            Endianness::Little => len.to_le_bytes(),
            Endianness::Big => len.to_be_bytes(),
        })
    }

    /// Starts a collection that XCDR2 delimits (DDS-XTypes 1.3, 7.4.3.4.2, DHEADER); writes nothing
    /// in XCDR1.
    ///
    /// # Errors
    /// [`CdrError::BufferTooSmall`] if there is no room.
    #[inline(always)]
    pub fn open_delimited(&mut self) -> Result<OpenDelimiter> {
        self.open_if(self.encoding.delimits_collections())
    }

    /// The same for an appendable struct or union, which not all encodings delimit.
    ///
    /// # Errors
    /// As [`open_delimited`](Self::open_delimited).
    #[inline(always)]
    pub fn open_appendable(&mut self) -> Result<OpenDelimiter> {
        self.open_if(self.encoding.delimits_appendables())
    }

    #[inline(always)]
    fn open_if(&mut self, is_delimited: bool) -> Result<OpenDelimiter> {
        if !is_delimited {
            return Ok(OpenDelimiter(None));
        }
        self.write_length(0)?;
        Ok(OpenDelimiter(Some(self.position)))
    }

    /// Ends a delimited value: fills in the number of bytes written since it was opened.
    ///
    /// # Errors
    /// [`CdrError::LengthOverflow`] if it does not fit into 32 bits.
    #[inline(always)]
    pub fn close_delimited(&mut self, open: OpenDelimiter) -> Result {
        self.close_delimited_before(open, 0)
    }

    /// Ends a delimited value whose last `rest` bytes do not go through this writer.
    ///
    /// # Errors
    /// As [`close_delimited`](Self::close_delimited).
    #[inline(always)]
    pub fn close_delimited_before(&mut self, open: OpenDelimiter, rest: usize) -> Result {
        let Some(start) = open.0 else { return Ok(()) };
        let end = self.position;
        self.position = start - 4;
        self.write_length(end - start + rest)?;
        self.position = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_zeroed() {
        let mut out = [0xff; 8];
        let mut writer = CdrWriter::new(&mut out, Endianness::Little, Encoding::Xcdr1);
        writer.write_bytes(&[1]).unwrap();
        writer.write_length(0x0203).unwrap();
        assert_eq!(writer.written(), [1, 0, 0, 0, 3, 2, 0, 0]);
    }

    #[test]
    fn a_full_buffer_is_an_error_even_when_only_padding_is_missing() {
        let mut out = [0; 5];
        let mut writer = CdrWriter::new(&mut out, Endianness::Big, Encoding::Xcdr1);
        writer.write_bytes(&[0; 5]).unwrap();
        assert_eq!(writer.write_length(1), Err(CdrError::BufferTooSmall));
        assert_eq!(writer.write_bytes(&[1]), Err(CdrError::BufferTooSmall));
        assert_eq!(writer.reserve(8, usize::MAX), Err(CdrError::BufferTooSmall));
        assert_eq!(writer.write_bytes(&[]), Ok(()));
        assert_eq!(writer.position(), 5);
    }

    #[test]
    fn delimiters_hold_the_length_of_what_follows() {
        let mut out = [0; 16];
        let mut writer = CdrWriter::new(&mut out, Endianness::Big, Encoding::Xcdr2);
        writer.write_bytes(&[9]).unwrap();
        let open = writer.open_delimited().unwrap();
        writer.write_bytes(&[7; 3]).unwrap();
        writer.close_delimited(open).unwrap();
        assert_eq!(writer.written(), [9, 0, 0, 0, 0, 0, 0, 3, 7, 7, 7]);
    }
}
