//! The order of the samples of a query.

use alloc::boxed::Box;
use core::cmp::Ordering;

use weir_cdr::TypeDescription;

use crate::error::Result;
use crate::expression::Expression;
use crate::field::{Field, Value};
use crate::program;

/// The members after ORDER BY.
#[derive(Debug, Clone)]
pub struct Order {
    of: TypeDescription,
    fields: Box<[Field]>,
}

impl Order {
    /// Binds the ORDER BY of an expression to a type. `None`: the expression has none.
    ///
    /// # Errors
    /// A member is unknown or has no order.
    pub fn new(expression: &Expression, of: &TypeDescription) -> Result<Option<Self>> {
        let fields: Result<Box<[_]>> = expression.order_by.iter().map(|name| Field::find(name, of)).collect();
        let fields = fields?;
        Ok((!fields.is_empty()).then_some(Self { of: *of, fields }))
    }

    /// Compares two payloads with encapsulation headers, in ascending order.
    ///
    /// Booleans, numbers and enumerators are in the order of their values, strings in that of their bytes. Members
    /// without a value, and payloads that cannot be read, come first; then NaN.
    pub fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let (one, other) = (self.of.payload_reader(one).ok(), self.of.payload_reader(other).ok());
        for field in &self.fields {
            let ordering = match (&one, &other) {
                (Some(one), Some(other)) => {
                    let (one, other) = (field.read(one.clone()), field.read(other.clone()));
                    compare(one.ok().flatten(), other.ok().flatten())
                }
                (one, other) => one.is_some().cmp(&other.is_some()),
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

fn compare(one: Option<Value<'_>>, other: Option<Value<'_>>) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) => {
            let is_number = |value: Value<'_>| program::compare(value, value).is_some();
            program::compare(one, other).unwrap_or_else(|| is_number(one).cmp(&is_number(other)))
        }
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}
