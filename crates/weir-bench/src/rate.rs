//! The rate of the open loop, as the user gives it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The rate that `--rate` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Samples per second.
    PerSecond(u64),
    /// Hundredths of a percent of the measured maximum.
    OfMaximum(u32),
}

/// Text that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no rate: it is samples per second, e.g. 1000 or 50k/s, or up to 100% of the measured maximum, e.g. 50%"
)]
pub struct RateError(String);

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parse = || match text.strip_suffix('%') {
            Some(percent) => {
                let hundredths = (percent.parse::<f64>().ok()? * 100.0).round();
                (1.0..=10_000.0).contains(&hundredths).then_some(Self::OfMaximum(hundredths as u32))
            }
            None => {
                let number = text.strip_suffix("/s").unwrap_or(text);
                let (number, unit) = match number.strip_suffix(['k', 'K']) {
                    Some(number) => (number, 1e3),
                    None => number.strip_suffix('M').map_or((number, 1.0), |number| (number, 1e6)),
                };
                let rate = (number.parse::<f64>().ok()? * unit).round();
                (1.0..=1e9).contains(&rate).then_some(Self::PerSecond(rate as u64))
            }
        };
        parse().ok_or_else(|| RateError(text.to_owned()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::OfMaximum(hundredths) => write!(f, "{}%", f64::from(*hundredths) / 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_shares_of_the_maximum() {
        let check = |text: &str, expected: Option<Rate>| assert_eq!(text.parse().ok(), expected, "{text}");
        check("1000", Some(Rate::PerSecond(1000)));
        check("50k/s", Some(Rate::PerSecond(50_000)));
        check("1.5M", Some(Rate::PerSecond(1_500_000)));
        check("50%", Some(Rate::OfMaximum(5000)));
        check("0.5%", Some(Rate::OfMaximum(50)));
        for text in ["", "0", "101%", "0%", "-1", "fast", "10/m", "2e9"] {
            check(text, None);
        }
        assert_eq!(
            (Rate::OfMaximum(1250).to_string(), Rate::PerSecond(7).to_string()),
            ("12.5%".into(), "7/s".into())
        );
    }
}
