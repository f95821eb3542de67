//! Splits the fuzzer's bytes into small decisions.

/// The rest of the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next two bytes, little-endian.
    pub(crate) fn word(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    /// The next piece, with its length before it; shorter if the input ends.
    pub(crate) fn piece(&mut self) -> Option<&'a [u8]> {
        let len = usize::from(self.word()?);
        let (piece, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        Some(piece)
    }
}

/// Makes the operation `operation` followed by a piece, as [`Input::piece`] reads it: for seeds.
pub(crate) fn with_piece(operation: u8, piece: &[u8]) -> Vec<u8> {
    let len = u16::try_from(piece.len()).expect("a datagram's length fits 16 bits");
    [&[operation], &len.to_le_bytes()[..], piece].concat()
}
