//! Turns discovery events into matches, statuses and listener calls.

use std::any::Any;
use std::net::SocketAddrV4;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::discovery_event::{DiscoveryEvent, RemoteEndpoint};
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::ParticipantCore;
use weir_rtps::path::Path;
use weir_rtps::qos::{Durability, Reliability, XCDR1};
use weir_rtps::reader::{WriterPolicies, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_rtps::writer::ReaderProxyConfig;
use weir_udp::Fragments;
use weir_wire::Guid;

use super::discovery::State;
use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use super::events::{ReaderEvent, WriterEvent};
use super::failure::text_of;
use super::listeners::Call;
use super::paths::is_elsewhere;
use super::routes::RouteChange;
use super::shared::Driver;
use crate::builtin_subscriber::BuiltinReaders;
use crate::clock;
use crate::error::{DdsError, Result};
use crate::status::Matches;

/// An endpoint that waits for matches, in words.
pub(crate) struct MatchOf {
    pub(crate) endpoint: &'static str,
    pub(crate) others: &'static str,
    pub(crate) what: &'static str,
}

impl Driver {
    /// Runs `f` on the discovery core, then applies the resulting events and sends the resulting
    /// messages.
    pub(crate) fn with_discovery<R>(&self, f: impl FnOnce(&mut ParticipantCore, Time) -> R) -> R {
        let mut followed = Followed::default();
        let attempt = {
            let mut state = self.discovery.state.lock();
            let run = || self.run_discovery(&mut state, &mut followed, f);
            let attempt = catch_unwind(AssertUnwindSafe(run));
            if attempt.is_err() {
                // No other thread may find what the panic has left.
                state.reset(|goodbye| self.meta.send(goodbye));
            }
            attempt
        };
        let result = attempt.unwrap_or_else(|panic| self.pass_on(panic));
        if !followed.calls.is_empty() || self.state.contained.is_searched() {
            self.announce_discovery();
        }
        self.listeners.call(followed.calls);
        result
    }

    /// Wakes threads that wait for discovery.
    pub(crate) fn announce_discovery(&self) {
        self.discovery.announce_change();
        if self.polling.is_some() {
            // They poll, too.
            self.channel.announce_change();
        }
    }

    /// Lets the threads that wait for an endpoint notice that it was closed.
    pub(crate) fn announce_end(&self) {
        self.announce_discovery();
        self.channel.announce_change();
    }

    /// Continues a panic in discovery. It is the participant's failure, even if it is in a thread of the application:
    /// the thread of the timers, which holds nothing that the end needs, ends the participant.
    #[cold]
    fn pass_on(&self, panic: Box<dyn Any + Send>) -> ! {
        let thread = std::thread::current().name().unwrap_or("application").to_owned();
        self.discovery.note_panic(thread, text_of(&*panic));
        self.outlet.timers.wake();
        resume_unwind(panic)
    }

    fn run_discovery<R>(
        &self,
        state: &mut State,
        followed: &mut Followed,
        f: impl FnOnce(&mut ParticipantCore, Time) -> R,
    ) -> R {
        let now = clock::now();
        let result = f(&mut state.core, now);
        let events: Vec<_> = std::iter::from_fn(|| state.core.poll_event()).collect();
        self.route(&events);
        for event in events {
            self.apply(now, event, state, followed);
        }
        self.follow_up(followed);
        self.report_to_builtin(now, &mut state.core, followed);
        if !self.state.is_enabled() {
            return result;
        }
        // Sent after the events were applied: a peer that matches on this message finds the
        // endpoints ready.
        state.core.poll_transmit(now, &mut state.outbox);
        self.meta.send(&state.outbox);
        state.outbox.clear();
        state.core.poll_questions(&mut state.outbox);
        self.meta.send_questions(&state.outbox);
        state.outbox.clear();
        state.outbox.shrink();
        if !state.user_outbox.is_empty() {
            state.packing.pack(&mut state.user_outbox, &mut state.outbox);
            self.outlet.send_now(&self.meta, &state.outbox);
            state.outbox.clear();
            state.outbox.shrink();
            state.user_outbox.shrink();
            state.packing.shrink();
        }
        self.outlet.arm(state.core.next_timeout());
        result
    }

    /// Waits until `is_done` after a change of matches or the end, or until `deadline`. Returns whether it is done.
    pub(crate) fn wait_for_matches(&self, deadline: Time, is_done: impl FnMut() -> bool) -> bool {
        if self.polling.is_some() {
            return self.receive_until(Some(deadline), self.wait, is_done);
        }
        self.discovery.wait_until(deadline, is_done)
    }

    /// Waits until an endpoint has `count` matches. `of`: the endpoint in words.
    ///
    /// # Errors
    /// Fewer are in time, or the endpoint or the participant has ended.
    pub(crate) fn wait_for_match_count(
        &self,
        (matched, count): (&Mutex<Matches>, u64),
        timeout: Duration,
        is_closed: impl Fn() -> bool,
        of: &MatchOf,
    ) -> Result<()> {
        let is_over = || self.has_ended() || is_closed();
        let is_done = || is_over() || matched.lock().current_count >= count;
        let is_done = self.wait_for_matches(clock::now() + timeout, is_done);
        self.check()?;
        if is_closed() {
            return Err(DdsError::AlreadyDeleted(of.endpoint));
        }
        if is_done {
            return Ok(());
        }
        let hint = format!(": {} of {count} {} are matched", matched.lock().current_count, of.others);
        Err(DdsError::Timeout { what: of.what, waited: timeout, hint })
    }

    /// Reports what has changed to the builtin readers, if they exist.
    fn report_to_builtin(&self, now: Time, core: &mut ParticipantCore, followed: &mut Followed) {
        if !core.is_observed() {
            return;
        }
        let Some(readers) = self.builtin.lock().upgrade() else { return core.set_observed(false) };
        let news = readers.report(core, now, self.wall_clock.timestamp(now));
        if !news.is_empty() {
            // Threads may wait for these readers.
            self.channel.announce_change();
        }
        followed.calls.extend(news.into_iter().map(Call::News));
        followed.builtin = Some(readers);
    }

    /// Does what is due in discovery. Returns when something is due next.
    pub(crate) fn discovery_timeout(&self, now: Time) -> Option<Time> {
        if !self.state.is_enabled() {
            return None;
        }
        let next = self.discovery.state.lock().core.next_timeout()?;
        if next > now {
            return Some(next);
        }
        self.with_discovery(|core, now| {
            self.report_assertions(core, now);
            core.handle_timeout(now);
            core.next_timeout()
        })
    }

    /// Changes the routes of samples for all events at once: each change copies the table.
    ///
    /// A reader gets the samples of a writer before they are matched, and counts them as unmatched. In the other order,
    /// samples in between would not reach a reader that already waits for them.
    fn route(&self, events: &[DiscoveryEvent]) {
        let table = self.routes.table();
        let changes: Vec<_> =
            events.iter().filter_map(|event| RouteChange::of(event, &table.readers)).collect();
        drop(table);
        if !changes.is_empty() {
            self.routes.change(|table| changes.into_iter().for_each(|change| change.apply(table)));
        }
    }

    /// Does once what many events require.
    fn follow_up(&self, followed: &mut Followed) {
        followed.writers.drain(..).for_each(|writer| writer.lane.connect(&self.outlet));
        // Counted after the matches are complete: a thread that waits for them may write at once.
        for (endpoint, guid) in followed.matched.drain(..) {
            match endpoint {
                Endpoint::Writer(writer) => writer.matched.lock().matched(guid),
                Endpoint::Reader(reader) => reader.matched.lock().matched(guid),
            }
        }
    }

    fn apply(&self, now: Time, event: DiscoveryEvent, state: &mut State, followed: &mut Followed) {
        let table = self.routes.table();
        match event {
            DiscoveryEvent::ReaderMatched { writer, reader } => {
                let Some(writer) = table.writers.get(&writer) else { return };
                let guid = reader.guid;
                if !reader.delimits_keys {
                    writer.without_key_delimiters.lock().insert(guid);
                }
                writer.note_expectation(guid, reader.expects_inline_qos);
                let path = self.paths.to_reader(&reader);
                let segment_max = self.watch_path_size(now, &reader.destinations, path.is_some(), state);
                self.match_reader(now, writer, reader, (segment_max, path), &mut state.user_outbox);
                followed.connect(writer);
                followed.matched.push((Endpoint::Writer(Arc::clone(writer)), guid));
                followed.calls.push(Call::Writer(Arc::clone(writer), WriterEvent::Matched));
            }
            DiscoveryEvent::ReaderChanged { writer, reader } => {
                let Some(writer) = table.writers.get(&writer) else { return };
                writer.note_expectation(reader.guid, reader.expects_inline_qos);
                let path = self.paths.to_reader(&reader);
                let segment_max = self.watch_path_size(now, &reader.destinations, path.is_some(), state);
                self.change_reader(now, writer, reader, (segment_max, path));
                followed.connect(writer);
                writer.lane.notify_publisher();
            }
            DiscoveryEvent::ReaderUnmatched { writer, reader } => {
                let Some(writer) = table.writers.get(&writer) else { return };
                let mut core = writer.lane.core();
                core.unmatch_reader(now, reader);
                self.outlet.arm(core.next_timeout());
                drop(core);
                writer.without_key_delimiters.lock().remove(&reader);
                writer.note_expectation(reader, false);
                followed.connect(writer);
                // A large sample that waited for this reader continues without it.
                writer.lane.notify_publisher();
                writer.matched.lock().unmatched(reader);
                // Threads that wait for this reader's acknowledgements check again.
                self.channel.announce_change();
                followed.calls.push(Call::Writer(Arc::clone(writer), WriterEvent::Matched));
            }
            DiscoveryEvent::OfferedIncompatibleQos { writer, policies, .. } => {
                let Some(writer) = table.writers.get(&writer) else { return };
                writer.incompatible.lock().found(policies);
                followed.calls.push(Call::Writer(Arc::clone(writer), WriterEvent::Incompatible));
            }
            DiscoveryEvent::InconsistentTopic { local, other, type_name, difference } => {
                let of_writer = || table.writers.get(&local).map(|writer| &writer.topic);
                let of_reader = || table.readers.get(&local).map(|reader| &reader.topic);
                let Some(topic) = of_writer().or_else(of_reader) else { return };
                if topic.found(other, String::clone(&type_name), difference) {
                    followed.calls.push(Call::Topic(Arc::clone(topic)));
                }
            }
            DiscoveryEvent::LivelinessLost { writer } => {
                let Some(writer) = table.writers.get(&writer) else { return };
                writer.assertions.lost();
                writer.liveliness_lost.lock().lost();
                followed.calls.push(Call::Writer(Arc::clone(writer), WriterEvent::LivelinessLost));
            }
            DiscoveryEvent::PathSizeChanged { host, size } => {
                let is_used =
                    |writer: &&Arc<WriterEndpoint>| writer.lane.core().set_path_size(now, host, size);
                table.writers.values().filter(is_used).for_each(|writer| followed.connect(writer));
                // Earlier samples may be longer.
                let _ = self.outlet.socket().set_fragments(Fragments::Allowed);
            }
            other => self.apply_to_reader(now, other, &mut state.user_outbox, followed),
        }
    }

    fn apply_to_reader(&self, now: Time, event: DiscoveryEvent, out: &mut Outbox, followed: &mut Followed) {
        let table = self.routes.table();
        match event {
            DiscoveryEvent::WriterMatched { reader, writer } => {
                let Some(reader) = table.readers.get(&reader) else { return };
                let guid = writer.guid;
                self.match_writer(now, reader, writer, out);
                followed.matched.push((Endpoint::Reader(Arc::clone(reader)), guid));
                followed.calls.push(Call::Reader(Arc::clone(reader), ReaderEvent::Matched));
                followed.calls.push(Call::Reader(Arc::clone(reader), ReaderEvent::LivelinessChanged));
            }
            DiscoveryEvent::WriterChanged { reader, writer } => {
                let Some(reader) = table.readers.get(&reader) else { return };
                let mut core = reader.core.lock();
                core.set_writer_policies(writer.guid, WriterPolicies::of(&writer.qos));
                core.move_writer(writer.guid, writer.destinations);
            }
            DiscoveryEvent::WriterUnmatched { reader, writer } => {
                let Some(reader) = table.readers.get(&reader) else { return };
                let mut core = reader.core.lock();
                core.unmatch_writer(now, writer);
                self.outlet.arm(core.next_timeout());
                drop(core);
                reader.matched.lock().unmatched(writer);
                followed.calls.push(Call::Reader(Arc::clone(reader), ReaderEvent::Matched));
                followed.calls.push(Call::News(Arc::clone(reader)));
                // Instances without writers are news for threads that wait for data.
                self.channel.announce_change();
            }
            DiscoveryEvent::RequestedIncompatibleQos { reader, policies, .. } => {
                let Some(reader) = table.readers.get(&reader) else { return };
                reader.incompatible.lock().found(policies);
                followed.calls.push(Call::Reader(Arc::clone(reader), ReaderEvent::Incompatible));
            }
            DiscoveryEvent::LivelinessAsserted { prefix, kind } => {
                let concerned = table.readers.values().filter(|reader| {
                    let mut core = reader.core.lock();
                    core.assert_liveliness(now, prefix, kind);
                    self.outlet.arm(core.next_timeout());
                    core.has_liveliness_news() && reader.has_listener()
                });
                followed.calls.extend(
                    concerned.map(|reader| Call::Reader(Arc::clone(reader), ReaderEvent::LivelinessChanged)),
                );
            }
            // Participants themselves are not reported to the application.
            _ => {}
        }
    }

    fn match_reader(
        &self,
        now: Time,
        writer: &WriterEndpoint,
        reader: RemoteEndpoint,
        (segment_max, path): (u16, Option<Path>),
        out: &mut Outbox,
    ) {
        let (guid, content_filter) = (reader.guid, reader.content_filter);
        let mut core = writer.lane.core();
        core.match_reader(
            now,
            ReaderProxyConfig {
                guid: reader.guid,
                reliable: reader.qos.reliability == Reliability::Reliable,
                wants_history: reader.qos.durability != Durability::Volatile,
                destinations: reader.destinations,
                group: reader.group.filter(|_| writer.uses_multicast),
                vendor: reader.vendor,
                receive_buffer: reader.receive_buffer,
                segment_max,
                path,
            },
        );
        core.set_content_filter(guid, content_filter.as_deref());
        core.spare_heartbeat(guid);
        if writer.lane.is_sending() {
            core.poll_answers_beside_sender(now, out);
        } else {
            core.poll_answers(now, out);
        }
        self.outlet.arm(core.next_timeout());
    }

    fn change_reader(
        &self,
        now: Time,
        writer: &WriterEndpoint,
        reader: RemoteEndpoint,
        (segment_max, path): (u16, Option<Path>),
    ) {
        let mut core = writer.lane.core();
        let group = reader.group.filter(|_| writer.uses_multicast);
        core.move_reader(now, reader.guid, reader.destinations, group, segment_max, path);
        core.set_content_filter(reader.guid, reader.content_filter.as_deref());
        self.outlet.arm(core.next_timeout());
    }

    /// Returns the size in bytes of the largest datagram that reaches all of `to` unfragmented, and has that verified
    /// for another host.
    fn watch_path_size(&self, now: Time, to: &[SocketAddrV4], is_elsewhere: bool, state: &mut State) -> u16 {
        let known = self.network.segment_max(now, to);
        let unicast = to.iter().filter(|to| is_elsewhere && !to.ip().is_multicast());
        let watched = unicast.map(|to| {
            let most = self.network.segment_max(now, &[*to]);
            state.core.watch_path_size(now, *to.ip(), most)
        });
        watched.min().map_or(known, |size| size.min(known))
    }

    fn match_writer(
        &self,
        now: Time,
        reader: &Arc<ReaderEndpoint>,
        writer: RemoteEndpoint,
        out: &mut Outbox,
    ) {
        let guid = writer.guid;
        let is_elsewhere = is_elsewhere(&writer.destinations);
        let has_sent = self.routes.unmatched.has(guid);
        {
            let mut core = reader.core.lock();
            core.match_writer(
                now,
                WriterProxyConfig {
                    guid,
                    reliable: writer.qos.reliability == Reliability::Reliable,
                    destinations: writer.destinations,
                    vendor: writer.vendor,
                },
            );
            if is_elsewhere {
                core.note_elsewhere(guid);
            }
            core.set_liveliness(now, guid, writer.qos.liveliness);
            core.set_writer_policies(guid, WriterPolicies::of(&writer.qos));
            if let Some(publisher) = writer.qos.group {
                core.set_writer_group(guid, Guid::new(guid.prefix, publisher));
            }
            core.note_representation(guid, writer.qos.representation.first().copied().unwrap_or(XCDR1));
            if writer.qos.durability != Durability::Volatile {
                core.note_history(guid);
            }
            if !is_elsewhere && !has_sent {
                core.await_heartbeat(guid);
            }
            core.poll_transmit(now, out);
            self.outlet.arm(core.next_timeout());
        }
    }
}

/// What follows from events, and is done once for all of them.
#[derive(Default)]
struct Followed {
    calls: Vec<Call>,
    /// Writers with other destinations than before.
    writers: Vec<Arc<WriterEndpoint>>,
    /// New matches of local endpoints.
    matched: Vec<(Endpoint, Guid)>,
    /// Dropped without the lock of discovery: it may be the last handle.
    builtin: Option<Arc<BuiltinReaders>>,
}

enum Endpoint {
    Writer(Arc<WriterEndpoint>),
    Reader(Arc<ReaderEndpoint>),
}

impl Followed {
    fn connect(&mut self, writer: &Arc<WriterEndpoint>) {
        if !self.writers.iter().any(|known| Arc::ptr_eq(known, writer)) {
            self.writers.push(Arc::clone(writer));
        }
    }
}
