//! Content filters and queries: the SQL subset of DDS 1.4, annex B, evaluated on serialized samples.
//!
//! | module | content |
//! |---|---|
//! | [`expression`] | parsed expressions, without a type |
//! | [`filter`] | [`Filter`]: an expression bound to a type and its parameters, which evaluates payloads |
//! | [`order`] | [`Order`]: the ORDER BY of a query |
//! | [`limits`] | bounds on what an expression may consist of |
//! | [`error`] | errors with the place in the expression |
//! | `lexer` | tokens |
//! | `field` | members by name: from a path to the place in a payload |
//! | `constant` | literals and parameters as values of a member's type |
//! | `program` | comparisons with the two places where evaluation goes on |
//! | `pattern` | LIKE |
//!
//! ```
//! use weir_cdr::{CdrValue, DdsType};
//! use weir_filter::{Expression, Filter};
//!
//! #[derive(Default, DdsType)]
//! #[dds(extensibility = "appendable")]
//! struct Shape {
//!     #[dds(key)]
//!     color: String,
//!     x: i32,
//! }
//!
//! let expression = Expression::filter("color = %0 AND x BETWEEN 10 AND %1")?;
//! let filter = Filter::new(&expression, &Shape::DESCRIPTION, &["'RED'", "20"])?;
//! let mut payload = Vec::new();
//! weir_cdr::to_payload(&Shape { color: "RED".to_owned(), x: 15 }, &mut payload)?;
//! assert!(filter.passes(&payload));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A member at a constant offset is read there; before others, the members ahead are skipped. Nothing is decoded or
//! allocated. Evaluation visits each comparison at most once, and each character of a string at most once per LIKE.
//!
//! The parser is ours: a filter arrives from peers, so its bounds must hold where the expression is read. Parsers of
//! full SQL (sqlparser) know neither `%0` nor `a.b[2]`, and bound only the depth. Parser combinators (winnow, chumsky)
//! would shorten these twelve rules little, and bring a second form of errors.

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

extern crate alloc;

pub mod error;
pub mod expression;
pub mod filter;
pub mod limits;
pub mod order;

mod constant;
mod field;
mod lexer;
mod pattern;
mod program;

pub use error::{FilterError, Place, Result};
pub use expression::Expression;
pub use filter::Filter;
pub use order::Order;
