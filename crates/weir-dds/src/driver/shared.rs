//! The state shared by all threads and handles of a participant.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_rtps::ecn::EcnMarks;
use weir_rtps::qos::Qos;
use weir_rtps::sedp::EndpointKind;
use weir_wire::{EntityId, Guid, GuidPrefix};

use super::channel::Channel;
use super::discovery::Discovery;
use super::failure::Ending;
use super::listeners::Listeners;
use super::network::Network;
use super::outlet::Outlet;
use super::paths::Paths;
use super::polling::Polling;
use super::routes::Routes;
use super::sockets::MetaSockets;
use crate::builtin_subscriber::KnownReaders;
use crate::clock::WallClock;
use crate::dscp::DscpMapping;
use crate::error::{DdsError, Result};
use crate::levels::{ParticipantLevel, ParticipantState};
use crate::limits::LimitsTable;
use crate::multicast::MulticastGroup;
use crate::qos::DomainParticipantQos;
use crate::static_discovery::{Claim, Own};
use crate::topic::TopicState;
use crate::wait_strategy::WaitStrategy;

/// The state shared by all threads and handles of a participant.
pub(crate) struct Driver {
    pub(crate) prefix: GuidPrefix,
    pub(crate) domain_id: u32,
    pub(crate) wait: WaitStrategy,
    /// The process may use only one processor.
    pub(crate) has_one_cpu: bool,
    /// Whether stage timing is enabled.
    pub(crate) keeps_times: bool,
    pub(crate) wall_clock: WallClock,
    pub(crate) outlet: Outlet,
    pub(crate) channel: Channel,
    pub(crate) routes: Routes,
    pub(crate) discovery: Discovery,
    pub(crate) listeners: Listeners,
    /// The participant's listener.
    pub(crate) level: Arc<ParticipantLevel>,
    pub(crate) state: ParticipantState,
    pub(crate) builtin: KnownReaders,
    pub(crate) meta: MetaSockets,
    pub(super) network: Network,
    pub(crate) paths: Paths,
    /// The congestion marks of what is received.
    pub(crate) ecn: EcnMarks,
    pub(crate) dscp: DscpMapping,
    pub(crate) qos: Mutex<DomainParticipantQos>,
    /// The multicast group of readers that do not name one.
    pub(super) data_multicast: Option<SocketAddrV4>,
    pub(super) uses_multicast: bool,
    /// Present if the application polls, and the participant has no threads.
    pub(crate) polling: Option<Polling>,
    pub(super) is_stopping: AtomicBool,
    pub(super) ending: Ending,
    /// The ids of our endpoints.
    pub(crate) own: Own,
    pub(crate) limits: Option<LimitsTable>,
    pub(super) threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Driver {
    /// Returns the group for a reader that requests `asked`; by default the participant's.
    pub(crate) fn group_for(&self, asked: Option<MulticastGroup>) -> Result<Option<SocketAddrV4>> {
        asked.map_or(Ok(self.data_multicast), |group| group.address(self.domain_id).map(Some))
    }

    /// Adds a reader to a group.
    pub(crate) fn join(&self, group: Option<SocketAddrV4>) -> Result<()> {
        let Some(group) = group else { return Ok(()) };
        if !self.uses_multicast {
            let text = "a multicast group for user data needs a participant that uses multicast";
            return Err(DdsError::BadParameter(text.to_owned()));
        }
        self.channel.groups.join(group)?;
        self.watch_groups()?;
        // A thread asleep in a receive call does not know of the group yet.
        self.channel.kick();
        Ok(())
    }

    /// Undoes one [`Driver::join`].
    pub(crate) fn leave(&self, group: Option<SocketAddrV4>) {
        if let Some(group) = group {
            self.channel.groups.leave(group);
        }
    }

    /// Sends what writers hold back: an application that waits or takes has nothing more to write for now.
    /// Returns `false` if the participant has ended.
    #[inline]
    pub(crate) fn flush_queued(&self) -> bool {
        !self.outlet.has_queued() || self.end_bursts()
    }

    /// Not inlined, to keep this code out of callers with nothing to send.
    #[inline(never)]
    fn end_bursts(&self) -> bool {
        if self.outlet.take_queued() {
            self.routes.table().writers.values().for_each(|writer| writer.lane.end_burst(&self.outlet));
        }
        let has_ended = self.has_ended();
        if has_ended {
            // So that the next call gets here, too.
            self.outlet.note_end();
        }
        !has_ended
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns the id of a new endpoint. Drop the claim when the endpoint is in the table.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`]: it differs from the file of static endpoints.
    pub(crate) fn claim_id<T: DdsType>(
        &self,
        kind: EndpointKind,
        topic: &TopicState,
        announced: &Qos,
    ) -> Result<Claim<'_>> {
        let described = (topic.name(), T::TYPE_NAME, T::HAS_KEY);
        self.own.claim(kind, described, announced, &self.routes.table())
    }

    /// Returns the number of the application's readers.
    pub(crate) fn own_readers(&self) -> usize {
        self.routes.table().readers.keys().filter(|entity| !entity.is_builtin()).count()
    }

    /// Returns an id for a publisher (RTPS 2.5, 9.3.1.2: kind 08, a group of writers).
    pub(crate) fn new_publisher_id(&self) -> EntityId {
        let [_, a, b, c] = self.own.new_key().to_be_bytes();
        EntityId([a, b, c, 0x08])
    }

    /// Returns the size in bytes of the largest datagram that reaches any host unfragmented, as far as the interfaces
    /// show it.
    pub(crate) fn datagram_max(&self) -> u16 {
        self.network.datagram_max()
    }

    pub(crate) fn guid(&self, entity: EntityId) -> Guid {
        Guid::new(self.prefix, entity)
    }

    pub(super) fn spawn(self: &Arc<Self>, name: &'static str, run: fn(&Self)) -> Result<()> {
        let thread = self.thread(name, run)?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// Starts a thread whose panic is the participant's failure.
    pub(super) fn thread(
        self: &Arc<Self>,
        name: &'static str,
        run: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<JoinHandle<()>> {
        let driver = Arc::clone(self);
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(1 << 20)
            .spawn(move || driver.run_thread(name, || run(&driver)))
            .map_err(|error| DdsError::network(format!("cannot start the thread {name}"), error))
    }
}
