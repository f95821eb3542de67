//! Reads and changes the QoS of a reader, and enables it (DDS 1.4, 2.2.2.1.1).

use std::sync::atomic::Ordering;

use weir_rtps::participant::{LocalEndpoint, ParticipantCore};
use weir_rtps::qos::Qos;

use super::setup::check_qos;
use super::{DataReader, Inner};
use crate::clock;
use crate::driver::policies::take_over;
use crate::error::{DdsError, Result};
use crate::qos::DataReaderQos;

impl<T> DataReader<T> {
    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", reader.get_qos().history);
    /// # Ok(())
    /// # }
    /// ```
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
    /// - [`DdsError::AlreadyDeleted`]: the reader, its subscriber or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    ///
    /// Nothing has changed then.
    pub fn set_qos(&self, qos: DataReaderQos) -> Result<()> {
        check_qos(&qos)?;
        let inner = &*self.inner;
        inner.check()?;
        inner.current.lock().check_change(&qos)?;
        // Refuses what cannot be announced, before anything else changes.
        let before = inner.driver().announce_qos(
            inner.endpoint.entity,
            |policies| take_over(policies, inner.announced(&qos)),
            || core::mem::replace(&mut *inner.current.lock(), qos.clone()),
        )?;
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
    /// Readers are enabled when they are created, unless their subscriber is not enabled or its
    /// [`autoenable_created_entities`](crate::SubscriberQos::autoenable_created_entities) says otherwise
    /// (ENTITY_FACTORY, DDS 1.4, 2.2.3.20).
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// use weir_dds::DataReaderQos;
    ///
    /// subscriber.set_qos(subscriber.get_qos().autoenable_created_entities(false))?;
    /// let reader = subscriber.create_datareader(topic, DataReaderQos::default())?;
    /// // It is announced only now.
    /// reader.enable()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the subscriber is not enabled.
    /// - [`DdsError::BadParameter`]: a name, the partitions or the user data are too long.
    /// - [`DdsError::ThreadFailed`].
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// Makes the reader enabled without announcing it: those of builtin topics are never announced.
    pub(crate) fn declare_enabled(&self) {
        self.inner.is_enabled.store(true, Ordering::SeqCst);
    }

    /// Returns whether the reader is enabled.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// assert!(reader.is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.inner.is_enabled.load(Ordering::SeqCst)
    }
}

impl Inner {
    /// Announces the reader.
    pub(crate) fn enable(&self) -> Result<()> {
        let driver = self.driver();
        self.check()?;
        let _enabling = self.enabling.lock();
        if self.is_enabled.load(Ordering::SeqCst) {
            return Ok(());
        }
        if !self.endpoint.group.is_enabled.load(Ordering::SeqCst) {
            let text = "the subscriber is not enabled: call Subscriber::enable first";
            return Err(DdsError::PreconditionNotMet(text.to_owned()));
        }
        if self.is_enabled.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let topic = &self.endpoint.topic;
        let local = || LocalEndpoint {
            entity: self.endpoint.entity,
            topic: topic.name().to_owned(),
            type_name: self.type_name.to_owned(),
            qos: Qos { topic_data: topic.data(), ..self.announced(&self.current.lock()) },
            unicast: Vec::new(),
            multicast: self.group,
        };
        // Another thread may have closed the reader, which has left discovery then.
        let add = |core: &mut ParticipantCore, now| {
            if self.is_closed() { None } else { Some(core.add_reader(now, local())) }
        };
        let added = driver.with_discovery(add).ok_or(DdsError::AlreadyDeleted("reader"));
        added
            .and_then(|added| added.map_err(|error| DdsError::BadParameter(error.to_string())))
            .inspect_err(|_| self.is_enabled.store(false, Ordering::SeqCst))?;
        if let Some((filter, version)) = &self.filter {
            filter.announced(*version);
        }
        Ok(())
    }

    /// Returns whether the reader has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.endpoint.is_closed.load(Ordering::SeqCst)
    }

    /// Refuses calls once the participant has ended, or the reader is closed.
    pub(crate) fn check(&self) -> Result<()> {
        self.driver().check()?;
        if self.is_closed() { Err(DdsError::AlreadyDeleted("reader")) } else { Ok(()) }
    }

    /// Returns what is announced: the reader's policies and those of its subscriber.
    fn announced(&self, qos: &DataReaderQos) -> Qos {
        let mut announced = qos.announced();
        self.endpoint.group.announced().add_to(&mut announced);
        announced
    }

    /// Announces policies of the subscriber that have changed.
    pub(crate) fn announce_subscriber(&self) -> Result<()> {
        let change = |policies: &mut Qos| take_over(policies, self.announced(&self.current.lock()));
        self.driver().announce_qos(self.endpoint.entity, change, || ())
    }
}
