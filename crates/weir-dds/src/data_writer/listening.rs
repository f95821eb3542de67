//! Listeners of a writer, and which listener an event is for.

use std::sync::{Arc, Weak};

use super::{AnyDataWriter, DataWriter, Inner};
use crate::driver::endpoints::Own;
use crate::driver::events::{WriterEvent, WriterListener};
use crate::listener::DataWriterListener;
use crate::status_mask::StatusMask;
use crate::upper_listeners::call_for_writer;

impl<T: 'static> DataWriter<T> {
    /// Sets the listener for all events, or removes it: then they are for the listeners of the publisher and the
    /// participant.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(writer: &DataWriter<Reading>) -> weir_dds::Result<()> {
    /// use std::sync::Arc;
    /// use weir_dds::{DataWriterListener, PublicationMatchedStatus};
    ///
    /// struct Printer;
    ///
    /// impl DataWriterListener<Reading> for Printer {
    ///     fn on_publication_matched(&self, _: &DataWriter<Reading>, status: PublicationMatchedStatus) {
    ///         println!("{} readers", status.current_count);
    ///     }
    /// }
    ///
    /// writer.set_listener(Some(Arc::new(Printer)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_listener(&self, listener: Option<Arc<dyn DataWriterListener<T>>>) {
        let mask = if listener.is_some() { StatusMask::ALL } else { StatusMask::NONE };
        self.set_listener_w_mask(listener, mask);
    }

    /// Sets the listener for the events in `mask`.
    ///
    /// Other events are for the listeners of the publisher and the participant. Without a listener, those in `mask` are
    /// dropped (DDS 1.4, 2.2.4.2.3).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use weir_dds::{DataWriter, DataWriterListener, DdsType};
    /// use weir_dds::StatusMask;
    ///
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, listener: Arc<dyn DataWriterListener<T>>) {
    /// writer.set_listener_w_mask(Some(listener), StatusMask::PUBLICATION_MATCHED);
    /// # }
    /// ```
    pub fn set_listener_w_mask(&self, listener: Option<Arc<dyn DataWriterListener<T>>>, mask: StatusMask) {
        if listener.is_some() {
            self.inner.handle.driver.start_calling();
        }
        let typed = listener.clone().map(|listener| Box::new(listener) as _);
        let me: Weak<Inner> = Arc::downgrade(&self.inner);
        let listener = listener.map(|listener| {
            let call = move |event| {
                let Some(inner) = me.upgrade() else { return };
                let writer = &Self::of(inner);
                call_for_writer!(listener, writer, event);
            };
            Arc::new(call) as WriterListener
        });
        self.inner.endpoint.set_listener(Own { mask, listener, typed });
    }

    /// Returns the listener.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) {
    /// writer.set_listener(None);
    /// assert!(writer.listener().is_none());
    /// # }
    /// ```
    pub fn listener(&self) -> Option<Arc<dyn DataWriterListener<T>>> {
        let own = self.inner.endpoint.own.lock();
        own.typed.as_ref()?.downcast_ref().cloned()
    }
}

/// Calls the listener of the publisher or the participant that an event is for. `is_dropped`: the event is for the
/// writer, which has no listener. Those of a closed writer are for no listener.
pub(crate) fn notify_upper(inner: &Arc<Inner>, event: WriterEvent, is_dropped: bool) {
    let writer = &AnyDataWriter::of(Arc::clone(inner));
    if is_dropped || inner.is_closed() {
        return;
    }
    let group = &inner.endpoint.group;
    if let Some(listener) = group.level.listener_for(event.kind()) {
        group.level.panics.survive(|| {
            if let Some(listener) = listener {
                call_for_writer!(listener, writer, event);
            }
        });
    } else if let Some(listener) = group.participant.listener_for(event.kind()) {
        group.participant.panics.survive(|| {
            if let Some(listener) = listener {
                call_for_writer!(listener, writer, event);
            }
        });
    }
}
