//! The kernel's drops at the UDP sockets of this process.

use std::collections::BTreeSet;
use std::fs;

/// Returns the drops at the UDP sockets that this process has open, since each was opened. `None`
/// if the kernel does not show them. Excludes sockets of other network namespaces than this
/// thread's.
pub(crate) fn socket_drops() -> Option<u64> {
    let numbers = own_sockets()?;
    let v4 = fs::read_to_string("/proc/thread-self/net/udp").ok()?;
    // Absent in a kernel without IPv6.
    let v6 = fs::read_to_string("/proc/thread-self/net/udp6").unwrap_or_default();
    Some(parse_drops(&v4, &numbers) + parse_drops(&v6, &numbers))
}

/// Returns the inode numbers of this process's open sockets, from links such as `socket:[1234]`.
fn own_sockets() -> Option<BTreeSet<u64>> {
    let links =
        fs::read_dir("/proc/self/fd").ok()?.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    Some(links.filter_map(|link| socket_number(link.to_str()?)).collect())
}

fn socket_number(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns the sum of the `drops` of the sockets with these numbers in `/proc/net/udp`.
fn parse_drops(text: &str, numbers: &BTreeSet<u64>) -> u64 {
    // sl local remote st tx:rx tr:when retrnsmt uid timeout inode ref pointer drops
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number: u64 = words.get(9)?.parse().ok()?;
        numbers.contains(&number).then(|| words.get(12)?.parse::<u64>().ok())?
    };
    text.lines().skip(1).filter_map(of_line).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: &str = "\
   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  364: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1001 2 0000000000000000 5
  365: 0100007F:1F91 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1002 2 0000000000000000 70
  366: 0100007F:1F92 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1003 2 0000000000000000 900
";

    #[test]
    fn drops_of_the_named_sockets_add_up() {
        assert_eq!(parse_drops(UDP, &BTreeSet::from([1001, 1003, 7])), 905);
        assert_eq!(parse_drops(UDP, &BTreeSet::new()), 0);
        assert_eq!(parse_drops("sl\nshort line\n", &BTreeSet::from([1001])), 0);
        assert_eq!(socket_number("socket:[1234]"), Some(1234));
        assert_eq!(socket_number("pipe:[1234]"), None);
    }

    #[test]
    fn what_this_process_drops_is_seen() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        // Without a receiver the buffer fills up, whatever the host's default is.
        while socket_drops().unwrap() == 0 {
            for _ in 0..64 {
                sender.send_to(&[0; 1000], to).unwrap();
            }
        }
    }
}
