//! The paths of a participant to other hosts, by their addresses.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use super::{Path, PathReport};
use crate::config;

/// The paths in use, which all writers of a participant share.
///
/// A path that no writer uses any more is forgotten, unless it is held because a reader there acknowledged what it had
/// not received: it would only have to leave and return.
#[derive(Debug, Default)]
pub struct Paths {
    known: Vec<(Ipv4Addr, Path)>,
    /// Reserved for other hosts.
    spare: Vec<Path>,
}

impl Paths {
    /// Creates a table without paths.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves paths to so many hosts, for so many writers.
    pub(crate) fn with_room(hosts: usize, writers: usize) -> Self {
        let mut spare = Vec::with_capacity(hosts);
        spare.extend((0..hosts).map(|_| Path::with_room(writers)));
        Self { known: Vec::with_capacity(hosts), spare }
    }

    /// Returns the path to a host. `new`: creates one of which nothing is known.
    pub fn to_host(&mut self, host: Ipv4Addr, new: impl FnOnce() -> Path) -> Path {
        let held_max = if self.spare.capacity() == 0 { config::PATHS_HELD_MAX } else { 0 };
        self.forget_unused(host, held_max.max(self.spare.len().saturating_sub(1)));
        if let Some((_, path)) = self.known.iter().find(|(ip, _)| *ip == host) {
            return path.clone();
        }
        let path = self.spare.pop().unwrap_or_else(new);
        self.known.push((host, path.clone()));
        path
    }

    /// Forgets paths that no writer uses, but that to a host and the last `held_max` of those that are held.
    fn forget_unused(&mut self, host: Ipv4Addr, held_max: usize) {
        let Self { known, spare } = self;
        let is_unused_held = |path: &Path| !path.is_shared() && path.is_held();
        let held = known.iter().filter(|(ip, path)| *ip != host && is_unused_held(path)).count();
        let mut excess = held.saturating_sub(held_max);
        known.retain(|(ip, path)| {
            if *ip == host || path.is_shared() {
                return true;
            }
            if path.is_held() {
                if excess == 0 {
                    return true;
                }
                excess -= 1;
            }
            if spare.len() < spare.capacity() {
                path.forget();
                spare.push(path.clone());
            }
            false
        });
    }

    /// Returns what is known of the paths, by address.
    pub fn reports(&self) -> Vec<(Ipv4Addr, PathReport)> {
        let mut reports: Vec<_> = self.known.iter().map(|(host, path)| (*host, path.report())).collect();
        reports.sort_unstable_by_key(|(host, _)| *host);
        reports
    }
}

/// Returns the address of the host at which a reader or a writer is reached; `None` if that is only by multicast.
///
/// Of several addresses, the first stands for all: they are of one host.
pub fn host_of(destinations: &[SocketAddrV4]) -> Option<Ipv4Addr> {
    destinations.iter().map(|to| *to.ip()).find(|ip| !ip.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, number)
    }

    fn known(paths: &Paths) -> Vec<u8> {
        paths.known.iter().map(|(host, _)| host.octets()[3]).collect()
    }

    #[test]
    fn a_path_that_is_not_used_is_forgotten_unless_it_is_held() {
        let mut paths = Paths::new();
        let used = paths.to_host(host(1), Path::new);
        paths.to_host(host(2), Path::new).hold();
        drop(paths.to_host(host(3), Path::new));
        let again = paths.to_host(host(2), Path::new);
        assert!(again.is_held() && known(&paths) == [1, 2], "{paths:?}");
        assert!(paths.to_host(host(1), Path::new).is(&used));
    }

    #[test]
    fn of_many_held_paths_the_last_ones_are_remembered() {
        let mut paths = Paths::new();
        let most = config::PATHS_HELD_MAX as u8;
        (0..most + 3).for_each(|number| paths.to_host(host(number), Path::new).hold());
        let used = paths.to_host(host(200), Path::new);
        assert_eq!(known(&paths), (3..most + 3).chain([200]).collect::<Vec<_>>());
        drop(used);
    }

    #[test]
    fn with_reserved_paths_a_held_one_gives_way_to_a_path_in_use() {
        let mut paths = Paths::with_room(3, 1);
        let none = || -> Path { panic!("all paths are reserved") };
        let used: Vec<_> = (1..=2).map(|number| paths.to_host(host(number), none)).collect();
        paths.to_host(host(3), none).hold();
        let last = paths.to_host(host(4), none);
        assert!(known(&paths) == [1, 2, 4] && !last.is_held(), "{paths:?}");
        drop((used, last));
        paths.to_host(host(5), none).hold();
        drop(paths.to_host(host(6), none));
        assert!(paths.to_host(host(5), none).is_held() && known(&paths) == [5], "{paths:?}");
    }
}
