//! The queue of listener calls.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use weir_udp::Waker;

use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use super::events::{ReaderEvent, WriterEvent};
use super::observers::Cause;
use crate::status_mask::StatusMask;
use crate::topic::TopicState;

/// Most queued calls. Beyond that, each endpoint has at most one call per kind of event.
const CALLS_MAX: usize = 256;

/// A listener call to be made when no lock is held.
pub(crate) enum Call {
    Reader(Arc<ReaderEndpoint>, ReaderEvent),
    /// Checks for samples and reader statuses.
    News(Arc<ReaderEndpoint>),
    Writer(Arc<WriterEndpoint>, WriterEvent),
    Topic(Arc<TopicState>),
}

/// The queue of listener calls. Its thread is started when the first listener is set.
#[derive(Default)]
pub(crate) struct Listeners {
    state: Mutex<State>,
    changed: Condvar,
    /// Woken by queued calls where the application polls.
    waker: Option<Arc<Waker>>,
}

impl Listeners {
    /// Has the application make the calls when it polls, without a thread.
    pub(super) fn polled(waker: Arc<Waker>) -> Self {
        let state = State { calls: VecDeque::new(), has_thread: true };
        Self { state: Mutex::new(state), changed: Condvar::new(), waker: Some(waker) }
    }

    /// Starts the thread with `start` if there is none. If it cannot be started, the reporting
    /// threads call listeners themselves.
    pub(super) fn start(&self, start: impl FnOnce() -> bool) {
        let mut state = self.state.lock();
        if !state.has_thread {
            state.has_thread = start();
        }
    }

    /// Notifies those who wait, then queues calls of listeners for the thread, or makes them if there is none. No lock
    /// may be held.
    ///
    /// A listener may block: what waits is not behind it in the queue.
    pub(crate) fn call(&self, calls: impl IntoIterator<Item = Call>) {
        let mut calls: Vec<_> = calls.into_iter().collect();
        calls.iter().for_each(Call::announce);
        calls.retain(Call::has_listener);
        if calls.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if !state.has_thread {
            drop(state);
            calls.into_iter().for_each(Call::make);
            return;
        }
        for call in calls {
            if state.calls.len() < CALLS_MAX || !state.calls.iter().any(|other| other.is_same(&call)) {
                state.calls.push_back(call);
            }
        }
        drop(state);
        match &self.waker {
            Some(waker) => waker.wake(),
            None => _ = self.changed.notify_one(),
        }
    }

    /// Makes the calls that are queued. Returns whether there were any.
    pub(super) fn make_queued(&self) -> bool {
        let calls = core::mem::take(&mut self.state.lock().calls);
        let is_any = !calls.is_empty();
        calls.into_iter().for_each(Call::make);
        is_any
    }

    /// Wakes the thread, so that it checks whether to end.
    pub(super) fn wake(&self) {
        // Taking the lock ensures that the thread has either not checked yet or sleeps.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Waits for the next call. Returns `None` when `is_stopping`.
    pub(super) fn next(&self, is_stopping: impl Fn() -> bool) -> Option<Call> {
        let mut state = self.state.lock();
        while !is_stopping() {
            if let Some(call) = state.calls.pop_front() {
                return Some(call);
            }
            self.changed.wait(&mut state);
        }
        None
    }

    /// Drops the queued calls.
    pub(super) fn clear(&self) {
        let rest = core::mem::take(&mut self.state.lock().calls);
        // Dropped without the lock: the endpoints may hold handles of others.
        drop(rest);
    }
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    /// Or the application makes the calls when it polls.
    has_thread: bool,
}

impl Call {
    pub(super) fn has_listener(&self) -> bool {
        match self {
            Self::Reader(reader, event) => reader.has_listener_for(event.kind().into()),
            Self::News(reader) => {
                // Or one of those with which it shares sets has a listener.
                reader.has_listener_for(StatusMask::OF_READERS) || reader.shared_sets.get().is_some()
            }
            Self::Writer(writer, event) => writer.has_listener(*event),
            Self::Topic(topic) => topic.has_listener(),
        }
    }

    /// Notifies those who wait for what happened.
    fn announce(&self) {
        match self {
            Self::Reader(reader, _) => reader.watching.observers.notify(Cause::News),
            Self::News(reader) => reader.announce_all(),
            Self::Writer(writer, _) => writer.observers.notify(Cause::News),
            Self::Topic(topic) => topic.observers.notify(Cause::News),
        }
    }

    pub(super) fn make(self) {
        match self {
            Self::Reader(reader, event) => reader.call_listener(event),
            Self::News(reader) => reader.call_for_news(),
            Self::Writer(writer, event) => writer.call_listener(event),
            Self::Topic(topic) => topic.call_listener(),
        }
    }

    /// Returns whether one call serves both: a listener reads the status as it is when called.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reader(one, event), Self::Reader(another, other)) => {
                event == other && Arc::ptr_eq(one, another)
            }
            (Self::News(one), Self::News(another)) => Arc::ptr_eq(one, another),
            (Self::Writer(one, event), Self::Writer(another, other)) => {
                event == other && Arc::ptr_eq(one, another)
            }
            (Self::Topic(one), Self::Topic(another)) => Arc::ptr_eq(one, another),
            _ => false,
        }
    }
}
