//! Participant messages, which assert liveliness (RTPS 2.5, 8.4.13, 9.6.3.1): stateless
//! encoding and decoding.

use weir_wire::{GuidPrefix, encapsulation};

use crate::qos::LivelinessKind;

/// The kind of a message that asserts all AUTOMATIC writers of the participant.
const AUTOMATIC: [u8; 4] = [0, 0, 0, 1];
/// The kind of a message that asserts all MANUAL_BY_PARTICIPANT writers of the participant.
const MANUAL_BY_PARTICIPANT: [u8; 4] = [0, 0, 0, 2];

/// Returns the key of a message, which is its own key hash: the participant and the kind. `None`
/// for writers that are asserted individually.
pub(crate) fn key(prefix: GuidPrefix, kind: LivelinessKind) -> Option<[u8; 16]> {
    let kind = match kind {
        LivelinessKind::Automatic => AUTOMATIC,
        LivelinessKind::ManualByParticipant => MANUAL_BY_PARTICIPANT,
        LivelinessKind::ManualByTopic => return None,
    };
    let mut key = [0; 16];
    key[..12].copy_from_slice(&prefix.0);
    key[12..].copy_from_slice(&kind);
    Some(key)
}

/// Encodes the payload of a message with its encapsulation header: the key, and no data.
pub(crate) fn encode(key: [u8; 16]) -> [u8; 24] {
    let mut payload = [0; 24];
    payload[..2].copy_from_slice(&encapsulation::CDR_LE);
    payload[4..20].copy_from_slice(&key);
    payload
}

/// Decodes a payload: the participant, and which writers it asserts. `None` if it is too short or
/// of an unknown kind. The data after it are vendor-specific.
pub(crate) fn decode(payload: &[u8]) -> Option<(GuidPrefix, LivelinessKind)> {
    let key = payload.get(4..)?.first_chunk::<16>()?;
    let (prefix, kind) = key.split_first_chunk::<12>()?;
    let kind = match *kind.first_chunk::<4>()? {
        AUTOMATIC => LivelinessKind::Automatic,
        MANUAL_BY_PARTICIPANT => LivelinessKind::ManualByParticipant,
        _ => return None,
    };
    Some((GuidPrefix(*prefix), kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHO: GuidPrefix = GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);

    #[test]
    fn messages_are_the_bytes_of_the_specification() {
        let key = key(WHO, LivelinessKind::ManualByParticipant).unwrap();
        #[rustfmt::skip]
        let bytes = [
            0, 1, 0, 0,                             // CDR_LE
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,  // participantGuidPrefix
            0, 0, 0, 2,                             // kind, bytes
            0, 0, 0, 0,                             // no data
        ];
        assert_eq!(encode(key), bytes);
        assert_eq!(decode(&bytes), Some((WHO, LivelinessKind::ManualByParticipant)));
    }

    #[test]
    fn every_kind_comes_back() {
        let automatic = encode(key(WHO, LivelinessKind::Automatic).unwrap());
        assert_eq!(decode(&automatic), Some((WHO, LivelinessKind::Automatic)));
        assert_eq!(key(WHO, LivelinessKind::ManualByTopic), None);
    }

    #[test]
    fn short_and_unknown_messages_mean_nothing() {
        let mut bytes = encode(key(WHO, LivelinessKind::Automatic).unwrap());
        for len in 0..20 {
            assert_eq!(decode(&bytes[..len]), None);
        }
        bytes[19] = 3;
        assert_eq!(decode(&bytes), None);
    }
}
