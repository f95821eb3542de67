//! Listeners: callbacks for events (DDS 1.4, 2.2.4.4).
//!
//! No lock of the engine is held during a call: a listener may read, write and block.
//!
//! - `on_data_available`, and events detected with it, are called on the thread that received the
//!   data. That may be an application thread in a wait call.
//! - Matches and other discovery events are called on a separate thread, one after the other, so
//!   that a blocking listener does not delay discovery. The listener receives the status as of the
//!   call. If listeners are slow, one call may report several changes.
//! - Calls for one reader, writer or topic never overlap, nor do those of `on_data_on_readers` for one subscriber. What
//!   happens during a call is called for after it, by the same thread: no thread waits for another one's call. So a
//!   listener that waits until another listener was called may wait for ever.
//! - Wait sets, tasks and descriptors are notified before a listener is called.
//! - A panic in a listener ends only that call, and is counted ([`DataReader::listener_panics`]). Later events are
//!   delivered as usual.
//!
//! ```no_run
//! # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
//! use weir_dds::{DataReader, DataReaderListener, DataReaderQos};
//!
//! # #[derive(DdsType, Default)]
//! # #[dds(extensibility = "final")]
//! # struct Greeting {
//! #     text: String,
//! # }
//! struct Printer;
//!
//! impl DataReaderListener<Greeting> for Printer {
//!     fn on_data_available(&self, reader: &DataReader<Greeting>) {
//!         for sample in reader.take(usize::MAX) {
//!             sample.data().into_iter().for_each(|greeting| println!("{}", greeting.text));
//!         }
//!     }
//! }
//!
//! # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
//! # let topic = participant.create_topic::<Greeting>("Greetings")?;
//! let subscriber = participant.create_subscriber()?;
//! let qos = DataReaderQos::default();
//! let reader = subscriber.create_datareader_with_listener(&topic, qos, Printer)?;
//! # Ok::<(), weir_dds::DdsError>(())
//! ```

use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, PublicationMatchedStatus, SampleLostStatus, SampleRejectedStatus,
    SubscriptionMatchedStatus,
};
use crate::topic::Topic;
pub use crate::upper_listeners::{DomainParticipantListener, PublisherListener, SubscriberListener};

/// Events of a reader. Every method does nothing by default.
///
/// ```
/// use weir_dds::{DataReader, DataReaderListener, SampleLostStatus};
///
/// struct Losses;
///
/// impl<T> DataReaderListener<T> for Losses {
///     fn on_sample_lost(&self, reader: &DataReader<T>, status: SampleLostStatus) {
///         eprintln!("{}: {} samples lost", reader.topic_name(), status.total_count);
///     }
/// }
/// ```
pub trait DataReaderListener<T>: Send + Sync {
    /// Samples can be taken.
    fn on_data_available(&self, _reader: &DataReader<T>) {}
    /// A writer was matched or unmatched.
    fn on_subscription_matched(&self, _reader: &DataReader<T>, _status: SubscriptionMatchedStatus) {}
    /// A writer offers less than the reader requests.
    fn on_requested_incompatible_qos(&self, _reader: &DataReader<T>, _status: IncompatibleQosStatus) {}
    /// The number of matched writers that are alive, or that are not, changed.
    fn on_liveliness_changed(&self, _reader: &DataReader<T>, _status: LivelinessChangedStatus) {}
    /// A sample was over a limit of [`ResourceLimits`](crate::ResourceLimits), or could not be decoded.
    fn on_sample_rejected(&self, _reader: &DataReader<T>, _status: SampleRejectedStatus) {}
    /// An instance was not written within the requested deadline.
    fn on_requested_deadline_missed(&self, _reader: &DataReader<T>, _status: DeadlineMissedStatus) {}
    /// Samples were lost.
    fn on_sample_lost(&self, _reader: &DataReader<T>, _status: SampleLostStatus) {}
}

/// Events of a writer. Every method does nothing by default.
///
/// ```
/// use weir_dds::{DataWriter, DataWriterListener, PublicationMatchedStatus};
///
/// struct Matches;
///
/// impl<T> DataWriterListener<T> for Matches {
///     fn on_publication_matched(&self, writer: &DataWriter<T>, status: PublicationMatchedStatus) {
///         println!("{}: {} readers", writer.topic_name(), status.current_count);
///     }
/// }
/// ```
pub trait DataWriterListener<T>: Send + Sync {
    /// A reader was matched or unmatched.
    fn on_publication_matched(&self, _writer: &DataWriter<T>, _status: PublicationMatchedStatus) {}
    /// A reader requests more than the writer offers.
    fn on_offered_incompatible_qos(&self, _writer: &DataWriter<T>, _status: IncompatibleQosStatus) {}
    /// An instance was not written within the offered deadline.
    fn on_offered_deadline_missed(&self, _writer: &DataWriter<T>, _status: DeadlineMissedStatus) {}
    /// The application has not asserted the writer within its lease.
    fn on_liveliness_lost(&self, _writer: &DataWriter<T>, _status: LivelinessLostStatus) {}
}

/// Events of a topic. Every method does nothing by default.
///
/// ```
/// use weir_dds::{InconsistentTopicStatus, Topic, TopicListener};
///
/// struct Mismatches;
///
/// impl<T> TopicListener<T> for Mismatches {
///     fn on_inconsistent_topic(&self, topic: &Topic<T>, status: InconsistentTopicStatus) {
///         eprintln!("{}: {} endpoints have another type", topic.name(), status.total_count);
///     }
/// }
/// ```
pub trait TopicListener<T>: Send + Sync {
    /// An endpoint of the topic has another type.
    fn on_inconsistent_topic(&self, _topic: &Topic<T>, _status: InconsistentTopicStatus) {}
}
