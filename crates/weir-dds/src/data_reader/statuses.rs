//! The statuses of a reader (DDS 1.4, 2.2.4.1), and the writers that it is matched with.

use std::sync::atomic::Ordering;

use super::DataReader;
use crate::instance_handle::InstanceHandle;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, SampleLostStatus,
    SampleRejectedStatus, SubscriptionMatchedStatus,
};

impl<T> DataReader<T> {
    /// Returns how many writers are matched. Resets the status's changes to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let matched = reader.subscription_matched_status();
    /// println!("{} writers, {:+} since the last call", matched.current_count, matched.current_count_change);
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscription_matched_status(&self) -> SubscriptionMatchedStatus {
        let matches = self.inner.endpoint.matched.lock().read();
        self.inner.note_status_read();
        matches.into()
    }

    /// Returns the handles of the matched writers (DDS 1.4, 2.2.2.5.3.34).
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for writer in reader.matched_publications() {
    ///     if let Some(data) = reader.matched_publication_data(writer) {
    ///         println!("{writer} is a writer of {}", data.type_name);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_publications(&self) -> Vec<InstanceHandle> {
        self.inner.endpoint.core.lock().matched().map(InstanceHandle::from).collect()
    }

    /// Returns which writers have incompatible QoS.
    ///
    /// Resets the status's changes to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let status = reader.requested_incompatible_qos_status();
    /// for incompatible in &status.policies {
    ///     println!("{}: {} writers offer less", incompatible.policy_id.name(), incompatible.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn requested_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        let status = self.inner.endpoint.incompatible.lock().read();
        self.inner.note_status_read();
        status
    }

    /// Returns how many matched writers are alive.
    ///
    /// Resets the status's changes to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let status = reader.liveliness_changed_status();
    /// println!("{} writers are alive, {} are not", status.alive_count, status.not_alive_count);
    /// # Ok(())
    /// # }
    /// ```
    pub fn liveliness_changed_status(&self) -> LivelinessChangedStatus {
        let changed = self.inner.endpoint.core.lock().take_liveliness_changed();
        self.inner.note_status_read();
        changed.into()
    }

    /// Returns which instances were not written within the requested deadline.
    ///
    /// Resets the status's change to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// let missed = reader.requested_deadline_missed_status();
    /// if missed.total_count_change > 0 {
    ///     println!("late: {:?}", missed.last_instance_handle.and_then(|instance| reader.key_value(instance)));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn requested_deadline_missed_status(&self) -> DeadlineMissedStatus {
        let missed = self.inner.endpoint.core.lock().take_deadline_missed();
        self.inner.note_status_read();
        DeadlineMissedStatus::new(missed, InstanceHandle)
    }

    /// Returns how many samples will never arrive.
    ///
    /// Resets the status's changes to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{} samples were lost", reader.sample_lost_status().total_count);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_lost_status(&self) -> SampleLostStatus {
        let total = self.protocol_counters().samples_lost;
        let status = self.inner.endpoint.lost.lock().read(total);
        self.inner.note_status_read();
        status
    }

    /// Returns how many samples were rejected: over a limit, or not of the type.
    ///
    /// A reliable writer sends a sample that was over a limit again, once there is room. Until then
    /// it counts once. Resets the status's changes to zero.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::SampleRejectedReason;
    ///
    /// if reader.sample_rejected_status().last_reason == Some(SampleRejectedReason::SamplesLimit) {
    ///     println!("take samples more often, or raise max_samples");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        let endpoint = &self.inner.endpoint;
        let (rejected, last) = {
            let core = endpoint.core.lock();
            let counters = core.counters();
            (counters.samples_rejected + counters.samples_refused, core.last_rejection())
        };
        let status =
            endpoint.rejected.lock().read(rejected, endpoint.malformed.load(Ordering::Relaxed), last);
        self.inner.note_status_read();
        status
    }
}
