//! What a writer knows of a reader that has lost something.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::go_back::Discards;
use super::group_reach::GroupReach;
use super::late_joiners::Late;
use super::pacing::Position;
use super::receipts::Answered;
use super::receipts_apart::SentApart;
use super::repairs_allowed::NeverSent;
use super::withheld::Withheld;
use crate::config;
use crate::limits::EndpointLimits;
use crate::on_demand::Idle;
use crate::path::Verdict;
use crate::reservable_map::ReservableMap;
use crate::time::Time;

/// A repair that a reader has requested.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repair {
    /// It is to be sent.
    pub(super) waits: bool,
    /// When it was last sent, and how often.
    pub(super) sent_at: Option<Time>,
    pub(super) times: u32,
    /// It was lost before, and is sent once more besides, or will be.
    pub(super) is_doubled: bool,
    /// The bytes sent then; `None`: all of it.
    pub(super) bytes: Option<u64>,
    /// The count of the last HEARTBEAT before that.
    pub(super) heartbeats: u32,
    /// What was sent last is known to be lost.
    pub(super) is_lost: bool,
}

/// How many samples, fragments and repairs of a reader are listed at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rooms {
    pub(super) samples: usize,
    pub(super) fragments: usize,
    pub(super) repairs: usize,
}

impl Rooms {
    const DEFAULT: Self = Self {
        samples: config::REQUESTED_MAX,
        fragments: config::REQUESTED_MAX,
        repairs: config::REPAIRS_MAX,
    };

    fn of(limits: &EndpointLimits) -> Self {
        let is_large = limits.sample_bytes > config::DATAGRAM_MIN_BYTES / 2;
        let fragments = limits.sample_bytes.div_ceil(config::DATAGRAM_MIN_BYTES / 2).saturating_mul(2);
        let samples = limits.samples.min(config::REQUESTED_MAX);
        let fragments = if is_large { fragments } else { 0 }.min(config::REQUESTED_MAX);
        Self { samples, fragments, repairs: 2 * (samples + fragments) + 1 }
    }
}

/// What a reader has requested, and what its path shows about that. Most readers never need it.
#[derive(Debug)]
pub(super) struct Requested {
    /// Samples to be sent again, unordered.
    pub(super) samples: Vec<SequenceNumber>,
    /// Fragments to be sent again, counted from 0.
    pub(super) fragments: Vec<(SequenceNumber, u32)>,
    /// Repairs requested on its path.
    pub(super) repairs: ReservableMap<Position, Repair>,
    /// How many samples, fragments and repairs the lists take.
    pub(super) rooms: Rooms,
    /// The last fragment of a sample that the reader is known to have reached, if that is beyond what it has seen.
    pub(super) reached: Position,
    /// The count of the last HEARTBEAT that the reader had received when it sent its last request, if it says so.
    pub(super) echoed: Option<u32>,
    /// A repair may be in flight for this time.
    pub(super) repair_time: Duration,
    /// The same of a fragment, requests for which are repeated sooner than that.
    pub(super) fragment_time: Duration,
    /// The large sample in transmission, and how many of its fragments the reader is known to have
    /// reached.
    pub(super) fragments_seen: (SequenceNumber, u32),
    /// What it was not sent yet, and what its last message shows about that.
    pub(super) withheld: Option<Withheld>,
    pub(super) verdict: Option<Verdict>,
    /// What it discards behind a missing sample.
    pub(super) discards: Option<Discards>,
    /// What it may request that was never sent on its path.
    pub(super) never_sent: NeverSent,
    /// If it is set [apart](super::apart): from where on it is still to be prepared to be sent.
    pub(super) fed: Option<Position>,
    /// It is still to be sent the [history](super::late_joiners).
    pub(super) late: Option<Late>,
    /// Samples before this were announced to it before they were sent.
    pub(super) history_end: SequenceNumber,
    /// What it has answered on its path, as a best-effort reader.
    pub(super) answered: Option<Answered>,
    /// What it was sent while it is apart, and asked about that, as a best-effort reader.
    pub(super) apart: SentApart,
    /// What its answers show about its multicast group.
    pub(super) reach: GroupReach,
}

impl Idle for Requested {
    const IDLE: Self = Self {
        samples: Vec::new(),
        fragments: Vec::new(),
        repairs: ReservableMap::EMPTY,
        rooms: Rooms::DEFAULT,
        reached: (SequenceNumber::ZERO, 0),
        echoed: None,
        repair_time: Duration::ZERO,
        fragment_time: Duration::ZERO,
        fragments_seen: (SequenceNumber::ZERO, 0),
        withheld: None,
        verdict: None,
        discards: None,
        never_sent: NeverSent::NONE,
        fed: None,
        late: None,
        history_end: SequenceNumber::ZERO,
        answered: None,
        apart: SentApart::NONE,
        reach: GroupReach::UNKNOWN,
    };

    fn idle() -> &'static Self {
        static IDLE: Requested = Requested::IDLE;
        &IDLE
    }
}

impl Requested {
    /// Reserves memory for what one reader may request.
    pub(super) fn reserved(limits: &EndpointLimits) -> Box<Self> {
        let rooms = Rooms::of(limits);
        Box::new(Self {
            samples: Vec::with_capacity(rooms.samples),
            fragments: Vec::with_capacity(rooms.fragments),
            repairs: ReservableMap::with_room(rooms.repairs),
            rooms,
            ..Self::IDLE
        })
    }

    /// Forgets everything, and keeps the memory.
    pub(super) fn forget(&mut self) {
        let Self { mut samples, mut fragments, mut repairs, rooms, .. } =
            core::mem::replace(self, Self::IDLE);
        samples.clear();
        fragments.clear();
        repairs.clear();
        *self = Self { samples, fragments, repairs, rooms, ..Self::IDLE };
    }

    /// Returns the memory allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        size_of::<Self>()
            + self.samples.capacity() * size_of::<SequenceNumber>()
            + self.fragments.capacity() * size_of::<(SequenceNumber, u32)>()
            + self.repairs.allocated()
    }

    /// Returns the memory for one reader, in bytes.
    pub(super) fn bytes(limits: &EndpointLimits) -> usize {
        let rooms = Rooms::of(limits);
        size_of::<Self>()
            + rooms.samples * size_of::<SequenceNumber>()
            + rooms.fragments * size_of::<(SequenceNumber, u32)>()
            + ReservableMap::<Position, Repair>::bytes(rooms.repairs)
    }
}
