//! Finds the prose in source files and pages: comments, string literals, text outside code.

/// A piece of prose within one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Number of the line, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) is_comment: bool,
}

/// Comments and string literals of a Rust, C or C++ file.
pub(super) fn rust(text: &str) -> Vec<Span> {
    let mut scanner = Scanner { rest: text, line: 1, spans: Vec::new() };
    while let Some(next) = scanner.rest.chars().next() {
        let rest = scanner.rest;
        if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            scanner.keep(length, true);
        } else if rest.starts_with("/*") {
            let length = rest.find("*/").map_or(rest.len(), |at| at + 2);
            scanner.keep(length, true);
        } else if let Some(length) = raw_string(rest) {
            scanner.keep(length, false);
        } else if next == '"' {
            scanner.keep(string(rest), false);
        } else if next == '\'' {
            scanner.skip(character(rest));
        } else {
            scanner.skip(identifier(rest).max(next.len_utf8()));
        }
    }
    scanner.spans
}

/// Comments and strings of a TOML file.
pub(super) fn toml(text: &str) -> Vec<Span> {
    let mut scanner = Scanner { rest: text, line: 1, spans: Vec::new() };
    while let Some(next) = scanner.rest.chars().next() {
        let rest = scanner.rest;
        match next {
            '#' => scanner.keep(rest.find('\n').unwrap_or(rest.len()), true),
            '"' => scanner.keep(string(rest), false),
            _ => scanner.skip(next.len_utf8()),
        }
    }
    scanner.spans
}

/// Every line of a page. Code is left out by [`words`].
pub(super) fn markdown(text: &str) -> Vec<Span> {
    let lines = text.lines().enumerate();
    lines.map(|(index, line)| Span { line: index + 1, text: line.into(), is_comment: true }).collect()
}

/// The words of the prose in small letters, each with its line. An empty word separates what is not
/// one phrase. Paths and file names are single words.
pub(super) fn words(spans: &[Span]) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let (mut is_block, mut is_inline, mut previous) = (false, false, 0);
    for span in spans {
        let text = span.text.trim().trim_start_matches(['/', '!', '#', '*', '>']).trim();
        if !span.is_comment || span.line > previous + 1 || text.is_empty() {
            is_inline = false;
            words.push((span.line, String::new()));
        }
        is_block &= span.line <= previous + 1;
        previous = span.line;
        if text.starts_with("```") && span.is_comment {
            is_block = !is_block;
        } else if !is_block {
            is_inline = line_words(span, text, is_inline, &mut words);
        }
    }
    words
}

/// Adds the words of one line. Takes and returns whether inline code is open at its start and end.
fn line_words(span: &Span, text: &str, is_inline: bool, words: &mut Vec<(usize, String)>) -> bool {
    let mut is_code = is_inline;
    let mut is_placeholder = false;
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().chain([' ']).peekable();
    while let Some(next) = chars.next() {
        let is_inner_dot = next == '.' && chars.peek().is_some_and(|after| after.is_alphanumeric());
        let is_part = next.is_alphanumeric() || matches!(next, '_' | '\'' | '/') || is_inner_dot;
        if is_part && !is_code && !is_placeholder {
            word.extend(next.to_lowercase());
        } else if !word.is_empty() {
            let bare = word.trim_matches('\'').trim_end_matches("'s").to_owned();
            words.push((span.line, bare));
            word.clear();
        }
        if !is_part && !matches!(next, ' ' | '-') {
            words.push((span.line, String::new()));
        }
        match next {
            '`' => is_code = !is_code,
            '{' if !span.is_comment => is_placeholder = true,
            '(' if before == ']' => is_placeholder = true,
            '}' | ')' => is_placeholder = false,
            _ => {}
        }
        before = next;
    }
    is_code
}

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    spans: Vec<Span>,
}

impl Scanner<'_> {
    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    /// Skips, and keeps what was skipped as one span per line. A string without a space is an identifier.
    fn keep(&mut self, length: usize, is_comment: bool) {
        if !is_comment && !self.rest[..length].contains(' ') {
            return self.skip(length);
        }
        let lines = self.rest[..length].split('\n').enumerate();
        self.spans.extend(lines.map(|(index, text)| Span {
            line: self.line + index,
            text: text.into(),
            is_comment,
        }));
        self.skip(length);
    }
}

/// Length of the string literal at the start, with its quotes.
fn string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        if next == '"' && !is_escaped {
            return at + 1;
        }
        is_escaped = next == '\\' && !is_escaped;
    }
    text.len()
}

/// Length of the raw string literal at the start, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let content = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - content.len();
    Some(content.find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// Length of the character literal at the start, or of the quote that begins a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, next)| *next == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => chars.next().filter(|(_, next)| *next == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// Length of the identifier at the start, so that its last letter does not look like the start of a raw string.
fn identifier(text: &str) -> usize {
    text.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<(usize, String, bool)> {
        rust(text).into_iter().map(|span| (span.line, span.text, span.is_comment)).collect()
    }

    fn span(line: usize, text: &str, is_comment: bool) -> (usize, String, bool) {
        (line, text.into(), is_comment)
    }

    #[test]
    fn comments_and_strings_are_separated_from_code() {
        let text = "let a = \"x // \\\" y\"; // b\n/* c\n d */ let e = r#\"f \"g\" \"#;\n";
        assert_eq!(
            spans(text),
            [
                span(1, "\"x // \\\" y\"", false),
                span(1, "// b", true),
                span(2, "/* c", true),
                span(3, " d */", true),
                span(3, "r#\"f \"g\" \"#", false),
            ]
        );
    }

    #[test]
    fn character_literals_and_lifetimes_open_no_string() {
        let text = "fn f<'a>(x: &'a str) { g('\"', '\\'', '\\u{22}', b'\"'); var\"s t\" }";
        assert_eq!(spans(text), [span(1, "\"s t\"", false)]);
    }

    #[test]
    fn toml_has_comments_and_strings() {
        let found = toml("a = \"b # c\" # d\n");
        assert_eq!(found.iter().map(|span| span.text.as_str()).collect::<Vec<_>>(), ["\"b # c\"", "# d"]);
    }

    #[test]
    fn words_are_small_letters_without_code() {
        let words = words(&rust("// A `b` sender's [c](d.md) e/floor.rs\n"));
        let words: Vec<&str> =
            words.iter().map(|(_, word)| word.as_str()).filter(|word| !word.is_empty()).collect();
        assert_eq!(words, ["a", "sender", "c", "e/floor.rs"]);
    }
}
