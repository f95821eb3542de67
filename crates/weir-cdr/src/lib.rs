//! CDR encoding of user data, without protocol knowledge.
//!
//! | module | content |
//! |---|---|
//! | [`encoding`] | byte orders, encoding versions, extensibility kinds |
//! | [`layout`] | bounds on a type's serialized size, computed at compile time |
//! | [`writer`], [`reader`] | checked, aligned cursors over a slice |
//! | [`run`] | consecutive members with a single bounds check |
//! | [`value`] | [`CdrValue`]: a value with a CDR form; see also `primitive`, `string`, `sequence`, `map`, `array` |
//! | [`bounded`] | strings, sequences and maps with a maximum length |
//! | [`optional`] | optional members |
//! | [`description`] | what a type consists of, for code that finds members by name |
//! | [`dds_type`] | [`DdsType`]: a struct that can be the type of a topic, and its key |
//! | [`shared`] | [`Bytes`] that stay in the receive memory |
//! | [`payload`] | the encapsulation header of a serialized sample |
//! | [`mod@key_hash`] | the 16 bytes that identify a key on the wire |
//!
//! User types get both traits from the derive macro:
//!
//! ```
//! use weir_cdr::DdsType;
//!
//! #[derive(Debug, Default, PartialEq, DdsType)]
//! #[dds(extensibility = "appendable", name = "ShapeType")]
//! struct Shape {
//!     #[dds(key, max_len = 128)]
//!     color: String,
//!     x: i32,
//!     y: i32,
//! }
//!
//! let shape = Shape { color: "BLUE".to_owned(), x: 1, y: -1 };
//! let mut payload = Vec::new();
//! weir_cdr::to_payload(&shape, &mut payload)?;
//! assert_eq!(weir_cdr::from_payload::<Shape>(&payload)?, shape);
//! # Ok::<(), weir_cdr::CdrError>(())
//! ```
//!
//! Guarantees: no allocation beyond the decoded value, and only in proportion to the input; one
//! bounds check per run of primitives; one copy per byte sequence. Every input gives a value or a
//! [`CdrError`], never a panic.
//!
//! Not supported: mutable types, bit masks, wide characters and strings, and types known only at
//! run time. Parameter lists are in weir-wire.

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

extern crate alloc;

// The derive macro generates `::weir_cdr`, which must also resolve in this crate's unit tests.
extern crate self as weir_cdr;

pub mod bounded;
#[doc(hidden)]
pub mod copy;
pub mod dds_type;
pub mod description;
pub mod encoding;
pub mod error;
pub mod key_hash;
pub mod layout;
pub mod optional;
pub mod payload;
pub mod reader;
pub mod run;
pub mod shared;
pub mod value;
pub mod writer;

mod array;
mod map;
mod primitive;
mod sequence;
mod string;

pub use bytes::Bytes;

pub use bounded::{Bounded, CdrCollection};
pub use dds_type::DdsType;
pub use description::TypeDescription;
pub use encoding::{Encoding, Endianness, Extensibility};
pub use error::{CdrError, Result};
pub use key_hash::{key_hash, key_hash_md5};
pub use layout::Layout;
pub use optional::Optional;
pub use payload::{
    ENCAPSULATION_LEN, KEY_PAYLOAD_LEN_MIN, Pieces, convert_key_payload, encode_payload_around,
    encode_payload_in, frame_bulk, from_converted_key_payload, from_key_payload, from_payload,
    from_payload_into, from_shared_payload_into, key_payload, payload_len_in, payload_reader_of, to_payload,
    to_payload_in, undelimited_key_payload,
};
pub use reader::CdrReader;
pub use run::{Run, RunData};
pub use shared::SharedMemory;
pub use value::CdrValue;
pub use weir_cdr_derive::DdsType;
pub use writer::CdrWriter;
