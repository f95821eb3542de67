//! Tokens of an expression.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::error::{FilterError, Place, Result};
use crate::expression::{FieldName, FieldStep, Literal, Operator};
use crate::limits::{PARAMETERS_MAX, PATH_MAX};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Field(FieldName),
    Literal(Literal),
    Parameter(usize),
    Operator(Operator),
    Keyword(Keyword),
    Open,
    Close,
    Comma,
    End,
}

/// A word with a meaning. Keywords are not case-sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    And,
    Or,
    Not,
    Between,
    Like,
    Order,
    By,
}

/// Splits an expression into tokens.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// A byte and the number of characters before it: the place of the last token.
    counted: (usize, usize),
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, counted: (0, 0) }
    }

    /// Returns the next token and the place where it starts.
    pub(crate) fn next(&mut self) -> Result<(Token, Place)> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        let start = self.at;
        let place = self.place(start);
        let Some(first) = self.peek() else { return Ok((Token::End, place)) };
        let token = match first {
            b'(' => self.single(Token::Open),
            b')' => self.single(Token::Close),
            b',' => self.single(Token::Comma),
            b'=' => self.single(Token::Operator(Operator::Equal)),
            b'<' | b'>' | b'!' => self.comparison(place)?,
            b'\'' | b'`' => self.string(place)?,
            b'%' => self.parameter(place)?,
            b'0'..=b'9' | b'+' | b'-' | b'.' => Token::Literal(self.number(place)?),
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => self.word(place)?,
            b'"' => return Err(FilterError::new(place, "write texts in single quotes: 'RED'")),
            _ => {
                let character = self.text.get(start..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
                return Err(FilterError::new(place, format!("unexpected {character:?}: {OPERATORS}")));
            }
        };
        Ok((token, place))
    }

    fn place(&mut self, at: usize) -> Place {
        let (from, before) = self.counted;
        let passed = self.text.get(from..at).map_or(0, |passed| passed.chars().count());
        self.counted = (at, before + passed);
        Place::Character(before + passed + 1)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn eat_while(&mut self, mut is_part: impl FnMut(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&mut is_part) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn single(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }

    fn comparison(&mut self, place: Place) -> Result<Token> {
        let operator = self.eat_while(|byte| matches!(byte, b'<' | b'>' | b'=' | b'!'));
        Ok(Token::Operator(match operator {
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "<>" | "!=" => Operator::NotEqual,
            _ => return Err(FilterError::new(place, format!("unknown operator {operator:?}: {OPERATORS}"))),
        }))
    }

    /// A text in quotes. Two quotes in it are one.
    fn string(&mut self, place: Place) -> Result<Token> {
        self.at += 1;
        let mut value = String::new();
        loop {
            value.push_str(self.eat_while(|byte| byte != b'\'' && byte != b'\n'));
            if !self.eat(b'\'') {
                return Err(FilterError::new(place, "the text has no closing quote: end it with '"));
            }
            if !self.eat(b'\'') {
                return Ok(Token::Literal(Literal::Text(value)));
            }
            value.push('\'');
        }
    }

    fn parameter(&mut self, place: Place) -> Result<Token> {
        self.at += 1;
        let digits = self.eat_while(|byte| byte.is_ascii_digit());
        match digits.parse() {
            Ok(number @ 0..PARAMETERS_MAX) if digits.len() <= 2 => Ok(Token::Parameter(number)),
            _ => Err(FilterError::new(place, "a parameter is written %0 to %99")),
        }
    }

    fn number(&mut self, place: Place) -> Result<Literal> {
        let start = self.at;
        if !self.eat(b'-') {
            self.eat(b'+');
        }
        let is_negative = self.text.as_bytes().get(start) == Some(&b'-');
        let digits_at = self.at;
        if self.eat(b'0') && (self.eat(b'x') || self.eat(b'X')) {
            let digits = self.eat_while(|byte| byte.is_ascii_hexdigit());
            return match u64::from_str_radix(digits, 16) {
                Ok(value) if !self.is_in_word() => Ok(integer(is_negative, value)),
                _ => Err(FilterError::new(place, "a hexadecimal number is 0x and 1 to 16 digits")),
            };
        }
        self.at = digits_at;
        let whole = self.eat_while(|byte| byte.is_ascii_digit());
        let mut is_float = false;
        if self.eat(b'.') {
            is_float = true;
            self.eat_while(|byte| byte.is_ascii_digit());
        }
        if self.eat(b'e') || self.eat(b'E') {
            is_float = true;
            if !self.eat(b'-') {
                self.eat(b'+');
            }
            self.eat_while(|byte| byte.is_ascii_digit());
        }
        if self.is_in_word() {
            return Err(FilterError::new(place, NUMBER));
        }
        if is_float {
            let text = self.text.get(start..self.at).unwrap_or_default();
            let value: f64 = text.parse().map_err(|_| FilterError::new(place, NUMBER))?;
            return Ok(Literal::Float(value));
        }
        match whole.parse() {
            Ok(value) => Ok(integer(is_negative, value)),
            Err(_) if whole.is_empty() => Err(FilterError::new(place, NUMBER)),
            Err(_) => Err(FilterError::new(place, "the number has more than 64 bits: write it as 1.0e20")),
        }
    }

    fn is_in_word(&self) -> bool {
        self.peek().is_some_and(is_part_of_word)
    }

    /// A keyword, TRUE, FALSE, or the name of a member.
    fn word(&mut self, place: Place) -> Result<Token> {
        let start = self.at;
        let word = self.eat_while(is_part_of_word);
        if !matches!(self.peek(), Some(b'.' | b'['))
            && let Some(token) = reserved(word)
        {
            return Ok(token);
        }
        let mut steps = vec![FieldStep::Name(word.to_owned())];
        loop {
            if self.eat(b'.') {
                let name = self.eat_while(is_part_of_word);
                if name.is_empty() || name.as_bytes()[0].is_ascii_digit() {
                    let place = self.place(self.at);
                    return Err(FilterError::new(place, "a member's name must follow the dot"));
                }
                steps.push(FieldStep::Name(name.to_owned()));
            } else if self.eat(b'[') {
                steps.push(FieldStep::Index(self.index()?));
            } else {
                break;
            }
            if steps.len() > PATH_MAX {
                let cause = format!("the name has more than {PATH_MAX} parts");
                return Err(FilterError::new(place, cause));
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default().to_owned();
        Ok(Token::Field(FieldName { text, place, steps }))
    }

    fn index(&mut self) -> Result<u32> {
        let place = self.place(self.at);
        let wrong = || FilterError::new(place, "an index is a number from 0 on, followed by ]");
        let index = if self.eat(b'0') && (self.eat(b'x') || self.eat(b'X')) {
            u32::from_str_radix(self.eat_while(|byte| byte.is_ascii_hexdigit()), 16)
        } else {
            self.at -= usize::from(self.text.as_bytes().get(self.at - 1) == Some(&b'0'));
            self.eat_while(|byte| byte.is_ascii_digit()).parse()
        };
        let index = index.map_err(|_| wrong())?;
        if self.eat(b']') { Ok(index) } else { Err(wrong()) }
    }
}

const OPERATORS: &str = "write =, <>, <, <=, >, >=, LIKE or BETWEEN";
const NUMBER: &str = "a number is written 12, -12, 0x1F, 1.5 or 1.5e-3";

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn integer(is_negative: bool, value: u64) -> Literal {
    let value = i128::from(value);
    Literal::Integer(if is_negative { -value } else { value })
}

fn reserved(word: &str) -> Option<Token> {
    let keyword = |keyword| Some(Token::Keyword(keyword));
    match word.to_ascii_uppercase().as_str() {
        "AND" => keyword(Keyword::And),
        "OR" => keyword(Keyword::Or),
        "NOT" => keyword(Keyword::Not),
        "BETWEEN" => keyword(Keyword::Between),
        "LIKE" => keyword(Keyword::Like),
        "ORDER" => keyword(Keyword::Order),
        "BY" => keyword(Keyword::By),
        "TRUE" => Some(Token::Literal(Literal::Boolean(true))),
        "FALSE" => Some(Token::Literal(Literal::Boolean(false))),
        _ => None,
    }
}
