//! Decides whether a writer's offer satisfies a reader's request: policies (RxO) and partitions.
//!
//! Topic and type names, keyedness and addresses are compared where endpoints are matched
//! (`participant/matching.rs`). Stateless.

use alloc::string::String;

use crate::qos::{PolicyId, PolicySet, Qos, XCDR1};

/// Compares every requested-versus-offered policy (DDS 1.4, 2.2.3, column RxO; XTypes 1.3,
/// 7.6.3.1).
///
/// # Errors
/// All incompatible policies. DDS reports them in the incompatible-QoS statuses of both sides.
pub fn check(offered: &Qos, requested: &Qos) -> Result<(), PolicySet> {
    let fits = [
        (PolicyId::Reliability, offered.reliability >= requested.reliability),
        (PolicyId::Durability, offered.durability >= requested.durability),
        (PolicyId::Deadline, offered.deadline <= requested.deadline),
        (PolicyId::LatencyBudget, offered.latency_budget <= requested.latency_budget),
        (PolicyId::Ownership, offered.ownership == requested.ownership),
        (
            PolicyId::Liveliness,
            offered.liveliness.kind >= requested.liveliness.kind
                && offered.liveliness.lease <= requested.liveliness.lease,
        ),
        (PolicyId::DestinationOrder, offered.destination_order >= requested.destination_order),
        (PolicyId::Presentation, presentation_fits(offered, requested)),
        (PolicyId::DataRepresentation, representation_fits(offered, requested)),
        // No descriptions of types are exchanged, so there is nothing to validate (XTypes 1.3, 7.6.3.7.2).
        (PolicyId::TypeConsistencyEnforcement, !requested.type_consistency.force_type_validation),
    ];
    let failing: PolicySet = fits.iter().filter(|(_, fits)| !fits).map(|(policy, _)| *policy).collect();
    if failing.is_empty() { Ok(()) } else { Err(failing) }
}

/// Returns whether two lists of partitions have one in common (DDS 1.4, 2.2.3.13). No status
/// reports a difference.
///
/// An empty list is the partition `""`. A name with `*`, `?` or `[` is a pattern and is only
/// compared with names that are not: two patterns never match, even if they are equal.
#[must_use]
pub fn partitions_match(a: &[String], b: &[String]) -> bool {
    let default = [String::new()];
    let a = if a.is_empty() { &default } else { a };
    let b = if b.is_empty() { &default } else { b };
    a.iter().any(|a| b.iter().any(|b| names_match(a, b)))
}

/// Matches a name as `fnmatch(3)` without flags: `*`, `?`, `[a-z]`, `[!a-z]` and `\` to escape the
/// next character.
///
/// Takes at most `pattern.len() * name.len()` steps, whatever a peer sends.
#[must_use]
pub fn fnmatch(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // Where to continue after a failed attempt: behind the last `*`, with one more character
    // assigned to it.
    let mut retry: Option<(&str, &str)> = None;
    while let Some((c, rest)) = split_first(name) {
        if let Some(after_star) = pattern.strip_prefix('*') {
            pattern = after_star;
            retry = Some((after_star, rest));
        } else if let Some(next) = match_one(pattern, c) {
            (pattern, name) = (next, rest);
        } else if let Some((after_star, from)) = retry {
            (pattern, name) = (after_star, from);
            retry = Some((after_star, split_first(from).map_or("", |(_, rest)| rest)));
        } else {
            return false;
        }
    }
    pattern.chars().all(|c| c == '*')
}

fn presentation_fits(offered: &Qos, requested: &Qos) -> bool {
    let (offered, requested) = (&offered.presentation, &requested.presentation);
    offered.scope >= requested.scope
        && (offered.coherent_access || !requested.coherent_access)
        && (offered.ordered_access || !requested.ordered_access)
}

/// Only the writer's first representation counts: it is the one that it writes.
fn representation_fits(offered: &Qos, requested: &Qos) -> bool {
    let offered = offered.representation.first().copied().unwrap_or(XCDR1);
    if requested.representation.is_empty() {
        offered == XCDR1
    } else {
        requested.representation.contains(&offered)
    }
}

fn names_match(a: &str, b: &str) -> bool {
    match (is_pattern(a), is_pattern(b)) {
        (true, false) => fnmatch(a, b),
        (false, true) => fnmatch(b, a),
        (false, false) => a == b,
        (true, true) => false,
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

fn split_first(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    Some((chars.next()?, chars.as_str()))
}

/// Matches one character against the first element of a pattern; returns the rest of the pattern if it matches.
fn match_one(pattern: &str, c: char) -> Option<&str> {
    let (first, rest) = split_first(pattern)?;
    let (literal, rest) = match first {
        '?' => return Some(rest),
        '[' => match match_bracket(rest, c) {
            Some((fits, rest)) => return fits.then_some(rest),
            // Without a closing bracket it is an ordinary character.
            None => (first, rest),
        },
        '\\' => split_first(rest).unwrap_or((first, rest)),
        _ => (first, rest),
    };
    (literal == c).then_some(rest)
}

/// Matches a bracket expression, of which `inner` is what is behind its opening bracket: whether `c` matches, and what
/// is behind it. `None`: never closed.
fn match_bracket(inner: &str, c: char) -> Option<(bool, &str)> {
    let without_sign = inner.strip_prefix(['!', '^']);
    let (negated, first) = (without_sign.is_some(), without_sign.unwrap_or(inner));
    let (mut fits, mut at) = (false, first);
    loop {
        let (mut low, mut next) = split_first(at)?;
        // A `]` in the first position is an ordinary member.
        if low == ']' && at.len() < first.len() {
            return Some((fits != negated, next));
        }
        if let Some((is_in, next)) = match_class(at, c) {
            fits |= is_in;
            at = next;
            continue;
        }
        if low == '\\' {
            (low, next) = split_first(next)?;
        }
        let mut high = low;
        if let Some((last, behind)) = next.strip_prefix('-').and_then(split_first)
            && last != ']'
        {
            (high, next) = (last, behind);
        }
        fits |= (low..=high).contains(&c);
        at = next;
    }
}

/// Matches a character class such as `[:digit:]` at the beginning of `at`: whether `c` is in it, and what is behind it.
/// `None`: there is none. Only ASCII characters are in classes, as in the POSIX locale; an unknown class has none.
fn match_class(at: &str, c: char) -> Option<(bool, &str)> {
    let name = at.strip_prefix("[:")?;
    let (len, _) = name.char_indices().take(CLASS_NAME_MAX).find(|(_, c)| *c == ':')?;
    let rest = name[len..].strip_prefix(":]")?;
    let is_in = match &name[..len] {
        "alnum" => c.is_ascii_alphanumeric(),
        "alpha" => c.is_ascii_alphabetic(),
        "blank" => c == ' ' || c == '\t',
        "cntrl" => c.is_ascii_control(),
        "digit" => c.is_ascii_digit(),
        "graph" => c.is_ascii_graphic(),
        "lower" => c.is_ascii_lowercase(),
        "print" => c.is_ascii_graphic() || c == ' ',
        "punct" => c.is_ascii_punctuation(),
        "space" => c.is_ascii_whitespace() || c == '\x0b',
        "upper" => c.is_ascii_uppercase(),
        "xdigit" => c.is_ascii_hexdigit(),
        _ => false,
    };
    Some((is_in, rest))
}

/// The names of classes are shorter.
const CLASS_NAME_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::qos::{
        DestinationOrder, Durability, INFINITE, LivelinessKind, Ownership, PresentationScope, Reliability,
        XCDR2,
    };

    #[test]
    fn defaults_fit() {
        assert_eq!(check(&Qos::for_writer(), &Qos::for_reader()), Ok(()));
    }

    #[test]
    fn each_policy_is_named_when_it_does_not_fit() {
        let check_change = |change: fn(&mut Qos, &mut Qos), expected: Result<(), PolicyId>| {
            let (mut offered, mut requested) = (Qos::for_writer(), Qos::for_reader());
            change(&mut offered, &mut requested);
            let expected = expected.map_err(|policy: PolicyId| PolicySet::EMPTY.with(policy));
            assert_eq!(check(&offered, &requested), expected);
        };
        let ms = Duration::from_millis;
        assert!(INFINITE > ms(u64::MAX));
        check_change(
            |w, r| {
                w.reliability = Reliability::BestEffort;
                r.reliability = Reliability::Reliable;
            },
            Err(PolicyId::Reliability),
        );
        check_change(|_, r| r.durability = Durability::TransientLocal, Err(PolicyId::Durability));
        check_change(|w, _| w.durability = Durability::Persistent, Ok(()));
        check_change(|_, r| r.deadline = Duration::from_secs(1), Err(PolicyId::Deadline));
        check_change(|w, _| w.deadline = Duration::from_secs(1), Ok(()));
        check_change(|w, _| w.latency_budget = Duration::from_nanos(1), Err(PolicyId::LatencyBudget));
        check_change(|_, r| r.ownership = Ownership::Exclusive, Err(PolicyId::Ownership));
        check_change(|w, _| w.ownership = Ownership::Exclusive, Err(PolicyId::Ownership));
        check_change(|_, r| r.liveliness.kind = LivelinessKind::ManualByTopic, Err(PolicyId::Liveliness));
        check_change(|_, r| r.liveliness.lease = Duration::from_secs(1), Err(PolicyId::Liveliness));
        check_change(
            |_, r| r.destination_order = DestinationOrder::BySourceTimestamp,
            Err(PolicyId::DestinationOrder),
        );
        check_change(|_, r| r.presentation.scope = PresentationScope::Topic, Err(PolicyId::Presentation));
        check_change(|_, r| r.presentation.coherent_access = true, Err(PolicyId::Presentation));
        check_change(|_, r| r.presentation.ordered_access = true, Err(PolicyId::Presentation));
        check_change(|w, _| w.presentation.ordered_access = true, Ok(()));
        check_change(|w, _| w.representation = vec![XCDR2, XCDR1], Err(PolicyId::DataRepresentation));
        check_change(|_, r| r.representation = vec![XCDR2], Err(PolicyId::DataRepresentation));
        check_change(
            |_, r| r.type_consistency.force_type_validation = true,
            Err(PolicyId::TypeConsistencyEnforcement),
        );
        check_change(|_, r| r.type_consistency.prevent_type_widening = true, Ok(()));
        check_change(
            |w, r| {
                w.representation = vec![XCDR2];
                r.representation = vec![XCDR1, XCDR2];
            },
            Ok(()),
        );
    }

    #[test]
    fn all_policies_that_do_not_fit_are_named() {
        let offered = Qos { reliability: Reliability::BestEffort, ..Qos::for_writer() };
        let requested = Qos {
            reliability: Reliability::Reliable,
            durability: Durability::TransientLocal,
            deadline: Duration::from_secs(1),
            ownership: Ownership::Exclusive,
            representation: vec![XCDR2],
            ..Qos::for_reader()
        };
        let failing: Vec<_> = check(&offered, &requested).unwrap_err().iter().collect();
        let expected = [
            PolicyId::Reliability,
            PolicyId::Durability,
            PolicyId::Deadline,
            PolicyId::Ownership,
            PolicyId::DataRepresentation,
        ];
        assert_eq!(failing, expected);
    }

    #[test]
    fn partitions_match_by_name_or_by_one_sided_pattern() {
        let check = |a: &[&str], b: &[&str], expected: bool| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            assert_eq!(partitions_match(&list(a), &list(b)), expected, "{a:?} {b:?}");
            assert_eq!(partitions_match(&list(b), &list(a)), expected, "{b:?} {a:?}");
        };
        check(&[], &[], true);
        check(&[], &[""], true);
        check(&[], &["a"], false);
        check(&[], &["*"], true);
        check(&["a", "b"], &["c", "b"], true);
        check(&["a*"], &["abc"], true);
        check(&["a*"], &["*c"], false);
        check(&["a*"], &["a*"], false);
        check(&["a*", "b"], &["a*", "b"], true);
        check(&["p[12]"], &["p2"], true);
        check(&["p[12]"], &["p3"], false);
    }

    #[test]
    fn fnmatch_follows_the_manual_page() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(fnmatch(pattern, name), expected, "{pattern} {name}");
        };
        check("", "", true);
        check("*", "", true);
        check("?", "", false);
        check("?", "é", true);
        check("a*b*c", "a__b__b_c", true);
        check("a*b*c", "a__b__b_d", false);
        check("[a-c]x", "bx", true);
        check("[!a-c]x", "bx", false);
        check("[!a]", "!", true);
        check("[!a]", "[", true);
        check("[^a-c]x", "dx", true);
        check("[]]", "]", true);
        check("[a-]", "-", true);
        check("[a", "[a", true);
        check("[a", "a", false);
        check("\\*", "*", true);
        check("\\*", "a", false);
        check("a\\", "a\\", true);
        check("[\\]]", "]", true);
        check("[z-a]", "m", false);
        check("[[:digit:]x]y", "7y", true);
        check("[[:digit:]x]y", "xy", true);
        check("[![:digit:]]", "7", false);
        check("[[:upper:][:space:]]", "a", false);
        check("[[:upper:][:space:]]", " ", true);
        check("[[:unknown:]]", "u", false);
        check("[[:digit]", ":", true);
        for (class, inside, outside) in [
            ("alnum", "a1Z", "-é"),
            ("alpha", "aZ", "1"),
            ("blank", " \t", "\n"),
            ("cntrl", "\n\x7f", " "),
            ("digit", "09", "a"),
            ("graph", "a!", " "),
            ("lower", "a", "A"),
            ("print", "a! ", "\n"),
            ("punct", "!~", "a "),
            ("space", " \n\x0b", "a"),
            ("upper", "A", "a"),
            ("xdigit", "09afAF", "g"),
        ] {
            let pattern = format!("[[:{class}:]]");
            inside.chars().for_each(|c| check(&pattern, &c.to_string(), true));
            outside.chars().for_each(|c| check(&pattern, &c.to_string(), false));
        }
        check("**a", "bba", true);
    }

    #[test]
    fn a_hostile_pattern_takes_few_steps() {
        assert!(!fnmatch(&"*a".repeat(500), &"a".repeat(499)));
        assert!(fnmatch(&"*a".repeat(500), &"a".repeat(5000)));
    }
}
