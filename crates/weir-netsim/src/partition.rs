//! Partitions: which hosts cannot reach each other.
//!
//! A cut acts when a datagram is sent: datagrams in flight still arrive, as when a switch port goes
//! down.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The set of cut directions between hosts; initially empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Partition {
    cut: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
}

impl Partition {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts both directions between two hosts.
    pub fn cut(&mut self, one: Ipv4Addr, other: Ipv4Addr) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    /// Cuts the direction from `from` to `to`; the other one is unchanged.
    pub fn cut_one_way(&mut self, from: Ipv4Addr, to: Ipv4Addr) {
        self.cut.insert((from, to));
    }

    /// Cuts hosts of different groups off from each other. Connections within a group, and of hosts
    /// in no group, are unchanged.
    pub fn split(&mut self, groups: &[&[Ipv4Addr]]) {
        for (i, group) in groups.iter().enumerate() {
            for other in &groups[i + 1..] {
                for one in *group {
                    other.iter().for_each(|two| self.cut(*one, *two));
                }
            }
        }
    }

    /// Restores both directions between two hosts.
    pub fn restore(&mut self, one: Ipv4Addr, other: Ipv4Addr) {
        self.cut.remove(&(one, other));
        self.cut.remove(&(other, one));
    }

    /// Restores all connections.
    pub fn heal(&mut self) {
        self.cut.clear();
    }

    /// Returns whether datagrams from `from` to `to` are dropped.
    pub fn is_cut(&self, from: Ipv4Addr, to: Ipv4Addr) -> bool {
        self.cut.contains(&(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const C: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
    const D: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 4);

    #[test]
    fn a_cut_is_both_ways_unless_said_otherwise() {
        let mut partition = Partition::new();
        partition.cut(A, B);
        partition.cut_one_way(A, C);
        assert!(partition.is_cut(A, B) && partition.is_cut(B, A));
        assert!(partition.is_cut(A, C) && !partition.is_cut(C, A));
        partition.restore(B, A);
        assert!(!partition.is_cut(A, B) && !partition.is_cut(B, A));
    }

    #[test]
    fn split_separates_groups_only() {
        let mut partition = Partition::new();
        partition.split(&[&[A, B], &[C]]);
        assert!(partition.is_cut(A, C) && partition.is_cut(C, B));
        assert!(!partition.is_cut(A, B));
        assert!(!partition.is_cut(A, D) && !partition.is_cut(D, C), "a host in no group reaches all");
        partition.heal();
        assert_eq!(partition, Partition::new());
    }
}
