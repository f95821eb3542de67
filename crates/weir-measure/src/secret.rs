//! The shared secret: client and server each prove that they have it without sending it.
//!
//! Each side sends a fresh random number. Each proves the secret by HMAC-SHA256 (RFC 2104, FIPS
//! 180-4) over both numbers and its own role. A recorded proof is therefore worthless, and a
//! client's proof is not a server's. The rest of the connection is neither encrypted nor signed:
//! the secret restricts who can use a server, not who can read along.

use std::fmt;
use std::path::Path;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::MeasureError;

/// A secret that client and server share.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The fewest bytes: shorter secrets could be guessed.
    pub const BYTES_MIN: usize = 8;

    /// The most bytes.
    pub const BYTES_MAX: usize = 4096;

    /// A secret of these bytes.
    ///
    /// # Errors
    /// [`MeasureError::Secret`] when it is too short or too long.
    pub fn new(bytes: &[u8]) -> Result<Self, MeasureError> {
        if (Self::BYTES_MIN..=Self::BYTES_MAX).contains(&bytes.len()) {
            return Ok(Self(bytes.to_vec()));
        }
        let (min, max, length) = (Self::BYTES_MIN, Self::BYTES_MAX, bytes.len());
        Err(MeasureError::Secret(format!("a secret has {min} to {max} bytes, this one {length}")))
    }

    /// Random text for a secret between two processes.
    pub fn random_text() -> Result<String, MeasureError> {
        Ok(format!("{}{}", Nonce::fresh()?.text(), Nonce::fresh()?.text()))
    }

    /// Reads a secret from a file; line ends at its end are ignored.
    ///
    /// # Errors
    /// [`MeasureError::Secret`] when the file can't be read, or holds too little or too much.
    pub fn read(path: &Path) -> Result<Self, MeasureError> {
        let name = |reason: String| MeasureError::Secret(format!("{}: {reason}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| name(error.to_string()))?;
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        Self::new(&bytes[..end]).map_err(|error| name(error.to_string()))
    }

    /// The proof of `side` in the exchange with these numbers, as text.
    pub(crate) fn proof(&self, side: Side, numbers: &Numbers) -> String {
        hex(&self.mac(side, numbers).finalize().into_bytes())
    }

    /// Whether `proof` is that of `side`; takes the same time for every wrong one.
    pub(crate) fn accepts(&self, side: Side, numbers: &Numbers, proof: &str) -> bool {
        unhex(proof).is_some_and(|proof| self.mac(side, numbers).verify_slice(&proof).is_ok())
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    fn mac(&self, side: Side, numbers: &Numbers) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of every length");
        mac.update(match side {
            Side::Client => b"weir udp client 1\0",
            Side::Server => b"weir udp server 1\0",
        });
        // Both have a fixed length, so that no two exchanges look the same.
        mac.update(&numbers.server.0);
        mac.update(&numbers.client.0);
        mac
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

/// The role in a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// The random numbers of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) client: Nonce,
    pub(crate) server: Nonce,
}

/// A random number that is used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; Self::BYTES]);

impl Nonce {
    const BYTES: usize = 16;

    /// A fresh random number from the kernel.
    pub fn fresh() -> Result<Self, MeasureError> {
        let mut bytes = [0; Self::BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| MeasureError::Secret(format!("no random numbers from the kernel: {error}")))?;
        Ok(Self(bytes))
    }

    /// As text.
    #[must_use]
    pub fn text(&self) -> String {
        hex(&self.0)
    }

    /// From its text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(Self(unhex(text)?.try_into().ok()?))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of at most 64 pairs of hexadecimal digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_hex =
        text.len() <= 128 && text.len().is_multiple_of(2) && text.bytes().all(|b| b.is_ascii_hexdigit());
    let pairs = || (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok());
    if is_hex { pairs().collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Numbers {
        Numbers { client: Nonce([1; 16]), server: Nonce([2; 16]) }
    }

    #[test]
    fn a_proof_is_of_one_secret_one_side_and_one_exchange() {
        let secret = Secret::new(b"correct horse").unwrap();
        let proof = secret.proof(Side::Client, &numbers());
        assert!(secret.accepts(Side::Client, &numbers(), &proof));
        assert!(secret.accepts(Side::Client, &numbers(), &proof.to_uppercase()));
        assert!(!secret.accepts(Side::Server, &numbers(), &proof));
        assert!(!Secret::new(b"correct mouse").unwrap().accepts(Side::Client, &numbers(), &proof));
        let later = Numbers { server: Nonce([3; 16]), ..numbers() };
        assert!(!secret.accepts(Side::Client, &later, &proof));
        for wrong in ["", "zz", "é", &proof[2..], &"0".repeat(64)] {
            assert!(!secret.accepts(Side::Client, &numbers(), wrong), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_fresh_and_read_back() {
        let (one, other) = (Nonce::fresh().unwrap(), Nonce::fresh().unwrap());
        assert_ne!(one, other);
        assert_eq!(Nonce::parse(&one.text()), Some(one));
        assert_eq!(Nonce::parse("00"), None);
    }

    #[test]
    fn a_file_may_end_with_a_line_and_short_secrets_are_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "correct horse\r\n").unwrap();
        assert_eq!(Secret::read(&path).unwrap().0, b"correct horse");
        assert!(!format!("{:?}", Secret::read(&path).unwrap()).contains("horse"));
        std::fs::write(&path, "short\n").unwrap();
        assert!(Secret::read(&path).unwrap_err().to_string().contains("8 to 4096 bytes, this one 5"));
        assert!(Secret::read(&folder.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
