//! Literals and parameters as values of a member's type.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{FilterError, Place, Result};
use crate::expression::{Literal, Value, ValueKind};
use crate::field::Kind;
use crate::lexer::{Lexer, Token};
use crate::limits::{PARAMETER_MAX_BYTES, PARAMETERS_MAX};

/// What a member is compared with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant {
    Integer(i128),
    Float(f64),
    Text(Box<[u8]>),
}

/// The parameters of an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters<'a, S>(pub(crate) &'a [S]);

impl<S: AsRef<str>> Parameters<'_, S> {
    /// Checks their number and length. `needed`: how many the expression needs.
    pub(crate) fn check(&self, needed: usize) -> Result {
        let count = self.0.len();
        if count > PARAMETERS_MAX {
            let cause = format!("{count} parameters were given, at most {PARAMETERS_MAX} are supported");
            return Err(FilterError::new(Place::Expression, cause));
        }
        if count < needed {
            let cause = format!("it needs %0 to %{}, and {count} parameters were given", needed - 1);
            return Err(FilterError::new(Place::Expression, cause));
        }
        for (number, parameter) in self.0.iter().enumerate() {
            let len = parameter.as_ref().len();
            if len > PARAMETER_MAX_BYTES {
                let cause = format!("{len} bytes, at most {PARAMETER_MAX_BYTES} are supported");
                return Err(FilterError::new(Place::Parameter(number), cause));
            }
        }
        Ok(())
    }

    /// Converts a value to the type of a member.
    pub(crate) fn constant(&self, value: &Value, kind: Kind, member: &str) -> Result<Constant> {
        match &value.kind {
            ValueKind::Literal(literal) => {
                let constant = convert(literal, kind);
                constant.ok_or_else(|| mismatch(value.place, &describe(literal), kind, member))
            }
            ValueKind::Parameter(number) => {
                let text = self.0.get(*number).map_or("", AsRef::as_ref);
                let constant = parameter(text, kind);
                let place = Place::Parameter(*number);
                constant.ok_or_else(|| mismatch(place, &format!("the text {text:?}"), kind, member))
            }
        }
    }

    /// A text: the pattern of LIKE.
    pub(crate) fn text(&self, value: &Value) -> Result<(String, Place)> {
        let place = match &value.kind {
            ValueKind::Literal(_) => value.place,
            ValueKind::Parameter(number) => Place::Parameter(*number),
        };
        match self.constant(value, Kind::Text, "the pattern")? {
            Constant::Text(bytes) => Ok((String::from_utf8_lossy(&bytes).into_owned(), place)),
            Constant::Integer(_) | Constant::Float(_) => Ok((String::new(), place)),
        }
    }
}

/// A parameter: a literal, or a text without quotes.
fn parameter(text: &str, kind: Kind) -> Option<Constant> {
    let literal = literal(text);
    match (&literal, kind) {
        (Some(Literal::Text(_)), _) => {}
        // A string may consist of digits, and an enumerator may be named like a keyword.
        (_, Kind::Text | Kind::Enumeration(_)) | (None, _) => {
            let as_text = convert(&Literal::Text(text.to_owned()), kind);
            if as_text.is_some() {
                return as_text;
            }
        }
        _ => {}
    }
    convert(&literal?, kind)
}

/// The literal that a text consists of.
fn literal(text: &str) -> Option<Literal> {
    let mut lexer = Lexer::new(text);
    match (lexer.next().ok()?.0, lexer.next().ok()?.0) {
        (Token::Literal(literal), Token::End) => Some(literal),
        _ => None,
    }
}

fn convert(literal: &Literal, kind: Kind) -> Option<Constant> {
    match (literal, kind) {
        (Literal::Integer(value), Kind::Integer { .. }) => Some(Constant::Integer(*value)),
        (Literal::Float(value), Kind::Integer { .. } | Kind::Float64) => Some(Constant::Float(*value)),
        // As the member is: 0.1 is then equal to a member that was set to 0.1.
        (Literal::Float(value), Kind::Float32) => Some(Constant::Float(f64::from(*value as f32))),
        (Literal::Integer(value), Kind::Float32 | Kind::Float64) => Some(Constant::Float(*value as f64)),
        (Literal::Text(text), Kind::Integer { is_byte: true }) => match text.as_bytes() {
            [character] => Some(Constant::Integer(i128::from(*character))),
            _ => None,
        },
        (Literal::Text(text), Kind::Text) => Some(Constant::Text(text.as_bytes().into())),
        (Literal::Boolean(value), Kind::Boolean) => Some(Constant::Integer(i128::from(*value))),
        (Literal::Integer(value @ 0..=1), Kind::Boolean) => Some(Constant::Integer(*value)),
        (Literal::Text(text), Kind::Enumeration(enumerators)) => {
            let found = enumerators.iter().find(|(name, _)| name == text);
            found.map(|(_, value)| Constant::Integer(i128::from(*value)))
        }
        (Literal::Integer(value), Kind::Enumeration(_)) => Some(Constant::Integer(*value)),
        _ => None,
    }
}

fn describe(literal: &Literal) -> String {
    match literal {
        Literal::Integer(value) => format!("the number {value}"),
        Literal::Float(value) => format!("the number {value}"),
        Literal::Text(text) => format!("the text {text:?}"),
        Literal::Boolean(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
    }
}

fn mismatch(place: Place, value: &str, kind: Kind, member: &str) -> FilterError {
    let advice = match kind {
        Kind::Boolean => "write TRUE or FALSE".to_owned(),
        Kind::Integer { is_byte: true } => "write a number, or a character such as 'A'".to_owned(),
        Kind::Integer { .. } => "write a number, such as 10 or 0x1F".to_owned(),
        Kind::Float32 | Kind::Float64 => "write a number, such as 1.5".to_owned(),
        Kind::Text => "write a text in single quotes, such as 'RED'".to_owned(),
        Kind::Enumeration(enumerators) => {
            let names: Vec<_> = enumerators.iter().map(|(name, _)| format!("'{name}'")).collect();
            format!("write one of {}", names.join(", "))
        }
    };
    let cause = format!("{member} is {} and cannot be compared with {value}: {advice}", kind.name());
    FilterError::new(place, cause)
}
