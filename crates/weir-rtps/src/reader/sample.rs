//! Interpretation of a DATA submessage, or of a sample assembled from fragments: what happened to
//! which instance.

use weir_wire::{Data, Payload, Timestamp};

use super::config::ReaderConfig;
use super::writer_proxy::WriterProxy;
use crate::inline_qos;
use crate::key_hasher::Key;
use crate::writer::ChangeKind;

/// A sample for the cache.
pub(super) struct Sample<'a> {
    pub(super) kind: ChangeKind,
    pub(super) payload: &'a [u8],
    pub(super) key: Option<Key>,
    pub(super) source_timestamp: Option<Timestamp>,
}

/// Why a submessage is no sample for the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotASample {
    /// The key cannot be decoded, or is missing.
    Malformed,
    /// It ends a coherent set, and reports nothing else (RTPS 2.5, 8.7.5).
    EndOfSet,
}

/// Interprets a DATA submessage: kind and instance, from inline QoS or from the payload. Always
/// inlined, so that the result stays in registers.
#[inline(always)]
pub(super) fn sample<'a>(
    config: &ReaderConfig,
    proxy: &WriterProxy,
    data: &Data<'a>,
    source_timestamp: Option<Timestamp>,
) -> Result<Sample<'a>, NotASample> {
    let (kind, key_hash) = match &data.inline_qos {
        Some(list) => inline_qos::decode(Some(list)),
        None => (ChangeKind::Alive, None),
    };
    let (payload, is_key) = match data.payload {
        Payload::Data(bytes) => (bytes, false),
        Payload::Key(bytes) => (bytes, true),
        Payload::None if kind == ChangeKind::Alive => return Err(without_content(data)),
        Payload::None => (&[][..], true),
    };
    sample_of(config, proxy, payload, is_key, kind, key_hash, source_timestamp)
}

#[cold]
fn without_content(data: &Data<'_>) -> NotASample {
    let ends_set = data.inline_qos.as_ref().is_some_and(inline_qos::has_coherent_set);
    if ends_set { NotASample::EndOfSet } else { NotASample::Malformed }
}

/// Finds the instance that a key hash names.
#[cold]
fn key_of_hash(config: &ReaderConfig, proxy: &WriterProxy, key_hash: Option<[u8; 16]>) -> Option<Key> {
    let key_hash = key_hash?;
    let converted = config.key_of_hash.filter(|_| proxy.has_xcdr1_hashes).and_then(|of| of(key_hash));
    Some(converted.unwrap_or(key_hash).into())
}

/// Finds the instance of a payload. `kind`, `key_hash`: from inline QoS.
#[inline(always)]
pub(super) fn sample_of<'a>(
    config: &ReaderConfig,
    proxy: &WriterProxy,
    payload: &'a [u8],
    is_key: bool,
    kind: ChangeKind,
    key_hash: Option<[u8; 16]>,
    source_timestamp: Option<Timestamp>,
) -> Result<Sample<'a>, NotASample> {
    // A key without a status reports nothing.
    if is_key && kind == ChangeKind::Alive {
        return Err(NotASample::Malformed);
    }
    let key = match config.key_of {
        None => key_hash.map(Key::from),
        Some(key_of) if !payload.is_empty() => {
            Some(key_of(payload, is_key).ok_or(NotASample::Malformed)?.into())
        }
        Some(_) => Some(key_of_hash(config, proxy, key_hash).ok_or(NotASample::Malformed)?),
    };
    Ok(Sample { kind, payload, key, source_timestamp })
}
