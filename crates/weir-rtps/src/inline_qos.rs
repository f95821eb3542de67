//! Inline QoS: what happened to an instance (STATUS_INFO), and its key hash (KEY_HASH) (RTPS 2.5, 9.6.4.8, 9.6.4.9).

use core::ops::Deref;

use weir_wire::{ParameterId, ParameterList};

use crate::change_kind::ChangeKind;

/// The inline QoS of the end of an instance, encoded. It needs no allocation.
#[derive(Debug)]
pub(crate) struct InlineQos {
    bytes: [u8; Self::LEN_MAX],
    len: usize,
}

impl InlineQos {
    /// Both parameters, and the sentinel.
    pub(crate) const LEN_MAX: usize = 20 + 8 + 4;

    fn push(&mut self, id: ParameterId, value: &[u8]) {
        for part in [&id.0.to_le_bytes(), &(value.len() as u16).to_le_bytes(), value] {
            self.bytes[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
    }
}

impl Deref for InlineQos {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the inline QoS of the end of an instance.
pub(crate) fn encode(kind: ChangeKind, key: Option<[u8; 16]>) -> InlineQos {
    let mut list = InlineQos { bytes: [0; InlineQos::LEN_MAX], len: 0 };
    if let Some(key) = key {
        list.push(ParameterId::KEY_HASH, &key);
    }
    let status = match kind {
        ChangeKind::Alive => 0,
        ChangeKind::Disposed => 1,
        ChangeKind::Unregistered => 2,
        ChangeKind::DisposedUnregistered => 3,
    };
    list.push(ParameterId::STATUS_INFO, &[0, 0, 0, status]);
    list.push(ParameterId::SENTINEL, &[]);
    list
}

/// Reads what happened to the instance, and its key hash, up to the first invalid parameter.
pub(crate) fn decode(list: Option<&ParameterList<'_>>) -> (ChangeKind, Option<[u8; 16]>) {
    let mut kind = ChangeKind::Alive;
    let mut key = None;
    for parameter in list.into_iter().flat_map(ParameterList::iter).map_while(Result::ok) {
        if parameter.id == ParameterId::STATUS_INFO {
            // Big-endian in either endianness: the flags are in the last byte.
            kind = match parameter.value.get(3).copied().unwrap_or(0) & 3 {
                0 => ChangeKind::Alive,
                1 => ChangeKind::Disposed,
                2 => ChangeKind::Unregistered,
                _ => ChangeKind::DisposedUnregistered,
            };
        } else if parameter.id == ParameterId::KEY_HASH {
            key = parameter.value.first_chunk::<16>().copied();
        }
    }
    (kind, key)
}

/// Returns whether a sample belongs to a coherent set of changes, or ends one (RTPS 2.5, 9.6.4.2).
pub(crate) fn has_coherent_set(list: &ParameterList<'_>) -> bool {
    let ids = [ParameterId::COHERENT_SET, ParameterId::GROUP_COHERENT_SET];
    list.iter().map_while(Result::ok).any(|parameter| ids.contains(&parameter.id))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use weir_wire::ParameterListWriter;

    use super::*;

    #[test]
    fn the_list_is_the_one_that_the_writer_of_lists_makes() {
        for key in [None, Some([7; 16])] {
            let mut expected = Vec::new();
            let mut list = ParameterListWriter::new(&mut expected);
            key.iter().for_each(|key| list.bytes16(ParameterId::KEY_HASH, key));
            list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 1]);
            list.finish();
            assert_eq!(encode(ChangeKind::Disposed, key)[..], expected);
        }
    }
}
