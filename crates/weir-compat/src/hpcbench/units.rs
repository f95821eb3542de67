//! Numbers as hpcbench reads them: `k` and `M` are 1024 for bytes, but 1000 for rates.

/// Bytes: `8192`, `8k`, `1M`; `k` and `M` (small or large) are 1024 and 1024 times 1024.
///
/// # Errors
/// A sentence for the user when it is no such number, or beyond 64 bits.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse(text, 1024)
}

/// Bits per second: `64000`, `150M`; `k` and `M` (small or large) are 1000 and 1000 times 1000.
///
/// # Errors
/// A sentence for the user when it is no such number, zero, or beyond 64 bits.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    match parse(text, 1000)? {
        0 => Err("a rate is at least one bit per second".to_owned()),
        rate => Ok(rate),
    }
}

fn parse(text: &str, base: u64) -> Result<u64, String> {
    let refuse = || format!("`{text}` is no number such as 8192, 8k or 1M");
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], base),
        Some(b'm' | b'M') => (&text[..text.len() - 1], base * base),
        _ => (text, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_1024_for_bytes_and_1000_for_rates() {
        assert_eq!(parse_bytes("500k"), Ok(512_000));
        assert_eq!(parse_bytes("8K"), Ok(8192));
        assert_eq!(parse_bytes("1m"), Ok(1_048_576));
        assert_eq!(parse_rate("150M"), Ok(150_000_000));
        assert_eq!(parse_rate("64k"), Ok(64_000));
        assert_eq!(parse_bytes("0"), Ok(0));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "k", "-1", "+1", "1.5", "1g", "99999999999999999999", "18446744073709551615k", "é"]
        {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert!(parse_rate("0").is_err());
    }
}
