//! Where the protocol meets the operating system: sockets, threads, and who does what.
//!
//! | file | content |
//! |---|---|
//! | `groups` | the multicast groups that readers listen to |
//! | `listeners` | the thread that calls listeners for statuses |
//! | `transport` | the sockets of a participant; an outbox becomes system calls |
//! | `endpoints` | writers and readers as the driver knows them, and how the message receiver finds them |
//! | `channel` | whoever waits, receives: application threads and the background thread share a socket |
//! | `publishing` | the threads of writers that publish asynchronously |
//! | `matching` | what discovery finds becomes matches, statuses and calls of listeners |
//! | `receive_counters` | what is counted about received datagrams |
//! | `received_blocks` | memory in which large samples stay where they were received |
//! | `liveliness` | what discovery must know of writers that the application asserts |
//! | `straight` | a lone sample leaves under the lock that it was written under |
//! | `timers` | the thread of metatraffic and timers |

pub(crate) mod channel;
pub(crate) mod endpoints;
pub(crate) mod groups;
pub(crate) mod listeners;
pub(crate) mod liveliness;
pub(crate) mod matching;
pub(crate) mod publishing;
pub(crate) mod receive_counters;
pub(crate) mod received_blocks;
pub(crate) mod straight;
pub(crate) mod timers;
pub(crate) mod transport;

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use weir_rtps::participant::{ParticipantConfig, ParticipantCore};
use weir_rtps::ports;
use weir_wire::{EntityId, Guid, GuidPrefix};

use crate::clock::{self, WallClock};
use crate::error::{DdsError, Result};
use crate::multicast::MulticastGroup;
use crate::settings::ParticipantSettings;
use crate::wait_strategy::WaitStrategy;
use channel::Channel;
use endpoints::Routes;
use groups::Groups;
use listeners::Listeners;
use matching::Discovery;
use timers::Timers;
use transport::{MetaSockets, Selected};

/// Everything that the threads and handles of a participant share.
pub(crate) struct Driver {
    pub(crate) prefix: GuidPrefix,
    pub(crate) domain_id: u32,
    pub(crate) wait: WaitStrategy,
    /// The process may use one processor only.
    pub(crate) has_one_cpu: bool,
    /// Somebody wants to know when samples pass from stage to stage.
    pub(crate) keeps_times: bool,
    /// Some writer may hold back samples of a burst.
    has_queued: AtomicBool,
    pub(crate) wall_clock: WallClock,
    pub(crate) channel: Channel,
    pub(crate) routes: Routes,
    pub(crate) discovery: Discovery,
    pub(crate) timers: Timers,
    pub(crate) listeners: Listeners,
    pub(crate) meta: MetaSockets,
    /// The group of readers that name none.
    data_multicast: Option<SocketAddrV4>,
    uses_multicast: bool,
    is_stopping: AtomicBool,
    next_entity: AtomicU32,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Driver {
    /// Opens the sockets and starts the threads.
    pub(crate) fn start(domain_id: u32, settings: &ParticipantSettings) -> Result<Arc<Self>> {
        if ports::metatraffic_unicast_port(domain_id, 0).is_none() {
            let text = format!("domain id {domain_id} is not possible: it is a number from 0 to 232");
            return Err(DdsError::BadParameter(text));
        }
        if let Some(copier) = weir_udp::wide_copy() {
            weir_cdr::copy::use_copier(copier);
        }
        let cpus = weir_udp::affinity::allowed_cpus().map_or(1, |cpus| cpus.len());
        let selected = Selected::new(settings)?;
        let (user, meta) = transport::open(domain_id, settings, &selected)?;
        let data_multicast = settings.data_multicast.map(|group| group.address(domain_id)).transpose()?;
        let prefix = new_prefix(crate::random::secret()?);
        let mut config = participant_config(prefix, domain_id, settings, &selected, &user, &meta);
        config.default_multicast = data_multicast;
        let driver = Arc::new(Self {
            prefix,
            domain_id,
            wait: settings.wait,
            has_one_cpu: cpus < 2,
            keeps_times: settings.stage_times,
            has_queued: AtomicBool::new(false),
            wall_clock: WallClock::new(),
            channel: Channel::new(user, Groups::new(selected.addresses(), settings.receive_buffer)),
            routes: Routes::default(),
            discovery: Discovery::new(ParticipantCore::new(config, clock::now())),
            timers: Timers::new().map_err(|error| DdsError::network("cannot make an eventfd", error))?,
            listeners: Listeners::default(),
            meta,
            data_multicast,
            uses_multicast: settings.multicast,
            is_stopping: AtomicBool::new(false),
            next_entity: AtomicU32::new(1),
            threads: Mutex::new(Vec::new()),
        });
        driver.join(data_multicast)?;
        driver.spawn("weir-receive", channel::run)?;
        driver.spawn("weir-timers", timers::run)?;
        Ok(driver)
    }

    /// Says goodbye, and ends the threads.
    pub(crate) fn stop(&self) {
        self.with_discovery(|core, now| core.close(now));
        self.is_stopping.store(true, Ordering::SeqCst);
        self.timers.wake();
        self.channel.kick();
        self.wake_calling();
        let me = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            // The last handle may be dropped in a listener, on one of these threads: that one ends by itself.
            if thread.thread().id() != me {
                // A thread that panicked has said so on standard error.
                let _ = thread.join();
            }
        }
    }

    /// The group that a reader is to listen to which asks for `asked`.
    pub(crate) fn group_for(&self, asked: Option<MulticastGroup>) -> Result<Option<SocketAddrV4>> {
        asked.map_or(Ok(self.data_multicast), |group| group.address(self.domain_id).map(Some))
    }

    /// Listens to a group on behalf of one more reader.
    pub(crate) fn join(&self, group: Option<SocketAddrV4>) -> Result<()> {
        let Some(group) = group else { return Ok(()) };
        if !self.uses_multicast {
            let text = "a multicast group for user data needs a participant that uses multicast";
            return Err(DdsError::BadParameter(text.to_owned()));
        }
        self.channel.groups.join(group)?;
        // Whoever sleeps in a receive call does not know of the group.
        self.channel.kick();
        Ok(())
    }

    /// Undoes one [`Driver::join`].
    pub(crate) fn leave(&self, group: Option<SocketAddrV4>) {
        if let Some(group) = group {
            self.channel.groups.leave(group);
        }
    }

    /// Some writer holds back samples of a burst.
    #[inline]
    pub(crate) fn note_queued(&self) {
        if !self.has_queued.load(Ordering::Relaxed) {
            self.has_queued.store(true, Ordering::Relaxed);
        }
    }

    /// Sends what any writer holds back: whoever looks for an answer has nothing more to write for now.
    #[inline]
    pub(crate) fn flush_queued(&self) {
        if self.has_queued.load(Ordering::Relaxed) {
            self.end_bursts();
        }
    }

    /// Apart, so that whoever has nothing to send does not carry it.
    #[inline(never)]
    fn end_bursts(&self) {
        if self.has_queued.swap(false, Ordering::Relaxed) {
            self.routes.table().writers.values().for_each(|writer| writer.end_burst(&self.channel.socket));
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn new_writer_id(&self, is_keyed: bool) -> EntityId {
        EntityId::user_writer(self.next_entity.fetch_add(1, Ordering::Relaxed), is_keyed)
    }

    pub(crate) fn new_reader_id(&self, is_keyed: bool) -> EntityId {
        EntityId::user_reader(self.next_entity.fetch_add(1, Ordering::Relaxed), is_keyed)
    }

    pub(crate) fn guid(&self, entity: EntityId) -> Guid {
        Guid::new(self.prefix, entity)
    }

    fn spawn(self: &Arc<Self>, name: &str, run: fn(&Self)) -> Result<()> {
        let driver = Arc::clone(self);
        let thread = Self::thread(name, move || run(&driver))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(1 << 20)
            .spawn(run)
            .map_err(|error| DdsError::network(format!("cannot start the thread {name}"), error))
    }
}

/// A prefix that no other participant has: the vendor id (RTPS 2.5 §9.3.1.5), the process id, 48 random bits.
fn new_prefix(random: u64) -> GuidPrefix {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&weir_wire::VendorId::WEIR.0);
    prefix[2..6].copy_from_slice(&std::process::id().to_be_bytes());
    prefix[6..].copy_from_slice(&random.to_be_bytes()[..6]);
    GuidPrefix(prefix)
}

fn participant_config(
    prefix: GuidPrefix,
    domain_id: u32,
    settings: &ParticipantSettings,
    selected: &Selected,
    user: &weir_udp::UdpSocket,
    meta: &MetaSockets,
) -> ParticipantConfig {
    let mut config = ParticipantConfig::new(prefix, domain_id);
    config.metatraffic_unicast = selected.announced(meta.unicast.local_addr().port());
    config.default_unicast = selected.announced(user.local_addr().port());
    config.interfaces = selected.networks();
    if settings.multicast {
        config.multicast_interfaces = selected.multicast_addresses();
    } else {
        config.metatraffic_multicast = None;
    }
    config.initial_peers = settings.peers.iter().flat_map(|peer| peer.addresses(domain_id)).collect();
    config.lease_duration = settings.lease_duration;
    config.announce_period = (settings.lease_duration / 3).min(config.announce_period);
    config.entity_name.clone_from(&settings.name);
    config.receive_buffer = u32::try_from(user.granted_recv_buffer()).unwrap_or(u32::MAX);
    config
}
