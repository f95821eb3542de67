//! Listeners of a reader, and which listener an event is for.

use std::sync::{Arc, Weak};

use super::{AnyDataReader, DataReader, Inner};
use crate::driver::endpoints::Own;
use crate::driver::events::{ReaderEvent, ReaderListener};
use crate::driver::listener_turn::call_in_turn;
use crate::listener::DataReaderListener;
use crate::status_mask::{StatusKind, StatusMask};
use crate::subscriber::Subscriber;
use crate::upper_listeners::call_for_reader;

impl<T: 'static> DataReader<T> {
    /// Sets the listener for all events, or removes it: then they are for the listeners of the subscriber and the
    /// participant.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{DataReaderListener, SubscriptionMatchedStatus};
    ///
    /// struct Printer;
    ///
    /// impl DataReaderListener<Reading> for Printer {
    ///     fn on_subscription_matched(&self, _: &DataReader<Reading>, status: SubscriptionMatchedStatus) {
    ///         println!("{} writers", status.current_count);
    ///     }
    /// }
    ///
    /// reader.set_listener(Some(Arc::new(Printer)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn DataReaderListener<T>>>) {
        let mask = if listener.is_some() { StatusMask::ALL } else { StatusMask::NONE };
        self.set_listener_w_mask(listener, mask);
    }

    /// Sets the listener for the events in `mask`.
    ///
    /// Other events are for the listeners of the subscriber and the participant. Without a listener, those in `mask`
    /// are dropped (DDS 1.4, 2.2.4.2.3).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use weir_dds::{DataReader, DataReaderListener, DdsType};
    /// use weir_dds::StatusMask;
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>, listener: Arc<dyn DataReaderListener<T>>) {
    /// reader.set_listener_w_mask(Some(listener), StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST);
    /// # }
    /// ```
    pub fn set_listener_w_mask(&self, listener: Option<Arc<dyn DataReaderListener<T>>>, mask: StatusMask) {
        if listener.is_some() {
            self.inner.handle.driver.start_calling();
        }
        let typed = listener.clone().map(|listener| Box::new(listener) as _);
        let me: Weak<Inner> = Arc::downgrade(&self.inner);
        let listener = listener.map(|listener| {
            let call = move |event| {
                let Some(inner) = me.upgrade() else { return };
                let reader = &Self::of(inner);
                call_for_reader!(listener, reader, event);
            };
            Arc::new(call) as ReaderListener
        });
        self.inner.endpoint.set_listener(Own { mask, listener, typed });
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// reader.set_listener(None);
    /// assert!(reader.listener().is_none());
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn DataReaderListener<T>>> {
        let own = self.inner.endpoint.own.lock();
        own.typed.as_ref()?.downcast_ref().cloned()
    }
}

/// Calls the listener of the subscriber or the participant that an event is for. `is_dropped`: the event is for the
/// reader, which has no listener.
pub(crate) fn notify_upper(inner: &Arc<Inner>, event: ReaderEvent, is_dropped: bool) {
    let reader = &AnyDataReader::of(Arc::clone(inner));
    if is_dropped {
        return;
    }
    let group = &inner.endpoint.group;
    if event == ReaderEvent::DataAvailable {
        let is_for_readers = group.mask().contains(StatusKind::DataOnReaders);
        if is_for_readers {
            return call_in_turn(&group.turn, 1, |_| notify_of_data_on_readers(inner));
        }
    }
    notify_of_reader(reader, event);
}

/// Calls the listener that DATA_ON_READERS is for.
fn notify_of_data_on_readers(inner: &Inner) {
    let group = &inner.endpoint.group;
    let subscriber = Subscriber { handle: Arc::clone(&inner.handle), state: Arc::clone(group) };
    if let Some(listener) = group.level.listener_for(StatusKind::DataOnReaders) {
        group.level.panics.survive(|| {
            listener.into_iter().for_each(|listener| listener.on_data_on_readers(&subscriber));
        });
    } else if let Some(listener) = group.participant.listener_for(StatusKind::DataOnReaders) {
        group.participant.panics.survive(|| {
            listener.into_iter().for_each(|listener| listener.on_data_on_readers(&subscriber));
        });
    }
}

/// The same for an event other than DATA_ON_READERS.
fn notify_of_reader(reader: &AnyDataReader, event: ReaderEvent) {
    let group = &reader.inner.endpoint.group;
    if let Some(listener) = group.level.listener_for(event.kind()) {
        group.level.panics.survive(|| {
            if let Some(listener) = listener {
                call_for_reader!(listener, reader, event);
            }
        });
    } else if let Some(listener) = group.participant.listener_for(event.kind()) {
        group.participant.panics.survive(|| {
            if let Some(listener) = listener {
                call_for_reader!(listener, reader, event);
            }
        });
    }
}

impl Inner {
    /// Calls `on_data_available` of the listener that DATA_AVAILABLE is for, in the thread's turn.
    pub(crate) fn notify_data_available(self: &Arc<Self>) {
        let endpoint = &self.endpoint;
        let own = endpoint.own.lock().listener_for(StatusKind::DataAvailable);
        match own {
            Some(listener) => listener.into_iter().for_each(|listener| {
                endpoint.listener_panics.survive(move || listener(ReaderEvent::DataAvailable));
            }),
            None => notify_of_reader(&AnyDataReader::of(Arc::clone(self)), ReaderEvent::DataAvailable),
        }
    }
}
