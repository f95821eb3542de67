//! Coherent sets and groups of writers: what samples say about them in inline QoS (RTPS 2.5, 8.7.5, 8.7.6, 9.6.4).
//!
//! | parameter | of | value |
//! |---|---|---|
//! | COHERENT_SET | a sample of a set | the number of the first sample of its writer in the set |
//! | COHERENT_SET | a DATA without content: the end of the set | SEQUENCENUMBER_UNKNOWN |
//! | GROUP_COHERENT_SET | the same, if writers share the set | the group sequence number at which the set begins |
//! | GROUP_SEQ_NUM | a sample of a writer in a group | its number among the samples of the group |
//! | WRITER_GROUP_INFO | the end of a shared set | a digest of the writers of the group |
//!
//! HEARTBEATs of a writer in a group have the numbers of the group that the writer holds ([`GroupInfo`]): readers of
//! engines that order the samples of a group see from them which numbers they need not wait for (RTPS 2.5, 8.7.5).
//!
//! [`GroupInfo`]: weir_wire::submessage::GroupInfo

use alloc::sync::Arc;
use core::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use weir_wire::{EntityId, Parameter, ParameterId, ParameterList, ParameterListWriter, SequenceNumber};

/// Numbers the samples of all writers of a publisher (RTPS 2.5, 8.7.5). Clones share the sequence.
#[derive(Debug, Clone, Default)]
pub struct GroupSequence(Arc<Sequence>);

#[derive(Debug, Default)]
struct Sequence {
    last: AtomicI64,
    /// The digest of the group's writers.
    writers: AtomicU32,
}

impl GroupSequence {
    /// Returns the next number, from 1 on.
    pub fn take(&self) -> SequenceNumber {
        SequenceNumber(self.0.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the number that [`GroupSequence::take`] returns next, if no other writer takes it.
    #[must_use]
    pub fn peek(&self) -> SequenceNumber {
        SequenceNumber(self.0.last.load(Ordering::Relaxed) + 1)
    }

    /// Sets which writers the group has, for HEARTBEATs.
    pub fn set_writers(&self, writers: &[EntityId]) {
        self.0.writers.store(u32::from_be_bytes(group_digest(writers)), Ordering::Relaxed);
    }

    /// Returns the digest of the group's writers.
    pub(crate) fn writers(&self) -> [u8; 4] {
        self.0.writers.load(Ordering::Relaxed).to_be_bytes()
    }
}

/// What a sample says about its coherent set and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SetTag {
    /// The first sample of the set; UNKNOWN at its end.
    pub(crate) set: Option<SequenceNumber>,
    /// The group sequence number at which the set begins that the writers share.
    pub(crate) group_set: Option<SequenceNumber>,
    /// The number of the sample in the group.
    pub(crate) number: Option<SequenceNumber>,
}

impl SetTag {
    /// Reads the parameters, up to the first invalid one. `None`: there are none.
    pub(crate) fn decode(list: &ParameterList<'_>) -> Option<Self> {
        let mut tag = Self::default();
        for parameter in list.iter().map_while(Result::ok) {
            let number = |parameter: &Parameter<'_>| parameter.sequence_number().ok();
            match parameter.id {
                ParameterId::COHERENT_SET => tag.set = number(&parameter),
                ParameterId::GROUP_COHERENT_SET => tag.group_set = number(&parameter),
                ParameterId::GROUP_SEQ_NUM => tag.number = number(&parameter),
                _ => {}
            }
        }
        (tag != Self::default()).then_some(tag)
    }

    /// Appends the parameters.
    pub(crate) fn encode(&self, list: &mut ParameterListWriter<'_>) {
        let parameters = [
            (ParameterId::COHERENT_SET, self.set),
            (ParameterId::GROUP_COHERENT_SET, self.group_set),
            (ParameterId::GROUP_SEQ_NUM, self.number),
        ];
        for (id, number) in parameters {
            if let Some(SequenceNumber(number)) = number {
                let (high, low) = (((number >> 32) as i32).to_le_bytes(), (number as u32).to_le_bytes());
                list.raw(id, &[high, low].concat());
            }
        }
    }
}

/// Most bytes of inline QoS that a [`SetTag`] adds to a sample, with the sentinel.
pub(crate) const TAG_MAX_BYTES: usize = 3 * 12 + 4;

/// Returns the digest of the writers of a group: the first four bytes of the MD5 of their ids, as a sequence in
/// big-endian CDR, and zero without writers (RTPS 2.5, 9.3.2, `GroupDigest_t`).
#[must_use]
pub fn group_digest(writers: &[EntityId]) -> [u8; 4] {
    if writers.is_empty() {
        return [0; 4];
    }
    let mut sorted = writers.to_vec();
    sorted.sort_unstable();
    let mut bytes = (sorted.len() as u32).to_be_bytes().to_vec();
    sorted.iter().for_each(|writer| bytes.extend_from_slice(&writer.0));
    let [a, b, c, d, ..] = weir_cdr::key_hash_md5(&bytes);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use weir_wire::Endianness;

    use super::*;

    #[test]
    fn a_tag_is_read_as_it_was_written() {
        let tags = [
            SetTag { set: Some(SequenceNumber(0x1_0000_0002)), ..SetTag::default() },
            SetTag { number: Some(SequenceNumber(7)), ..SetTag::default() },
            SetTag {
                set: Some(SequenceNumber::UNKNOWN),
                group_set: Some(SequenceNumber(3)),
                number: Some(SequenceNumber(9)),
            },
        ];
        for tag in tags {
            let mut bytes = Vec::new();
            let mut list = ParameterListWriter::new(&mut bytes);
            tag.encode(&mut list);
            list.finish();
            assert!(bytes.len() <= TAG_MAX_BYTES);
            let list = ParameterList::parse(&bytes, Endianness::Little).unwrap().0;
            assert_eq!(SetTag::decode(&list), Some(tag));
        }
    }

    #[test]
    fn other_parameters_are_no_tag() {
        let mut bytes = Vec::new();
        let mut list = ParameterListWriter::new(&mut bytes);
        list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 1]);
        list.finish();
        assert_eq!(SetTag::decode(&ParameterList::parse(&bytes, Endianness::Little).unwrap().0), None);
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_of_the_writers() {
        let [a, b] = [EntityId::user_writer(1, true), EntityId::user_writer(2, true)];
        assert_eq!(group_digest(&[a, b]), group_digest(&[b, a]));
        assert_ne!(group_digest(&[a]), group_digest(&[b]));
        assert_eq!(group_digest(&[]), [0; 4]);
    }
}
