//! Arbitrary texts as content filters and queries, and arbitrary bytes as the samples that they evaluate.

use weir_cdr::{CdrValue, DdsType, Encoding};
use weir_filter::{Expression, Filter, Order, limits};
use weir_rtps::content_filter::ContentFilterProperty;

/// Parses an expression, binds it to a type and evaluates a payload. The input consists of the expression, a parameter
/// and the payload, with a NUL behind each of the first two.
///
/// # Panics
///
/// If an expression exceeds a bound, or two evaluations of one payload disagree.
pub fn run(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let (Some(text), Some(parameter)) = (parts.next(), parts.next()) else { return };
    let (text, parameter) = (String::from_utf8_lossy(text), String::from_utf8_lossy(parameter));
    let payload = parts.next().unwrap_or_default();
    let Ok(expression) = Expression::query(&text) else { return };
    assert!(expression.text().len() <= limits::EXPRESSION_MAX_BYTES);
    assert!(expression.comparisons() <= limits::COMPARISONS_MAX);
    let parameters = [&*parameter, "2", "'x%'"];
    if let Ok(Some(order)) = Order::new(&expression, &Sample::DESCRIPTION) {
        assert!(order.compare(payload, payload).is_eq());
    }
    let Ok(filter) = Filter::new(&expression, &Sample::DESCRIPTION, &parameters) else { return };
    let result = filter.evaluate(payload);
    if let Ok(sample) = weir_cdr::from_payload::<Sample>(payload) {
        same_in_each_encoding(&filter, &sample, payload, result);
    }
    let property = ContentFilterProperty::sql(
        "filtered".to_owned(),
        "topic".to_owned(),
        text.into_owned(),
        parameters.map(str::to_owned).to_vec(),
    );
    if let Some(applied) = property.filter(&Sample::DESCRIPTION) {
        assert_eq!(applied.evaluate(payload), result, "writers and readers agree");
    }
}

/// What can be decoded has the same result in each encoding. `of_payload`: the result for the payload as it was
/// received, which may differ in form: strings in ISO 8859-1, or fewer members.
fn same_in_each_encoding(filter: &Filter, sample: &Sample, payload: &[u8], of_payload: Option<bool>) {
    let results = [Encoding::Xcdr1, Encoding::Xcdr2].map(|encoding| {
        let mut encoded = Vec::new();
        weir_cdr::to_payload_in(sample, encoding, &mut encoded).expect("what was decoded can be encoded");
        let result = filter.evaluate(&encoded);
        assert!(result.is_some(), "a whole sample can be evaluated");
        if encoded == payload {
            assert_eq!(result, of_payload, "{encoding:?}");
        }
        result
    });
    assert_eq!(results[0], results[1]);
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let part = Part { weight: 0.5, name: "wheel".into() };
    let sample = Sample {
        color: "RED".into(),
        x: -5,
        kind: Kind::B,
        maybe: Some(7),
        parts: vec![part.clone(), part],
        grid: [[1, 2], [3, 4]],
        truth: true,
        ratio: 1.5,
        big: u64::MAX,
    };
    let mut payload = Vec::new();
    weir_cdr::to_payload_in(&sample, Encoding::Xcdr2, &mut payload).expect("a seed can be encoded");
    let seed = |text: &str, parameter: &str| {
        [text.as_bytes(), b"\0", parameter.as_bytes(), b"\0", &payload].concat()
    };
    vec![
        ("comparison", seed("color = 'RED' AND (x < %0 OR NOT x >= 0x1F)", "10")),
        ("between", seed("x NOT BETWEEN -1 AND %1 AND ratio BETWEEN .5 AND 1.5e1", "")),
        ("like", seed("color LIKE %0 AND parts[0].name LIKE '%h_e%'", "'R%'")),
        ("members", seed("parts[1].weight > grid[1][0] OR maybe = 7 OR kind = 'B' AND truth = TRUE", "")),
        ("order", seed("big <> 18446744073709551615 ORDER BY color, parts[0].weight, x", "")),
    ]
}

/// A type with all kinds of members.
#[derive(Debug, Clone, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Sample {
    #[dds(max_len = 16)]
    color: String,
    x: i32,
    kind: Kind,
    maybe: Option<i16>,
    parts: Vec<Part>,
    grid: [[u16; 2]; 2],
    truth: bool,
    ratio: f32,
    big: u64,
}

#[derive(Debug, Clone, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Part {
    weight: f64,
    name: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, DdsType)]
#[dds(bit_bound = 16)]
enum Kind {
    #[default]
    A = 1,
    B = 2,
}
