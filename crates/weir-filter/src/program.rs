//! Conditions as a list of tests. Each names the test to go on with if it holds, and if not.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Ordering;

use weir_cdr::{CdrReader, TypeDescription};

use crate::constant::{Constant, Parameters};
use crate::error::{FilterError, Result};
use crate::expression::{self, FieldName, Node, Operand, Operator, Predicate};
use crate::field::{Field, Kind, Value};
use crate::limits::{PATTERN_PART_MAX, PATTERN_PARTS_MAX};
use crate::pattern::{Latin1, Pattern};

/// A condition bound to a type.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    steps: Box<[Step]>,
    entry: u16,
}

#[derive(Debug, Clone)]
struct Step {
    test: Test,
    /// The test is inverted. One without a value fails all the same.
    is_negated: bool,
    if_true: u16,
    if_false: u16,
}

#[derive(Debug, Clone)]
enum Test {
    Constant { field: Field, operator: Operator, constant: Constant },
    Fields { left: Field, operator: Operator, right: Field },
    Like { field: Field, pattern: Pattern },
}

/// The ends of a program.
const PASS: u16 = u16::MAX;
const REJECT: u16 = u16::MAX - 1;

impl Program {
    pub(crate) fn new<S: AsRef<str>>(
        condition: &Node,
        of: &TypeDescription,
        parameters: Parameters<'_, S>,
    ) -> Result<Self> {
        let mut compiler = Compiler { of, parameters, steps: Vec::new(), searches: 0 };
        let entry = compiler.add(condition, false, PASS, REJECT)?;
        Ok(Self { steps: compiler.steps.into(), entry })
    }

    /// Evaluates the condition.
    ///
    /// # Errors
    /// If a member cannot be read.
    #[inline]
    pub(crate) fn run(&self, reader: &CdrReader<'_>) -> weir_cdr::Result<bool> {
        let mut next = self.entry;
        while let Some(step) = self.steps.get(usize::from(next)) {
            // Without a value, the test fails, inverted or not.
            let holds = step.test.run(reader)?.is_some_and(|holds| holds != step.is_negated);
            next = if holds { step.if_true } else { step.if_false };
        }
        Ok(next == PASS)
    }
}

impl Test {
    /// `None`: a member has no value.
    #[inline]
    fn run(&self, reader: &CdrReader<'_>) -> weir_cdr::Result<Option<bool>> {
        match self {
            Self::Constant { field, operator, constant } => {
                let Some(value) = field.read(reader.clone())? else { return Ok(None) };
                Ok(Some(operator.holds(match (value, constant) {
                    (Value::Integer(value), Constant::Integer(constant)) => Some(value.cmp(constant)),
                    (Value::Text(value), Constant::Text(constant)) => Some(value.cmp(constant)),
                    (Value::Latin1(_), Constant::Text(constant)) => compare(value, Value::Text(constant)),
                    (value, Constant::Float(constant)) => as_float(value).partial_cmp(constant),
                    (value, Constant::Integer(constant)) => as_float(value).partial_cmp(&(*constant as f64)),
                    (_, Constant::Text(_)) => None,
                })))
            }
            Self::Fields { left, operator, right } => {
                let (left, right) = (left.read(reader.clone())?, right.read(reader.clone())?);
                Ok(left.zip(right).map(|(left, right)| operator.holds(compare(left, right))))
            }
            Self::Like { field, pattern } => Ok(match field.read(reader.clone())? {
                Some(Value::Text(text)) => Some(pattern.matches(text)),
                Some(Value::Latin1(text)) => Some(pattern.matches(Latin1(text))),
                _ => None,
            }),
        }
    }
}

/// Compares two values; `None`: one is NaN, or they are not comparable.
pub(crate) fn compare(left: Value<'_>, right: Value<'_>) -> Option<Ordering> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(&right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        // The order of characters is that of their bytes in UTF-8.
        (Value::Text(_) | Value::Latin1(_), Value::Text(_) | Value::Latin1(_)) => {
            Some(left.characters().cmp(right.characters()))
        }
        (left, right) => as_float(left).partial_cmp(&as_float(right)),
    }
}

fn as_float(value: Value<'_>) -> f64 {
    match value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        Value::Text(_) | Value::Latin1(_) => f64::NAN,
    }
}

impl Operator {
    /// Whether it holds between values that compare like this; `None`: not at all, as NaN.
    #[inline]
    fn holds(self, ordering: Option<Ordering>) -> bool {
        match self {
            Self::Equal => ordering == Some(Ordering::Equal),
            Self::NotEqual => ordering != Some(Ordering::Equal),
            Self::Less => ordering == Some(Ordering::Less),
            Self::LessOrEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => ordering == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

struct Compiler<'a, S> {
    of: &'a TypeDescription,
    parameters: Parameters<'a, S>,
    steps: Vec<Step>,
    /// Tables of the patterns so far.
    searches: usize,
}

impl<S: AsRef<str>> Compiler<'_, S> {
    /// Adds the tests of a condition and returns the first one. A condition is added after those that follow it, so the
    /// tests to go on with are known. The recursion is as deep as the expression, which is bounded.
    fn add(&mut self, node: &Node, is_negated: bool, if_true: u16, if_false: u16) -> Result<u16> {
        match node {
            Node::Not(inner) => self.add(inner, !is_negated, if_true, if_false),
            // Inverted, AND is OR of what is inverted, and vice versa.
            Node::And(nodes) if !is_negated => self.add_all(nodes, false, if_true, if_false),
            Node::Or(nodes) if is_negated => self.add_all(nodes, true, if_true, if_false),
            Node::And(nodes) | Node::Or(nodes) => self.add_any(nodes, is_negated, if_true, if_false),
            Node::Test(predicate) => self.add_test(predicate, is_negated, if_true, if_false),
        }
    }

    fn add_all(&mut self, nodes: &[Node], is_negated: bool, if_true: u16, if_false: u16) -> Result<u16> {
        nodes.iter().rev().try_fold(if_true, |next, node| self.add(node, is_negated, next, if_false))
    }

    fn add_any(&mut self, nodes: &[Node], is_negated: bool, if_true: u16, if_false: u16) -> Result<u16> {
        nodes.iter().rev().try_fold(if_false, |next, node| self.add(node, is_negated, if_true, next))
    }

    fn add_test(
        &mut self,
        predicate: &Predicate,
        is_negated: bool,
        if_true: u16,
        if_false: u16,
    ) -> Result<u16> {
        let test = match predicate {
            Predicate::Compare { left: Operand::Field(left), operator, right: Operand::Field(right) } => {
                self.fields(left, *operator, right)?
            }
            Predicate::Compare { left: Operand::Field(field), operator, right: Operand::Value(value) } => {
                self.constant(field, *operator, value)?
            }
            Predicate::Compare { left: Operand::Value(value), operator, right: Operand::Field(field) } => {
                self.constant(field, operator.mirrored(), value)?
            }
            Predicate::Compare { left: Operand::Value(value), .. } => {
                return Err(FilterError::new(
                    value.place,
                    "one side of a comparison must be a member's name",
                ));
            }
            Predicate::Like { field, pattern } => self.like(field, pattern)?,
            Predicate::Between { field, low, high } => {
                let low = self.constant(field, Operator::GreaterOrEqual, low)?;
                let high = self.constant(field, Operator::LessOrEqual, high)?;
                let second = self.push(high, is_negated, if_true, if_false);
                return Ok(if is_negated {
                    // Below the lower limit or above the upper one.
                    self.push(low, true, if_true, second)
                } else {
                    self.push(low, false, second, if_false)
                });
            }
        };
        Ok(self.push(test, is_negated, if_true, if_false))
    }

    fn push(&mut self, test: Test, is_negated: bool, if_true: u16, if_false: u16) -> u16 {
        self.steps.push(Step { test, is_negated, if_true, if_false });
        // The number of comparisons is bounded.
        (self.steps.len() - 1) as u16
    }

    fn constant(&self, name: &FieldName, operator: Operator, value: &expression::Value) -> Result<Test> {
        let field = Field::find(name, self.of)?;
        let constant = self.parameters.constant(value, field.kind, &name.text)?;
        Ok(Test::Constant { field, operator, constant })
    }

    fn fields(&self, left: &FieldName, operator: Operator, right: &FieldName) -> Result<Test> {
        let (one, other) = (Field::find(left, self.of)?, Field::find(right, self.of)?);
        if !are_comparable(one.kind, other.kind) {
            let (left_kind, right_kind) = (one.kind.name(), other.kind.name());
            let cause = format!(
                "{} is {left_kind} and cannot be compared with {}, {right_kind}",
                left.text, right.text
            );
            return Err(FilterError::new(left.place, cause));
        }
        Ok(Test::Fields { left: one, operator, right: other })
    }

    fn like(&mut self, name: &FieldName, pattern: &expression::Value) -> Result<Test> {
        let field = Field::find(name, self.of)?;
        if !matches!(field.kind, Kind::Text) {
            let cause = format!("{} is {}: LIKE needs a string", name.text, field.kind.name());
            return Err(FilterError::new(name.place, cause));
        }
        let (text, place) = self.parameters.text(pattern)?;
        let pattern = Pattern::new(&text).ok_or_else(|| {
            let cause = format!("the pattern has more than {PATTERN_PART_MAX} bytes between two %");
            FilterError::new(place, cause)
        })?;
        self.searches += pattern.searches();
        if self.searches > PATTERN_PARTS_MAX {
            let cause = format!("the patterns have more than {PATTERN_PARTS_MAX} parts between two %");
            return Err(FilterError::new(place, cause));
        }
        Ok(Test::Like { field, pattern })
    }
}

fn are_comparable(left: Kind, right: Kind) -> bool {
    let is_number = |kind| matches!(kind, Kind::Integer { .. } | Kind::Float32 | Kind::Float64);
    let is_whole = |kind| matches!(kind, Kind::Integer { .. } | Kind::Enumeration(_));
    match (left, right) {
        (Kind::Boolean, Kind::Boolean) | (Kind::Text, Kind::Text) => true,
        (left, right) => (is_number(left) && is_number(right)) || (is_whole(left) && is_whole(right)),
    }
}
