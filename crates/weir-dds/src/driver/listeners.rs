//! Calls of listeners that tell of statuses, on a thread of their own: a listener that waits for another match, or
//! that takes its time, does not hold up discovery.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::Driver;
use super::channel;
use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use crate::listener::{ReaderEvent, WriterEvent};

/// Calls that wait while a listener takes its time; beyond them, one for each endpoint and kind of news.
const CALLS_MAX: usize = 256;

/// A listener to call, when no lock is held any more.
pub(crate) enum Call {
    Reader(Arc<ReaderEndpoint>, ReaderEvent),
    /// There may be samples.
    News(Arc<ReaderEndpoint>),
    Writer(Arc<WriterEndpoint>, WriterEvent),
}

/// The calls that are to be made. The thread is there from the first listener on.
#[derive(Default)]
pub(crate) struct Listeners {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    has_thread: bool,
}

impl Call {
    fn has_listener(&self) -> bool {
        match self {
            Self::Reader(reader, _) | Self::News(reader) => reader.has_listener(),
            Self::Writer(writer, _) => writer.has_listener(),
        }
    }

    fn make(self) {
        match self {
            Self::Reader(reader, event) => reader.notify(event),
            Self::News(reader) => channel::notify(&reader),
            Self::Writer(writer, event) => writer.notify(event),
        }
    }

    /// Whether one call would do for both: a listener reads the status as it is then.
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Reader(one, event), Self::Reader(another, other)) => {
                event == other && Arc::ptr_eq(one, another)
            }
            (Self::News(one), Self::News(another)) => Arc::ptr_eq(one, another),
            (Self::Writer(one, event), Self::Writer(another, other)) => {
                event == other && Arc::ptr_eq(one, another)
            }
            _ => false,
        }
    }
}

impl Driver {
    /// Sees to it that there is a thread for calls: a listener was set.
    pub(crate) fn start_calling(self: &Arc<Self>) {
        let mut state = self.listeners.state.lock();
        if !state.has_thread {
            // Where there can be no thread, whoever has news calls.
            state.has_thread = self.spawn("weir-listeners", run).is_ok();
        }
    }

    /// Has listeners called. No lock may be held.
    pub(crate) fn call(&self, calls: impl IntoIterator<Item = Call>) {
        let mut calls = calls.into_iter().filter(Call::has_listener).peekable();
        if calls.peek().is_none() {
            return;
        }
        let mut state = self.listeners.state.lock();
        if !state.has_thread {
            drop(state);
            calls.for_each(Call::make);
            return;
        }
        for call in calls {
            if state.calls.len() < CALLS_MAX || !state.calls.iter().any(|other| other.is_same(&call)) {
                state.calls.push_back(call);
            }
        }
        drop(state);
        self.listeners.changed.notify_one();
    }

    /// Makes the thread look whether it should end.
    pub(crate) fn wake_calling(&self) {
        // It has either not looked yet or sleeps.
        drop(self.listeners.state.lock());
        self.listeners.changed.notify_all();
    }

    fn next_call(&self) -> Option<Call> {
        let mut state = self.listeners.state.lock();
        while !self.is_stopping() {
            if let Some(call) = state.calls.pop_front() {
                return Some(call);
            }
            self.listeners.changed.wait(&mut state);
        }
        None
    }
}

/// The thread.
fn run(driver: &Driver) {
    while let Some(call) = driver.next_call() {
        call.make();
        // What the listener wrote.
        driver.flush_queued();
    }
    // The endpoints may hold handles of others.
    let rest = core::mem::take(&mut driver.listeners.state.lock().calls);
    drop(rest);
}
