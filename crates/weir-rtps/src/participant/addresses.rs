//! Handles changes of what the participant announces: of its user data, and of the host's addresses when an interface
//! appears, disappears, or gets another address.

use alloc::vec::Vec;

use weir_wire::{EntityId, GuidPrefix};

use super::ParticipantCore;
use super::config::OwnAddresses;
use crate::spdp::ParticipantData;
use crate::time::Time;

impl ParticipantCore {
    /// Uses other addresses of this host from now on.
    ///
    /// Announces them at once, and chooses anew where to send to every peer. Endpoints stay matched. If a peer's
    /// announcements came over a network that is gone, its address on another network is used. While a host has no
    /// address at all, keep the old ones.
    pub fn set_addresses(&mut self, now: Time, addresses: OwnAddresses) {
        if self.is_closed {
            return;
        }
        self.config.metatraffic_unicast = addresses.metatraffic_unicast;
        self.config.default_unicast = addresses.default_unicast;
        self.config.interfaces = addresses.interfaces;
        self.config.multicast_interfaces = addresses.multicast_interfaces;
        self.reachability = self.reachability.renewed(&self.config);
        self.announcer.restart(&self.config, now);
        let locals: Vec<EntityId> = self.locals.keys().copied().collect();
        for local in locals {
            self.local_paths_changed(now, local);
        }
        let remotes: Vec<GuidPrefix> = self.remotes.keys().copied().collect();
        for prefix in remotes {
            if let Some(remote) = self.remotes.get_mut(&prefix) {
                (remote.from, remote.elsewhere_since) = (self.reachability.source(remote), None);
                // It may not have joined the group on the interfaces that are there.
                remote.grouped_to = Time::ZERO;
            }
            self.paths_changed(now, prefix);
        }
    }

    /// Announces the participant at once, and then as often as at the start: what was due before was not sent.
    pub fn restart_announcements(&mut self, now: Time) {
        if !self.is_closed {
            self.announcer.restart(&self.config, now);
        }
    }

    /// Changes the user data of the participant, and announces it at once (USER_DATA, DDS 1.4, 2.2.3.1).
    pub fn set_user_data(&mut self, now: Time, user_data: Vec<u8>) {
        if self.is_closed || self.config.user_data == user_data {
            return;
        }
        self.config.user_data = user_data;
        self.announcer.restart(&self.config, now);
    }

    /// Returns what a participant has announced: its name, user data and addresses.
    #[must_use]
    pub fn remote_data(&self, prefix: GuidPrefix) -> Option<&ParticipantData> {
        self.remotes.get(&prefix).map(|remote| &remote.data.data)
    }

    fn local_paths_changed(&mut self, now: Time, local: EntityId) {
        let Some(entry) = self.locals.get(&local) else { return };
        let Some((destinations, group)) = self.own_path(&entry.unicast, entry.multicast) else { return };
        let Some(entry) = self.locals.get_mut(&local) else { return };
        if entry.multicast.is_some() && entry.unicast.is_empty() {
            // Its announcement names the participant's addresses. The instance exists, so nothing is refused.
            let data = entry.data(&self.config.default_unicast);
            let _never_refused = self.builtin.announce(now, entry.kind(), &data);
        }
        if (&entry.seen.destinations, entry.seen.group) != (&destinations, group) {
            entry.seen.destinations = destinations;
            entry.seen.group = group;
            let guid = entry.guid();
            self.match_remote(guid, true);
        }
    }
}
