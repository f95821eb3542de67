//! Reads and changes the QoS of a reader, and enables it (DDS 1.4, 2.2.2.1.1).

use std::sync::atomic::Ordering;

use weir_rtps::participant::LocalEndpoint;
use weir_rtps::qos::Qos;

use super::DataReader;
use super::setup::check_qos;
use crate::clock;
use crate::driver::policies::take_over;
use crate::error::{DdsError, Result};
use crate::qos::DataReaderQos;

impl<T> DataReader<T> {
    /// Returns the QoS.
    pub fn get_qos(&self) -> DataReaderQos {
        self.inner.current.lock().clone()
    }

    /// Changes the QoS.
    ///
    /// These policies can be changed: DEADLINE, LATENCY_BUDGET, PARTITION, READER_DATA_LIFECYCLE, TIME_BASED_FILTER and
    /// USER_DATA. Changes are announced at once. Writers that fit only now are matched, and those that do not fit any
    /// more are not. A deadline begins anew for all instances.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> Result<(), weir_dds::DdsError> {
    /// reader.set_qos(reader.get_qos().partition(["arm/*"]))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`], naming the policies that cannot be changed.
    /// - [`DdsError::InconsistentPolicy`]: policies contradict each other.
    /// - [`DdsError::BadParameter`]: too many or too long partitions or user data.
    /// - [`DdsError::ThreadFailed`].
    ///
    /// Nothing has changed then.
    pub fn set_qos(&self, qos: DataReaderQos) -> Result<()> {
        check_qos(&qos)?;
        let inner = &*self.inner;
        inner.driver().check()?;
        inner.current.lock().check_change(&qos)?;
        let mut announced = qos.announced();
        inner.of_subscriber.add_to(&mut announced);
        // Refuses what cannot be announced, before anything else changes.
        inner.driver().announce_qos(inner.endpoint.entity, |policies| take_over(policies, announced))?;
        let before = core::mem::replace(&mut *inner.current.lock(), qos.clone());
        let enforced = |qos: &DataReaderQos| (qos.deadline, qos.time_based_filter, qos.reader_data_lifecycle);
        let (deadline, separation, lifecycle) = enforced(&qos);
        if enforced(&qos) != enforced(&before) {
            let mut core = inner.endpoint.core.lock();
            core.set_policies(clock::now(), deadline, separation, lifecycle);
            inner.driver().outlet.arm(core.next_timeout());
        }
        Ok(())
    }

    /// Enables the reader: announces it, so that it is matched. Does nothing if it is enabled.
    ///
    /// Readers are enabled when they are created, unless
    /// [`autoenable_created_entities`](crate::DomainParticipantQos::autoenable_created_entities) says otherwise
    /// (ENTITY_FACTORY, DDS 1.4, 2.2.3.20).
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: a name, the partitions or the user data are too long.
    /// - [`DdsError::ThreadFailed`].
    pub fn enable(&self) -> Result<()> {
        let inner = &*self.inner;
        let driver = inner.driver();
        driver.check()?;
        if inner.is_enabled.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let topic = &inner.endpoint.topic;
        let mut announced = Qos { topic_data: topic.data(), ..inner.current.lock().announced() };
        inner.of_subscriber.add_to(&mut announced);
        let local = LocalEndpoint {
            entity: inner.endpoint.entity,
            topic: topic.name().to_owned(),
            type_name: inner.type_name.to_owned(),
            qos: announced,
            unicast: Vec::new(),
            multicast: inner.group,
        };
        driver.with_discovery(|core, now| core.add_reader(now, local)).map_err(|error| {
            inner.is_enabled.store(false, Ordering::SeqCst);
            DdsError::BadParameter(error.to_string())
        })?;
        if let Some((filter, version)) = &inner.filter {
            filter.announced(*version);
        }
        Ok(())
    }

    /// Makes the reader enabled without announcing it: those of builtin topics are never announced.
    pub(crate) fn declare_enabled(&self) {
        self.inner.is_enabled.store(true, Ordering::SeqCst);
    }

    /// Returns whether the reader is enabled.
    pub fn is_enabled(&self) -> bool {
        self.inner.is_enabled.load(Ordering::SeqCst)
    }
}
