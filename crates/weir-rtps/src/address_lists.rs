//! Lists of addresses that are used again, so that none is allocated after the start.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use crate::outbox::Destinations;

/// Lists of addresses, some of them in use.
///
/// A list is free as soon as nothing else refers to it. Equal lists are one.
#[derive(Debug, Default)]
pub(crate) struct AddressLists {
    lists: Vec<Destinations>,
    /// Lists that were allocated, since none was free.
    beyond: u64,
}

impl AddressLists {
    /// Reserves so many lists of each length up to `len_max`, which is small.
    pub(crate) fn with_room(each: usize, len_max: usize) -> Self {
        let mut lists = Vec::with_capacity(each.saturating_mul(len_max));
        for len in 1..=len_max {
            lists.extend((0..each).map(|_| Destinations::from(alloc::vec![NONE; len])));
        }
        Self { lists, beyond: 0 }
    }

    /// Returns the memory that this reserves, in bytes.
    pub(crate) fn bytes(each: usize, len_max: usize) -> usize {
        let lists = (1..=len_max).map(list_bytes).sum::<usize>();
        (lists + len_max * size_of::<Destinations>()).saturating_mul(each)
    }

    /// Returns the memory allocated, in bytes.
    pub(crate) fn allocated(&self) -> usize {
        let lists = self.lists.iter().map(|list| list_bytes(list.len())).sum::<usize>();
        lists + self.lists.capacity() * size_of::<Destinations>()
    }

    /// Returns how many lists were allocated since none was free.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns a list of these addresses. It is allocated only if no list of that length is free.
    pub(crate) fn list(&mut self, addresses: &[SocketAddrV4]) -> Destinations {
        if addresses.is_empty() {
            return Destinations::default();
        }
        if let Some(known) = self.lists.iter().find(|known| known[..] == *addresses) {
            return Arc::clone(known);
        }
        for list in self.lists.iter_mut().filter(|list| list.len() == addresses.len()) {
            if let Some(free) = Arc::get_mut(list) {
                free.copy_from_slice(addresses);
                return Arc::clone(list);
            }
        }
        self.beyond += u64::from(!self.lists.is_empty());
        Arc::from(addresses)
    }
}

/// Returns the memory of a list, in bytes.
fn list_bytes(len: usize) -> usize {
    (LIST_HEAD_BYTES + len * size_of::<SocketAddrV4>()).next_multiple_of(size_of::<usize>())
}

const NONE: SocketAddrV4 = SocketAddrV4::new(core::net::Ipv4Addr::UNSPECIFIED, 0);
/// The reference counts.
const LIST_HEAD_BYTES: usize = 2 * size_of::<usize>();

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(core::net::Ipv4Addr::LOCALHOST, port)
    }

    #[test]
    fn a_list_is_used_again_once_nothing_refers_to_it() {
        let mut lists = AddressLists::with_room(2, 2);
        let one = lists.list(&[at(1)]);
        assert!(Arc::ptr_eq(&one, &lists.list(&[at(1)])));
        let two = lists.list(&[at(2)]);
        let three = lists.list(&[at(3)]);
        assert_eq!(
            (&one[..], &two[..], &three[..], lists.beyond()),
            (&[at(1)][..], &[at(2)][..], &[at(3)][..], 1)
        );
        drop(two);
        assert_eq!((&lists.list(&[at(4)])[..], lists.beyond()), (&[at(4)][..], 1));
        assert_eq!(lists.allocated(), AddressLists::bytes(2, 2));
    }

    #[test]
    fn the_memory_is_as_computed() {
        for len in 0..9 {
            assert_eq!(AddressLists::with_room(3, len).allocated(), AddressLists::bytes(3, len));
        }
    }
}
