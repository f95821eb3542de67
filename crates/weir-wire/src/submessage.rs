//! The submessages of RTPS 2.5 §8.3.8, one file each.

mod acknack;
mod data;
mod data_frag;
mod echo;
mod ecn;
mod gap;
mod heartbeat;
mod heartbeat_frag;
mod info_dst;
mod info_reply;
mod info_src;
mod info_ts;
mod nack_frag;
mod receipt;

use core::fmt;

pub use acknack::AckNack;
pub use data::{Data, DataHeader, Payload};
pub use data_frag::{DataFrag, DataFragHeader};
pub use echo::Echo;
pub use ecn::{Ecn, EcnCounts};
pub use gap::Gap;
pub use heartbeat::{GroupInfo, Heartbeat};
pub use heartbeat_frag::HeartbeatFrag;
pub use info_dst::InfoDestination;
pub use info_reply::InfoReply;
pub use info_src::InfoSource;
pub use info_ts::InfoTimestamp;
pub use nack_frag::NackFrag;
pub use receipt::{Receipt, Received};

use crate::error::ParseError;

/// Submessage ids (RTPS 2.5 §9.4.5.1.1).
pub mod id {
    /// Padding.
    pub const PAD: u8 = 0x01;
    /// Samples received and missing.
    pub const ACKNACK: u8 = 0x06;
    /// Samples available.
    pub const HEARTBEAT: u8 = 0x07;
    /// Samples that will not arrive.
    pub const GAP: u8 = 0x08;
    /// Source timestamp of the samples that follow.
    pub const INFO_TS: u8 = 0x09;
    /// Source of the submessages that follow.
    pub const INFO_SRC: u8 = 0x0c;
    /// Destination of the submessages that follow.
    pub const INFO_DST: u8 = 0x0e;
    /// Address to respond to.
    pub const INFO_REPLY: u8 = 0x0f;
    /// Fragments missing.
    pub const NACK_FRAG: u8 = 0x12;
    /// Fragments available.
    pub const HEARTBEAT_FRAG: u8 = 0x13;
    /// A sample.
    pub const DATA: u8 = 0x15;
    /// Fragments of a sample.
    pub const DATA_FRAG: u8 = 0x16;
    /// Datagrams by their ECN field; of Weir's own.
    pub const ECN: u8 = 0x80;
    /// The last HEARTBEAT before a request; of Weir's own.
    pub const ECHO: u8 = 0x81;
    /// What a best-effort reader has received; of Weir's own.
    pub const RECEIPT: u8 = 0x82;
}

/// One submessage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submessage<'a> {
    /// Samples received and missing.
    AckNack(AckNack),
    /// A sample.
    Data(Data<'a>),
    /// Fragments of a sample.
    DataFrag(DataFrag<'a>),
    /// The last HEARTBEAT before a request.
    Echo(Echo),
    /// Datagrams by their ECN field.
    Ecn(Ecn),
    /// Samples that will not arrive.
    Gap(Gap),
    /// Samples available.
    Heartbeat(Heartbeat),
    /// Fragments available.
    HeartbeatFrag(HeartbeatFrag),
    /// Destination of the submessages that follow.
    InfoDestination(InfoDestination),
    /// Address to respond to; never followed.
    InfoReply(InfoReply),
    /// Source of the submessages that follow.
    InfoSource(InfoSource),
    /// Source timestamp of the samples that follow.
    InfoTimestamp(InfoTimestamp),
    /// Fragments missing.
    NackFrag(NackFrag),
    /// Padding.
    Pad,
    /// What a best-effort reader has received.
    Receipt(Receipt),
    /// An unknown submessage, to be skipped (RTPS 2.5 §8.6.1.2). Also a DATA or DATA_FRAG whose
    /// payload has the non-standard flag, which this crate cannot decode.
    Unknown {
        /// Its id.
        id: u8,
        /// Length of its body in bytes.
        len: usize,
    },
}

impl<'a> Submessage<'a> {
    #[inline]
    pub(crate) fn parse(id: u8, flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        match id {
            id::DATA if Data::is_standard(flags) => Data::parse(flags, body).map(Self::Data),
            id::INFO_TS => InfoTimestamp::parse(flags, body).map(Self::InfoTimestamp),
            id::HEARTBEAT => Heartbeat::parse(flags, body).map(Self::Heartbeat),
            _ => Self::parse_less_frequent(id, flags, body),
        }
    }

    /// Out of line: sets are large, and moving them would slow the frequent submessages down.
    #[inline(never)]
    fn parse_less_frequent(id: u8, flags: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        match id {
            id::PAD => Ok(Self::Pad),
            id::ACKNACK => AckNack::parse(flags, body).map(Self::AckNack),
            id::GAP => Gap::parse(flags, body).map(Self::Gap),
            id::INFO_DST => InfoDestination::parse(flags, body).map(Self::InfoDestination),
            id::INFO_SRC => InfoSource::parse(flags, body).map(Self::InfoSource),
            id::INFO_REPLY => InfoReply::parse(flags, body).map(Self::InfoReply),
            id::DATA_FRAG if DataFrag::is_standard(flags) => DataFrag::parse(flags, body).map(Self::DataFrag),
            id::NACK_FRAG => NackFrag::parse(flags, body).map(Self::NackFrag),
            id::HEARTBEAT_FRAG => HeartbeatFrag::parse(flags, body).map(Self::HeartbeatFrag),
            id::ECHO => {
                Ok(Echo::parse(flags, body).map_or(Self::Unknown { id, len: body.len() }, Self::Echo))
            }
            id::ECN => Ok(Ecn::parse(flags, body).map_or(Self::Unknown { id, len: body.len() }, Self::Ecn)),
            id::RECEIPT => {
                Ok(Receipt::parse(flags, body).map_or(Self::Unknown { id, len: body.len() }, Self::Receipt))
            }
            _ => Ok(Self::Unknown { id, len: body.len() }),
        }
    }
}

impl fmt::Display for Submessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AckNack(it) => it.fmt(f),
            Self::Data(it) => it.fmt(f),
            Self::DataFrag(it) => it.fmt(f),
            Self::Echo(it) => it.fmt(f),
            Self::Ecn(it) => it.fmt(f),
            Self::Gap(it) => it.fmt(f),
            Self::Heartbeat(it) => it.fmt(f),
            Self::HeartbeatFrag(it) => it.fmt(f),
            Self::InfoDestination(it) => it.fmt(f),
            Self::InfoReply(_) => f.write_str("INFO_REPLY"),
            Self::InfoSource(it) => it.fmt(f),
            Self::InfoTimestamp(it) => it.fmt(f),
            Self::NackFrag(it) => it.fmt(f),
            Self::Pad => f.write_str("PAD"),
            Self::Receipt(it) => it.fmt(f),
            Self::Unknown { id, len } => write!(f, "submessage {id:#04x} ({len} B)"),
        }
    }
}
