//! Median and spread over the repeats of a case.

/// Smallest, median and largest of a few values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle value; of an even number of values, the mean of the two middle ones.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// Number of values.
    pub count: usize,
}

impl Spread {
    /// Summarises `values`; `None` if there are none. NaNs are left out.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: median(&mut sorted), min, max, count: sorted.len() })
    }
}

/// The middle value; of an even number of values, the mean of the two middle ones.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => f64::midpoint(lower, upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_no_values() {
        let check = |values: &[f64], expected: Option<(f64, f64, f64)>| {
            let spread = Spread::of(values.iter().copied());
            assert_eq!(spread.map(|s| (s.median, s.min, s.max)), expected, "{values:?}");
        };
        check(&[], None);
        check(&[f64::NAN], None);
        check(&[4.0], Some((4.0, 4.0, 4.0)));
        check(&[3.0, 1.0, 2.0], Some((2.0, 1.0, 3.0)));
        check(&[4.0, 1.0, 2.0, 3.0], Some((2.5, 1.0, 4.0)));
    }
}
