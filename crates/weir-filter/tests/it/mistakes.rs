//! Expressions that cannot be used: the place, the cause, and what to do.

use weir_cdr::CdrValue;
use weir_filter::{Expression, Filter, Order, Place, limits};

use crate::sample::Sample;

fn parse_error(text: &str) -> String {
    Expression::query(text).map(|expression| format!("{expression:?}")).unwrap_err().to_string()
}

fn bind_error(text: &str, parameters: &[&str]) -> String {
    let expression = Expression::filter(text).unwrap();
    Filter::new(&expression, &Sample::DESCRIPTION, parameters).map(drop).unwrap_err().to_string()
}

#[test]
fn mistakes_in_the_syntax_are_reported_with_their_place() {
    for (text, expected) in [
        ("", "character 1 of the expression: it is empty: write a condition, such as x > 10"),
        ("   ", "character 4 of the expression: it is empty: write a condition, such as x > 10"),
        (
            "x",
            "character 2 of the expression: an operator is expected here: =, <>, <, <=, >, >=, LIKE or BETWEEN",
        ),
        ("x =", "character 4 of the expression: a member's name, a value or a parameter is expected here"),
        ("x == 1", "character 4 of the expression: a member's name, a value or a parameter is expected here"),
        ("x => 1", "character 4 of the expression: a member's name, a value or a parameter is expected here"),
        ("1 = 2", "character 1 of the expression: one side of a comparison must be a member's name"),
        ("x = 'RED", "character 5 of the expression: the text has no closing quote: end it with '"),
        ("x = 'a\nb'", "character 5 of the expression: the text has no closing quote: end it with '"),
        ("x = \"RED\"", "character 5 of the expression: write texts in single quotes: 'RED'"),
        (
            "x >< 1",
            "character 3 of the expression: unknown operator \"><\": write =, <>, <, <=, >, >=, LIKE or BETWEEN",
        ),
        ("x = 1 y = 2", "character 7 of the expression: AND, OR or the end is expected here"),
        ("(x = 1", "character 7 of the expression: AND, OR or ) is expected here"),
        ("x = 1)", "character 6 of the expression: AND, OR or the end is expected here"),
        (
            "x BETWEEN 1 OR 2",
            "character 13 of the expression: AND and the upper limit must follow: x BETWEEN 1 AND 5",
        ),
        (
            "x BETWEEN y AND 2",
            "character 11 of the expression: a value or a parameter must follow BETWEEN, such as 10, 'RED' or %0",
        ),
        ("5 BETWEEN 1 AND 2", "character 1 of the expression: a member's name must precede LIKE and BETWEEN"),
        ("x NOT = 1", "character 7 of the expression: LIKE or BETWEEN must follow NOT here"),
        (
            "x LIKE y",
            "character 8 of the expression: a value or a parameter must follow LIKE, such as 10, 'RED' or %0",
        ),
        ("x = %100", "character 5 of the expression: a parameter is written %0 to %99"),
        ("x = %", "character 5 of the expression: a parameter is written %0 to %99"),
        ("x = 0x", "character 5 of the expression: a hexadecimal number is 0x and 1 to 16 digits"),
        ("x = 12ab", "character 5 of the expression: a number is written 12, -12, 0x1F, 1.5 or 1.5e-3"),
        ("x = 1.5e", "character 5 of the expression: a number is written 12, -12, 0x1F, 1.5 or 1.5e-3"),
        (
            "x = 99999999999999999999",
            "character 5 of the expression: the number has more than 64 bits: write it as 1.0e20",
        ),
        ("a. = 1", "character 3 of the expression: a member's name must follow the dot"),
        ("a[x] = 1", "character 3 of the expression: an index is a number from 0 on, followed by ]"),
        ("a[1 = 1", "character 3 of the expression: an index is a number from 0 on, followed by ]"),
        (
            "é = 1",
            "character 1 of the expression: unexpected 'é': write =, <>, <, <=, >, >=, LIKE or BETWEEN",
        ),
        (
            "x = 'é' AND",
            "character 12 of the expression: a member's name, a value or a parameter is expected here",
        ),
        ("ORDER x", "character 7 of the expression: BY must follow ORDER"),
        ("ORDER BY 1", "character 10 of the expression: a member's name is expected here"),
    ] {
        assert_eq!(parse_error(text), expected, "{text:?}");
    }
    let ordered = Expression::filter("x = 1 ORDER BY y").unwrap_err();
    assert_eq!(ordered.place(), Place::Character(16));
    assert_eq!(ordered.cause(), "a filter cannot order samples: remove ORDER BY, or use a query");
}

#[test]
fn every_bound_is_enforced() {
    let over = |text: String| parse_error(&text);
    let long = "x = 1".to_owned() + &" ".repeat(limits::EXPRESSION_MAX_BYTES);
    assert_eq!(over(long), "the expression: 4101 bytes, at most 4096 are supported");
    let deep = "(".repeat(33) + "x = 1" + &")".repeat(33);
    assert!(over(deep).contains("parentheses and NOTs are nested more than 32 deep"));
    assert!(over("NOT ".repeat(33) + "x = 1").contains("nested more than 32 deep"));
    let deepest = "(".repeat(32) + "x = 1" + &")".repeat(32);
    assert!(Expression::filter(&deepest).is_ok());
    // Depth counts what is open, not what was.
    assert!(Expression::filter(&vec!["(x = 1)"; 100].join(" AND ")).is_ok());
    let many = vec!["x = 1"; limits::COMPARISONS_MAX].join(" OR ");
    assert_eq!(Expression::filter(&many).unwrap().comparisons(), limits::COMPARISONS_MAX);
    assert!(over(many + " OR x = 1").contains("more than 256 comparisons"));
    assert!(over("a".to_owned() + &".a".repeat(16) + " = 1").contains("the name has more than 16 parts"));
    let order = "ORDER BY ".to_owned() + &vec!["x"; 17].join(",");
    assert!(over(order).contains("ORDER BY has more than 16 members"));
    let wide = format!("name LIKE '%{}%'", "a".repeat(65));
    assert!(bind_error(&wide, &[]).contains("more than 64 bytes between two %"));
    let parts = format!("name LIKE '{}%'", "%a".repeat(65));
    assert!(bind_error(&parts, &[]).contains("more than 64 parts between two %"));
    let long = "a".repeat(257);
    assert_eq!(bind_error("name = %0", &[&long]), "parameter %0: 257 bytes, at most 256 are supported");
    assert!(bind_error("name = %0", &["a"; 101]).contains("101 parameters were given, at most 100"));
}

#[test]
fn members_and_values_that_do_not_fit_the_type_are_named() {
    let members = "byte, exact, small, grid, inner, flag, colour, number, maybe, big, ratio, list, parts, pair, map, \
                   name, last";
    assert_eq!(
        bind_error("numbr = 1", &[]),
        format!(
            "character 1 of the expression: type demo::Sample has no member numbr: its members are {members}; write a \
             text in single quotes"
        )
    );
    assert!(
        bind_error("inner.b = 1", &[])
            .contains("type Inner has no member b: its members are a, label, exact")
    );
}

#[test]
fn values_that_do_not_fit_the_member_are_named() {
    for (text, parameters, expected) in [
        (
            "number = 'RED'",
            &[][..],
            "character 10 of the expression: number is an integer and cannot be compared with the text \"RED\": \
             write a number, such as 10 or 0x1F",
        ),
        (
            "number = %0",
            &["RED"],
            "parameter %0: number is an integer and cannot be compared with the text \"RED\": write a number, such \
             as 10 or 0x1F",
        ),
        (
            "name = 5",
            &[],
            "character 8 of the expression: name is a string and cannot be compared with the number 5: write a text \
             in single quotes, such as 'RED'",
        ),
        (
            "flag = 2",
            &[],
            "character 8 of the expression: flag is a boolean and cannot be compared with the number 2: write TRUE \
             or FALSE",
        ),
        (
            "ratio > TRUE",
            &[],
            "character 9 of the expression: ratio is a floating-point number and cannot be compared with TRUE: write \
             a number, such as 1.5",
        ),
        (
            "byte = 'ab'",
            &[],
            "character 8 of the expression: byte is an integer and cannot be compared with the text \"ab\": write a \
             number, or a character such as 'A'",
        ),
        (
            "colour = 'PINK'",
            &[],
            "character 10 of the expression: colour is an enumeration and cannot be compared with the text \"PINK\": \
             write one of 'Red', 'Green', 'Blue'",
        ),
    ] {
        assert_eq!(bind_error(text, parameters), expected, "{text:?}");
    }
}

#[test]
fn members_that_cannot_be_compared_are_named() {
    for (text, parameters, expected) in [
        (
            "number LIKE 'a%'",
            &[][..],
            "character 1 of the expression: number is an integer: LIKE needs a string",
        ),
        (
            "name = number",
            &[],
            "character 1 of the expression: name is a string and cannot be compared with number, an integer",
        ),
        (
            "inner = 1",
            &[],
            "character 1 of the expression: inner is a struct and cannot be compared: name one of its members, as in \
             a.b",
        ),
        (
            "list = 1",
            &[],
            "character 1 of the expression: list is a sequence and cannot be compared: name an element, as in a[0]",
        ),
        (
            "map = 1",
            &[],
            "character 1 of the expression: map is a union, a map or an opaque type and cannot be compared: use \
             another member",
        ),
        ("number.x = 1", &[], "character 1 of the expression: number.x: an i32 has no member x"),
        ("number[0] = 1", &[], "character 1 of the expression: number[0]: an i32 has no elements"),
        (
            "grid[3][0] = 1",
            &[],
            "character 1 of the expression: grid[3][0]: the array has 3 elements, counted from 0",
        ),
        ("number = %2", &["1"], "the expression: it needs %0 to %2, and 1 parameters were given"),
    ] {
        assert_eq!(bind_error(text, parameters), expected, "{text:?}");
    }
    let order = Expression::query("ORDER BY inner").unwrap();
    assert!(Order::new(&order, &Sample::DESCRIPTION).is_err());
}
