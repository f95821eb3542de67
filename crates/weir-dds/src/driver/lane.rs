//! A writer's lane: its core and its sending state, each behind a lock.
//!
//! A thread that writes takes a [`Turn`], which holds the locks it needs. Whatever the occasion,
//! [`Lane::transmit`] does the sending: the core hands samples out, its lock is released, and the
//! outlet sends them. The caller then sets the timer for what is due later.
//!
//! Lock order: `sending`, then `core`. The fast path sends a single-sample datagram with only
//! `core` locked, while no thread holds `sending`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use weir_rtps::outbox::Outbox;
use weir_rtps::time::Time;
use weir_rtps::writer::{Silence, WriterCore};

use super::direct::WriterState;
use super::outlet::Outlet;
use super::publishing::Publishing;
use super::sender::{SendCounters, Sender};
use crate::clock;
use crate::stage_times::SendTimes;

/// How long the timer thread waits for a writer that is sending before it serves the others.
const BUSY_WRITER: Duration = Duration::from_micros(500);

/// A writer's core and its sending state.
pub(crate) struct Lane {
    /// Held while samples are handed out and sent, so that they leave in sequence order.
    sending: Mutex<Sending>,
    core: Mutex<WriterState>,
    /// The next sample will probably take the fast path: the last one qualified for it, and the
    /// core knows of all earlier sends.
    expects_direct: AtomicBool,
    /// Timeouts showed something about readers, see [`Lane::take_silence`].
    has_silence: AtomicBool,
    /// Present if the writer publishes asynchronously: its own thread sends.
    pub(crate) publishing: Option<Publishing>,
}

/// The sending state: an outbox, sockets, and times not yet reported to the core.
#[derive(Default)]
pub(crate) struct Sending {
    outbox: Outbox,
    sender: Sender,
    /// When the last send call ended, until reported to the core.
    sent_at: Option<Time>,
    /// Time from the last write or publication to the end of its send call, until reported to the
    /// core.
    send_time: Option<Duration>,
}

/// A thread's turn at a writer: the locked core, and the way in which its samples are sent.
pub(crate) struct Turn<'a> {
    pub(crate) core: MutexGuard<'a, WriterState>,
    pub(crate) sends: Sends<'a>,
}

/// Which thread sends the samples written in a turn, and with which lock.
pub(crate) enum Sends<'a> {
    /// This thread, with `sending` locked.
    Here(MutexGuard<'a, Sending>),
    /// The writer's publishing thread, which locks `sending` later.
    Publisher(&'a Publishing),
    /// This thread, with only the core locked: by the fast path alone. For anything else,
    /// [`Lane::in_order`] takes another turn.
    Direct,
}

/// Why the lane hands out samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A sample was written. Everything leaves except what a burst or a batch holds back.
    Write,
    /// Everything leaves.
    Flush,
    /// The application has begun to wait. Everything leaves, and the next write starts a new burst.
    EndOfBurst,
    /// A timer has expired.
    Timer,
    /// The publishing thread sends what is due.
    Publish,
    /// The application has asserted its liveliness.
    Assertion,
    /// A piece of a large sample was encoded, and more pieces follow.
    Piece,
}

/// The state after a transmission.
#[derive(Clone, Copy)]
pub(crate) struct Transmitted {
    /// Whether anything was sent.
    pub(crate) has_sent: bool,
    /// A large sample was begun and not finished.
    pub(crate) is_amid_sample: bool,
    /// End of the current pause within a large sample sent in parts.
    pub(crate) paused_until: Option<Time>,
    /// More than half of the window is in flight, so acknowledgements are due.
    pub(crate) awaits_acknowledgements: bool,
    /// A refused write may find room now.
    pub(crate) makes_room: bool,
    /// When the next timer is due.
    next: Option<Time>,
}

impl Lane {
    pub(crate) fn new(core: WriterCore, publishing: Option<Publishing>) -> Self {
        Self {
            sending: Mutex::default(),
            core: Mutex::new(WriterState::new(core)),
            expects_direct: AtomicBool::new(false),
            has_silence: AtomicBool::new(false),
            publishing,
        }
    }

    /// Locks only the core: for acknowledgements, statuses, and adding samples to an open batch.
    #[inline]
    pub(crate) fn core(&self) -> MutexGuard<'_, WriterState> {
        self.core.lock()
    }

    /// Begins a turn, and reports the last send to the core.
    #[inline]
    pub(crate) fn turn(&self) -> Turn<'_> {
        let sends = match &self.publishing {
            None => Sends::Here(self.sending.lock()),
            Some(publishing) => Sends::Publisher(publishing),
        };
        let mut turn = Turn { core: self.core.lock(), sends };
        if let Sends::Here(sending) = &mut turn.sends {
            sending.report(&mut turn.core);
        }
        turn
    }

    /// Begins a turn for a sample that will probably take the fast path: locks only the core, if no
    /// thread is sending.
    #[inline]
    pub(crate) fn direct_turn(&self) -> Turn<'_> {
        if self.expects_direct() {
            let core = self.core.lock();
            // A sending thread takes `sending` before it locks the core to hand out samples. So
            // either its lock is seen here, or it has handed out nothing yet.
            if !self.sending.is_locked() {
                return Turn { core, sends: Sends::Direct };
            }
        }
        self.turn()
    }

    /// Exchanges a turn that allows only the fast path for a full one.
    #[inline]
    pub(crate) fn in_order<'a>(&'a self, turn: Turn<'a>) -> Turn<'a> {
        if !matches!(turn.sends, Sends::Direct) {
            return turn;
        }
        drop(turn);
        self.expects_direct.store(false, Ordering::Relaxed);
        self.turn()
    }

    #[inline]
    pub(crate) fn expects_direct(&self) -> bool {
        self.expects_direct.load(Ordering::Relaxed)
    }

    /// Ends a turn in which the fast path sent a sample.
    #[inline]
    pub(crate) fn end_direct(&self, outlet: &Outlet, turn: Turn<'_>) {
        if !matches!(turn.sends, Sends::Direct) {
            self.expects_direct.store(true, Ordering::Relaxed);
        }
        let next = turn.core.next_timeout();
        drop(turn);
        outlet.arm(next);
    }

    /// Hands out what is due and sends it.
    ///
    /// Everything that a writer sends leaves here, except the fast path's samples and the repairs
    /// sent by receiving threads.
    #[inline(always)]
    fn transmit(
        &self,
        outlet: &Outlet,
        (mut core, sending): (MutexGuard<'_, WriterState>, &mut Sending),
        now: Time,
        occasion: Occasion,
    ) -> Transmitted {
        let outbox = &mut sending.outbox;
        match occasion {
            Occasion::Write | Occasion::Piece => core.poll_transmit(now, outbox),
            Occasion::Flush => core.flush(now, outbox),
            Occasion::EndOfBurst => core.end_burst(now, outbox),
            Occasion::Timer => {
                core.handle_timeout(now);
                self.note_silence(&core);
                core.poll_transmit(now, outbox);
            }
            Occasion::Publish => core.poll_published(now, outbox),
            Occasion::Assertion => core.assert_liveliness(now, outbox),
        }
        let (window, in_flight) = core.window();
        let transmitted = Transmitted {
            has_sent: !outbox.is_empty(),
            is_amid_sample: core.is_amid_sample(),
            paused_until: core.paused_until(),
            awaits_acknowledgements: in_flight > window / 2,
            makes_room: occasion == Occasion::Publish && core.makes_room_by_sending(),
            next: core.next_timeout(),
        };
        if occasion == Occasion::Write && core.has_unsent() {
            outlet.note_queued();
        }
        drop(core);
        if transmitted.has_sent {
            outlet.send(&mut sending.sender, outbox);
            sending.note_sent(now, occasion);
        }
        transmitted
    }

    /// Ends a turn: sends what was written, or arranges for it to be sent in time. Returns `None`
    /// if this thread sends nothing.
    #[inline(always)]
    pub(crate) fn send(&self, outlet: &Outlet, turn: Turn<'_>, now: Time) -> Option<Transmitted> {
        let Turn { core, sends } = turn;
        match sends {
            Sends::Here(sending) => {
                self.expects_direct.store(false, Ordering::Relaxed);
                Some(self.send_here(outlet, (core, sending), now, Occasion::Write))
            }
            Sends::Publisher(publishing) => {
                leave_to(publishing, outlet, core, now);
                None
            }
            Sends::Direct => None,
        }
    }

    /// Ends a turn: sends everything, including what a burst or a batch holds back.
    pub(crate) fn flush(&self, outlet: &Outlet, turn: Turn<'_>, now: Time) {
        self.send_on(outlet, turn, now, Occasion::Flush);
    }

    /// Asserts the writer's liveliness on the network.
    pub(crate) fn assert_liveliness(&self, outlet: &Outlet, now: Time) {
        let sending = self.sending.lock();
        self.send_here_on(outlet, (self.core.lock(), sending), now, Occasion::Assertion);
    }

    /// Sends what automatic coalescing holds back, because the application has begun to wait.
    pub(crate) fn end_burst(&self, outlet: &Outlet) {
        self.send_on(outlet, self.turn(), clock::now(), Occasion::EndOfBurst);
    }

    fn send_on(&self, outlet: &Outlet, turn: Turn<'_>, now: Time, occasion: Occasion) {
        let Turn { mut core, sends } = turn;
        match sends {
            Sends::Here(sending) => _ = self.send_here_on(outlet, (core, sending), now, occasion),
            Sends::Publisher(publishing) => {
                core.replace_unsent();
                match occasion {
                    Occasion::EndOfBurst => core.interrupt_burst(),
                    _ => core.release_held(),
                }
                drop(core);
                publishing.notify();
            }
            Sends::Direct => {}
        }
    }

    /// [`Lane::send_here`] on the occasions whose speed matters less: one copy for all of them.
    #[inline(never)]
    fn send_here_on(
        &self,
        outlet: &Outlet,
        locked: (MutexGuard<'_, WriterState>, MutexGuard<'_, Sending>),
        now: Time,
        occasion: Occasion,
    ) -> Transmitted {
        self.send_here(outlet, locked, now, occasion)
    }

    #[inline(always)]
    fn send_here(
        &self,
        outlet: &Outlet,
        (core, mut sending): (MutexGuard<'_, WriterState>, MutexGuard<'_, Sending>),
        now: Time,
        occasion: Occasion,
    ) -> Transmitted {
        let transmitted = self.transmit(outlet, (core, &mut sending), now, occasion);
        // Unlocked before the caller receives: listeners called then may write.
        drop(sending);
        // This thread itself continues after a pause, so no timer is needed.
        outlet.arm(transmitted.next.filter(|_| transmitted.paused_until.is_none()));
        transmitted
    }

    /// Sends more of the large sample in progress. With `is_last`, the timer thread continues after
    /// that.
    pub(crate) fn send_more(&self, outlet: &Outlet, is_last: bool) -> Transmitted {
        let sending = self.sending.lock();
        let mut core = self.core.lock();
        if is_last {
            core.leave_sample();
        }
        self.send_here_on(outlet, (core, sending), clock::now(), Occasion::Write)
    }

    /// Sends the pieces of a large sample encoded so far, within the turn that writes it.
    pub(crate) fn send_piece(
        &self,
        outlet: &Outlet,
        core: MutexGuard<'_, WriterState>,
        sends: &mut Sends<'_>,
    ) {
        if let Sends::Here(sending) = sends {
            self.transmit(outlet, (core, sending), clock::now(), Occasion::Piece);
        }
    }

    /// Does what is due, on the timer thread. Returns when something is due next.
    pub(crate) fn timeout(&self, outlet: &Outlet, now: Time) -> Option<Time> {
        // A direct send holds this lock during its system call. Other writers must not wait for
        // that.
        let Some(core) = self.core.try_lock_for(BUSY_WRITER) else { return Some(now + BUSY_WRITER) };
        let next = core.next_timeout()?;
        drop(core);
        if next > now {
            return Some(next);
        }
        let Some(publishing) = &self.publishing else {
            // Taken first, so that samples leave in sequence order after a send in progress.
            let mut sending = self.sending.lock();
            return self.transmit(outlet, (self.core.lock(), &mut sending), now, Occasion::Timer).next;
        };
        let next = {
            let mut core = self.core.lock();
            core.handle_timeout(now);
            self.note_silence(&core);
            core.next_timeout()
        };
        publishing.notify();
        // The publishing thread does what is due, and sets the timer for what follows.
        next.filter(|at| *at > now)
    }

    fn note_silence(&self, core: &WriterCore) {
        if core.has_silence() {
            self.has_silence.store(true, Ordering::Relaxed);
        }
    }

    /// Returns what timeouts on this thread showed about readers, if anything.
    pub(crate) fn take_silence(&self) -> Option<Silence> {
        if !self.has_silence.load(Ordering::Relaxed) {
            return None;
        }
        self.has_silence.store(false, Ordering::Relaxed);
        Some(self.core.lock().take_silence())
    }

    /// Sends what is due, on the publishing thread.
    pub(crate) fn publish(&self, outlet: &Outlet) -> Transmitted {
        let mut sending = self.sending.lock();
        let mut core = self.core.lock();
        sending.report(&mut core);
        self.send_here_on(outlet, (core, sending), clock::now(), Occasion::Publish)
    }

    /// Makes the publishing thread, if there is one, check the core.
    pub(crate) fn notify_publisher(&self) {
        self.publishing.iter().for_each(Publishing::notify);
    }

    /// Returns whether a thread may be sending what the core has handed out. The core must be locked: a thread takes
    /// `sending` before it locks the core to hand out samples.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending.is_locked()
    }

    /// Waits for a send in progress. The kernel then has everything that the core handed out
    /// before.
    pub(crate) fn wait_for_sender(&self) {
        drop(self.sending.lock());
    }

    /// Keeps the time spent in the engine since the last send from ending a burst: the application
    /// did not pause.
    #[inline]
    pub(crate) fn note_busy(&self) {
        if self.publishing.is_none() {
            self.sending.lock().sent_at = Some(clock::now());
        }
    }

    /// Opens the sockets for changed destinations, see [`Sender::connect`].
    pub(crate) fn connect(&self, outlet: &Outlet) {
        self.open_sockets(&mut self.sending.lock(), outlet);
    }

    /// Opens all sockets anew, because the host's addresses or routes have changed.
    pub(crate) fn reconnect(&self, outlet: &Outlet) {
        let mut sending = self.sending.lock();
        sending.sender.disconnect();
        self.open_sockets(&mut sending, outlet);
        if sending.sender.has_lost_path() {
            outlet.note_lost_path();
        }
    }

    /// As [`Lane::reconnect`], if a socket has lost its path.
    pub(crate) fn restore_path(&self, outlet: &Outlet) {
        let is_lost = {
            let sending = self.sending.lock();
            sending.sender.has_lost_path() || self.core.lock().has_lost_path()
        };
        if is_lost {
            self.reconnect(outlet);
        }
    }

    /// Changes the priority of what is sent from now on.
    pub(crate) fn set_transport_priority(&self, priority: i32, dscp: u8) {
        let mut sending = self.sending.lock();
        let type_of_service = {
            let mut core = self.core.lock();
            core.set_transport_priority(priority);
            core.set_dscp(dscp);
            core.type_of_service()
        };
        sending.sender.set_type_of_service(type_of_service);
    }

    fn open_sockets(&self, sending: &mut Sending, outlet: &Outlet) {
        let (destinations, routes, datagram_max) = {
            let core = self.core.lock();
            sending.sender.set_type_of_service(core.type_of_service());
            (Arc::clone(core.destinations()), core.routes().to_vec(), core.datagram_max())
        };
        sending.sender.connect(&destinations, &routes, outlet.send_buffer);
        outlet.share_groups(sending.sender.group_sockets());
        sending.sender.fragment_above(datagram_max);
        let connection = sending.sender.connection_to(&destinations).filter(|_| self.publishing.is_none());
        self.core.lock().connect(connection.map(|connection| (destinations, connection)));
    }

    /// Refuses all writes from now on: the participant has failed.
    pub(crate) fn close(&self) {
        let mut core = self.core.lock();
        core.close();
        core.connect(None);
    }

    /// Enables send timestamps.
    pub(crate) fn keep_times(&self) {
        self.sending.lock().sender.times = Some(SendTimes::default());
        self.core.lock().times = Some(SendTimes::default());
    }

    /// Returns when data was last sent. `None`: stage timing is disabled.
    pub(crate) fn last_send_times(&self) -> Option<SendTimes> {
        let sending = self.sending.lock();
        let direct = self.core.lock().times;
        sending.sender.times.into_iter().chain(direct).max_by_key(|times| times.called_ns)
    }

    /// Returns what the writer has sent, without repairs sent by receiving threads.
    pub(crate) fn send_counters(&self) -> SendCounters {
        let sending = self.sending.lock();
        let direct = self.core.lock().counters;
        sending.sender.counters.plus(direct)
    }
}

impl Sending {
    /// Records the end of a send call for samples that the core handed out at `now`.
    #[inline]
    fn note_sent(&mut self, now: Time, occasion: Occasion) {
        let sent_at = clock::now();
        if occasion != Occasion::Publish {
            self.sent_at = Some(sent_at);
        }
        if matches!(occasion, Occasion::Write | Occasion::Publish) {
            self.send_time = Some(sent_at.since(now));
        }
    }

    /// Reports the last send to the core, which detects bursts by it. The core was no longer locked
    /// when the send ended.
    #[inline]
    fn report(&mut self, core: &mut WriterCore) {
        if let Some(at) = self.sent_at.take() {
            core.note_sent(at);
        }
        if let Some(took) = self.send_time.take() {
            core.note_send_time(took);
        }
    }
}

/// Leaves a sample to the publishing thread, and notifies that thread unless the sample is held
/// back.
#[inline]
fn leave_to(publishing: &Publishing, outlet: &Outlet, mut core: MutexGuard<'_, WriterState>, now: Time) {
    core.replace_unsent();
    if core.is_transmission_due(now) {
        drop(core);
        publishing.notify();
        return;
    }
    let next = core.next_timeout().filter(|_| core.paused_until().is_none());
    if core.has_unsent() {
        outlet.note_queued();
    }
    drop(core);
    outlet.arm(next);
}

#[cfg(test)]
mod tests {
    use weir_rtps::qos::Reliability;
    use weir_rtps::writer::WriterConfig;
    use weir_wire::{EntityId, Guid, GuidPrefix};

    use super::*;

    #[test]
    fn a_thread_with_a_turn_may_be_sending_and_one_that_has_the_core_is_not() {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
        let lane = Lane::new(WriterCore::new(WriterConfig::new(guid, Reliability::Reliable)), None);
        let turn = lane.turn();
        assert!(lane.is_sending());
        drop(turn);
        let core = lane.core();
        assert!(!lane.is_sending());
        drop(core);
    }
}
