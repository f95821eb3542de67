//! Reads and changes the QoS of a writer, and enables it (DDS 1.4, 2.2.2.1.1).

use std::sync::atomic::Ordering;

use weir_rtps::participant::{LocalEndpoint, ParticipantCore};
use weir_rtps::qos::Qos;

use super::DataWriter;
use super::inner::Inner;
use super::setup::{batch_of, check_qos};
use crate::clock;
use crate::driver::policies::take_over;
use crate::error::{DdsError, Result};
use crate::qos::{DataWriterQos, DurabilityStatus, Reliability};

impl<T> DataWriter<T> {
    /// Returns the QoS.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// println!("{:?}", writer.get_qos().history);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_qos(&self) -> DataWriterQos {
        self.inner.current.lock().clone()
    }

    /// Changes the QoS.
    ///
    /// These policies can be changed: DEADLINE, LATENCY_BUDGET, LIFESPAN, OWNERSHIP_STRENGTH, PARTITION,
    /// TRANSPORT_PRIORITY, USER_DATA and WRITER_DATA_LIFECYCLE. Changes are announced at once. Readers that fit only
    /// now are matched, and those that do not fit any more are not.
    ///
    /// A deadline begins anew for all instances. A lifespan also applies to samples that are still in the history,
    /// unless it was infinite when they were written.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> Result<(), weir_dds::DdsError> {
    /// writer.set_qos(writer.get_qos().ownership_strength(10).partition(["arm/left"]))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ImmutablePolicy`], naming the policies that cannot be changed.
    /// - [`DdsError::InconsistentPolicy`]: policies contradict each other.
    /// - [`DdsError::BadParameter`]: too many or too long partitions or user data.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    ///
    /// Nothing has changed then.
    pub fn set_qos(&self, qos: DataWriterQos) -> Result<()> {
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
        if qos != before {
            inner.apply(&qos, &before);
        }
        Ok(())
    }

    /// Changes the priority: see [`DataWriterQos::transport_priority`](crate::DataWriterQos::transport_priority).
    ///
    /// Samples that have not left yet go by it, also in their DSCP. As [`DataWriter::set_qos`], it is announced.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// writer.set_transport_priority(10)?;
    /// assert_eq!(writer.get_qos().transport_priority, 10);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn set_transport_priority(&self, priority: i32) -> Result<()> {
        self.set_qos(self.get_qos().transport_priority(priority))
    }

    /// Returns what is kept of the writer's samples, and for how long.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// println!("{:?}", writer.durability_status());
    /// # Ok(())
    /// # }
    /// ```
    pub fn durability_status(&self) -> DurabilityStatus {
        let qos = &self.inner.qos;
        DurabilityStatus::new(qos.durability, qos.reliability == Reliability::Reliable)
    }

    /// Enables the writer: announces it, and admits writes. Does nothing if it is enabled.
    ///
    /// Writers are enabled when they are created, unless their publisher is not enabled or its
    /// [`autoenable_created_entities`](crate::PublisherQos::autoenable_created_entities) says otherwise
    /// (ENTITY_FACTORY, DDS 1.4, 2.2.3.20). Before that, all that writes fails with [`DdsError::NotEnabled`].
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(publisher: &Publisher, topic: &Topic<Reading>) -> weir_dds::Result<()> {
    /// use weir_dds::{DataWriterQos, DdsError};
    ///
    /// publisher.set_qos(publisher.get_qos().autoenable_created_entities(false))?;
    /// let writer = publisher.create_datawriter(topic, DataWriterQos::default())?;
    /// assert!(matches!(writer.write(&Reading::default()), Err(DdsError::NotEnabled(_))));
    /// writer.enable()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`]: the publisher is not enabled.
    /// - [`DdsError::BadParameter`]: a name, the partitions or the user data are too long.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn enable(&self) -> Result<()> {
        self.inner.enable()
    }

    /// Returns whether the writer is enabled.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// assert!(writer.is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.inner.is_enabled.load(Ordering::SeqCst)
    }
}

impl Inner {
    /// Returns whether the writer is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Refuses calls once the participant has ended, or the writer is closed.
    pub(crate) fn check(&self) -> Result<()> {
        self.driver().check()?;
        if self.is_closed() { Err(DdsError::AlreadyDeleted("writer")) } else { Ok(()) }
    }

    /// Announces the writer, and admits writes.
    pub(crate) fn enable(&self) -> Result<()> {
        let driver = self.driver();
        self.check()?;
        if !self.endpoint.group.is_enabled.load(Ordering::SeqCst) {
            let text = "the publisher is not enabled: call Publisher::enable first";
            return Err(DdsError::PreconditionNotMet(text.to_owned()));
        }
        let _enabling = self.enabling.lock();
        if self.is_enabled.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.endpoint.lane.core().open();
        if let Some(error) = driver.cause_of_end() {
            self.endpoint.lane.close();
            return Err(error);
        }
        self.endpoint.group.set_member(self.endpoint.entity, true);
        let topic = &self.endpoint.topic;
        let local = || LocalEndpoint {
            entity: self.endpoint.entity,
            topic: topic.name().to_owned(),
            type_name: self.type_name.to_owned(),
            qos: Qos { topic_data: topic.data(), ..self.announced(&self.current.lock()) },
            unicast: Vec::new(),
            multicast: None,
        };
        // Another thread may have closed the writer, which has left discovery then.
        let add = |core: &mut ParticipantCore, now| {
            if self.is_closed() { None } else { Some(core.add_writer(now, local())) }
        };
        let added = driver.with_discovery(add).ok_or(DdsError::AlreadyDeleted("writer"));
        added.and_then(|added| added.map_err(|error| DdsError::BadParameter(error.to_string()))).inspect_err(
            |_| {
                self.is_enabled.store(false, Ordering::SeqCst);
                self.endpoint.lane.close();
                self.endpoint.group.set_member(self.endpoint.entity, false);
            },
        )
    }

    /// Returns what is announced: the writer's policies and those of its publisher.
    fn announced(&self, qos: &DataWriterQos) -> Qos {
        let mut announced = qos.announced();
        self.endpoint.group.announced().add_to(&mut announced);
        announced
    }

    /// Announces policies of the publisher that have changed.
    pub(crate) fn announce_publisher(&self) -> Result<()> {
        let announced = self.driver().announce_qos(
            self.endpoint.entity,
            |policies| take_over(policies, self.announced(&self.current.lock())),
            || self.announced(&self.current.lock()),
        )?;
        self.endpoint.set_policies(&announced);
        Ok(())
    }

    /// Has the engine follow policies that have changed.
    fn apply(&self, qos: &DataWriterQos, before: &DataWriterQos) {
        let (driver, lane) = (self.driver(), &self.endpoint.lane);
        self.endpoint.set_policies(&self.announced(qos));
        if qos.transport_priority != before.transport_priority {
            lane.set_transport_priority(qos.transport_priority, driver.dscp.dscp(qos.transport_priority));
        }
        let mut core = lane.core();
        if (qos.lifespan, qos.deadline) != (before.lifespan, before.deadline) {
            core.set_periods(clock::now(), qos.lifespan, qos.deadline);
        }
        if qos.latency_budget != before.latency_budget {
            core.set_latency_budget(qos.latency_budget);
            let batch = batch_of(qos);
            core.set_batch(batch);
            self.has_batch.store(batch.is_some(), Ordering::Relaxed);
        }
        driver.outlet.arm(core.next_timeout());
    }
}
