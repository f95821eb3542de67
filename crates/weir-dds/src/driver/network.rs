//! Follows the host's network while the participant runs: interfaces that appear, vanish, lose their carrier, or get
//! other addresses.
//!
//! The kernel reports that something has changed, and the timer thread lists the interfaces again. If those in use
//! differ, the participant announces its new addresses and chooses all destinations anew. Endpoints stay matched. The
//! sockets stay as well (see `sockets`), except those that are tied to an address: the multicast senders, and the
//! connected sockets of the writers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_udp::NetworkWatch;

use super::interfaces::{self, Choice, Selected};
use super::shared::Driver;
use crate::clock;

/// First delay of another attempt. The kernel reports an address shortly before it can be bound.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// Last delay. After that, something is wrong that only another change can repair, which is then followed.
const RETRY_MAX: Duration = Duration::from_secs(3);

/// How long the longest datagram to a host is taken for known.
const SEGMENTS_MAX_AGE: Duration = Duration::from_millis(500);

/// What is known of the host's network.
pub(crate) struct Network {
    choice: Choice,
    /// `None`: the kernel reports no changes to this process.
    watch: Option<NetworkWatch>,
    state: Mutex<State>,
    segments: Mutex<Segments>,
}

/// Longest datagrams that reach a host unfragmented. To find one takes a socket, and the endpoints of a host appear
/// together.
struct Segments {
    found_at: Time,
    by_host: BTreeMap<Ipv4Addr, u16>,
}

struct State {
    selected: Selected,
    /// The last attempt to use them has failed.
    is_incomplete: bool,
    /// When to try again, and the delay after that.
    retry: Option<(Time, Duration)>,
}

impl Network {
    pub(super) fn new(choice: Choice, watch: Option<NetworkWatch>, selected: Selected) -> Self {
        let state = Mutex::new(State { selected, is_incomplete: false, retry: None });
        let segments = Mutex::new(Segments { found_at: Time::ZERO, by_host: BTreeMap::new() });
        Self { choice, watch, state, segments }
    }

    /// Returns the size in bytes of the largest datagram that reaches all of `to` unfragmented, as far as this host
    /// knew lately.
    pub(super) fn segment_max(&self, now: Time, to: &[SocketAddrV4]) -> u16 {
        let mut segments = self.segments.lock();
        if now.since(segments.found_at) > SEGMENTS_MAX_AGE {
            *segments = Segments { found_at: now, by_host: BTreeMap::new() };
        }
        let found = to.iter().map(|address| {
            let found = segments.by_host.entry(*address.ip());
            *found.or_insert_with(|| interfaces::segment_max(&[*address]))
        });
        found.min().unwrap_or_else(|| interfaces::segment_max(&[]))
    }

    /// Returns the size in bytes of the largest datagram that reaches any host unfragmented, as far as the interfaces
    /// show it.
    pub(crate) fn datagram_max(&self) -> u16 {
        self.state.lock().selected.datagram_max()
    }

    /// Returns what becomes readable when the network changes.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(AsFd::as_fd)
    }

    /// Selects the interfaces anew. Returns those to be used: others are there, or the last attempt
    /// failed. If none is left, keeps those that were there.
    fn news(&self) -> std::io::Result<Option<Selected>> {
        let selected = self.choice.select(&interfaces::up()?);
        let mut state = self.state.lock();
        let mut has_news = state.is_incomplete;
        if let Some(selected) = selected {
            has_news |= state.selected != selected;
            state.selected = selected;
        }
        Ok(has_news.then(|| state.selected.clone()))
    }

    /// Plans another attempt.
    fn retry_later(&self, now: Time) {
        let mut state = self.state.lock();
        let delay = state.retry.map_or(RETRY_MIN, |(_, delay)| delay);
        state.retry = (delay <= RETRY_MAX).then_some((now + delay, delay * 2));
        state.is_incomplete = true;
    }

    /// Records that the selected interfaces are in use.
    fn complete(&self) {
        let mut state = self.state.lock();
        (state.is_incomplete, state.retry) = (false, None);
    }
}

impl Driver {
    /// Handles reports of changes.
    pub(super) fn network_changed(&self) {
        if self.network.watch.as_ref().is_some_and(NetworkWatch::drain) {
            let mut state = self.network.state.lock();
            // What failed may succeed now.
            state.retry = state.retry.map(|(at, _)| (at, RETRY_MIN));
            drop(state);
            self.follow_network();
        }
    }

    /// Tries again what failed, if that is due. Returns when it is due next.
    pub(super) fn network_timeout(&self, now: Time) -> Option<Time> {
        let retry_at = || self.network.state.lock().retry.map(|(at, _)| at);
        let at = retry_at()?;
        if at > now {
            return Some(at);
        }
        self.follow_network();
        retry_at()
    }

    /// Uses the interfaces that are there.
    fn follow_network(&self) {
        match self.network.news() {
            Ok(None) => {}
            Ok(Some(selected)) if self.use_interfaces(&selected) => self.network.complete(),
            _ => self.network.retry_later(clock::now()),
        }
    }

    /// Uses these interfaces from now on. Returns whether all sockets could be changed.
    fn use_interfaces(&self, selected: &Selected) -> bool {
        self.network.segments.lock().by_host.clear();
        let mut is_complete = true;
        let only_at = self.network.choice.only_at(selected);
        let (unicast, user) = (&self.meta.unicast, &*self.channel.socket);
        if !only_at.is_empty() {
            is_complete &= [unicast, user].iter().all(|socket| socket.receive_only_at(&only_at).is_ok());
        }
        is_complete &= self.meta.join(selected).is_ok();
        is_complete &= self.channel.groups.move_to(selected.places());
        let ports = (unicast.local_addr().port(), user.local_addr().port());
        let addresses = selected.own_addresses(ports.0, ports.1, self.uses_multicast);
        self.with_discovery(|core, now| core.set_addresses(now, addresses));
        // The routes have changed even to destinations that are the same.
        self.routes.table().writers.values().for_each(|writer| writer.lane.reconnect(&self.outlet));
        is_complete
    }

    /// Opens the connected sockets whose path was lost.
    pub(super) fn restore_paths(&self) {
        if self.outlet.take_lost_path() {
            self.routes.table().writers.values().for_each(|writer| writer.lane.restore_path(&self.outlet));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ParticipantSettings;

    #[test]
    fn a_change_is_followed_however_long_ago_the_attempts_have_ended() {
        let settings = ParticipantSettings::default().interface("lo");
        let (choice, selected) = Choice::new(&settings).unwrap();
        let network = Network::new(choice, None, selected);
        assert!(network.news().unwrap().is_none());
        let mut now = Time(1);
        let next = |now| {
            network.retry_later(now);
            network.state.lock().retry.map(|(at, _)| at)
        };
        while let Some(at) = next(now) {
            now = at;
        }
        assert!(network.news().unwrap().is_some());
        // The attempts begin anew.
        assert!(next(now).is_some());
        network.complete();
        assert!(network.news().unwrap().is_none());
    }
}
