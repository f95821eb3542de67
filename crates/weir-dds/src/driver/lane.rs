//! A writer's lane: its core and what its samples are sent with, each behind a lock.
//!
//! A thread that writes takes a [`Turn`]. What is to be sent leaves by [`Lane::transmit`], on whatever occasion: the
//! core hands it out, its lock is released, the outlet sends it, and the timer is set for what is due later.
//!
//! Lock order: `sending`, then `core`. A single-sample datagram is sent with `core` alone locked, while no thread holds
//! `sending`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use weir_rtps::outbox::Outbox;
use weir_rtps::time::Time;
use weir_rtps::writer::WriterCore;

use super::direct::WriterState;
use super::outlet::Outlet;
use super::publishing::Publishing;
use super::sender::{SendCounters, Sender};
use crate::clock;
use crate::stage_times::SendTimes;

/// How long the timers' thread waits for a writer that is sending, before it serves the others.
const BUSY_WRITER: Duration = Duration::from_micros(500);

/// A writer's core, and what its samples are sent with.
pub(crate) struct Lane {
    /// Held while samples are handed out and sent, so that they leave in the order of their numbers.
    sending: Mutex<Sending>,
    core: Mutex<WriterState>,
    /// The next sample is probably a single-sample datagram: the last one was, and the core knows of all sends before it.
    expects_direct: AtomicBool,
    /// Of a writer whose samples a thread of its own sends.
    pub(crate) publishing: Option<Publishing>,
}

/// What is needed to send.
#[derive(Default)]
pub(crate) struct Sending {
    outbox: Outbox,
    sender: Sender,
    /// When the last send call ended, if the core does not know yet.
    sent_at: Option<Time>,
    /// How long the write took that it ended, if the core does not know yet.
    send_time: Option<Duration>,
}

/// A turn of one thread at a writer.
pub(crate) struct Turn<'a> {
    pub(crate) core: MutexGuard<'a, WriterState>,
    pub(crate) sends: Sends<'a>,
}

/// How samples that are written in a turn leave.
pub(crate) enum Sends<'a> {
    /// This thread sends them.
    Here(MutexGuard<'a, Sending>),
    /// The writer's publishing thread does.
    Publisher(&'a Publishing),
    /// Only directly, under the lock of the core; for anything else, [`Lane::in_order`] takes another turn.
    Direct,
}

/// Why a lane hands samples out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A sample was written: everything leaves but what a burst or a batch holds back.
    Write,
    /// Everything leaves.
    Flush,
    /// The application has begun to wait: everything leaves, and the next write is the first of its kind.
    EndOfBurst,
    /// A timer has expired.
    Timer,
    /// The publishing thread takes what there is.
    Publish,
    /// The application is alive.
    Assertion,
    /// A piece of a large sample was encoded, and more follows.
    Piece,
}

/// What a transmission has left behind.
#[derive(Clone, Copy)]
pub(crate) struct Transmitted {
    /// Whether anything was sent.
    pub(crate) has_sent: bool,
    /// A large sample was begun and not finished.
    pub(crate) is_amid_sample: bool,
    /// The end of the pause in it, if it leaves with pauses.
    pub(crate) paused_until: Option<Time>,
    /// More than half of the window is in flight: acknowledgements are due.
    pub(crate) awaits_acknowledgements: bool,
    /// A write that was refused may find room now.
    pub(crate) makes_room: bool,
    /// When something is due next.
    next: Option<Time>,
}

impl Lane {
    pub(crate) fn new(core: WriterCore, publishing: Option<Publishing>) -> Self {
        Self {
            sending: Mutex::default(),
            core: Mutex::new(WriterState::new(core)),
            expects_direct: AtomicBool::new(false),
            publishing,
        }
    }

    /// The core alone: for acknowledgements, statuses, and samples that are added to an open batch.
    #[inline]
    pub(crate) fn core(&self) -> MutexGuard<'_, WriterState> {
        self.core.lock()
    }

    /// A turn at the writer.
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

    /// A turn for a sample that probably leaves by itself: only the core is locked, if no thread is sending.
    #[inline]
    pub(crate) fn direct_turn(&self) -> Turn<'_> {
        if self.expects_direct() {
            let core = self.core.lock();
            // A thread that holds `sending` and hands samples out locks the core after it: it is seen here, or has handed
            // out nothing.
            if !self.sending.is_locked() {
                return Turn { core, sends: Sends::Direct };
            }
        }
        self.turn()
    }

    /// The same turn for a sample that does not leave by itself.
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

    /// Ends a turn in which a sample was sent directly.
    #[inline]
    pub(crate) fn end_direct(&self, outlet: &Outlet, turn: Turn<'_>) {
        if !matches!(turn.sends, Sends::Direct) {
            self.expects_direct.store(true, Ordering::Relaxed);
        }
        let next = turn.core.next_timeout();
        drop(turn);
        arm(outlet, next);
    }

    /// Hands out what is due, sends it, and sets the timer for what is due later. All samples of a writer but those that
    /// are sent directly leave here.
    #[inline]
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

    /// Ends a turn: sends what was written, or has it sent in time. `None`: another thread sends.
    #[inline]
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

    /// Ends a turn: sends everything, also what a burst or a batch holds back.
    pub(crate) fn flush(&self, outlet: &Outlet, turn: Turn<'_>, now: Time) {
        self.send_on(outlet, turn, now, Occasion::Flush);
    }

    /// Shows that the application is alive.
    pub(crate) fn assert_liveliness(&self, outlet: &Outlet, now: Time) {
        let sending = self.sending.lock();
        self.send_here(outlet, (self.core.lock(), sending), now, Occasion::Assertion);
    }

    /// Sends what automatic coalescing holds back: the application has begun to wait.
    pub(crate) fn end_burst(&self, outlet: &Outlet) {
        self.send_on(outlet, self.turn(), clock::now(), Occasion::EndOfBurst);
    }

    fn send_on(&self, outlet: &Outlet, turn: Turn<'_>, now: Time, occasion: Occasion) {
        let Turn { mut core, sends } = turn;
        match sends {
            Sends::Here(sending) => _ = self.send_here(outlet, (core, sending), now, occasion),
            Sends::Publisher(publishing) => {
                core.replace_unsent();
                match occasion {
                    Occasion::EndOfBurst => core.interrupt_burst(),
                    _ => core.release_held(),
                }
                drop(core);
                publishing.tell();
            }
            Sends::Direct => {}
        }
    }

    #[inline]
    fn send_here(
        &self,
        outlet: &Outlet,
        (core, mut sending): (MutexGuard<'_, WriterState>, MutexGuard<'_, Sending>),
        now: Time,
        occasion: Occasion,
    ) -> Transmitted {
        let transmitted = self.transmit(outlet, (core, &mut sending), now, occasion);
        // What is received later calls listeners, and those may write.
        drop(sending);
        // After a pause this thread goes on.
        arm(outlet, transmitted.next.filter(|_| transmitted.paused_until.is_none()));
        transmitted
    }

    /// Sends more of the large sample that was begun; with `is_last`, the timers' thread goes on with it.
    pub(crate) fn send_more(&self, outlet: &Outlet, is_last: bool) -> Transmitted {
        let sending = self.sending.lock();
        let mut core = self.core.lock();
        if is_last {
            core.leave_sample();
        }
        self.send_here(outlet, (core, sending), clock::now(), Occasion::Write)
    }

    /// Sends what is there of a large sample while the rest is being encoded, within the turn that writes it.
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

    /// Does what is due, on the timers' thread. Returns when something is due next.
    pub(crate) fn timeout(&self, outlet: &Outlet, now: Time) -> Option<Time> {
        // A direct send holds this lock while it waits for the kernel. Other writers do not wait for it, too.
        let Some(core) = self.core.try_lock_for(BUSY_WRITER) else { return Some(now + BUSY_WRITER) };
        let next = core.next_timeout()?;
        drop(core);
        if next > now {
            return Some(next);
        }
        let Some(publishing) = &self.publishing else {
            // Samples leave in order: behind a send that is under way.
            let mut sending = self.sending.lock();
            return self.transmit(outlet, (self.core.lock(), &mut sending), now, Occasion::Timer).next;
        };
        let next = {
            let mut core = self.core.lock();
            core.handle_timeout(now);
            core.next_timeout()
        };
        publishing.tell();
        // What is due is the publishing thread's, which sets the timer for what follows.
        next.filter(|at| *at > now)
    }

    /// Sends what is due, on the publishing thread.
    pub(crate) fn publish(&self, outlet: &Outlet) -> Transmitted {
        let mut sending = self.sending.lock();
        let mut core = self.core.lock();
        sending.report(&mut core);
        self.send_here(outlet, (core, sending), clock::now(), Occasion::Publish)
    }

    /// Makes the publishing thread check the core, if there is such a thread.
    pub(crate) fn tell_publisher(&self) {
        self.publishing.iter().for_each(Publishing::tell);
    }

    /// Waits for a send that is under way. Whatever the core has handed out before, the kernel has then.
    pub(crate) fn wait_for_sender(&self) {
        drop(self.sending.lock());
    }

    /// The time until now was the engine's, not the application's: it does not end a burst.
    #[inline]
    pub(crate) fn note_busy(&self) {
        if self.publishing.is_none() {
            self.sending.lock().sent_at = Some(clock::now());
        }
    }

    /// Follows a change of the writer's destinations, see [`Sender::connect`].
    pub(crate) fn connect(&self) {
        let mut sending = self.sending.lock();
        let (destinations, routes) = {
            let core = self.core.lock();
            (Arc::clone(core.destinations()), core.routes().to_vec())
        };
        sending.sender.connect(&destinations, &routes);
        let connection = sending.sender.connection_to(&destinations).filter(|_| self.publishing.is_none());
        self.core.lock().connect(connection.map(|connection| (destinations, connection)));
    }

    /// Enables send timestamps.
    pub(crate) fn keep_times(&self) {
        self.sending.lock().sender.times = Some(SendTimes::default());
        self.core.lock().times = Some(SendTimes::default());
    }

    /// When something was last sent; `None`: stage timing is disabled.
    pub(crate) fn last_send_times(&self) -> Option<SendTimes> {
        let sending = self.sending.lock();
        let direct = self.core.lock().times;
        sending.sender.times.into_iter().chain(direct).max_by_key(|times| times.called_ns)
    }

    /// What was sent, repairs by other threads not included.
    pub(crate) fn send_counters(&self) -> SendCounters {
        let sending = self.sending.lock();
        let direct = self.core.lock().counters;
        sending.sender.counters.plus(direct)
    }
}

impl Sending {
    /// Takes note of a send that has ended, of samples that the core handed out at `now`.
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

    /// Reports the last send to the core, which tells a burst by it. Not earlier: the core was not locked any more.
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

/// Leaves a sample to the publishing thread, which is told of it unless the sample is still held back.
#[inline]
fn leave_to(publishing: &Publishing, outlet: &Outlet, mut core: MutexGuard<'_, WriterState>, now: Time) {
    core.replace_unsent();
    if core.is_transmission_due(now) {
        drop(core);
        publishing.tell();
        return;
    }
    let next = core.next_timeout().filter(|_| core.paused_until().is_none());
    if core.has_unsent() {
        outlet.note_queued();
    }
    drop(core);
    arm(outlet, next);
}

#[inline]
fn arm(outlet: &Outlet, at: Option<Time>) {
    if let Some(at) = at {
        outlet.timers.arm(at);
    }
}
