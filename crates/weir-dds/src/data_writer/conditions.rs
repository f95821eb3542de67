//! Statuses and conditions of a writer.

use std::sync::Arc;

use super::{DataWriter, Inner};
use crate::condition::{StatusCondition, StatusSource};
use crate::driver::observers::Observers;
use crate::driver::start::Handle;
use crate::levels::EnabledStatuses;
use crate::status_mask::{StatusKind, StatusMask};

impl<T> DataWriter<T> {
    /// Returns the statuses that have changed since they were read (DDS 1.4, 2.2.2.1.1.6).
    ///
    /// They are reset when they are read, or a listener is called.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// use weir_dds::StatusKind;
    ///
    /// if writer.status_changes().contains(StatusKind::PublicationMatched) {
    ///     println!("{} readers", writer.publication_matched_status().current_count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn status_changes(&self) -> StatusMask {
        self.inner.changes()
    }

    /// Returns the condition that is true while enabled statuses have changed.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// use weir_dds::{StatusMask, WaitSet};
    ///
    /// let condition = writer.status_condition();
    /// condition.set_enabled_statuses(StatusMask::PUBLICATION_MATCHED);
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&condition);
    /// wait_set.wait(Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::clone(&self.inner) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for Inner {
    fn changes(&self) -> StatusMask {
        let endpoint = &self.endpoint;
        let has_deadline_news = endpoint.lane.core().has_deadline_news();
        [
            (StatusKind::PublicationMatched, endpoint.matched.lock().has_changed()),
            (StatusKind::OfferedIncompatibleQos, endpoint.incompatible.lock().total_count_change > 0),
            (StatusKind::LivelinessLost, endpoint.liveliness_lost.lock().total_count_change > 0),
            (StatusKind::OfferedDeadlineMissed, has_deadline_news),
        ]
        .into_iter()
        .collect()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.endpoint.enabled
    }

    fn observers(&self) -> &Observers {
        &self.endpoint.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.handle))
    }
}
