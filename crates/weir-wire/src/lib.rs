//! RTPS messages (OMG DDSI-RTPS 2.5): stateless parsing and writing.
//!
//! Parsing borrows from the datagram, allocates nothing and never panics. Malformed input ends with
//! a [`ParseError`] that names the item. Reads both byte orders, writes little-endian.
//!
//! | module | content |
//! |---|---|
//! | [`message`] | a datagram as a header and a sequence of submessages |
//! | [`submessage`] | one file per submessage |
//! | [`parameter_list`], [`parameter_id`] | discovery data and inline QoS |
//! | [`guid`], [`sequence_number`], [`fragment_number`], [`locator`], [`timestamp`], [`vendor`] | values |
//! | [`encapsulation`] | the first two bytes of a payload |
//!
//! User data is in `weir-cdr`, protocol state in `weir-rtps`.

#![cfg_attr(not(test), no_std)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

extern crate alloc;

pub mod bytes;
pub mod content_filter;
mod debug;
pub mod encapsulation;
pub mod error;
pub mod fragment_number;
pub mod guid;
pub mod locator;
pub mod message;
pub mod parameter_id;
pub mod parameter_list;
pub mod parameter_list_writer;
pub mod sequence_number;
pub mod submessage;
pub mod timestamp;
pub mod vendor;

pub use bytes::{Emit, Endianness, push};
pub use content_filter::ContentFilterValue;
pub use error::{ParseError, Problem};
pub use fragment_number::{FragmentNumber, FragmentNumberSet};
pub use guid::{EntityId, Guid, GuidPrefix};
pub use locator::Locator;
pub use message::{Header, Message, Submessages, UnreadSubmessage};
pub use parameter_id::ParameterId;
pub use parameter_list::{Parameter, ParameterList, Parameters};
pub use parameter_list_writer::ParameterListWriter;
pub use sequence_number::{SequenceNumber, SequenceNumberSet};
pub use submessage::{
    AckNack, Data, DataFrag, DataFragHeader, DataHeader, Echo, Ecn, EcnCounts, Gap, Heartbeat, HeartbeatFrag,
    InfoDestination, InfoReply, InfoSource, InfoTimestamp, NackFrag, Payload, Receipt, Received, Submessage,
};
pub use timestamp::{Duration, Timestamp};
pub use vendor::{ProtocolVersion, VendorId};
