//! Random conditions on random samples, compared with an evaluator that is written for clarity: on decoded values, with
//! the three truth values of SQL, and a LIKE that tries everything.

use proptest::prelude::*;
use weir_cdr::CdrValue;
use weir_filter::{Expression, Filter};

use crate::sample::{Colour, Inner, Part, Sample, payloads};

/// The value of a member.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

const NUMBERS: [&str; 12] = [
    "byte",
    "small",
    "number",
    "maybe",
    "big",
    "exact",
    "inner.a",
    "grid[1][1]",
    "list[1]",
    "parts[0].weight",
    "pair[1].weight",
    "colour",
];
const TEXTS: [&str; 4] = ["name", "inner.label", "parts[0].name", "last.name"];

fn member(sample: &Sample, name: &str) -> Option<Value> {
    Some(Value::Number(match name {
        "byte" => sample.byte.into(),
        "small" => sample.small.into(),
        "number" => sample.number.into(),
        "maybe" => sample.maybe? as f64,
        "big" => sample.big as f64,
        "exact" => sample.exact,
        "inner.a" => sample.inner.a.into(),
        "grid[1][1]" => sample.grid[1][1].into(),
        "list[1]" => (*sample.list.get(1)?).into(),
        "parts[0].weight" => sample.parts.first()?.weight,
        "pair[1].weight" => sample.pair[1].weight,
        "colour" => sample.colour as i32 as f64,
        text => {
            return Some(Value::Text(match text {
                "name" => sample.name.clone(),
                "inner.label" => sample.inner.label.clone(),
                "parts[0].name" => sample.parts.first()?.name.clone(),
                _ => sample.last.name.clone(),
            }));
        }
    }))
}

#[derive(Debug, Clone)]
enum Condition {
    Number(usize, usize, i32),
    Text(usize, usize, String),
    Members(usize, usize, usize),
    Between(usize, bool, i32, i32),
    Like(usize, bool, String),
    Not(Box<Self>),
    And(Vec<Self>),
    Or(Vec<Self>),
}

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Members that can be compared with each other: enumerations only with integers.
const COMPARABLE: usize = 11;

fn condition() -> impl Strategy<Value = Condition> {
    let text = || "[ab]{0,3}";
    let leaf = prop_oneof![
        (0..NUMBERS.len(), 0..6_usize, -4..5).prop_map(|(at, op, value)| Condition::Number(at, op, value)),
        (0..TEXTS.len(), 0..6_usize, text()).prop_map(|(at, op, value)| Condition::Text(at, op, value)),
        (0..COMPARABLE, 0..6_usize, 0..COMPARABLE)
            .prop_map(|(one, op, other)| Condition::Members(one, op, other)),
        (0..NUMBERS.len(), any::<bool>(), -4..5, -4..5)
            .prop_map(|(at, is_not, low, high)| Condition::Between(at, is_not, low, high)),
        (0..TEXTS.len(), any::<bool>(), "[ab_%ü]{0,5}")
            .prop_map(|(at, is_not, pattern)| Condition::Like(at, is_not, pattern)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|it| Condition::Not(Box::new(it))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Condition::And),
            prop::collection::vec(inner, 2..4).prop_map(Condition::Or),
        ]
    })
}

fn text_of(condition: &Condition) -> String {
    let not = |is_not: &bool| if *is_not { "NOT " } else { "" };
    let join = |conditions: &[Condition], word: &str| {
        let parts: Vec<_> = conditions.iter().map(|it| format!("({})", text_of(it))).collect();
        parts.join(word)
    };
    match condition {
        Condition::Number(at, op, value) => format!("{} {} {value}", NUMBERS[*at], OPERATORS[*op]),
        Condition::Text(at, op, value) => format!("'{value}' {} {}", OPERATORS[*op], TEXTS[*at]),
        Condition::Members(one, op, other) => {
            format!("{} {} {}", NUMBERS[*one], OPERATORS[*op], NUMBERS[*other])
        }
        Condition::Between(at, is_not, low, high) => {
            format!("{} {}BETWEEN {low} AND {high}", NUMBERS[*at], not(is_not))
        }
        Condition::Like(at, is_not, pattern) => format!("{} {}LIKE '{pattern}'", TEXTS[*at], not(is_not)),
        Condition::Not(inner) => format!("NOT ({})", text_of(inner)),
        Condition::And(all) => join(all, " AND "),
        Condition::Or(any) => join(any, " OR "),
    }
}

/// `None`: unknown.
fn evaluate(condition: &Condition, sample: &Sample) -> Option<bool> {
    match condition {
        Condition::Number(at, op, value) => {
            compare(*op, &member(sample, NUMBERS[*at])?, &Value::Number((*value).into()))
        }
        Condition::Text(at, op, value) => {
            compare(*op, &Value::Text(value.clone()), &member(sample, TEXTS[*at])?)
        }
        Condition::Members(one, op, other) => {
            compare(*op, &member(sample, NUMBERS[*one])?, &member(sample, NUMBERS[*other])?)
        }
        Condition::Between(at, is_not, low, high) => {
            let Value::Number(value) = member(sample, NUMBERS[*at])? else { return None };
            Some((f64::from(*low) <= value && value <= f64::from(*high)) != *is_not)
        }
        Condition::Like(at, is_not, pattern) => {
            let Value::Text(text) = member(sample, TEXTS[*at])? else { return None };
            let (pattern, text): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
            Some(is_like(&pattern, &text) != *is_not)
        }
        Condition::Not(inner) => evaluate(inner, sample).map(|it| !it),
        Condition::And(all) => {
            let results: Vec<_> = all.iter().map(|it| evaluate(it, sample)).collect();
            if results.contains(&Some(false)) {
                Some(false)
            } else {
                results.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Condition::Or(any) => {
            let results: Vec<_> = any.iter().map(|it| evaluate(it, sample)).collect();
            if results.contains(&Some(true)) {
                Some(true)
            } else {
                results.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
    }
}

fn compare(operator: usize, one: &Value, other: &Value) -> Option<bool> {
    let ordering = match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.partial_cmp(other)?,
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => return None,
    };
    Some(match OPERATORS[operator] {
        "=" => ordering.is_eq(),
        "<>" => ordering.is_ne(),
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        _ => ordering.is_ge(),
    })
}

fn is_like(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('%', rest)) => (0..=text.len()).any(|skip| is_like(rest, &text[skip..])),
        Some((first, rest)) => {
            text.first().is_some_and(|it| *first == '_' || first == it) && is_like(rest, &text[1..])
        }
    }
}

fn sample() -> impl Strategy<Value = Sample> {
    let text = || "[abü]{0,4}";
    let part = || (-3..4_i32, text()).prop_map(|(weight, name)| Part { weight: weight.into(), name });
    let numbers = (0..4_u8, -3..4_i16, -3..4_i32, prop::option::of(-3..4_i64), 0..4_u64, -3..4_i8);
    let parts = (prop::collection::vec(part(), 0..3), part(), part());
    let rest = (prop::collection::vec(-3..4_i32, 0..4), text(), text(), any::<bool>(), 0..3_usize, -3..4_i16);
    (numbers, parts, rest).prop_map(
        |(
            (byte, small, number, maybe, big, a),
            (parts, second, last),
            (list, name, label, flag, colour, cell),
        )| Sample {
            byte,
            exact: f64::from(small) / 2.0,
            small,
            grid: [[9, 9], [9, cell], [9, 9]],
            inner: Inner { a, label, exact: 0.5 },
            flag,
            colour: [Colour::Red, Colour::Green, Colour::Blue][colour],
            number,
            maybe,
            big,
            ratio: 0.0,
            list,
            parts,
            pair: [Part::default(), second],
            map: [(1, 2), (3, 4)].into_iter().take(colour).collect(),
            name,
            last,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_agrees_with_the_reference(condition in condition(), sample in sample()) {
        let text = text_of(&condition);
        let expression = Expression::filter(&text).unwrap();
        let filter = Filter::new::<&str>(&expression, &Sample::DESCRIPTION, &[]).unwrap();
        let expected = evaluate(&condition, &sample) == Some(true);
        for payload in payloads(&sample) {
            prop_assert_eq!(filter.evaluate(&payload), Some(expected), "{} on {:?}", text, sample);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        let _ = Expression::query(&text);
    }

    #[test]
    fn words_in_any_order_are_parsed_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "byte", "name", "NOT", "AND", "OR", "(", ")", "=", "<", "LIKE", "BETWEEN", "1", "'a%'", "%0", "ORDER",
                "BY", ",", "inner.a", "list[1]", "TRUE", "-1.5e3",
            ]),
            0..20,
        ),
        junk in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let Ok(expression) = Expression::query(&words.join(" ")) else { return Ok(()) };
        if let Ok(filter) = Filter::new(&expression, &Sample::DESCRIPTION, &["1"]) {
            let _ = filter.passes(&junk);
        }
    }
}
