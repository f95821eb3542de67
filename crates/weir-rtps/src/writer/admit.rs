//! The first step of a write: chooses the form of a sample, and checks whether there is room for
//! it.

use weir_wire::Guid;

use super::compose;
use super::refusal::WriteRefused;
use super::state::WriterCore;
use crate::config;
use crate::history::History as Store;
use crate::qos::History;
use crate::window::charge;

/// The form in which a sample is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A datagram of its own.
    Datagram,
    /// A datagram that later samples are added to.
    FirstOfBatch,
    /// An addition of `bytes` bytes to the datagram of the open batch.
    Extension { bytes: usize },
    /// DATA_FRAGs of `size` bytes each.
    Fragments { size: u32 },
}

impl Form {
    /// Returns the bytes of datagram for a payload of this length, as resource limits count them.
    #[inline]
    pub(super) fn datagram_bytes(self, payload_len: usize) -> usize {
        match self {
            Self::Extension { bytes } => bytes,
            _ => compose::datagram_len(payload_len),
        }
    }

    /// Reserves memory for a sample in the history. Returns it with the offset of the payload.
    #[inline(always)]
    pub(super) fn reserve(self, history: &mut Store, payload_len: usize) -> (&mut [u8], usize) {
        match self {
            Self::Datagram | Self::FirstOfBatch => {
                (history.reserve(compose::datagram_len(payload_len)), compose::PAYLOAD_AT)
            }
            Self::Extension { bytes } => (history.extension(bytes).unwrap_or_default(), compose::DATA_LEN),
            Self::Fragments { .. } => (history.reserve_large(payload_len), 0),
        }
    }
}

impl WriterCore {
    /// Chooses the form of a payload, if the window has room for it. Returns it with the bytes that are charged.
    #[inline(always)]
    pub(super) fn admit_payload(&mut self, payload_len: usize) -> Result<(Form, u64), WriteRefused> {
        let len = compose::datagram_len(payload_len);
        if len + compose::HEARTBEAT_LEN > self.datagram_max {
            let form = self.admit_large(payload_len)?;
            let Form::Fragments { size } = form else { return Ok((form, charge(len))) };
            return Ok((form, large_charge(payload_len, size)));
        }
        if self.config.batch.is_some() {
            return self.admit_to_batch(payload_len);
        }
        let cost = charge(len);
        if self.has_room(cost) {
            Ok((Form::Datagram, cost))
        } else {
            Err(self.refuse(WriteRefused::WindowFull))
        }
    }

    /// [`WriterCore::admit_payload`] for a writer with a batch policy: the payload joins the open
    /// batch or begins another one.
    fn admit_to_batch(&mut self, payload_len: usize) -> Result<(Form, u64), WriteRefused> {
        let Some(policy) = self.config.batch else {
            return Ok((Form::Datagram, charge(compose::datagram_len(payload_len))));
        };
        let bytes = compose::extension_len(payload_len);
        let open =
            self.open.filter(|open| open.takes(&policy, bytes) && self.history.extension(bytes).is_some());
        let cost = open.map_or(charge(compose::datagram_len(payload_len)), |open| open.charge_of(bytes));
        if !self.has_room(cost) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        if open.is_some() {
            return Ok((Form::Extension { bytes }, cost));
        }
        self.open = None;
        self.history.make_room(policy.max_bytes);
        Ok((Form::FirstOfBatch, cost))
    }

    /// [`WriterCore::admit_payload`] for a payload sent in fragments. Room for its beginning is
    /// enough: each fragment then waits for room of its own.
    #[cold]
    pub(super) fn admit_large(&mut self, payload_len: usize) -> Result<Form, WriteRefused> {
        if self.is_closed {
            return Err(WriteRefused::Closed);
        }
        if payload_len > config::SAMPLE_MAX_BYTES {
            return Err(WriteRefused::TooLarge { len: payload_len, max: config::SAMPLE_MAX_BYTES });
        }
        let size = compose::fragment_size(self.datagram_max);
        let beginning = large_charge(payload_len, size).min(self.window.share() / 4);
        if !self.has_room(beginning) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        self.open = None;
        Ok(Form::Fragments { size })
    }

    /// Returns the instance of a sample of `len` bytes, if the resource limits allow another
    /// sample.
    #[inline]
    pub(super) fn admit_instance(
        &mut self,
        key: Option<[u8; 16]>,
        len: usize,
    ) -> Result<Option<u32>, WriteRefused> {
        if len > self.sample_len_max {
            return Err(WriteRefused::TooLarge { len, max: self.sample_len_max });
        }
        self.admit_to_instance(key, len)
    }

    /// The same without the limit on its length.
    #[inline]
    pub(super) fn admit_to_instance(
        &mut self,
        key: Option<[u8; 16]>,
        len: usize,
    ) -> Result<Option<u32>, WriteRefused> {
        let last = self.acknowledged.min(self.unsent.prev());
        self.instances.admit(key, len, &mut self.history, last).map_err(|refused| self.refuse(refused))
    }

    /// Registers an instance before it is written. It counts until it is unregistered.
    ///
    /// # Errors
    /// [`WriteRefused::TooManyInstances`].
    pub fn register_instance(&mut self, key: [u8; 16]) -> Result<(), WriteRefused> {
        if self.is_closed {
            return Err(WriteRefused::Closed);
        }
        let last = self.acknowledged.min(self.unsent.prev());
        self.instances.register(key, &mut self.history, last)
    }

    /// Refuses writes to instances that are not registered from now on ([`WriteRefused::NewInstance`]), or registers
    /// them.
    ///
    /// The caller then registers an instance and writes again. So it learns of an instance once, and not at the cost
    /// of each sample. Has no effect if instances are not tracked: a KEEP_ALL writer without limits on them.
    pub fn ask_for_new_instances(&mut self, asks: bool) {
        self.instances.ask_for_new(asks);
    }

    /// Forgets the instance that ended first, if all readers that are `is_awaited` know. The others learn that its
    /// samples are gone. Returns whether anything changed, so that a write may succeed now.
    pub(crate) fn forget_end(&mut self, is_awaited: impl Fn(&Guid) -> bool) -> bool {
        let awaited = self.proxies.iter().filter(|proxy| proxy.is_reliable && is_awaited(&proxy.guid));
        let sent = self.unsent.prev();
        let last = awaited.map(|proxy| proxy.acknowledged).min().map_or(sent, |last| last.min(sent));
        self.instances.release_first_ended(&mut self.history, last)
    }

    /// Records a refusal. If waiting for acknowledgements helps, requests one.
    #[cold]
    pub(super) fn refuse(&mut self, refused: WriteRefused) -> WriteRefused {
        if refused == WriteRefused::WindowFull {
            self.pacing.note_full(self.history.next());
            // The response to this HEARTBEAT makes room.
            let is_paced = self.pacing.is_paced && self.has_unsent();
            self.heartbeat.is_due |= !is_paced && self.heartbeat.charged < self.history.charged();
            self.heartbeat.is_hurry_due = !is_paced && !self.heartbeat.is_hurried;
        }
        refused
    }

    /// Returns whether the writer refuses all writes with [`WriteRefused::Closed`]: waiting does not help.
    #[inline]
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether a refused write should be retried.
    ///
    /// A small sample needs room for many more like it, so that a waiting thread is not woken for
    /// each one. The end of an instance takes [`END_LEN_MORE`](super::END_LEN_MORE) more than its payload.
    pub fn has_room_for(&self, key: Option<[u8; 16]>, payload_len: usize) -> bool {
        let (len, window) = (compose::datagram_len(payload_len), self.window.share());
        let last = self.acknowledged.min(self.unsent.prev());
        if !self.instances.has_room(key, len, &self.history, last) {
            return false;
        }
        let cost = if len + compose::HEARTBEAT_LEN > self.datagram_max {
            large_charge(payload_len, compose::fragment_size(self.datagram_max))
        } else {
            charge(len)
        };
        if !self.has_reliable {
            return self.has_room(cost.clamp(config::UNSENT_MAX_BYTES / 2, config::UNSENT_MAX_BYTES));
        }
        self.has_room(cost.clamp(window / 8, (window / 4).max(cost.min(config::WINDOW_MIN_BYTES))))
    }

    #[inline]
    pub(super) fn has_room(&self, charge: u64) -> bool {
        self.config.history != History::KeepAll
            || if self.has_reliable {
                self.in_flight() + charge <= self.window.size() && self.has_room_behind_hole(charge)
            } else {
                self.has_room_unsent(charge)
            }
    }

    /// Returns whether a reader that misses a sample could still store what follows it, and whether
    /// this writer could keep it.
    #[inline]
    pub(super) fn has_room_behind_hole(&self, charge: u64) -> bool {
        let samples = self.history.next().0 - self.acknowledged.0;
        let unacknowledged = self.history.charged() - self.acknowledged_charge;
        samples <= config::REORDER_MAX_SAMPLES as i64
            && unacknowledged + charge <= config::UNACKNOWLEDGED_WINDOWS * self.window.size()
    }
}

/// Returns the bytes charged for a payload sent in fragments.
pub(super) fn large_charge(payload_len: usize, fragment_size: u32) -> u64 {
    let fragments = payload_len.div_ceil(fragment_size as usize) as u64;
    fragments * charge(compose::FRAGMENT_AT + fragment_size as usize)
}
