//! What expressions mean, by examples.

use core::cmp::Ordering;

use weir_cdr::{CdrValue, DdsType, Encoding, Endianness};
use weir_filter::{Expression, Filter, Order};

use crate::sample::{Colour, Inner, Part, Sample, payload, payloads};

fn part(weight: f64, name: &str) -> Part {
    Part { weight, name: name.to_owned() }
}

fn example() -> Sample {
    Sample {
        byte: b'A',
        exact: 0.1,
        small: -300,
        grid: [[1, 2], [3, 4], [5, 6]],
        inner: Inner { a: -1, label: "it's".to_owned(), exact: 1e300 },
        flag: true,
        colour: Colour::Blue,
        number: i32::MIN,
        maybe: None,
        big: u64::MAX,
        ratio: 0.1,
        list: vec![10, 20, 30],
        parts: vec![part(1.5, "wheel"), part(2.5, "door")],
        pair: [part(3.5, "left"), part(4.5, "right")],
        map: [(1, 2)].into(),
        name: "grün".to_owned(),
        last: part(f64::NAN, ""),
    }
}

fn passes(sample: &Sample, text: &str, parameters: &[&str]) -> bool {
    let expression = Expression::filter(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let filter = Filter::new(&expression, &Sample::DESCRIPTION, parameters)
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    let results: Vec<_> = payloads(sample).iter().map(|payload| filter.evaluate(payload).unwrap()).collect();
    assert!(results.iter().all(|result| *result == results[0]), "{text}: {results:?}");
    results[0]
}

#[test]
fn expressions_mean_what_sql_says() {
    let sample = example();
    for text in [
        "byte = 65",
        "byte = 0x41",
        "byte = 'A'",
        "65 = byte",
        "64 < byte AND byte < 66",
        "small = -300",
        "small < -299.5",
        "small >= -0x12C",
        "number < -2147483647",
        "number = -2147483648",
        "big = 18446744073709551615",
        "big > 9223372036854775808",
        "big >= 0xFFFFFFFFFFFFFFFF",
        "exact = 0.1",
        "exact = 1e-1",
        "ratio = 0.1",
        "ratio BETWEEN .05 AND .15",
        "ratio <> exact",
        "flag = TRUE",
        "flag = true",
        "flag = 1",
        "flag <> FALSE",
        "colour = 'Blue'",
        "colour <> 'Red'",
        "colour < 'Red'",
        "colour = -3",
        "inner.a = -1",
        "inner.label = 'it''s'",
        "inner.label = `it''s'",
        "inner.exact > 1e299",
        "inner.a < byte",
        "grid[0][0] = 1 AND grid[2][1] = 6",
        "grid[0x1][1] = 4",
        "list[0] = 10 AND list[2] = 30",
        "parts[1].weight = 2.5 AND parts[1].name = 'door'",
        "pair[0].weight = 3.5 AND pair[1].name = 'right'",
        "name = 'grün'",
        "name LIKE 'gr_n'",
        "name LIKE '%n'",
        "name NOT LIKE 'x%'",
        "name > 'gra' AND name < 'h'",
        "name BETWEEN 'a' AND 'z'",
        "byte NOT BETWEEN 1 AND 10",
        "byte BETWEEN 65 AND 65",
        "byte != 1",
        "NOT byte = 1",
        "NOT (byte = 1 OR flag = FALSE)",
        "byte = 1 AND flag = TRUE OR small < 0",
        "byte = 65 or flag = false and small > 0",
        "not not byte = 65",
        "not byte = 1 and flag = TRUE",
        "last.name = ''",
    ] {
        assert!(passes(&sample, text, &[]), "{text}");
        assert!(!passes(&sample, &format!("NOT ({text})"), &[]), "NOT ({text})");
    }
}

#[test]
fn a_comparison_with_what_has_no_value_fails_and_so_does_its_opposite() {
    let sample = example();
    for text in ["maybe = 0", "maybe <> 0", "maybe BETWEEN -9 AND 9", "list[3] = 0", "parts[2].name LIKE '%'"]
    {
        assert!(!passes(&sample, text, &[]), "{text}");
        assert!(!passes(&sample, &format!("NOT ({text})"), &[]), "NOT ({text})");
        assert!(passes(&sample, &format!("{text} OR flag = TRUE"), &[]), "{text}");
        assert!(!passes(&sample, &format!("{text} AND flag = TRUE"), &[]), "{text}");
    }
    let sample = Sample { maybe: Some(-5), ..sample };
    assert!(passes(&sample, "maybe = -5 AND maybe > small", &[]));
    // NaN is not equal to anything, and neither less nor greater.
    assert!(passes(&sample, "last.weight <> 1.0 AND NOT last.weight = 1.0 AND NOT last.weight < 1.0", &[]));
    assert!(!passes(&sample, "last.weight < 1.0 OR last.weight >= 1.0 OR last.weight = last.weight", &[]));
}

#[test]
fn parameters_are_literals_or_texts_without_quotes() {
    let sample = example();
    for (text, parameters) in [
        ("byte = %0", &["65"][..]),
        ("byte = %0", &["'A'"]),
        ("byte = %0", &["A"]),
        ("byte BETWEEN %1 AND %0", &["0x42", "0x40"]),
        ("name = %0", &["'grün'"]),
        ("name = %0", &["grün"]),
        ("name LIKE %0", &["gr%"]),
        ("name LIKE %0", &["'gr%'"]),
        ("colour = %0", &["'Blue'"]),
        ("colour = %0", &["Blue"]),
        ("colour = %0", &["-3"]),
        ("flag = %0", &["TRUE"]),
        ("exact = %0", &["0.1"]),
        ("%0 = byte AND %0 = byte", &["65", "unused"]),
        ("%10 = byte", &["", "", "", "", "", "", "", "", "", "", "65"]),
    ] {
        assert!(passes(&sample, text, parameters), "{text} {parameters:?}");
    }
    let digits = Sample { name: "123".to_owned(), ..sample };
    assert!(passes(&digits, "name = %0", &["123"]));
}

/// An earlier version of types that begin with an `id`.
#[derive(Default, DdsType)]
#[dds(extensibility = "appendable")]
struct OldId {
    id: u8,
}

/// Evaluates a filter on a sample of an earlier version of the type.
fn evaluate_as<New: DdsType>(old: &impl DdsType, text: &str) -> Option<bool> {
    let mut payload = Vec::new();
    weir_cdr::to_payload_in(old, Encoding::Xcdr2, &mut payload).unwrap();
    let expression = Expression::filter(text).unwrap();
    Filter::new::<&str>(&expression, &New::DESCRIPTION, &[]).unwrap().evaluate(&payload)
}

#[test]
fn members_that_an_older_writer_does_not_have_are_at_their_defaults() {
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct New {
        id: u8,
        count: u32,
        name: String,
        colour: Colour,
    }
    let check = |text: &str| evaluate_as::<New>(&OldId { id: 7 }, text);
    assert_eq!(check("id = 7 AND count = 0 AND name = '' AND colour = 'Red'"), Some(true));
    assert_eq!(check("count > 0"), Some(false));
}

#[test]
fn optional_members_and_elements_that_an_older_writer_does_not_have_have_no_value() {
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct New {
        id: u8,
        text: String,
        maybe: Option<u32>,
        list: Vec<u32>,
        pair: [Maybe; 2],
    }
    #[derive(Default, DdsType)]
    #[dds(extensibility = "final")]
    struct Maybe {
        number: u8,
        maybe: Option<u32>,
    }
    let check = |text: &str| evaluate_as::<New>(&OldId { id: 7 }, text);
    for absent in ["maybe", "list[0]", "pair[1].maybe"] {
        assert_eq!(check(&format!("{absent} = 0")), Some(false), "{absent}");
        assert_eq!(check(&format!("{absent} <> 0")), Some(false), "{absent}");
    }
    assert_eq!(check("pair[1].number = 0 AND text = ''"), Some(true));
}

#[test]
fn elements_of_an_older_writer_are_found() {
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct ItemOld {
        a: u8,
    }
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Old {
        items: Vec<ItemOld>,
    }
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct ItemNew {
        a: u8,
        b: [u64; 4],
    }
    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable")]
    struct New {
        items: Vec<ItemNew>,
    }
    let old = Old { items: vec![ItemOld { a: 1 }, ItemOld { a: 2 }] };
    let check = |text: &str| evaluate_as::<New>(&old, text);
    assert_eq!(check("items[1].a = 2"), Some(true));
    assert_eq!(
        check("items[1].b[3] = 0"),
        Some(true),
        "the default of a member that the element does not have"
    );
    assert_eq!(check("items[2].a = 0"), Some(false));
}

#[test]
fn strings_in_iso_8859_1_are_compared_by_characters() {
    #[derive(Default, DdsType)]
    #[dds(extensibility = "final")]
    struct Names {
        one: String,
        other: String,
    }
    // "grün" in ISO 8859-1, and in UTF-8.
    let payload =
        [&[0, 1, 0, 0, 5, 0, 0, 0, b'g', b'r', 0xfc, b'n', 0, 0, 0, 0, 6, 0, 0, 0][..], "grün\0".as_bytes()]
            .concat();
    let value: Names = weir_cdr::from_payload(&payload).unwrap();
    assert_eq!((&*value.one, &*value.other), ("grün", "grün"));
    for (text, expected) in [
        ("one = 'grün'", true),
        ("'grün' <> one", false),
        ("one > 'gr\u{fb}n' AND one < 'gr\u{fd}n'", true),
        ("one = other AND other >= one", true),
        ("one LIKE 'gr_n' AND one LIKE '%ün'", true),
        ("one LIKE 'gr__n'", false),
    ] {
        let expression = Expression::filter(text).unwrap();
        let filter = Filter::new::<&str>(&expression, &Names::DESCRIPTION, &[]).unwrap();
        assert_eq!(filter.evaluate(&payload), Some(expected), "{text}");
    }
}

#[test]
fn payloads_that_cannot_be_read_pass() {
    let expression = Expression::filter("number = 5").unwrap();
    let filter = Filter::new::<&str>(&expression, &Sample::DESCRIPTION, &[]).unwrap();
    let whole = payload(&example(), Encoding::Xcdr1, Endianness::Little);
    assert!(!filter.passes(&whole));
    for unreadable in
        [&[][..], &[0, 1], &[0, 1, 0, 0], &[0, 3, 0, 0, 1, 2, 3, 4], &[0, 7, 0, 0], &whole[..40]]
    {
        assert_eq!(filter.evaluate(unreadable), None);
        assert!(filter.passes(unreadable));
    }
}

#[test]
fn samples_are_ordered_by_members_in_turn() {
    let order = |text: &str| {
        let expression = Expression::query(text).unwrap();
        Order::new(&expression, &Sample::DESCRIPTION).unwrap().unwrap()
    };
    let compare = |text: &str, one: &Sample, other: &Sample| {
        let order = order(text);
        let results: Vec<_> = payloads(one)
            .iter()
            .flat_map(|one| payloads(other).into_iter().map(|other| (one.clone(), other)))
            .map(|(one, other)| {
                assert_eq!(order.compare(&one, &other), order.compare(&other, &one).reverse());
                order.compare(&one, &other)
            })
            .collect();
        assert!(results.iter().all(|result| *result == results[0]));
        results[0]
    };
    let one = example();
    let other = Sample { number: 5, name: "a".to_owned(), maybe: Some(1), ..example() };
    assert_eq!(compare("ORDER BY byte, number", &one, &other), Ordering::Less);
    assert_eq!(compare("order by name", &one, &other), Ordering::Greater);
    assert_eq!(compare("byte = 1 ORDER BY byte, small", &one, &other), Ordering::Equal);
    assert_eq!(compare("ORDER BY maybe", &one, &other), Ordering::Less);
    assert_eq!(compare("ORDER BY last.weight", &one, &other), Ordering::Equal);
    let number = Sample { last: part(1.0, ""), ..example() };
    assert_eq!(compare("ORDER BY last.weight", &one, &number), Ordering::Less);
    let whole = &payloads(&one)[0];
    assert_eq!(order("ORDER BY byte").compare(&[], whole), Ordering::Less);
    let none = Order::new(&Expression::query("byte = 1").unwrap(), &Sample::DESCRIPTION).unwrap();
    assert!(none.is_none());
}
