//! Receiving: passes a batch to the endpoints, sends their replies, and calls listeners.
//!
//! Three kinds of threads receive: one that waits ([`Driver::receive_until`]), a writer that
//! collects acknowledgements ([`Driver::receive_what_is_there`]), and the background thread. Each
//! takes the role, receives a batch (`Channel::receive`) and calls `take_in`. With the role held,
//! `dispatch` passes the batch to the endpoints and sends their replies. Then `finish_batch`
//! releases the role and calls listeners.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use weir_rtps::ecn::EcnUse;
use weir_rtps::outbox::Outbox;
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::{self, Incoming};
use weir_rtps::time::Time;
use weir_udp::Wait;

use super::channel::{Arrived, Prediction, RECEIVE_TIMEOUT, ReaderNews, Role, RoleGuard};
use super::endpoints::ReaderEndpoint;
use super::routes::BatchEndpoints;
use super::sender::Sender;
use super::shared::Driver;
use crate::clock;
use crate::stage_times::Came;
use crate::wait_strategy::{WaitStrategy, YIELD_EVERY};

/// Rounds of [`CHECKS_BETWEEN_CLOCK_READS`] without data after which a spinning thread checks its
/// condition anyway.
const ROUNDS_BETWEEN_CHECKS: u32 = 4;
/// Receive calls by a spinning thread between two clock reads.
const CHECKS_BETWEEN_CLOCK_READS: u32 = 16;

/// The result of processing a batch.
#[derive(Clone, Copy)]
pub(super) struct TakenIn {
    /// When the batch arrived.
    at: Time,
    /// The reader that the thread waits for has samples, so it need not be locked to check.
    pub(super) has_awaited: bool,
}

impl Driver {
    /// Receives until `is_done` or `deadline`, or until the participant fails. Returns whether it is done.
    ///
    /// Meanwhile, whatever arrives is passed to all endpoints of the participant.
    pub(crate) fn receive_until(
        &self,
        deadline: Option<Time>,
        strategy: WaitStrategy,
        is_done: impl FnMut() -> bool,
    ) -> bool {
        self.receive_for(None, deadline, strategy, is_done)
    }

    /// Receives until `reader` has unread samples or is closed, or until `deadline`. Returns whether it has, or is.
    pub(crate) fn receive_until_unread(
        &self,
        reader: &ReaderEndpoint,
        deadline: Time,
        strategy: WaitStrategy,
        is_closed: impl Fn() -> bool,
    ) -> bool {
        let is_done = || reader.core.lock().has_unread() || is_closed();
        self.receive_for(Some(reader), Some(deadline), strategy, is_done)
    }

    #[inline]
    fn receive_for(
        &self,
        reader: Option<&ReaderEndpoint>,
        deadline: Option<Time>,
        strategy: WaitStrategy,
        mut is_done: impl FnMut() -> bool,
    ) -> bool {
        let deadline = deadline.unwrap_or(Time::MAX);
        if !self.flush_queued() {
            self.wait_in_vain(deadline.since(clock::now()));
            return is_done();
        }
        if is_done() {
            return true;
        }
        if self.polling.is_some() {
            return self.poll_while_waiting(reader, deadline, strategy, is_done);
        }
        let _waiting = self.channel.begin_waiting();
        self.receive_while_waiting(reader, deadline, strategy, &mut is_done)
    }

    fn receive_while_waiting(
        &self,
        reader: Option<&ReaderEndpoint>,
        deadline: Time,
        strategy: WaitStrategy,
        is_done: &mut impl FnMut() -> bool,
    ) -> bool {
        let mut now = clock::now();
        let spin_until = strategy.spin_time().map_or(Time::MAX, |time| now + time);
        for rounds in 1_u32.. {
            let received = match self.channel.try_role() {
                Some(role) if now < spin_until => self.receive_spinning(role, now, reader),
                // Checked with the role held: only its holder is certain to be woken by what
                // happens from here on.
                Some(_) if is_done() => return true,
                Some(role) => self.receive_blocking(role, deadline.since(now), reader),
                None => {
                    self.channel.sleep_until_progress(deadline, is_done);
                    Some(TakenIn { at: clock::now(), has_awaited: false })
                }
            };
            now = received.map_or_else(clock::now, |taken_in| taken_in.at);
            self.channel.note_application(now);
            if received.is_some_and(|taken_in| taken_in.has_awaited) {
                return true;
            }
            // Without data from the socket, only discovery can have changed the condition, which is
            // less urgent.
            let is_check_due =
                received.is_some() || now >= spin_until || rounds.is_multiple_of(ROUNDS_BETWEEN_CHECKS);
            if is_check_due && is_done() {
                return true;
            }
            // A thread that took the role again and again would keep it from the one that closes the participant.
            if now >= deadline || self.has_ended() {
                return is_done();
            }
        }
        is_done()
    }

    /// Polls the socket a few times in quick succession and processes what arrives.
    ///
    /// Returns `None` if nothing arrived. Otherwise the batch is taken to have arrived at `now`,
    /// the beginning of the polls, which saves a clock read.
    #[inline]
    pub(super) fn receive_spinning(
        &self,
        mut role: RoleGuard<'_>,
        now: Time,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        for _ in 0..CHECKS_BETWEEN_CLOCK_READS {
            let arrived = self.channel.receive(&mut role, Wait::DontWait);
            if arrived.count > 0 {
                return Some(self.take_in(role, now, arrived, reader));
            }
            role.is_caught_up = true;
            std::hint::spin_loop();
        }
        let is_yield_due = self.has_one_cpu && now.since(role.yielded_at) >= YIELD_EVERY;
        if is_yield_due {
            role.yielded_at = now;
        }
        drop(role);
        if is_yield_due {
            std::thread::yield_now();
        }
        None
    }

    /// Receives until `until` or `is_done`, in a pause of a writer amid a sample.
    ///
    /// Unlike [`Driver::receive_until`], it may take less than a tick of the kernel. Everything that arrives meanwhile
    /// is processed: answers that were left to the next pause would show a longer and longer round trip, and the pauses
    /// would become longer and longer.
    pub(crate) fn receive_in_pause(&self, until: Time, mut is_done: impl FnMut() -> bool) {
        if self.polling.is_some() {
            self.poll_while_waiting(None, until, self.wait, is_done);
            return;
        }
        let _waiting = self.channel.begin_waiting();
        loop {
            let now = clock::now();
            if now >= until || is_done() || self.has_ended() {
                break;
            }
            let Some(mut role) = self.channel.try_role() else {
                self.channel.sleep_until_progress(until, &mut is_done);
                continue;
            };
            // What another thread has received in the meantime may have ended the pause.
            if is_done() {
                break;
            }
            let arrived = self.channel.receive_within(&mut role, until.since(now));
            let now = clock::now();
            if arrived.count > 0 {
                self.take_in(role, now, arrived, None);
            } else {
                drop(role);
            }
            self.channel.note_application(now);
        }
    }

    /// Processes what has already arrived, unless another thread receives. Writers collect their
    /// acknowledgements this way, so that the background thread need not be woken for them.
    pub(crate) fn receive_what_is_there(&self) {
        if let Some(role) = self.channel.try_role() {
            self.receive_batch(role, Wait::DontWait, None);
            self.channel.note_application(clock::now());
        }
    }

    fn receive_blocking(
        &self,
        mut role: RoleGuard<'_>,
        left: Duration,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        match Patience::of(left) {
            Patience::None => self.receive_batch(role, Wait::DontWait, reader),
            Patience::Exact(left) => self.receive_within(role, left, reader),
            Patience::Ticks(left) => {
                self.channel.set_patience(&mut role, left);
                self.receive_batch(role, Wait::Block, reader)
            }
        }
    }

    /// Receives one batch and processes it. Returns `None` if nothing arrived.
    ///
    /// Not inlined: the test of instructions counts what it does.
    #[inline(never)]
    pub(super) fn receive_batch(
        &self,
        mut role: RoleGuard<'_>,
        wait: Wait,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        let received = match wait {
            Wait::Block => self.channel.receive_or_sleep(&mut role),
            Wait::DontWait => (self.channel.receive(&mut role, wait), None),
        };
        self.finish_receiving(role, received, reader)
    }

    /// As [`Driver::receive_batch`], for a short time.
    #[cold]
    #[inline(never)]
    fn receive_within(
        &self,
        mut role: RoleGuard<'_>,
        left: Duration,
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        let received = self.channel.receive_or_sleep_within(&mut role, left);
        self.finish_receiving(role, received, reader)
    }

    /// Processes what was received, if anything was.
    #[inline(always)]
    fn finish_receiving(
        &self,
        role: RoleGuard<'_>,
        (arrived, now): (Arrived, Option<Time>),
        reader: Option<&ReaderEndpoint>,
    ) -> Option<TakenIn> {
        if arrived.count == 0 {
            drop(role);
            return None;
        }
        Some(self.take_in(role, now.unwrap_or_else(clock::now), arrived, reader))
    }

    /// Passes the received batch to the endpoints, sends their replies, releases the role, and
    /// calls listeners.
    #[inline(always)]
    pub(super) fn take_in(
        &self,
        mut role: RoleGuard<'_>,
        now: Time,
        arrived: Arrived,
        reader: Option<&ReaderEndpoint>,
    ) -> TakenIn {
        self.dispatch(&mut role, now, arrived);
        TakenIn { at: now, has_awaited: self.finish_batch(role, reader) }
    }

    /// Passes the received batch to the endpoints, and sends their replies.
    #[inline(always)]
    fn dispatch(&self, role_mut: &mut Role, now: Time, arrived: Arrived) {
        let came = Came::now(self.keeps_times, &role_mut.received);
        if self.ecn.usage() != EcnUse::Unused {
            self.note_marks(role_mut);
        }
        role_mut.adapt_limit(arrived.count, now);
        if role_mut.table_version != self.routes.version() {
            role_mut.table_version = self.routes.version();
            role_mut.table = self.routes.table();
            role_mut.prediction = None;
        }
        let Role {
            received, blocks, table, table_version, batch, prediction, counters, outbox, sender, ..
        } = role_mut;
        counters.batches += 1;
        let before = batch.counters.datagrams;
        let endpoints = BatchEndpoints { table, came, driver: self, received: Cell::new(None) };
        let incoming =
            Incoming { endpoints: &endpoints, prediction: prediction.as_deref(), prefix: self.prefix, now };
        let next = match received.single_datagram_len() {
            Some(len) => {
                let block = blocks.take_single(received, len);
                endpoints.received.set(Some(received));
                let datagram = block.map_or_else(|| received.first_bytes(len), |block| &block.bytes()[..len]);
                receiver::receive_single(incoming, datagram, block, batch, outbox)
            }
            None => {
                endpoints.received.set(Some(received));
                let datagrams = received.messages().enumerate().flat_map(|(index, message)| {
                    self.channel.note_message(index);
                    message.datagrams()
                });
                receiver::receive_many(incoming, datagrams, None, batch, outbox)
            }
        };
        if batch.may_change_prediction()
            && let Some(next) = batch.next_prediction(prediction.as_deref(), *table_version)
        {
            *prediction = Some(Box::new(next));
        }
        if arrived.is_multicast {
            counters.multicast += batch.counters.datagrams - before;
        }
        if !outbox.is_empty() {
            self.outlet.send(sender, outbox);
        }
        if let Some(at) = next {
            // The earliest of several endpoints.
            self.outlet.timers.arm_for_several(at);
        }
        self.channel.counters.store(*counters, batch.counters);
    }

    /// Counts the congestion marks of a batch, once a writer has requested them.
    #[cold]
    fn note_marks(&self, role: &Role) {
        if self.ecn.usage() == EcnUse::Counted {
            for message in role.received.messages() {
                self.ecn.note(message.bytes, message.datagram_count(), message.type_of_service);
            }
        } else if self.channel.socket.report_type_of_service().is_ok() {
            self.ecn.begin();
        } else {
            self.ecn.give_up();
        }
    }

    /// [`Driver::receive_what_is_there`] for a thread that holds locks which listeners may need.
    ///
    /// Calls no listeners. Adds the readers concerned to `later`, for
    /// [`Driver::call_data_listeners`].
    pub(crate) fn receive_quietly(&self, later: &mut Vec<ReaderNews>) {
        let Some(mut role) = self.channel.try_role() else { return };
        let arrived = self.channel.receive(&mut role, Wait::DontWait);
        let now = clock::now();
        if arrived.count > 0 {
            self.dispatch(&mut role, now, arrived);
            let Role { batch, prediction, .. } = &mut *role;
            if let (Some(news), Some(prediction)) = (batch.take_predicted(), prediction.as_deref())
                && prediction.reader().has_listener()
            {
                later.push(ReaderNews { reader: Arc::clone(prediction.reader()), news });
            }
            let mut readers = batch.take_readers();
            later.extend(readers.extract_if(.., |it| it.reader.has_listener()));
            batch.give_back(readers);
        }
        drop(role);
        self.channel.note_application(now);
    }

    /// Releases the role, then calls the listeners of the readers that received something.
    ///
    /// Returns whether `reader` is known to have samples. After a call of a listener this is
    /// unknown, because listeners may take any reader's samples.
    #[inline(always)]
    fn finish_batch(&self, mut role: RoleGuard<'_>, reader: Option<&ReaderEndpoint>) -> bool {
        let Some(news) = role.batch.take_predicted() else { return self.finish_unpredicted(role, reader) };
        let has_listener = role.prediction.as_ref().is_some_and(|it| it.reader().has_listener());
        if !has_listener {
            let is_awaited = |prediction: &Prediction| {
                reader.is_some_and(|reader| core::ptr::eq(&**prediction.reader(), reader))
            };
            let has_awaited = news.has_unread && role.prediction.as_deref().is_some_and(is_awaited);
            drop(role);
            return has_awaited;
        }
        let prediction = role.prediction.take();
        drop(role);
        if let Some(prediction) = prediction {
            prediction.reader().notify_of(news);
            self.flush_queued();
            self.give_back(prediction);
        }
        false
    }

    /// [`Driver::finish_batch`] if readers other than the predicted one received something.
    #[inline(never)]
    fn finish_unpredicted(&self, mut role: RoleGuard<'_>, reader: Option<&ReaderEndpoint>) -> bool {
        let batch = &mut role.batch;
        if batch.readers().iter().all(|it| !it.reader.has_listener()) {
            let is_awaited =
                |it: &ReaderNews, reader| it.news.has_unread && core::ptr::eq(&*it.reader, reader);
            let has_awaited =
                reader.is_some_and(|reader| batch.readers().iter().any(|it| is_awaited(it, reader)));
            batch.clear_readers();
            drop(role);
            return has_awaited;
        }
        let readers = batch.take_readers();
        drop(role);
        self.call_data_listeners(&readers);
        self.give_back_list(readers);
        false
    }

    /// Notifies those who wait for these readers of what is new, then calls the listeners. No lock may be held.
    pub(crate) fn call_data_listeners(&self, readers: &[ReaderNews]) {
        for it in readers.iter().filter(|it| it.reader.has_watchers()) {
            it.reader.announce(it.news.has_unread);
        }
        for it in readers.iter().filter(|it| it.reader.has_listener()) {
            it.reader.call_listeners(it.news);
        }
        self.flush_queued();
    }

    /// Requests the samples for which an application has made room in a reader that was full.
    #[cold]
    pub(crate) fn request_refused(&self, mut core: MutexGuard<'_, ReaderCore>) {
        let mut outbox = Outbox::new();
        core.poll_transmit(clock::now(), &mut outbox);
        let next = core.next_timeout();
        drop(core);
        self.outlet.send(&mut Sender::default(), &mut outbox);
        self.outlet.arm(next);
    }

    /// Returns the prediction to the role, unless a later batch made another one.
    fn give_back(&self, prediction: Box<Prediction>) {
        if let Some(mut role) = self.channel.try_role()
            && role.prediction.is_none()
            && role.table_version == prediction.version()
        {
            role.prediction = Some(prediction);
        }
    }

    /// Returns the memory of the list to the role, for the next batch.
    fn give_back_list(&self, readers: Vec<ReaderNews>) {
        if let Some(mut role) = self.channel.try_role() {
            role.batch.give_back(readers);
        }
    }
}

/// How long a receive call may sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    None,
    /// Less than the kernel's timeouts of sockets distinguish.
    Exact(Duration),
    /// Whole milliseconds: a loop with a constant timeout then sets it only once.
    Ticks(Duration),
}

impl Patience {
    /// Chooses how to wait for no longer than `left`.
    fn of(left: Duration) -> Self {
        match left {
            Duration::ZERO => Self::None,
            _ if left < SHORT => Self::Exact(left),
            _ => Self::Ticks(Duration::from_millis(left.min(RECEIVE_TIMEOUT).as_millis() as u64 + 1)),
        }
    }
}

/// What is shorter is measured exactly, which takes two more system calls. A timeout of a socket ends with a tick of
/// the kernel: 1 to 10 ms.
const SHORT: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use weir_udp::{Outgoing, SocketOptions, UdpSocket};
    use weir_wire::{EntityId, GuidPrefix, Header, ProtocolVersion, Receipt, Received, VendorId, push};

    use super::*;
    use crate::{DomainParticipant, ParticipantSettings};

    /// Sends each datagram to a participant without endpoints, which receives them all. Returns it.
    fn participant_that_got(datagrams: &[&[u8]]) -> DomainParticipant {
        let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
        let participant = DomainParticipant::new(18, settings.interface("lo")).unwrap();
        let Driver { channel, .. } = &*participant.handle.driver;
        // The background thread leaves what arrives to this one.
        let waiting = channel.begin_waiting();
        let local = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
        let other = UdpSocket::bind(&SocketOptions::new(local)).unwrap();
        let to = channel.socket.local_addr();
        let before = channel.counters().datagrams;
        for datagram in datagrams {
            other.send_one(&Outgoing::datagram(Some(to), datagram)).unwrap();
        }
        let has_all = || channel.counters().datagrams - before >= datagrams.len() as u64;
        participant.handle.driver.receive_in_pause(Time::MAX, has_all);
        assert!(has_all());
        drop(waiting);
        participant
    }

    #[test]
    fn a_call_without_time_does_not_sleep_and_one_with_little_sleeps_no_longer() {
        let of = |us| Patience::of(Duration::from_micros(us));
        assert_eq!(of(0), Patience::None);
        for us in [1, 999, 1000, 1999] {
            assert_eq!(of(us), Patience::Exact(Duration::from_micros(us)));
        }
        assert_eq!(of(2000), Patience::Ticks(Duration::from_millis(3)));
        assert_eq!(of(20_500), Patience::Ticks(Duration::from_millis(21)));
        assert_eq!(Patience::of(Duration::MAX), Patience::Ticks(RECEIVE_TIMEOUT + Duration::from_millis(1)));
    }

    #[test]
    fn a_pause_takes_in_all_that_arrives() {
        participant_that_got(&[&b"no RTPS message"[..]; 10]);
    }

    #[test]
    fn what_no_endpoint_is_asked_makes_the_kernel_stamp_nothing() {
        let prefix = GuidPrefix([7; 12]);
        let header = Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix };
        let (reader, writer) = (EntityId::UNKNOWN, EntityId::user_writer(1, false));
        for received in [None, Some(Received::default())] {
            let mut message = Vec::new();
            push(&mut message, &header);
            push(&mut message, &Receipt { reader, writer, number: 1, received });
            let participant = participant_that_got(&[&message[..]; 4]);
            let stamped_ns = participant.handle.driver.channel.wait_for_role().received.stamped_ns();
            assert_eq!(stamped_ns, None, "{received:?}");
        }
    }
}
