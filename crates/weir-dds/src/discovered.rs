//! What a participant knows of others, and ignores of them (DDS 1.4, 2.2.2.2.1).

use std::time::SystemTime;

use weir_rtps::participant::ParticipantCore;
use weir_rtps::sedp::EndpointKind;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid};

use crate::builtin_subscriber::BuiltinSubscriber;
use crate::builtin_topics::{
    Announced, ParticipantBuiltinTopicData, PublicationBuiltinTopicData, SubscriptionBuiltinTopicData,
};
use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::error::{DdsError, Result};
use crate::instance_handle::InstanceHandle;
use crate::participant::DomainParticipant;

impl DomainParticipant {
    /// Returns the readers of the builtin topics. The first call makes them; keep the result as long as they are used.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let builtin = participant.builtin_subscriber()?;
    /// builtin.participants().wait_for_data(Duration::from_secs(10))?;
    /// println!("{:?}", builtin.participants().take(100));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Network`]: the kernel returns no random numbers.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn builtin_subscriber(&self) -> Result<BuiltinSubscriber> {
        BuiltinSubscriber::of(&self.handle)
    }

    /// Returns the GUIDs of the other participants that are known.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for other in participant.discovered_participants() {
    ///     println!("{other}: {:?}", participant.discovered_participant_data(other));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovered_participants(&self) -> Vec<Guid> {
        let guid = |prefix| Guid::new(prefix, EntityId::PARTICIPANT);
        self.handle.driver.discovery.look(|core| core.discovered_participants().map(guid).collect())
    }

    /// Returns what another participant has announced; `None` if it is not known.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant};
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// for other in participant.discovered_participants() {
    ///     let name = participant.discovered_participant_data(other).and_then(|data| data.name);
    ///     println!("{other}: {name:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn discovered_participant_data(&self, participant: Guid) -> Option<ParticipantBuiltinTopicData> {
        self.handle.driver.discovery.look(|core| {
            let data = core.participant_data(participant.prefix)?;
            ParticipantBuiltinTopicData::of_announcement(&ParticipantBuiltinTopicData::announcement_of(data))
        })
    }

    /// Ignores a participant from now on, as if it did not exist. Existing matches end.
    ///
    /// If it is this one, its own writers and readers do not match each other.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// // Readers do not receive what writers of the same participant write.
    /// participant.ignore_participant(participant.guid())?;
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::OutOfResources`]: 65 536 entities are ignored already.
    /// - [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn ignore_participant(&self, participant: Guid) -> Result<()> {
        self.ignore(|core, now| core.ignore_participant(now, participant.prefix))
    }

    /// Ignores a writer from now on, as if it did not exist. Existing matches end.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, PublicationBuiltinTopicData};
    /// # fn f(participant: &DomainParticipant, unwanted: &PublicationBuiltinTopicData) -> weir_dds::Result<()> {
    /// participant.ignore_publication(unwanted.key)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::ignore_participant`]; [`DdsError::BadParameter`] if it is no writer.
    pub fn ignore_publication(&self, writer: Guid) -> Result<()> {
        if !writer.entity.is_writer() {
            return Err(DdsError::BadParameter(format!(
                "{writer} is not a writer: use the GUID of a publication"
            )));
        }
        self.ignore(|core, _| core.ignore_endpoint(writer))
    }

    /// Ignores a reader from now on, as if it did not exist. Existing matches end.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, SubscriptionBuiltinTopicData};
    /// # fn f(participant: &DomainParticipant, unwanted: &SubscriptionBuiltinTopicData) -> weir_dds::Result<()> {
    /// participant.ignore_subscription(unwanted.key)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::ignore_participant`]; [`DdsError::BadParameter`] if it is no reader.
    pub fn ignore_subscription(&self, reader: Guid) -> Result<()> {
        if !reader.entity.is_reader() {
            return Err(DdsError::BadParameter(format!(
                "{reader} is not a reader: use the GUID of a subscription"
            )));
        }
        self.ignore(|core, _| core.ignore_endpoint(reader))
    }

    /// Ignores all endpoints of other participants with this topic from now on. Existing matches end.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// participant.ignore_topic("Diagnostics")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DomainParticipant::ignore_participant`].
    pub fn ignore_topic(&self, name: &str) -> Result<()> {
        self.ignore(|core, _| core.ignore_topic(name))
    }

    fn ignore(&self, ignore: impl FnOnce(&mut ParticipantCore, Time) -> bool) -> Result<()> {
        let driver = &self.handle.driver;
        driver.check()?;
        if driver.with_discovery(ignore) {
            return Ok(());
        }
        let text = "too many entities are ignored: ignore their participants, or use partitions";
        Err(DdsError::OutOfResources(text.to_owned()))
    }

    /// Returns the participant's GUID.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// println!("this is {}", participant.guid());
    /// # Ok(())
    /// # }
    /// ```
    pub fn guid(&self) -> Guid {
        self.handle.driver.guid(EntityId::PARTICIPANT)
    }

    /// Returns whether an entity belongs to this participant: the participant itself, a writer or a reader.
    ///
    /// ```
    /// use weir_dds::{DomainParticipant, ParticipantSettings};
    ///
    /// let participant = DomainParticipant::new(83, ParticipantSettings::default().interface("lo"))?;
    /// assert!(participant.contains_entity(participant.guid()));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn contains_entity(&self, entity: Guid) -> bool {
        let driver = &self.handle.driver;
        let table = driver.routes.table();
        let is_endpoint =
            || table.writers.contains_key(&entity.entity) || table.readers.contains_key(&entity.entity);
        entity.prefix == driver.prefix && (entity.entity == EntityId::PARTICIPANT || is_endpoint())
    }

    /// Returns the time that samples written now would be stamped with.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let sent_for = participant.current_time().duration_since(std::time::SystemTime::UNIX_EPOCH);
    /// println!("{sent_for:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn current_time(&self) -> SystemTime {
        let nanos = self.handle.driver.wall_clock.timestamp(crate::clock::now()).to_unix_nanos();
        SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(nanos)
    }
}

impl<T> DataReader<T> {
    /// Returns what a matched writer has announced, given its handle or GUID; `None` if it is not matched.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// for writer in reader.matched_publications() {
    ///     println!("{:?}", reader.matched_publication_data(writer).map(|data| data.qos));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_publication_data(
        &self,
        writer: impl Into<InstanceHandle>,
    ) -> Option<PublicationBuiltinTopicData> {
        let writer = writer.into();
        if !self.matched_publications().contains(&writer) {
            return None;
        }
        let found =
            self.inner().driver().discovery.look(|core| core.endpoint_data(Guid::from_bytes(writer.0)));
        found
            .filter(|(kind, _)| *kind == EndpointKind::Writer)
            .map(|(_, data)| PublicationBuiltinTopicData::new(data))
    }
}

impl<T> DataWriter<T> {
    /// Returns what a matched reader has announced, given its handle or GUID; `None` if it is not matched.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
    /// for reader in writer.matched_subscriptions() {
    ///     println!("{:?}", writer.matched_subscription_data(reader).map(|data| data.qos));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn matched_subscription_data(
        &self,
        reader: impl Into<InstanceHandle>,
    ) -> Option<SubscriptionBuiltinTopicData> {
        let reader = reader.into();
        if !self.matched_subscriptions().contains(&reader) {
            return None;
        }
        let found =
            self.inner().handle.driver.discovery.look(|core| core.endpoint_data(Guid::from_bytes(reader.0)));
        let of_reader = found.filter(|(kind, _)| *kind == EndpointKind::Reader);
        of_reader.map(|(_, data)| SubscriptionBuiltinTopicData::new(data))
    }
}
