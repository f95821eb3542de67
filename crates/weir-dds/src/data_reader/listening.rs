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
/// reader, which has no listener. Those of a closed reader are for no listener.
pub(crate) fn notify_upper(inner: &Arc<Inner>, event: ReaderEvent, is_dropped: bool) {
    let reader = &AnyDataReader::of(Arc::clone(inner));
    if is_dropped || inner.is_closed() {
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
            None if self.is_closed() => {}
            None => notify_of_reader(&AnyDataReader::of(Arc::clone(self)), ReaderEvent::DataAvailable),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use weir_cdr::DdsType;

    use super::*;
    use crate::driver::events::WriterEvent;
    use crate::{
        AnyDataWriter, AnyTopic, DataReaderQos, DataWriterQos, DomainParticipant, DomainParticipantListener,
        InconsistentTopicStatus, ParticipantSettings, PublicationMatchedStatus, SubscriptionMatchedStatus,
    };

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Number {
        number: u32,
    }

    #[derive(Default)]
    struct Calls(AtomicU32);

    impl Calls {
        fn add(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl DomainParticipantListener for Calls {
        fn on_data_on_readers(&self, _: &Subscriber) {
            self.add();
        }

        fn on_data_available(&self, _: &AnyDataReader) {
            self.add();
        }

        fn on_subscription_matched(&self, _: &AnyDataReader, _: SubscriptionMatchedStatus) {
            self.add();
        }

        fn on_publication_matched(&self, _: &AnyDataWriter, _: PublicationMatchedStatus) {
            self.add();
        }

        fn on_inconsistent_topic(&self, _: &AnyTopic, _: InconsistentTopicStatus) {
            self.add();
        }
    }

    #[test]
    fn events_of_closed_entities_are_for_no_listener() {
        let settings = ParticipantSettings { multicast: false, ..ParticipantSettings::default() };
        let participant = DomainParticipant::new(20, settings.interface("lo").without_threads()).unwrap();
        let topic = participant.create_topic::<Number>("numbers").unwrap();
        let subscriber = participant.create_subscriber().unwrap();
        let reader = subscriber.create_datareader(&topic, DataReaderQos::default()).unwrap();
        let publisher = participant.create_publisher().unwrap();
        let writer = publisher.create_datawriter(&topic, DataWriterQos::default()).unwrap();
        let calls = Arc::new(Calls::default());
        // What happens to each of the three. Returns the calls.
        let happen = || {
            let before = calls.0.load(Ordering::SeqCst);
            notify_upper(&reader.inner, ReaderEvent::DataAvailable, false);
            reader.inner.notify_data_available();
            reader.endpoint().call_listener(ReaderEvent::Matched);
            writer.inner().endpoint.call_listener(WriterEvent::Matched);
            topic.state.call_listener();
            calls.0.load(Ordering::SeqCst) - before
        };
        for mask in [StatusMask::ALL, !StatusMask::DATA_ON_READERS] {
            let listener: Arc<dyn DomainParticipantListener> = Arc::clone(&calls) as _;
            participant.set_listener(Some(listener), mask);
            assert_eq!(happen(), 5);
        }
        reader.close().unwrap();
        writer.close().unwrap();
        topic.close().unwrap();
        for mask in [StatusMask::ALL, !StatusMask::DATA_ON_READERS] {
            let listener: Arc<dyn DomainParticipantListener> = Arc::clone(&calls) as _;
            participant.set_listener(Some(listener), mask);
            assert_eq!(happen(), 0);
        }
    }
}
