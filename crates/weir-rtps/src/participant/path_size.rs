//! Finds the longest datagram that reaches each host in one packet (DPLPMTUD, RFC 8899).
//!
//! Writers use the first hop's MTU from the first sample on. On nearly every path it is right, and a LAN gets full-size
//! datagrams at once. Meanwhile a probe of that size verifies it. A router on the path may have a smaller MTU and drop
//! longer datagrams without reporting it (a black hole). The size then falls to [`BASE`], which every path in use today
//! carries, and probes search for the largest size that passes.
//!
//! A probe is a HEARTBEAT of the participant's SEDP writer, made as long as needed by a PAD submessage. Every engine
//! answers it with an ACKNACK. Samples are not used as probes. An ACKNACK does not name the HEARTBEAT that it answers.
//! A probe is therefore sent only if that writer has sent no other HEARTBEAT for a while, and its answer counts only if
//! the writer has sent none since.
//!
//! Probes are lost for other reasons as well, so short control probes are sent in turn with the long ones. A size
//! counts as too large only when several control probes were answered, and none of the long ones in between.
//!
//! Longer datagrams are still sent, by the driver without the flag "don't fragment". They contain samples from before
//! the size fell, whose RTPS fragments keep their size (RTPS 2.5, 8.3.8.3), and arrive as IP fragments.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use weir_wire::GuidPrefix;

use super::ParticipantCore;
use crate::discovery_event::DiscoveryEvent;
use crate::outbox::{Destinations, Outbox};
use crate::time::Time;

/// What is known of all hosts, and the probes to be sent.
#[derive(Debug, Default)]
pub(super) struct PathSizes {
    hosts: BTreeMap<Ipv4Addr, PathSize>,
    due: Vec<(GuidPrefix, Destinations, u16)>,
    /// Probes sent so far.
    sent: u64,
}

/// What is known of the path to a host. Sizes are those of datagrams, without IP and UDP headers.
#[derive(Debug)]
struct PathSize {
    /// The participant there that is probed.
    prefix: GuidPrefix,
    /// What the first hop takes.
    most: u16,
    /// The longest datagram in use.
    size: u16,
    /// A size that passes, and one that does not; what is in between is unknown.
    passes: u16,
    fails: u16,
    /// The size that is being probed.
    probed: Option<u16>,
    /// The current or next probe is a short one.
    is_control: bool,
    sent_at: Option<Time>,
    /// Short probes answered since the first one of this size was sent.
    controls: u32,
    /// Those that were not answered.
    unanswered: u32,
    /// After this time, an answer counts as lost.
    patience: Duration,
    next_at: Time,
    /// When a larger size is to be tried.
    raise_at: Time,
    /// Short probes in a row without an answer.
    silent: u32,
    /// HEARTBEATs of the writer besides probes, as of the last look.
    heartbeats: u64,
    /// The count of the last ACKNACK.
    count: u32,
}

impl PathSize {
    /// Assumes that everything passes that the first hop takes, and verifies that.
    fn new(now: Time, most: u16, prefix: GuidPrefix) -> Self {
        let mut new = Self {
            prefix,
            most,
            size: most,
            passes: BASE.min(most),
            fails: most.saturating_add(1),
            probed: None,
            is_control: false,
            sent_at: None,
            controls: 0,
            unanswered: 0,
            patience: PATIENCE_FIRST,
            next_at: now,
            raise_at: Time::MAX,
            silent: 0,
            heartbeats: 0,
            count: 0,
        };
        new.begin(now, most);
        new
    }

    fn begin(&mut self, now: Time, size: u16) {
        (self.probed, self.is_control, self.sent_at) = (Some(size), false, None);
        (self.controls, self.unanswered, self.next_at) = (0, 0, now);
    }

    /// Does what is due. Returns the length of the probe to send now.
    fn handle_timeout(&mut self, now: Time, heartbeats: u64) -> Option<u16> {
        if self.next_at > now {
            return None;
        }
        if self.sent_at.take().is_some() && self.heartbeats == heartbeats {
            if self.is_control {
                self.unanswered += 1;
                self.silent += 1;
                if self.silent > SILENT_RANDOM {
                    self.patience = (self.patience * 2).min(PATIENCE_MAX);
                }
                if self.silent >= SILENT_MAX {
                    self.rest(now);
                    return None;
                }
            }
            self.is_control = !self.is_control;
        }
        if self.probed.is_none() && self.raise_at <= now {
            (self.fails, self.raise_at) = (self.most + 1, Time::MAX);
            self.begin(now, self.most);
        }
        let size = *self.probed.get_or_insert(self.size);
        self.next_at = now + self.patience;
        if self.heartbeats != heartbeats {
            self.heartbeats = heartbeats;
            return None;
        }
        self.sent_at = Some(now);
        Some(if self.is_control { 0 } else { size })
    }

    /// Handles an ACKNACK. Returns whether the size in use has changed.
    fn handle_answer(&mut self, now: Time, count: u32, heartbeats: u64) -> bool {
        let is_copy = core::mem::replace(&mut self.count, count) == count;
        let (Some(size), Some(sent_at)) = (self.probed, self.sent_at) else { return false };
        if is_copy || heartbeats != self.heartbeats {
            return false;
        }
        self.patience = (now.since(sent_at) * 4).clamp(PATIENCE_MIN, PATIENCE_MAX);
        (self.sent_at, self.silent, self.next_at) = (None, 0, now);
        if !self.is_control {
            self.passes = self.passes.max(size);
            return self.go_on(now);
        }
        (self.is_control, self.controls) = (false, self.controls + 1);
        let enough = if size == self.size { CONTROLS_IN_USE } else { CONTROLS_SEARCH };
        if self.controls < enough + self.unanswered / 3 {
            return false;
        }
        self.fails = size;
        if size > self.size {
            return self.go_on(now);
        }
        (self.size, self.passes) = (BASE, BASE);
        self.go_on(now);
        true
    }

    /// Probes the next size of the search, or ends it. Returns whether the size in use has changed.
    fn go_on(&mut self, now: Time) -> bool {
        if self.fails - self.passes > STEP {
            self.begin(now, (self.passes + (self.fails - self.passes) / 2) / 4 * 4);
            return false;
        }
        if self.passes < self.most {
            self.raise_at = self.raise_at.min(now + RAISE_AFTER);
        }
        self.rest(now);
        core::mem::replace(&mut self.size, self.passes) != self.passes
    }

    /// Pauses until the size in use is to be verified, or a larger one to be tried.
    fn rest(&mut self, now: Time) {
        (self.probed, self.silent) = (None, 0);
        self.next_at = (now + CONFIRM_EVERY).min(self.raise_at);
    }

    /// Verifies the size in use soon.
    fn suspect(&mut self, now: Time) {
        if self.probed.is_none() && self.size > BASE {
            self.begin(now, self.size);
        }
    }
}

impl ParticipantCore {
    /// Begins to watch the path to a host at which readers are matched, and whose first hop takes datagrams of `most`
    /// bytes. Returns how long datagrams may be until [`DiscoveryEvent::PathSizeChanged`].
    pub fn watch_path_size(&mut self, now: Time, host: Ipv4Addr, most: u16) -> u16 {
        let padded = most / 4 * 4;
        // The kernel may have learned meanwhile what the probes have found.
        let is_known = |known: &&PathSize| (known.size..=known.most).contains(&padded);
        if let Some(known) = self.path_sizes.hosts.get(&host).filter(is_known) {
            return if known.size == padded { most } else { known.size };
        }
        self.path_sizes.hosts.remove(&host);
        if let Some(prefix) = self.participant_at(host)
            && padded > BASE
            && !self.is_closed
        {
            self.path_sizes.hosts.insert(host, PathSize::new(now, padded, prefix));
        }
        most
    }

    /// Datagrams to a host get lost: verifies soon that the longest ones pass.
    pub fn suspect_path_size(&mut self, now: Time, host: Ipv4Addr) {
        if let Some(path) = self.path_sizes.hosts.get_mut(&host) {
            path.suspect(now);
        }
    }

    /// A router reports that a probe was too long, and how long a datagram may be.
    pub fn path_size_reported(&mut self, now: Time, host: Ipv4Addr, size: u16) {
        let Some(path) = self.path_sizes.hosts.get_mut(&host) else { return };
        let size = (size / 4 * 4).max(BASE);
        if size + 1 < path.fails {
            (path.fails, path.passes) = (size + 1, path.passes.min(size));
            let before = path.size;
            path.size = before.min(size);
            path.begin(now, size);
            if size < before {
                self.news.push(DiscoveryEvent::PathSizeChanged { host, size });
            }
        }
    }

    /// Does what is due about the sizes of datagrams.
    pub(super) fn look_at_path_sizes(&mut self, now: Time) {
        let heartbeats = self.heartbeats_besides_probes();
        let due: Vec<_> =
            self.path_sizes.hosts.iter().filter(|(_, it)| it.next_at <= now).map(|(host, _)| *host).collect();
        for host in due {
            let prefix = self.participant_at(host);
            let Some(path) = self.path_sizes.hosts.get_mut(&host) else { continue };
            // It may have moved to another host.
            let is_there = self
                .remotes
                .get(&path.prefix)
                .is_some_and(|remote| remote.metatraffic.iter().any(|to| *to.ip() == host));
            if !is_there {
                let Some(prefix) = prefix else {
                    self.path_sizes.hosts.remove(&host);
                    continue;
                };
                path.prefix = prefix;
            }
            let prefix = path.prefix;
            let Some(remote) = self.remotes.get(&prefix) else { continue };
            let is_outstanding =
                |it: &PathSize| it.prefix == prefix && it.sent_at.is_some_and(|_| it.next_at > now);
            if self.path_sizes.hosts.values().any(is_outstanding) {
                // An answer does not say on which of its addresses the participant was asked.
                self.path_sizes.hosts.entry(host).and_modify(|path| path.next_at = now + PATIENCE_MIN);
                continue;
            }
            let Some(path) = self.path_sizes.hosts.get_mut(&host) else { continue };
            if let Some(len) = path.handle_timeout(now, heartbeats) {
                let to = remote.metatraffic.iter().filter(|to| *to.ip() == host).take(1);
                self.path_sizes.due.push((prefix, to.copied().collect(), len));
            }
        }
    }

    /// Handles an ACKNACK for our SEDP writer.
    pub(super) fn path_size_answered(&mut self, now: Time, prefix: GuidPrefix, count: u32) {
        let heartbeats = self.heartbeats_besides_probes();
        let is_asked =
            |(_, path): &(&Ipv4Addr, &mut PathSize)| path.prefix == prefix && path.sent_at.is_some();
        let Some((host, path)) = self.path_sizes.hosts.iter_mut().find(is_asked) else { return };
        if path.handle_answer(now, count, heartbeats) {
            self.news.push(DiscoveryEvent::PathSizeChanged { host: *host, size: path.size });
        }
    }

    /// Appends the probes.
    pub(super) fn poll_size_probes(&mut self, out: &mut Outbox) {
        for (prefix, to, len) in self.path_sizes.due.drain(..) {
            let before = out.items.len();
            self.builtin.ask(prefix, &to, out);
            if out.items.len() > before {
                out.pad_last(len.into());
                self.path_sizes.sent += 1;
            }
        }
    }

    fn heartbeats_besides_probes(&self) -> u64 {
        self.builtin.heartbeats_sent() - self.path_sizes.sent
    }

    fn participant_at(&self, host: Ipv4Addr) -> Option<GuidPrefix> {
        let is_there = |to: &SocketAddrV4| *to.ip() == host;
        self.remotes.iter().find(|(_, remote)| remote.metatraffic.iter().any(is_there)).map(|(it, _)| *it)
    }
}

impl PathSizes {
    /// Returns when something is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.hosts.values().map(|path| path.next_at).min()
    }
}

/// The longest datagram that passes on every path (BASE_PLPMTU of RFC 8899, 5.1.2).
const BASE: u16 = 1200;
/// The search ends when it is known to so many bytes.
const STEP: u16 = 8;
/// Short probes answered, and no long one between them, before a size in use counts as too large; and a third of those
/// not answered. If 30 % are lost in either direction, that is wrong about once in 400 000 times.
const CONTROLS_IN_USE: u32 = 6;
/// The same for a larger size than that in use. An error only wastes a little.
const CONTROLS_SEARCH: u32 = 3;
/// How long to wait for the first answer. Afterwards, four times as long as the last answer took.
const PATIENCE_FIRST: Duration = Duration::from_millis(250);
/// At least, since some engines delay their answers.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
const PATIENCE_MAX: Duration = Duration::from_secs(5);
/// So many short probes in a row may be unanswered by chance.
const SILENT_RANDOM: u32 = 3;
/// After so many, there is a pause: the host does not answer at all.
const SILENT_MAX: u32 = 10;
/// Time between verifications of the size in use, for paths on which no losses are reported.
const CONFIRM_EVERY: Duration = Duration::from_secs(30);
/// Time until a larger size is tried (PMTU_RAISE_TIMER, RFC 8899, 5.1.1).
const RAISE_AFTER: Duration = Duration::from_secs(600);
