//! Filters: conditions bound to a type and to parameters.

use weir_cdr::TypeDescription;

use crate::constant::Parameters;
use crate::error::Result;
use crate::expression::Expression;
use crate::program::Program;

/// A condition that payloads of one type meet or not.
#[derive(Debug, Clone)]
pub struct Filter {
    of: TypeDescription,
    /// `None`: all samples pass.
    program: Option<Program>,
}

impl Filter {
    /// Binds the condition of an expression to a type. Parameters that it does not need are ignored.
    ///
    /// A parameter is a literal as in an expression. If a string or an enumeration is compared with it, it may also be
    /// a text without quotes.
    ///
    /// # Errors
    /// A member is unknown; its type and the value do not match; a parameter is missing or too long.
    pub fn new<S: AsRef<str>>(
        expression: &Expression,
        of: &TypeDescription,
        parameters: &[S],
    ) -> Result<Self> {
        let parameters = Parameters(parameters);
        parameters.check(expression.parameters())?;
        let condition = expression.condition.as_ref();
        let program = condition.map(|condition| Program::new(condition, of, parameters)).transpose()?;
        Ok(Self { of: *of, program })
    }

    /// Whether a payload with encapsulation header passes. One that cannot be evaluated passes: the reader then reports
    /// that it cannot be decoded.
    #[inline]
    pub fn passes(&self, payload: &[u8]) -> bool {
        self.evaluate(payload).unwrap_or(true)
    }

    /// Whether a payload meets the condition; `None`: it is no payload of the type, as far as it was read.
    #[inline]
    pub fn evaluate(&self, payload: &[u8]) -> Option<bool> {
        let Some(program) = &self.program else { return Some(true) };
        let reader = self.of.payload_reader(payload).ok()?;
        program.run(&reader).ok()
    }
}
