//! The QoS that factories give to what they create (DDS 1.4, 2.2.2.2.1.20 to 2.2.2.2.1.25, 2.2.2.4.1.15, 2.2.2.5.2.15).

use weir_wire::EntityId;

use crate::error::Result;
use crate::group_qos::{PublisherQos, SubscriberQos};
use crate::participant::DomainParticipant;
use crate::publisher::Publisher;
use crate::qos::{DataReaderQos, DataWriterQos, TopicQos};
use crate::subscriber::Subscriber;
use crate::{data_reader, data_writer};

/// The default QoS of a participant's entities.
#[derive(Default)]
pub(crate) struct DefaultQos {
    topic: TopicQos,
    publisher: PublisherQos,
    subscriber: SubscriberQos,
}

impl DomainParticipant {
    /// Sets the QoS of topics that [`create_topic`](Self::create_topic) and [`find_topic`](Self::find_topic) create
    /// from then on.
    ///
    /// DDS 1.4, 2.2.2.2.1.24. Existing topics stay as they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
    /// use weir_dds::TopicQos;
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Greeting {
    /// #     text: String,
    /// # }
    /// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// participant.set_default_topic_qos(TopicQos::default().reliable().transient_local())?;
    /// let topic = participant.create_topic::<Greeting>("Greetings")?;
    /// assert_eq!(topic.get_qos(), participant.default_topic_qos());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict each other. Nothing
    /// has changed then.
    pub fn set_default_topic_qos(&self, qos: TopicQos) -> Result<()> {
        qos.check()?;
        self.handle.driver.state.default_qos.lock().topic = qos;
        Ok(())
    }

    /// Returns the QoS of topics that are created without QoS (DDS 1.4, 2.2.2.2.1.25).
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let qos = participant.default_topic_qos().reliable();
    /// participant.set_default_topic_qos(qos)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_topic_qos(&self) -> TopicQos {
        self.handle.driver.state.default_qos.lock().topic.clone()
    }

    /// Sets the QoS of publishers that [`create_publisher`](Self::create_publisher) creates from then on.
    ///
    /// DDS 1.4, 2.2.2.2.1.20. Existing publishers stay as they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// use weir_dds::PublisherQos;
    ///
    /// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// participant.set_default_publisher_qos(PublisherQos::default().partition(["north"]))?;
    /// assert_eq!(participant.create_publisher()?.get_qos().partition, ["north"]);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::BadParameter`](crate::DdsError::BadParameter): too many or too long partitions or group data.
    /// Nothing has changed then.
    pub fn set_default_publisher_qos(&self, qos: PublisherQos) -> Result<()> {
        qos.announced(EntityId::UNKNOWN).check()?;
        self.handle.driver.state.default_qos.lock().publisher = qos;
        Ok(())
    }

    /// Returns the QoS of publishers that are created without QoS (DDS 1.4, 2.2.2.2.1.21).
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let qos = participant.default_publisher_qos().partition(["north"]);
    /// let publisher = participant.create_publisher_with_qos(qos)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_publisher_qos(&self) -> PublisherQos {
        self.handle.driver.state.default_qos.lock().publisher.clone()
    }

    /// Sets the QoS of subscribers that [`create_subscriber`](Self::create_subscriber) creates from then on.
    ///
    /// DDS 1.4, 2.2.2.2.1.22. Existing subscribers stay as they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// use weir_dds::SubscriberQos;
    ///
    /// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
    /// participant.set_default_subscriber_qos(SubscriberQos::default().partition(["north", "south"]))?;
    /// assert_eq!(participant.create_subscriber()?.get_qos().partition.len(), 2);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// As [`set_default_publisher_qos`](Self::set_default_publisher_qos).
    pub fn set_default_subscriber_qos(&self, qos: SubscriberQos) -> Result<()> {
        qos.announced().check()?;
        self.handle.driver.state.default_qos.lock().subscriber = qos;
        Ok(())
    }

    /// Returns the QoS of subscribers that are created without QoS (DDS 1.4, 2.2.2.2.1.23).
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// let qos = participant.default_subscriber_qos().partition(["north"]);
    /// let subscriber = participant.create_subscriber_with_qos(qos)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_subscriber_qos(&self) -> SubscriberQos {
        self.handle.driver.state.default_qos.lock().subscriber.clone()
    }
}

impl Publisher {
    /// Sets what [`default_datawriter_qos`](Self::default_datawriter_qos) returns (DDS 1.4, 2.2.2.4.1.15).
    ///
    /// Existing writers stay as they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// use weir_dds::DataWriterQos;
    ///
    /// # fn f<T: DdsType>(publisher: &Publisher, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// publisher.set_default_datawriter_qos(DataWriterQos::default().transient_local())?;
    /// let writer = publisher.create_datawriter(topic, publisher.default_datawriter_qos().keep_last(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict each other. Nothing
    /// has changed then.
    pub fn set_default_datawriter_qos(&self, qos: DataWriterQos) -> Result<()> {
        data_writer::check_qos(&qos)?;
        *self.state.default_qos.lock() = qos;
        Ok(())
    }

    /// Returns the QoS that the application has chosen for writers of this publisher (DDS 1.4, 2.2.2.4.1.16); that of
    /// [`DataWriterQos::default`] at first.
    ///
    /// [`create_datawriter`](Self::create_datawriter) does not apply it: pass it, changed as the writer needs it.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Publisher, Topic};
    /// # fn f<T: DdsType>(publisher: &Publisher, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// let writer = publisher.create_datawriter(topic, publisher.default_datawriter_qos())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_datawriter_qos(&self) -> DataWriterQos {
        self.state.default_qos.lock().clone()
    }
}

impl Subscriber {
    /// Sets what [`default_datareader_qos`](Self::default_datareader_qos) returns (DDS 1.4, 2.2.2.5.2.15).
    ///
    /// Existing readers stay as they are.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// use weir_dds::DataReaderQos;
    ///
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// subscriber.set_default_datareader_qos(DataReaderQos::default().reliable())?;
    /// let reader = subscriber.create_datareader(topic, subscriber.default_datareader_qos().keep_all())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict each other. Nothing
    /// has changed then.
    pub fn set_default_datareader_qos(&self, qos: DataReaderQos) -> Result<()> {
        data_reader::check_qos(&qos)?;
        *self.state.default_qos.lock() = qos;
        Ok(())
    }

    /// Returns the QoS that the application has chosen for readers of this subscriber (DDS 1.4, 2.2.2.5.2.16); that of
    /// [`DataReaderQos::default`] at first.
    ///
    /// [`create_datareader`](Self::create_datareader) does not apply it: pass it, changed as the reader needs it.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Subscriber, Topic};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, topic: &Topic<T>) -> weir_dds::Result<()> {
    /// let reader = subscriber.create_datareader(topic, subscriber.default_datareader_qos())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_datareader_qos(&self) -> DataReaderQos {
        self.state.default_qos.lock().clone()
    }
}
