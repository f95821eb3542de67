//! Inline QoS: what happened to an instance (STATUS_INFO), and its key hash (KEY_HASH) (RTPS 2.5, 9.6.4.8, 9.6.4.9).

use alloc::vec::Vec;

use weir_wire::{ParameterId, ParameterList, ParameterListWriter};

use crate::change_kind::ChangeKind;

/// Returns the inline QoS of the end of an instance.
pub(crate) fn encode(kind: ChangeKind, key: Option<[u8; 16]>) -> Vec<u8> {
    let mut inline_qos = Vec::new();
    let mut list = ParameterListWriter::new(&mut inline_qos);
    if let Some(key) = key {
        list.bytes16(ParameterId::KEY_HASH, &key);
    }
    let status = match kind {
        ChangeKind::Alive => 0,
        ChangeKind::Disposed => 1,
        ChangeKind::Unregistered => 2,
        ChangeKind::DisposedUnregistered => 3,
    };
    list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, status]);
    list.finish();
    inline_qos
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
