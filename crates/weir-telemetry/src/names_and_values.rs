//! The tables of `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then a line of values.

/// Returns the names and values of a group of such a table, such as `Udp:`; `None` if it is missing.
pub(crate) fn names_and_values<'a>(
    table: &'a str,
    group: &str,
) -> Option<impl Iterator<Item = (&'a str, &'a str)> + use<'a>> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    Some(names.split_whitespace().zip(values.split_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_distinguished_and_need_both_lines() {
        let table = "Ip: A B\nIp: 1 2\nUdp: C\nUdp: 5\nUdpLite: C\nUdpLite: 6\nLast: D\n";
        let of = |group| names_and_values(table, group).map(Iterator::collect::<Vec<_>>);
        assert_eq!(of("Ip:"), Some(vec![("A", "1"), ("B", "2")]));
        assert_eq!(of("Udp:"), Some(vec![("C", "5")]));
        assert_eq!((of("Last:"), of("Tcp:")), (None, None));
    }
}
