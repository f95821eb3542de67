//! CDR encoding of user data: values to bytes and back, with no protocol knowledge.
//!
//! | module | content |
//! |---|---|
//! | [`encoding`] | byte orders, encoding versions, extensibility kinds |
//! | [`layout`] | what is known about a type's serialized size at compile time |
//! | [`writer`], [`reader`] | checked, aligned cursors over a slice |
//! | [`run`] | members in a row that are checked once |
//! | [`value`] | [`CdrValue`]: a value that has a CDR form; implemented in `primitive`, `string`, `sequence`, `map`, `array` |
//! | [`bounded`] | strings, sequences and maps with an upper bound |
//! | [`optional`] | members that may be absent |
//! | [`dds_type`] | [`DdsType`]: a struct that can be the type of a topic, and its key |
//! | [`shared`] | octets that stay in the memory where they were received: [`Bytes`] |
//! | [`payload`] | the encapsulation header in front of a serialized sample |
//! | [`mod@key_hash`] | the 16 octets that stand for a key on the wire |
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
//! Goals: no allocation beyond the decoded value, and never more than in proportion to the input; one bounds check per run
//! of primitives; one copy per octet sequence; every input is answered by a value or a [`CdrError`], never by a panic.
//!
//! Deliberately not here: mutable types, bit masks, wide characters and strings; parameter lists (they belong to the
//! messages that carry them); types known only at run time.

// The derive macro writes `::weir_cdr`, which has to mean this crate in its own unit tests as well.
extern crate self as weir_cdr;

pub mod bounded;
#[doc(hidden)]
pub mod copy;
pub mod dds_type;
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
pub use encoding::{Encoding, Endianness, Extensibility};
pub use error::CdrError;
pub use key_hash::{key_hash, key_hash_md5};
pub use layout::Layout;
pub use optional::Optional;
pub use payload::{
    ENCAPSULATION_LEN, KEY_PAYLOAD_LEN_MIN, Pieces, encode_payload, encode_payload_around, encode_payload_in,
    frame_bulk, from_key_payload, from_payload, from_payload_into, from_shared_payload_into, key_payload,
    payload_len, payload_len_in, payload_reader, payload_reader_of, to_payload, to_payload_in,
    undelimited_key_payload,
};
pub use reader::CdrReader;
pub use run::{Run, RunData};
pub use shared::SharedMemory;
pub use value::CdrValue;
pub use weir_cdr_derive::DdsType;
pub use writer::CdrWriter;
