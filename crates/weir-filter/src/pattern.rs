//! LIKE: `%` stands for any characters, also none, and `_` for one.
//!
//! The parts before the first and behind the last `%` are compared in place. Each part between is searched behind the
//! one before it, where it first occurs: a later place would never match more. The search keeps all places where the
//! part may have begun in the bits of one word (shift-and), so it visits each byte once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::limits::PATTERN_PART_MAX;

/// A LIKE pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The part before the first `%`, or all of it.
    head: Part,
    /// The part behind the last `%`; `None`: there is no `%`.
    tail: Option<Part>,
    middle: Vec<Search>,
}

/// Consecutive elements of a pattern.
type Part = Vec<Element>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Byte(u8),
    /// Any character.
    Any,
}

/// The bytes of a text in UTF-8, by positions that rise from 0.
pub(crate) trait Text: Copy {
    /// The byte at a position.
    fn get(self, at: usize) -> Option<u8>;
    /// The position behind this one.
    fn next(self, at: usize) -> usize;
    /// The position before this one.
    fn previous(self, at: usize) -> Option<usize>;
    /// The position behind the last byte.
    fn end(self) -> usize;
}

impl Text for &[u8] {
    #[inline]
    fn get(self, at: usize) -> Option<u8> {
        <[u8]>::get(self, at).copied()
    }

    #[inline]
    fn next(self, at: usize) -> usize {
        at + 1
    }

    #[inline]
    fn previous(self, at: usize) -> Option<usize> {
        at.checked_sub(1)
    }

    #[inline]
    fn end(self) -> usize {
        self.len()
    }
}

/// A text in ISO 8859-1. Each character has two positions, the second of which only those with two bytes in UTF-8 use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latin1<'a>(pub(crate) &'a [u8]);

impl Text for Latin1<'_> {
    fn get(self, at: usize) -> Option<u8> {
        let byte = *self.0.get(at / 2)?;
        Some(match (byte, at % 2) {
            (0..0x80, _) => byte,
            (_, 0) => 0xc0 | byte >> 6,
            _ => 0x80 | byte & 0x3f,
        })
    }

    fn next(self, at: usize) -> usize {
        let is_first_of_two = at.is_multiple_of(2) && self.0.get(at / 2).is_some_and(|byte| !byte.is_ascii());
        if is_first_of_two { at + 1 } else { (at / 2 + 1) * 2 }
    }

    fn previous(self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1)?;
        let is_second = self.0.get(before / 2).is_some_and(|byte| !byte.is_ascii());
        Some(if is_second { before } else { before / 2 * 2 })
    }

    fn end(self) -> usize {
        self.0.len() * 2
    }
}

impl Pattern {
    /// `None` if a part between two `%` is too long.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let mut parts: Vec<Part> = text.split('%').map(elements).collect();
        let tail = if parts.len() > 1 { parts.pop() } else { None };
        let mut parts = parts.into_iter();
        let head = parts.next().unwrap_or_default();
        let middle: Option<Vec<_>> =
            parts.filter(|part| !part.is_empty()).map(|part| Search::new(&part)).collect();
        Some(Self { head, tail, middle: middle? })
    }

    /// The number of tables that it has.
    pub(crate) fn searches(&self) -> usize {
        self.middle.len()
    }

    pub(crate) fn matches(&self, text: impl Text) -> bool {
        let Some(mut at) = match_at(&self.head, text, 0) else { return false };
        let Some(tail) = &self.tail else { return at == text.end() };
        for search in &self.middle {
            match search.end_in(text, at) {
                Some(end) => at = end,
                None => return false,
            }
        }
        start_of_last(tail, text, at).is_some_and(|start| match_at(tail, text, start) == Some(text.end()))
    }
}

fn elements(part: &str) -> Part {
    part.bytes().map(|byte| if byte == b'_' { Element::Any } else { Element::Byte(byte) }).collect()
}

/// Returns where the part ends if it is at `start`.
fn match_at(part: &Part, text: impl Text, start: usize) -> Option<usize> {
    let mut at = start;
    for element in part {
        match element {
            Element::Byte(byte) => {
                if text.get(at) != Some(*byte) {
                    return None;
                }
                at = text.next(at);
            }
            Element::Any => {
                text.get(at)?;
                at = end_of_character(text, at);
            }
        }
    }
    Some(at)
}

/// Where the part must start to end with the text; not before `from`.
fn start_of_last(part: &Part, text: impl Text, from: usize) -> Option<usize> {
    let mut at = text.end();
    for element in part.iter().rev() {
        at = text.previous(at).filter(|at| *at >= from)?;
        if *element == Element::Any {
            while at > from && text.get(at).is_some_and(is_continuation) {
                at = text.previous(at)?;
            }
        }
    }
    Some(at)
}

/// Where the character at `at` ends. In a text that is not UTF-8, a byte that continues nothing is a character.
fn end_of_character(text: impl Text, at: usize) -> usize {
    let mut end = text.next(at);
    while text.get(end).is_some_and(is_continuation) {
        end = text.next(end);
    }
    end
}

/// Whether a byte continues a character of UTF-8.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Finds where a part first occurs.
#[derive(Debug, Clone)]
struct Search {
    /// Bit `i` of entry `b`: element `i` may begin with byte `b`.
    begins: Box<[u64; 256]>,
    /// Bit `i`: element `i` is any character, which may have more bytes.
    any: u64,
    last: u64,
}

impl Search {
    fn new(part: &Part) -> Option<Self> {
        if part.len() > PATTERN_PART_MAX {
            return None;
        }
        let (mut begins, mut any) = (Box::new([0; 256]), 0);
        for (index, element) in part.iter().enumerate() {
            let bit = 1 << index;
            match element {
                Element::Byte(byte) => begins[usize::from(*byte)] |= bit,
                Element::Any => {
                    any |= bit;
                    begins.iter_mut().for_each(|entry| *entry |= bit);
                }
            }
        }
        Some(Self { begins, any, last: 1 << (part.len() - 1) })
    }

    /// Returns where the part ends, searched from `from` on.
    fn end_in(&self, text: impl Text, from: usize) -> Option<usize> {
        let (mut matched, mut at) = (0_u64, from);
        while let Some(byte) = text.get(at) {
            // Within a character, the element that stands for it goes on, and no other begins.
            let (before, begin, goes_on) = if is_continuation(byte) {
                (matched & !self.any, u64::from(at == from), matched & self.any)
            } else {
                (matched, 1, 0)
            };
            matched = (before << 1 | begin) & self.begins[usize::from(byte)] | goes_on;
            let behind = text.next(at);
            if matched & self.last != 0 {
                return Some(if self.last & self.any == 0 { behind } else { end_of_character(text, at) });
            }
            at = behind;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(text.as_bytes())
    }

    #[test]
    fn percent_stands_for_any_characters_and_underscore_for_one() {
        for (pattern, text) in [
            ("", ""),
            ("%", ""),
            ("%", "abc"),
            ("%%", "abc"),
            ("abc", "abc"),
            ("a%", "a"),
            ("a%c", "abbbc"),
            ("a%c", "ac"),
            ("%b%", "abc"),
            ("%b_", "abbc"),
            ("a_c", "abc"),
            ("_%_", "ab"),
            ("%ab%ab%", "abab"),
            ("%a_b%", "aaab"),
            ("_", "ü"),
            ("%ü_", "güß"),
            ("g__n%", "grün"),
            ("%_n%", "grün"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("_", ""),
            ("abc", "abcd"),
            ("a%", "ba"),
            ("%c", "cb"),
            ("a%a", "a"),
            ("_%_", "a"),
            ("%ab%ab%", "aba"),
            ("%a_b%", "ab"),
            ("__", "ü"),
            ("_%_", "ü"),
            ("%__%", "ü"),
            ("%___%", "aü"),
            ("%a%___%", "aüb"),
            ("RED", "red"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_text_in_iso_8859_1_matches_as_in_utf_8() {
        let texts = ["", "a", "ü", "grün", "güß", "ÿaÿ", "üüü", "aübücü", "\u{80}\u{bf}\u{c0}"];
        let patterns = [
            "",
            "_",
            "%",
            "ü",
            "gr_n",
            "g%ß",
            "%ü%",
            "%_n",
            "%ü_",
            "%__%",
            "%___%",
            "%a%___%",
            "_%_",
            "%ü%ü%",
            "ÿ_ÿ",
            "%b_c%",
            "\u{80}%\u{c0}",
            "%\u{bf}%",
        ];
        for (pattern, text) in patterns.into_iter().flat_map(|it| texts.map(|text| (it, text))) {
            let latin_1: Vec<u8> = text.chars().map(|it| u8::try_from(u32::from(it)).unwrap()).collect();
            let found = Pattern::new(pattern).unwrap().matches(Latin1(&latin_1));
            assert_eq!(found, matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_with_many_wildcards_visits_each_byte_once() {
        // With backtracking, this takes longer than the universe exists.
        let pattern = "%a".repeat(60) + "b";
        assert!(!matches(&pattern, &"a".repeat(100_000)));
    }

    #[test]
    fn parts_between_two_percents_are_bounded() {
        assert!(Pattern::new(&format!("%{}%", "a".repeat(64))).is_some());
        assert!(Pattern::new(&format!("%{}%", "a".repeat(65))).is_none());
        assert!(Pattern::new(&format!("{}%", "a".repeat(1000))).is_some());
    }
}
