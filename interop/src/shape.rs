//! The type of the shapes demo, its text form, and checks of what arrived.

use weir_dds::DdsType;

/// A shape, as in the OMG's interoperability tests.
#[derive(Debug, Default, Clone, PartialEq, Eq, DdsType)]
#[dds(extensibility = "final")]
pub struct ShapeType {
    /// The instance.
    #[dds(key, max_len = 128)]
    pub color: String,
    /// The number of the sample, from 0.
    pub x: i32,
    /// Its negative.
    pub y: i32,
    /// Always 30.
    pub shapesize: i32,
}

impl ShapeType {
    /// Makes sample number `x` of the instance that every test writes.
    #[must_use]
    pub fn blue(x: i32) -> Self {
        Self { color: "BLUE".into(), x, y: -x, shapesize: 30 }
    }

    /// Returns the line that a subscriber prints.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {} {} {}", self.color, self.x, self.y, self.shapesize)
    }
}

/// Checks that these lines are some of the written samples, in order, each once, and then the end
/// of the instance.
///
/// # Panics
///
/// If not.
pub fn check_some(lines: &[String]) {
    let (end, samples) = lines.split_last().expect("something was printed");
    assert_eq!(end, "disposed");
    let numbers: Vec<i32> = samples.iter().map(|line| number(line)).collect();
    assert!(!numbers.is_empty(), "only the end of the instance arrived");
    for pair in numbers.windows(2) {
        assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
    }
}

/// Checks that these lines are all of the `count` written samples, in order, each once, and then
/// the end of the instance.
///
/// # Panics
///
/// If not.
pub fn check_all(lines: &[String], count: u32) {
    check_some(lines);
    let samples = &lines[..lines.len() - 1];
    let (first, last) = (number(&samples[0]), number(&samples[samples.len() - 1]));
    let expected = (0, count.cast_signed() - 1, count as usize);
    assert_eq!((first, last, samples.len()), expected, "first, last, how many");
}

/// Returns the number of a sample, after checking its other members.
fn number(line: &str) -> i32 {
    let x = line.split(' ').nth(1).and_then(|x| x.parse().ok()).expect("a line about a sample");
    assert_eq!(line, ShapeType::blue(x).line());
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: &[i32]) -> Vec<String> {
        let samples = numbers.iter().map(|x| ShapeType::blue(*x).line());
        samples.chain(["disposed".to_owned()]).collect()
    }

    #[test]
    fn some_may_be_missing_and_all_may_not() {
        check_some(&lines(&[3, 5, 6]));
        check_all(&lines(&[0, 1, 2]), 3);
        let fails = |check: fn()| std::panic::catch_unwind(check).is_err();
        assert!(fails(|| check_some(&lines(&[3, 3]))));
        assert!(fails(|| check_some(&lines(&[]))));
        assert!(fails(|| check_some(&lines(&[1])[..1])));
        assert!(fails(|| check_all(&lines(&[0, 2]), 3)));
        assert!(fails(|| check_all(&lines(&[1, 2]), 3)));
    }
}
