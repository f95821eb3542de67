//! Submessages in either byte order: a second implementation of writing, based on the drawings of
//! the specification only. The crate's own, which writes little-endian, is compared with it.

use weir_wire::{
    AckNack, DataFrag, Endianness, FragmentNumberSet, Gap, Heartbeat, HeartbeatFrag, InfoDestination,
    InfoSource, InfoTimestamp, NackFrag, SequenceNumber, SequenceNumberSet, Timestamp,
};

use crate::values::{Parameters, Part, Sample};

pub(crate) const ORDERS: [Endianness; 2] = [Endianness::Little, Endianness::Big];

/// Bytes to which numbers are appended in one byte order.
pub(crate) struct ReferenceWriter {
    pub(crate) bytes: Vec<u8>,
    endianness: Endianness,
}

impl ReferenceWriter {
    pub(crate) fn new(endianness: Endianness) -> Self {
        Self { bytes: Vec::new(), endianness }
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes.extend(match self.endianness {
            Endianness::Little => value.to_le_bytes(),
            Endianness::Big => value.to_be_bytes(),
        });
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend(match self.endianness {
            Endianness::Little => value.to_le_bytes(),
            Endianness::Big => value.to_be_bytes(),
        });
    }

    fn sequence_number(&mut self, value: SequenceNumber) {
        self.u32((value.0 >> 32) as u32);
        self.u32(value.0 as u32);
    }

    fn bitmap(&mut self, num_bits: u32, offsets: impl Iterator<Item = u32>) {
        self.u32(num_bits);
        let mut words = vec![0u32; num_bits.div_ceil(32) as usize];
        for offset in offsets {
            words[offset as usize / 32] |= 0x8000_0000 >> (offset % 32);
        }
        words.into_iter().for_each(|word| self.u32(word));
    }

    fn sequence_numbers(&mut self, set: &SequenceNumberSet) {
        self.sequence_number(set.base());
        self.bitmap(set.num_bits(), set.iter().map(|number| (number.0 - set.base().0) as u32));
    }

    fn fragment_numbers(&mut self, set: &FragmentNumberSet) {
        self.u32(set.base().0);
        let num_bits = set.iter().last().map_or(0, |last| last.0 - set.base().0 + 1);
        self.bitmap(num_bits, set.iter().map(|number| number.0 - set.base().0));
    }

    fn parameters(&mut self, list: &Parameters) {
        for (id, value) in &list.0 {
            self.u16(*id);
            self.u16(value.len() as u16);
            self.bytes.extend(value);
        }
        self.u16(1);
        self.u16(0);
    }

    /// Appends a submessage.
    pub(crate) fn part(&mut self, part: &Part) {
        let start = self.bytes.len();
        let (id, flags) = head(part);
        self.bytes.extend([id, flags | u8::from(self.endianness == Endianness::Little)]);
        self.u16(0);
        self.body(part);
        let len = self.bytes.len() - start - 4;
        let mut patch = Self::new(self.endianness);
        patch.u16(len as u16);
        self.bytes[start + 2..start + 4].copy_from_slice(&patch.bytes);
    }

    fn body(&mut self, part: &Part) {
        match part {
            Part::Pad(len) => self.bytes.resize(self.bytes.len() + len, 0),
            Part::Unknown(_, body) => self.bytes.extend(body),
            Part::InfoReply(unicast, multicast) => {
                for count in [Some(*unicast), *multicast].into_iter().flatten() {
                    self.u32(count);
                    self.bytes.resize(self.bytes.len() + 24 * count as usize, 0xab);
                }
            }
            Part::InfoDestination(InfoDestination { prefix }) => self.bytes.extend(prefix.0),
            Part::InfoSource(InfoSource { version, vendor, prefix }) => {
                self.u32(0);
                self.bytes.extend([version.major, version.minor]);
                self.bytes.extend(vendor.0);
                self.bytes.extend(prefix.0);
            }
            Part::InfoTimestamp(InfoTimestamp { timestamp }) => {
                if let Some(Timestamp { seconds, fraction }) = timestamp {
                    self.u32(*seconds);
                    self.u32(*fraction);
                }
            }
            Part::AckNack(AckNack { reader, writer, state, count, .. }) => {
                self.bytes.extend(reader.0.iter().chain(&writer.0));
                self.sequence_numbers(state);
                self.u32(*count);
            }
            Part::Gap(Gap { reader, writer, start, list }) => {
                self.bytes.extend(reader.0.iter().chain(&writer.0));
                self.sequence_number(*start);
                self.sequence_numbers(list);
            }
            Part::Heartbeat(Heartbeat { reader, writer, first, last, count, .. }) => {
                self.bytes.extend(reader.0.iter().chain(&writer.0));
                self.sequence_number(*first);
                self.sequence_number(*last);
                self.u32(*count);
            }
            Part::HeartbeatFrag(HeartbeatFrag { reader, writer, sequence_number, last_fragment, count }) => {
                self.bytes.extend(reader.0.iter().chain(&writer.0));
                self.sequence_number(*sequence_number);
                self.u32(*last_fragment);
                self.u32(*count);
            }
            Part::NackFrag(NackFrag { reader, writer, sequence_number, state, count }) => {
                self.bytes.extend(reader.0.iter().chain(&writer.0));
                self.sequence_number(*sequence_number);
                self.fragment_numbers(state);
                self.u32(*count);
            }
            Part::Data(sample) => self.data(sample),
            Part::DataFrag(frag) => self.data_frag(&frag.parse_result(), frag.parameters.as_ref()),
        }
    }

    fn data(&mut self, sample: &Sample) {
        self.u16(0);
        self.u16(16);
        self.bytes.extend(sample.reader.0.iter().chain(&sample.writer.0));
        self.sequence_number(sample.sequence_number);
        if let Some(list) = &sample.parameters {
            self.parameters(list);
        }
        self.bytes.extend(&sample.payload);
    }

    fn data_frag(&mut self, frag: &DataFrag<'_>, parameters: Option<&Parameters>) {
        self.u16(0);
        self.u16(28);
        self.bytes.extend(frag.reader.0.iter().chain(&frag.writer.0));
        self.sequence_number(frag.sequence_number);
        self.u32(frag.fragment_start);
        self.u16(frag.fragments);
        self.u16(frag.fragment_size);
        self.u32(frag.sample_size);
        if let Some(list) = parameters {
            self.parameters(list);
        }
        self.bytes.extend(frag.payload);
        let padding = frag.payload.len().next_multiple_of(4) - frag.payload.len();
        self.bytes.resize(self.bytes.len() + padding, 0);
    }
}

/// Id and flags, without that of the byte order.
fn head(part: &Part) -> (u8, u8) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    match part {
        Part::Pad(_) => (0x01, 0),
        Part::AckNack(acknack) => (0x06, flag(acknack.is_final, 2)),
        Part::Heartbeat(heartbeat) => (0x07, flag(heartbeat.is_final, 2) | flag(heartbeat.is_liveliness, 4)),
        Part::Gap(_) => (0x08, 0),
        Part::InfoTimestamp(info) => (0x09, flag(info.timestamp.is_none(), 2)),
        Part::InfoSource(_) => (0x0c, 0),
        Part::InfoDestination(_) => (0x0e, 0),
        Part::InfoReply(_, multicast) => (0x0f, flag(multicast.is_some(), 2)),
        Part::NackFrag(_) => (0x12, 0),
        Part::HeartbeatFrag(_) => (0x13, 0),
        Part::Data(sample) => {
            let payload = if sample.is_key { 8 } else { 4 };
            (0x15, flag(sample.parameters.is_some(), 2) | flag(!sample.payload.is_empty(), payload))
        }
        Part::DataFrag(frag) => (0x16, flag(frag.parameters.is_some(), 2) | flag(frag.is_key, 4)),
        Part::Unknown(id, _) => (*id, 0),
    }
}
