//! Text in columns, and counts.

/// Breaks `text` into lines of at most `width` characters, each behind `indent` spaces but the first.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

/// A line of a list, with a name of up to `name_width` characters in front of its wrapped text.
pub(crate) fn list_item(name: &str, text: &str, name_width: usize) -> String {
    let indent = 2 + name_width + 1;
    let gap = if name.chars().count() > name_width {
        format!("\n{:indent$}", "")
    } else {
        format!("{:width$}", "", width = name_width + 1 - name.chars().count())
    };
    format!("  {name}{gap}{}\n", wrapped(text, WIDTH, indent))
}

/// A count with its noun: `1 case`, `2 cases`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Columns of help texts.
pub(crate) const WIDTH: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "case")), ["0 cases", "1 case", "2 cases"]);
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("a bb  ccc dddd", 8, 2), "a bb\n  ccc\n  dddd");
        assert_eq!(wrapped("tremendous", 4, 0), "tremendous");
        assert_eq!(wrapped("", 4, 0), "");
        assert_eq!(list_item("-a", "does", 4), "  -a   does\n");
        assert_eq!(list_item("-abcd", "does", 4), "  -abcd\n       does\n");
    }
}
