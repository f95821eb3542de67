//! Interpretation of a DATA submessage, or of a sample assembled from fragments: what happened to
//! which instance.

use weir_wire::{Data, ParameterList, Payload, Timestamp};

use super::config::ReaderConfig;
use super::delivery::Delivery;
use super::instances::Instances;
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

/// The key cannot be decoded, or is missing.
pub(super) struct Malformed;

impl Delivery {
    /// Interprets a DATA submessage: kind and instance, from inline QoS or from the payload. Always inlined, so that
    /// the result stays in registers.
    #[inline(always)]
    pub(super) fn sample<'a>(
        &self,
        config: &ReaderConfig,
        proxy: &WriterProxy,
        data: &Data<'a>,
        source_timestamp: Option<Timestamp>,
    ) -> Result<Sample<'a>, Malformed> {
        let instances = &self.cache.instances;
        let (kind, key_hash) = match &data.inline_qos {
            Some(list) => decode((config, instances), proxy, list, data.payload == Payload::None),
            None => (ChangeKind::Alive, None),
        };
        let (payload, is_key) = match data.payload {
            Payload::Data(bytes) => (bytes, false),
            Payload::Key(bytes) => (bytes, true),
            Payload::None => (&[][..], true),
        };
        sample_of(config, payload, is_key, kind, key_hash, source_timestamp)
    }
}

/// Reads inline QoS: the kind, and the key hash in the form of the reader's instances.
#[inline(never)]
fn decode(
    (config, instances): (&ReaderConfig, &Instances),
    proxy: &WriterProxy,
    list: &ParameterList<'_>,
    is_without_payload: bool,
) -> (ChangeKind, Option<[u8; 16]>) {
    let (kind, key_hash) = inline_qos::decode(Some(list));
    // With a payload, the key is in it.
    let convert = config.key_of_hash.filter(|_| is_without_payload && proxy.has_xcdr1_hashes);
    match (convert, key_hash) {
        (Some(convert), Some(hash)) => (kind, convert(hash).or_else(|| instances.key_of_digest(hash))),
        _ => (kind, key_hash),
    }
}

/// What a submessage is that is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSample {
    /// It ends a coherent set, and reports nothing else (RTPS 2.5, 8.7.5).
    EndOfSet,
    /// It ends an instance by a digest of its key. The reader knows none of that digest.
    EndOfUnknown,
    Malformed,
}

impl NoSample {
    /// Takes parts of the submessage by value: a reference would keep it in memory.
    #[cold]
    pub(super) fn of(payload: Payload<'_>, list: Option<ParameterList<'_>>) -> Self {
        let Some(list) = list.filter(|_| payload == Payload::None) else { return Self::Malformed };
        match inline_qos::decode(Some(&list)) {
            (ChangeKind::Alive, _) if inline_qos::has_coherent_set(&list) => Self::EndOfSet,
            (ChangeKind::Alive, _) | (_, None) => Self::Malformed,
            (_, Some(_)) => Self::EndOfUnknown,
        }
    }
}

/// Finds the instance of a payload. `kind`, `key_hash`: from inline QoS.
#[inline(always)]
pub(super) fn sample_of<'a>(
    config: &ReaderConfig,
    payload: &'a [u8],
    is_key: bool,
    kind: ChangeKind,
    key_hash: Option<[u8; 16]>,
    source_timestamp: Option<Timestamp>,
) -> Result<Sample<'a>, Malformed> {
    // A key without a status reports nothing.
    if is_key && kind == ChangeKind::Alive {
        return Err(Malformed);
    }
    let key = match config.key_of {
        None => key_hash.map(Key::from),
        Some(key_of) if !payload.is_empty() => Some(key_of(payload, is_key).ok_or(Malformed)?.into()),
        Some(_) => Some(key_hash.ok_or(Malformed)?.into()),
    };
    Ok(Sample { kind, payload, key, source_timestamp })
}
