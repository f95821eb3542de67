//! Expressions: parsed, but not yet bound to a type.
//!
//! ```text
//! query      = [ condition ] [ "ORDER" "BY" field { "," field } ]
//! condition  = conjunction { "OR" conjunction }
//! conjunction = negation { "AND" negation }
//! negation   = "NOT" negation | "(" condition ")" | predicate
//! predicate  = operand operator operand
//!            | field [ "NOT" ] "LIKE" value
//!            | field [ "NOT" ] "BETWEEN" value "AND" value
//! operand    = field | value
//! value      = literal | parameter
//! ```

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{FilterError, Place, Result};
use crate::lexer::{Keyword, Lexer, Token};
use crate::limits::{COMPARISONS_MAX, DEPTH_MAX, EXPRESSION_MAX_BYTES, ORDER_MAX};

/// A parsed expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    pub(crate) condition: Option<Node>,
    pub(crate) order_by: Vec<FieldName>,
    parameters: usize,
    comparisons: usize,
}

/// A condition.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Test(Predicate),
    Not(Box<Self>),
    /// All of them; at least two.
    And(Vec<Self>),
    /// Any of them; at least two.
    Or(Vec<Self>),
}

/// A comparison.
#[derive(Debug, Clone)]
pub(crate) enum Predicate {
    Compare { left: Operand, operator: Operator, right: Operand },
    Like { field: FieldName, pattern: Value },
    Between { field: FieldName, low: Value, high: Value },
}

#[derive(Debug, Clone)]
pub(crate) enum Operand {
    Field(FieldName),
    Value(Value),
}

/// A literal or a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) kind: ValueKind,
    pub(crate) place: Place,
}

#[derive(Debug, Clone)]
pub(crate) enum ValueKind {
    Literal(Literal),
    Parameter(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Integer(i128),
    Float(f64),
    Text(String),
    Boolean(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The name of a member, such as `a.b[2]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldName {
    pub(crate) text: String,
    pub(crate) place: Place,
    pub(crate) steps: Vec<FieldStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FieldStep {
    Name(String),
    Index(u32),
}

impl Expression {
    /// Parses a filter: a condition (FilterExpression of DDS 1.4, annex B).
    ///
    /// # Errors
    /// What is wrong and where; the expression exceeds one of the [`limits`](crate::limits).
    pub fn filter(text: &str) -> Result<Self> {
        let expression = Self::query(text)?;
        if let Some(first) = expression.order_by.first() {
            let cause = "a filter cannot order samples: remove ORDER BY, or use a query";
            return Err(FilterError::new(first.place, cause));
        }
        Ok(expression)
    }

    /// Parses a query: a condition, ORDER BY with members, or both (QueryExpression of DDS 1.4, annex B).
    ///
    /// # Errors
    /// As for [`Expression::filter`].
    pub fn query(text: &str) -> Result<Self> {
        if text.len() > EXPRESSION_MAX_BYTES {
            let cause = format!("{} bytes, at most {EXPRESSION_MAX_BYTES} are supported", text.len());
            return Err(FilterError::new(Place::Expression, cause));
        }
        Parser::new(text)?.query()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of parameters that it needs: one more than the highest.
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Returns the number of comparisons. A BETWEEN counts as two.
    pub fn comparisons(&self) -> usize {
        self.comparisons
    }
}

impl Operator {
    /// The operator with its operands exchanged.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    text: &'a str,
    token: Token,
    place: Place,
    depth: usize,
    comparisons: usize,
    parameters: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, place) = lexer.next()?;
        Ok(Self { lexer, text, token, place, depth: 0, comparisons: 0, parameters: 0 })
    }

    fn query(mut self) -> Result<Expression> {
        let is_ordered = self.token == Token::Keyword(Keyword::Order);
        if self.token == Token::End {
            return Err(self.error("it is empty: write a condition, such as x > 10"));
        }
        let condition = if is_ordered { None } else { Some(self.condition()?) };
        let mut order_by = Vec::new();
        if self.eat(&Token::Keyword(Keyword::Order))? {
            if !self.eat(&Token::Keyword(Keyword::By))? {
                return Err(self.error("BY must follow ORDER"));
            }
            order_by.push(self.field()?);
            while self.eat(&Token::Comma)? {
                order_by.push(self.field()?);
                if order_by.len() > ORDER_MAX {
                    return Err(self.error(format!("ORDER BY has more than {ORDER_MAX} members")));
                }
            }
        }
        if self.token != Token::End {
            return Err(self.error("AND, OR or the end is expected here"));
        }
        Ok(Expression {
            text: self.text.to_owned(),
            condition,
            order_by,
            parameters: self.parameters,
            comparisons: self.comparisons,
        })
    }

    fn condition(&mut self) -> Result<Node> {
        let first = self.conjunction()?;
        if self.token != Token::Keyword(Keyword::Or) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.eat(&Token::Keyword(Keyword::Or))? {
            nodes.push(self.conjunction()?);
        }
        Ok(Node::Or(nodes))
    }

    fn conjunction(&mut self) -> Result<Node> {
        let first = self.negation()?;
        if self.token != Token::Keyword(Keyword::And) {
            return Ok(first);
        }
        let mut nodes = vec![first];
        while self.eat(&Token::Keyword(Keyword::And))? {
            nodes.push(self.negation()?);
        }
        Ok(Node::And(nodes))
    }

    fn negation(&mut self) -> Result<Node> {
        let is_negation = self.token == Token::Keyword(Keyword::Not);
        if !is_negation && self.token != Token::Open {
            return self.predicate();
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("parentheses and NOTs are nested more than {DEPTH_MAX} deep")));
        }
        self.advance()?;
        let node = if is_negation {
            Node::Not(Box::new(self.negation()?))
        } else {
            let node = self.condition()?;
            if !self.eat(&Token::Close)? {
                return Err(self.error("AND, OR or ) is expected here"));
            }
            node
        };
        self.depth -= 1;
        Ok(node)
    }

    fn predicate(&mut self) -> Result<Node> {
        let start = self.place;
        let left = self.operand()?;
        let is_negated = self.eat(&Token::Keyword(Keyword::Not))?;
        let predicate = match (left, self.token.clone()) {
            (left, Token::Operator(operator)) if !is_negated => {
                self.advance()?;
                let right = self.operand()?;
                if matches!((&left, &right), (Operand::Value(_), Operand::Value(_))) {
                    return Err(FilterError::new(start, "one side of a comparison must be a member's name"));
                }
                self.count(1)?;
                Predicate::Compare { left, operator, right }
            }
            (Operand::Field(field), Token::Keyword(Keyword::Like)) => {
                self.advance()?;
                self.count(1)?;
                Predicate::Like { field, pattern: self.value("LIKE")? }
            }
            (Operand::Field(field), Token::Keyword(Keyword::Between)) => {
                self.advance()?;
                let low = self.value("BETWEEN")?;
                if !self.eat(&Token::Keyword(Keyword::And))? {
                    return Err(self.error("AND and the upper limit must follow: x BETWEEN 1 AND 5"));
                }
                self.count(2)?;
                Predicate::Between { field, low, high: self.value("AND")? }
            }
            (Operand::Value(_), Token::Keyword(Keyword::Like | Keyword::Between)) => {
                return Err(FilterError::new(start, "a member's name must precede LIKE and BETWEEN"));
            }
            _ if is_negated => return Err(self.error("LIKE or BETWEEN must follow NOT here")),
            _ => return Err(self.error("an operator is expected here: =, <>, <, <=, >, >=, LIKE or BETWEEN")),
        };
        let test = Node::Test(predicate);
        Ok(if is_negated { Node::Not(Box::new(test)) } else { test })
    }

    fn operand(&mut self) -> Result<Operand> {
        match &self.token {
            Token::Field(_) => Ok(Operand::Field(self.field()?)),
            Token::Literal(_) | Token::Parameter(_) => Ok(Operand::Value(self.value("")?)),
            _ => Err(self.error("a member's name, a value or a parameter is expected here")),
        }
    }

    fn field(&mut self) -> Result<FieldName> {
        match self.advance()? {
            (Token::Field(field), _) => Ok(field),
            (_, place) => Err(FilterError::new(place, "a member's name is expected here")),
        }
    }

    fn value(&mut self, after: &str) -> Result<Value> {
        let (kind, place) = match self.advance()? {
            (Token::Literal(literal), place) => (ValueKind::Literal(literal), place),
            (Token::Parameter(number), place) => {
                self.parameters = self.parameters.max(number + 1);
                (ValueKind::Parameter(number), place)
            }
            (_, place) => {
                let cause = format!("a value or a parameter must follow {after}, such as 10, 'RED' or %0");
                return Err(FilterError::new(place, cause));
            }
        };
        Ok(Value { kind, place })
    }

    fn count(&mut self, comparisons: usize) -> Result {
        self.comparisons += comparisons;
        if self.comparisons > COMPARISONS_MAX {
            return Err(self.error(format!("there are more than {COMPARISONS_MAX} comparisons")));
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<(Token, Place)> {
        let (token, place) = self.lexer.next()?;
        let token = core::mem::replace(&mut self.token, token);
        Ok((token, core::mem::replace(&mut self.place, place)))
    }

    fn eat(&mut self, token: &Token) -> Result<bool> {
        let is_there = self.token == *token;
        if is_there {
            self.advance()?;
        }
        Ok(is_there)
    }

    fn error(&self, cause: impl Into<String>) -> FilterError {
        FilterError::new(self.place, cause)
    }
}
