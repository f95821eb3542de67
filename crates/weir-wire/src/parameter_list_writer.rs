//! Writes parameter lists, little-endian (RTPS 2.5 §9.4.2.11).

use alloc::vec::Vec;
use core::net::SocketAddrV4;

use crate::guid::Guid;
use crate::locator::Locator;
use crate::parameter_id::ParameterId;
use crate::timestamp::Duration;

/// Appends parameters to a buffer. [`ParameterListWriter::finish`] ends the list.
#[derive(Debug)]
pub struct ParameterListWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> ParameterListWriter<'a> {
    /// Starts a list at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends an unsigned number.
    pub fn u32(&mut self, id: ParameterId, value: u32) {
        self.raw(id, &value.to_le_bytes());
    }

    /// Appends a signed number.
    pub fn i32(&mut self, id: ParameterId, value: i32) {
        self.raw(id, &value.to_le_bytes());
    }

    /// Appends several signed numbers.
    pub fn i32s(&mut self, id: ParameterId, values: &[i32]) {
        self.value(id, |out| values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes())));
    }

    /// Appends a boolean.
    pub fn bool(&mut self, id: ParameterId, value: bool) {
        self.raw(id, &[u8::from(value)]);
    }

    /// Appends four bytes.
    pub fn bytes4(&mut self, id: ParameterId, value: [u8; 4]) {
        self.raw(id, &value);
    }

    /// Appends sixteen bytes.
    pub fn bytes16(&mut self, id: ParameterId, value: &[u8; 16]) {
        self.raw(id, value);
    }

    /// Appends a GUID.
    pub fn guid(&mut self, id: ParameterId, value: Guid) {
        self.raw(id, &value.to_bytes());
    }

    /// Appends a locator.
    pub fn locator(&mut self, id: ParameterId, value: Locator) {
        self.value(id, |out| {
            out.extend_from_slice(&value.kind.to_le_bytes());
            out.extend_from_slice(&value.port.to_le_bytes());
            out.extend_from_slice(&value.address);
        });
    }

    /// Appends a locator for each address.
    pub fn addresses(&mut self, id: ParameterId, addresses: &[SocketAddrV4]) {
        addresses.iter().for_each(|address| self.locator(id, Locator::udp_v4(*address)));
    }

    /// Appends a duration.
    pub fn duration(&mut self, id: ParameterId, value: Duration) {
        self.value(id, |out| push_duration(out, value));
    }

    /// Appends a kind and a duration (RELIABILITY, LIVELINESS).
    pub fn kind_and_duration(&mut self, id: ParameterId, kind: u32, value: Duration) {
        self.value(id, |out| {
            out.extend_from_slice(&kind.to_le_bytes());
            push_duration(out, value);
        });
    }

    /// Appends a string.
    pub fn string(&mut self, id: ParameterId, value: &str) {
        self.value(id, |out| push_string(out, value));
    }

    /// Appends a sequence of strings.
    pub fn strings<'s>(&mut self, id: ParameterId, values: impl ExactSizeIterator<Item = &'s str>) {
        self.value(id, |out| {
            out.extend_from_slice(&(values.len() as u32).to_le_bytes());
            values.for_each(|value| push_padded(out, value));
        });
    }

    /// Appends a byte sequence with its length before it.
    pub fn byte_sequence(&mut self, id: ParameterId, value: &[u8]) {
        self.value(id, |out| {
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        });
    }

    /// Appends a sequence of short numbers.
    pub fn i16s(&mut self, id: ParameterId, values: &[i16]) {
        self.value(id, |out| {
            out.extend_from_slice(&(values.len() as u32).to_le_bytes());
            values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        });
    }

    /// Appends bytes as they are, padded to a multiple of four.
    pub fn raw(&mut self, id: ParameterId, value: &[u8]) {
        let len = value.len().next_multiple_of(4);
        self.head(id, len);
        self.out.extend_from_slice(value);
        self.out.resize(self.out.len() + len - value.len(), 0);
    }

    /// Ends the list.
    pub fn finish(self) {
        self.out.extend_from_slice(&[1, 0, 0, 0]);
    }

    /// Appends a parameter whose value `write` appends, at an offset that is a multiple of four.
    pub(crate) fn value(&mut self, id: ParameterId, write: impl FnOnce(&mut Vec<u8>)) {
        let mut value = Vec::new();
        write(&mut value);
        value.resize(value.len().next_multiple_of(4), 0);
        self.head(id, value.len());
        self.out.extend_from_slice(&value);
    }

    /// Appends the id and the length of a parameter.
    fn head(&mut self, id: ParameterId, len: usize) {
        debug_assert!(len <= usize::from(u16::MAX), "parameter {id} is too long");
        self.out.extend_from_slice(&id.0.to_le_bytes());
        self.out.extend_from_slice(&(len as u16).to_le_bytes());
    }
}

fn push_duration(out: &mut Vec<u8>, value: Duration) {
    out.extend_from_slice(&value.seconds.to_le_bytes());
    out.extend_from_slice(&value.fraction.to_le_bytes());
}

/// Appends a string and the padding before what follows.
pub(crate) fn push_padded(out: &mut Vec<u8>, value: &str) {
    push_string(out, value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn push_string(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(&(value.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}
