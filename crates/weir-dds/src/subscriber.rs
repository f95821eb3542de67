//! Subscribers, which create readers (DDS 1.4, 2.2.2.5.2).

use std::sync::Arc;

use weir_cdr::DdsType;
use weir_rtps::qos::{Presentation, PresentationScope};
use weir_rtps::reader::{States, groups};
use weir_wire::Guid;

use crate::content_filter::TopicDescription;
use crate::data_reader::DataReader;
use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::group_access::GroupAccess;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::group_qos::{AnnouncedByGroup, SubscriberQos};
use crate::listener::DataReaderListener;
use crate::qos::DataReaderQos;

/// Creates the readers of one participant.
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// use weir_dds::DataReaderQos;
///
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let subscriber = participant.create_subscriber();
/// let reader = subscriber.create_datareader(&topic, DataReaderQos::default().reliable())?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct Subscriber {
    inner: Arc<Inner>,
}

/// What all handles of a subscriber share.
struct Inner {
    handle: Arc<Handle>,
    qos: SubscriberQos,
    access: Arc<GroupAccess>,
}

impl Subscriber {
    pub(crate) fn new(handle: &Arc<Handle>, qos: SubscriberQos) -> Self {
        let (handle, access) = (Arc::clone(handle), Arc::default());
        Self { inner: Arc::new(Inner { handle, qos, access }) }
    }

    /// Returns the QoS.
    pub fn qos(&self) -> &SubscriberQos {
        &self.inner.qos
    }

    /// Creates a reader of a topic, or of a content-filtered topic.
    ///
    /// The reader is announced at once and matches writers from then on.
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`](crate::DdsError::BadParameter): a QoS value is out of range.
    /// - [`DdsError::InconsistentPolicy`](crate::DdsError::InconsistentPolicy): policies contradict
    ///   each other.
    pub fn create_datareader<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
    ) -> Result<DataReader<T>> {
        DataReader::new(&self.inner.handle, self, topic.topic(), topic.filter(), qos, None)
    }

    /// Creates a reader whose listener is set before the reader is announced.
    ///
    /// The listener misses no event.
    ///
    /// # Errors
    /// As for [`Subscriber::create_datareader`].
    pub fn create_datareader_with_listener<T: DdsType>(
        &self,
        topic: &impl TopicDescription<T>,
        qos: DataReaderQos,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>> {
        DataReader::new(
            &self.inner.handle,
            self,
            topic.topic(),
            topic.filter(),
            qos,
            Some(Arc::new(listener)),
        )
    }

    /// What its readers announce.
    pub(crate) fn announced(&self) -> AnnouncedByGroup {
        self.inner.qos.announced()
    }

    /// Adds a reader before it is announced.
    pub(crate) fn add(&self, reader: &Arc<ReaderEndpoint>) {
        self.inner.access.add(reader);
        let Presentation { scope, coherent_access, .. } = self.inner.qos.presentation;
        if scope == PresentationScope::Group && coherent_access {
            reader.share_sets(&self.inner.access);
        }
    }

    /// Begins an access to the samples of several readers (DDS 1.4, 2.2.2.5.2.8).
    ///
    /// Until the matching [`Subscriber::end_access`], no further coherent set becomes accessible that the readers
    /// share (access scope GROUP): the samples that the application finds at one reader belong to those that it finds
    /// at the others. Accesses may be nested. With other scopes, this has no effect.
    ///
    /// Without this call, the application finds sets as they arrive: one may become accessible after it has taken the
    /// samples of the first reader, and before those of the second.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType, Subscriber};
    /// # fn f<T: DdsType>(subscriber: &Subscriber, position: &DataReader<T>, speed: &DataReader<T>)
    /// # -> weir_dds::Result<()> {
    /// subscriber.begin_access()?;
    /// let (positions, speeds) = (position.take(100), speed.take(100));
    /// subscriber.end_access()?;
    /// # let _ = (positions, speeds);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::ThreadFailed`](crate::DdsError::ThreadFailed): the participant has failed.
    pub fn begin_access(&self) -> Result<()> {
        self.inner.handle.driver.check()?;
        self.inner.access.begin();
        Ok(())
    }

    /// Ends an access (DDS 1.4, 2.2.2.5.2.9).
    ///
    /// # Errors
    /// - [`DdsError::PreconditionNotMet`](crate::DdsError::PreconditionNotMet): no access was begun.
    /// - [`DdsError::ThreadFailed`](crate::DdsError::ThreadFailed): the participant has failed.
    pub fn end_access(&self) -> Result<()> {
        self.inner.handle.driver.check()?;
        if self.inner.access.end() {
            return Ok(());
        }
        Err(DdsError::PreconditionNotMet("no access was begun: call begin_access first".to_owned()))
    }

    /// Returns the readers that have samples in these states (DDS 1.4, 2.2.2.5.2.10, `get_datareaders`).
    ///
    /// With ordered access and the scope GROUP, a reader is in the list once per sample, in the order in which the
    /// publisher's writers wrote them: taking one sample of each in turn gives all in this order. Otherwise it is in
    /// the list once. Compare with [`DataReader::guid`].
    pub fn datareaders(&self, states: States) -> Vec<Guid> {
        self.inner.handle.driver.flush_queued();
        let readers = self.inner.access.readers();
        let samples: Vec<Vec<_>> = readers
            .iter()
            .map(|reader| {
                let mut positions = Vec::new();
                reader.core.lock().group_positions(states, &mut positions);
                positions
            })
            .collect();
        let Presentation { scope, ordered_access, .. } = self.inner.qos.presentation;
        let order = match scope {
            PresentationScope::Group if ordered_access => groups::merge(&samples),
            _ => (0..readers.len()).filter(|index| !samples[*index].is_empty()).collect(),
        };
        order.into_iter().map(|index| self.inner.handle.driver.guid(readers[index].entity)).collect()
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subscriber({})", self.inner.handle.driver.prefix)
    }
}
