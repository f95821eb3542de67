//! Functions of real numbers that `core` does not have.

/// Returns the cube root of a number that is not negative.
#[cfg(feature = "std")]
pub(crate) fn cbrt(number: f64) -> f64 {
    number.cbrt()
}

/// Returns the cube root of a number that is not negative.
#[cfg(any(not(feature = "std"), test))]
fn cbrt_without_std(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return number;
    }
    // A third of the exponent is a guess within a factor of two. Each step of Newton's method doubles the digits.
    let third = number.to_bits() / 3 + (1023_u64 << 52) / 3 * 2;
    let step = |root: f64, _| root - (root - number / (root * root)) / 3.0;
    (0..STEPS).fold(f64::from_bits(third), step)
}

/// Returns the cube root of a number that is not negative.
#[cfg(not(feature = "std"))]
pub(crate) fn cbrt(number: f64) -> f64 {
    cbrt_without_std(number)
}

/// The guess has at least three bits, and 53 are wanted.
#[cfg(any(not(feature = "std"), test))]
const STEPS: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_that_of_the_standard_library() {
        for number in [0.0, 1e-300, 1e-9, 0.3, 1.0, 2.0, 7.9, 8.0, 27.0, 1234.5, 1e9, 1e300] {
            let (found, expected) = (cbrt_without_std(number), f64::cbrt(number));
            assert!((found - expected).abs() <= expected * f64::EPSILON, "{number}: {found} {expected}");
        }
    }
}
