//! The parameter N of a workload.

/// Puts a number in the place of the parameter: of `"N"`, of `"x*N"` and of `"x/N"` for a number x. Lines stay lines,
/// so that errors name those of the file.
pub(super) fn scaled(text: &str, n: u32) -> String {
    let mut parts = text.split('"').peekable();
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        // Without another quotation mark, this one begins no word.
        match (value(part, n), parts.peek()) {
            (Some(value), Some(_)) => {
                out.push_str(&value);
                out.push_str(parts.next().unwrap_or_default());
            }
            _ => {
                out.push('"');
                out.push_str(part);
            }
        }
    }
    out
}

/// Returns the value of a word with the parameter.
fn value(word: &str, n: u32) -> Option<String> {
    let factor = word.strip_suffix('N')?;
    if factor.is_empty() {
        return Some(n.to_string());
    }
    if let Some(factor) = factor.strip_suffix('*') {
        return Some(factor.parse::<u64>().ok()?.checked_mul(n.into())?.to_string());
    }
    let share: f64 = factor.strip_suffix('/')?.parse().ok()?;
    // TOML distinguishes `1` and `1.0`, which this writes.
    share.is_finite().then(|| format!("{:?}", share / f64::from(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_the_parameter_are_replaced_and_nothing_else() {
        let text =
            "# \"N\n[[node]]\nname = \"N1\"\ncount = \"N\"\nrate = \"1000/N\" # \"2N\"\nreaders = \"5*N\"\n";
        let expected = "# \"N\n[[node]]\nname = \"N1\"\ncount = 8\nrate = 125.0 # \"2N\"\nreaders = 40\n";
        assert_eq!(scaled(text, 8), expected);
        for text in ["", "\"", "\"N", "N\"", "\"x*N\"", "\"1e999/N\"", "\"*N\"", "\"9999999999999999999*N\""]
        {
            assert_eq!(scaled(text, 8), text);
        }
    }
}
