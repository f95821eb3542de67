//! Listeners of publishers, subscribers and the participant, which get what the listeners of their entities do not
//! (DDS 1.4, 2.2.4.2.3).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use weir_rtps::group::GroupSequence;
use weir_wire::EntityId;

use crate::contained::Contained;
use crate::default_qos::DefaultQos;
use crate::driver::endpoints::Panics;
use crate::driver::farewells::Farewells;
use crate::driver::group_access::GroupAccess;
use crate::driver::listener_turn::ListenerTurn;
use crate::driver::observers::Observers;
use crate::driver::start::Handle;
use crate::group_qos::{AnnouncedByGroup, PublisherQos, SubscriberQos};
use crate::listener::{DomainParticipantListener, PublisherListener, SubscriberListener};
use crate::publisher;
use crate::qos::{DataReaderQos, DataWriterQos};
use crate::status_mask::{StatusKind, StatusMask};

/// The listener of one level, and what it is called for.
pub(crate) struct Level<L: ?Sized> {
    state: Mutex<(Option<Arc<L>>, StatusMask)>,
    mask: AtomicU32,
    pub(crate) panics: Panics,
}

impl<L: ?Sized> Default for Level<L> {
    fn default() -> Self {
        Self {
            state: Mutex::new((None, StatusMask::NONE)),
            mask: AtomicU32::new(0),
            panics: Panics::default(),
        }
    }
}

impl<L: ?Sized> Level<L> {
    /// Replaces the listener. Returns the one before, to be dropped with no lock held.
    #[must_use]
    pub(crate) fn set(&self, listener: Option<Arc<L>>, mask: StatusMask) -> Option<Arc<L>> {
        let mut state = self.state.lock();
        self.mask.store(mask.bits(), Ordering::Release);
        core::mem::replace(&mut *state, (listener, mask)).0
    }

    pub(crate) fn listener(&self) -> Option<Arc<L>> {
        self.state.lock().0.clone()
    }

    pub(crate) fn mask(&self) -> StatusMask {
        StatusMask::from_bits(self.mask.load(Ordering::Acquire))
    }

    /// Returns the listener for a status. `Some(None)`: the status is for this level, and dropped.
    pub(crate) fn listener_for(&self, kind: StatusKind) -> Option<Option<Arc<L>>> {
        let state = self.state.lock();
        state.1.contains(kind).then(|| state.0.clone())
    }
}

/// The listener of a participant.
pub(crate) type ParticipantLevel = Level<dyn DomainParticipantListener>;

/// What the handles of a participant share.
pub(crate) struct ParticipantState {
    /// Of its status condition.
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
    pub(crate) default_qos: Mutex<DefaultQos>,
    pub(crate) contained: Contained,
    /// Readers that did not learn of the end of a writer in time.
    pub(crate) farewells: Farewells,
    /// Set with discovery locked.
    pub(crate) is_enabled: AtomicBool,
}

impl ParticipantState {
    pub(crate) fn new(is_enabled: bool) -> Self {
        Self {
            observers: Observers::default(),
            enabled: EnabledStatuses::default(),
            default_qos: Mutex::default(),
            contained: Contained::default(),
            farewells: Farewells::default(),
            is_enabled: AtomicBool::new(is_enabled),
        }
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.is_enabled.load(Ordering::SeqCst)
    }
}

/// What the handles of a subscriber share with its readers.
#[derive(Default)]
pub(crate) struct SubscriberState {
    pub(crate) level: Level<dyn SubscriberListener>,
    pub(crate) participant: Arc<ParticipantLevel>,
    /// Of calls for DATA_ON_READERS.
    pub(crate) turn: Mutex<ListenerTurn>,
    /// Of its status condition.
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
    /// How often DATA_ON_READERS was reset. It is set while a reader has samples that arrived since the last time.
    pub(crate) resets: AtomicU64,
    /// The readers are watched for DATA_ON_READERS.
    pub(crate) is_tracked: AtomicBool,
    /// Locked after discovery.
    pub(crate) qos: Mutex<SubscriberQos>,
    /// Of its readers.
    pub(crate) default_qos: Mutex<DataReaderQos>,
    pub(crate) is_enabled: AtomicBool,
    pub(crate) is_closed: AtomicBool,
    pub(crate) access: Arc<GroupAccess>,
}

impl SubscriberState {
    pub(crate) fn new(participant: &Arc<ParticipantLevel>, qos: SubscriberQos) -> Arc<Self> {
        Arc::new(Self { participant: Arc::clone(participant), qos: Mutex::new(qos), ..Self::default() })
    }

    /// What its readers announce.
    pub(crate) fn announced(&self) -> AnnouncedByGroup {
        self.qos.lock().announced()
    }

    /// Returns whether a reader is enabled when it is created.
    pub(crate) fn enables_readers(&self) -> bool {
        self.is_enabled.load(Ordering::SeqCst) && self.qos.lock().entity_factory.autoenable_created_entities
    }

    pub(crate) fn mask(&self) -> StatusMask {
        self.level.mask() | self.participant.mask()
    }
}

/// What the handles of a publisher share with its writers.
pub(crate) struct PublisherState {
    pub(crate) level: Level<dyn PublisherListener>,
    pub(crate) participant: Arc<ParticipantLevel>,
    /// Locked after discovery.
    pub(crate) qos: Mutex<PublisherQos>,
    /// Of its writers.
    pub(crate) default_qos: Mutex<DataWriterQos>,
    pub(crate) is_enabled: AtomicBool,
    pub(crate) is_closed: AtomicBool,
    pub(crate) entity: EntityId,
    /// Numbers the samples of all writers, if they have a common order or common sets.
    pub(crate) sequence: Option<GroupSequence>,
    pub(crate) begun: Mutex<publisher::State>,
    /// Of its status condition.
    pub(crate) observers: Observers,
    pub(crate) enabled: EnabledStatuses,
}

impl PublisherState {
    pub(crate) fn new(handle: &Handle, qos: PublisherQos) -> Arc<Self> {
        let sequence = qos.shares_sequence().then(GroupSequence::default);
        Arc::new(Self {
            level: Level::default(),
            participant: Arc::clone(&handle.driver.level),
            qos: Mutex::new(qos),
            default_qos: Mutex::default(),
            is_enabled: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            entity: handle.driver.new_publisher_id(),
            sequence,
            begun: Mutex::default(),
            observers: Observers::default(),
            enabled: EnabledStatuses::default(),
        })
    }

    /// What its writers announce.
    pub(crate) fn announced(&self) -> AnnouncedByGroup {
        self.qos.lock().announced(self.entity)
    }

    /// Returns whether a writer is enabled when it is created.
    pub(crate) fn enables_writers(&self) -> bool {
        self.is_enabled.load(Ordering::SeqCst) && self.qos.lock().entity_factory.autoenable_created_entities
    }

    pub(crate) fn mask(&self) -> StatusMask {
        self.level.mask() | self.participant.mask()
    }
}

/// The statuses that make the status condition of an entity true; all by default.
#[derive(Debug)]
pub(crate) struct EnabledStatuses(AtomicU32);

impl Default for EnabledStatuses {
    fn default() -> Self {
        Self(AtomicU32::new(StatusMask::ALL.bits()))
    }
}

impl EnabledStatuses {
    pub(crate) fn get(&self) -> StatusMask {
        StatusMask::from_bits(self.0.load(Ordering::SeqCst))
    }

    pub(crate) fn set(&self, mask: StatusMask) {
        self.0.store(mask.bits(), Ordering::SeqCst);
    }
}
