use super::*;

#[test]
fn part_spans_head_and_tail() {
    let item =
        Outgoing { to: None, head: b"abcde", tail: b"fgh", segment: 3, joins: false, type_of_service: None };
    let check = |start, end, head: &[u8], tail: &[u8]| {
        let part = item.part(start, end);
        assert_eq!((part.head, part.tail), (head, tail), "{start}..{end}");
    };
    check(0, 8, b"abcde", b"fgh");
    check(0, 3, b"abc", b"");
    check(3, 6, b"de", b"f");
    check(6, 8, b"", b"gh");
    check(5, 5, b"", b"");
}

#[test]
fn datagrams_are_counted_with_the_shorter_last_one() {
    let check = |bytes, segment, expected| assert_eq!(datagram_count(bytes, segment), expected);
    check(0, 0, 1);
    check(0, 100, 1);
    check(1000, 0, 1);
    check(1000, 100, 10);
    check(1001, 100, 11);
    check(99, 100, 1);
}

#[test]
fn merge_keeps_the_last_error() {
    let mut first = SendOutcome { datagrams: 1, refused: 2, ..SendOutcome::default() };
    first.last_error = Some(io::Error::from_raw_os_error(libc::ECONNREFUSED));
    first.merge(SendOutcome { datagrams: 3, bytes: 5, system_calls: 1, ..SendOutcome::default() });
    assert_eq!((first.datagrams, first.bytes, first.system_calls, first.refused), (4, 5, 1, 2));
    assert_eq!(first.last_error.and_then(|error| error.raw_os_error()), Some(libc::ECONNREFUSED));
}
