//! Listeners of publishers, subscribers and participants.
//!
//! They are called for the events of their entities that no listener below them is for. What a listener is for is its
//! mask, not the methods that it has (DDS 1.4, 2.2.4.2.3):
//!
//! 1. DATA_ON_READERS goes to the subscriber's listener, or else to the participant's. If one of them has it in its
//!    mask, DATA_AVAILABLE is not reported: [`Subscriber::notify_datareaders`] does that.
//! 2. Any other event goes to the listener of the reader, writer or topic, or else to that of the subscriber or
//!    publisher, or else to the participant's.
//! 3. A level without a listener whose mask has the event ends this: nothing is called. The status stays changed, for
//!    conditions and for the application to read (2.2.4.2.1).

use crate::data_reader::AnyDataReader;
use crate::data_writer::AnyDataWriter;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus,
    LivelinessLostStatus, PublicationMatchedStatus, SampleLostStatus, SampleRejectedStatus,
    SubscriptionMatchedStatus,
};
use crate::subscriber::Subscriber;
use crate::topic::AnyTopic;

/// Stands for the sample type of a reader, writer or topic whose type is not known to the compiler.
///
/// Such handles have everything that does not need the type, and `typed` returns one with the type.
///
/// ```no_run
/// # use weir_dds::{AnyDataReader, DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &AnyDataReader) {
/// // A reader of any type has a name; its samples need the type.
/// println!("{}", reader.topic_name());
/// let typed: Option<DataReader<T>> = reader.typed();
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {}

macro_rules! reader_events {
    () => {
        /// Samples of a reader can be taken.
        fn on_data_available(&self, _reader: &AnyDataReader) {}
        /// A writer was matched or unmatched.
        fn on_subscription_matched(&self, _reader: &AnyDataReader, _status: SubscriptionMatchedStatus) {}
        /// A writer offers less than the reader requests.
        fn on_requested_incompatible_qos(&self, _reader: &AnyDataReader, _status: IncompatibleQosStatus) {}
        /// The number of matched writers that are alive, or that are not, changed.
        fn on_liveliness_changed(&self, _reader: &AnyDataReader, _status: LivelinessChangedStatus) {}
        /// A sample was over a limit of [`ResourceLimits`](crate::ResourceLimits), or could not be decoded.
        fn on_sample_rejected(&self, _reader: &AnyDataReader, _status: SampleRejectedStatus) {}
        /// An instance was not written within the requested deadline.
        fn on_requested_deadline_missed(&self, _reader: &AnyDataReader, _status: DeadlineMissedStatus) {}
        /// Samples were lost.
        fn on_sample_lost(&self, _reader: &AnyDataReader, _status: SampleLostStatus) {}
        /// Readers of the subscriber have new data.
        ///
        /// If the mask has DATA_ON_READERS, this is called in place of `on_data_available` at all levels.
        fn on_data_on_readers(&self, _subscriber: &Subscriber) {}
    };
}

macro_rules! writer_events {
    () => {
        /// A reader was matched or unmatched.
        fn on_publication_matched(&self, _writer: &AnyDataWriter, _status: PublicationMatchedStatus) {}
        /// A reader requests more than the writer offers.
        fn on_offered_incompatible_qos(&self, _writer: &AnyDataWriter, _status: IncompatibleQosStatus) {}
        /// An instance was not written within the offered deadline.
        fn on_offered_deadline_missed(&self, _writer: &AnyDataWriter, _status: DeadlineMissedStatus) {}
        /// The application has not asserted the writer within its lease.
        fn on_liveliness_lost(&self, _writer: &AnyDataWriter, _status: LivelinessLostStatus) {}
    };
}

/// Events of a subscriber and its readers. Every method does nothing by default.
///
/// ```no_run
/// # use weir_dds::{DomainParticipant, ParticipantSettings};
/// use std::sync::Arc;
/// use weir_dds::{AnyDataReader, StatusMask, SubscriberListener, SubscriptionMatchedStatus};
///
/// struct Log;
///
/// impl SubscriberListener for Log {
///     fn on_subscription_matched(&self, reader: &AnyDataReader, status: SubscriptionMatchedStatus) {
///         println!("{}: {} writers", reader.topic_name(), status.current_count);
///     }
/// }
///
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let subscriber = participant.create_subscriber()?;
/// subscriber.set_listener(Some(Arc::new(Log)), StatusMask::SUBSCRIPTION_MATCHED);
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub trait SubscriberListener: Send + Sync {
    reader_events!();
}

/// Events of a publisher's writers. Every method does nothing by default.
///
/// ```
/// use weir_dds::{AnyDataWriter, LivelinessLostStatus, PublisherListener};
///
/// struct Lost;
///
/// impl PublisherListener for Lost {
///     fn on_liveliness_lost(&self, writer: &AnyDataWriter, _: LivelinessLostStatus) {
///         eprintln!("assert the writer of {} more often", writer.topic_name());
///     }
/// }
/// ```
pub trait PublisherListener: Send + Sync {
    writer_events!();
}

/// Events of all entities of a participant. Every method does nothing by default.
///
/// ```
/// use weir_dds::{AnyDataReader, DomainParticipantListener, IncompatibleQosStatus};
///
/// struct Log;
///
/// impl DomainParticipantListener for Log {
///     fn on_requested_incompatible_qos(&self, reader: &AnyDataReader, status: IncompatibleQosStatus) {
///         eprintln!("{}: {:?} does not fit", reader.topic_name(), status.last_policy_id);
///     }
/// }
/// ```
pub trait DomainParticipantListener: Send + Sync {
    reader_events!();
    writer_events!();

    /// An endpoint of a topic has another type.
    fn on_inconsistent_topic(&self, _topic: &AnyTopic, _status: InconsistentTopicStatus) {}
}

/// Calls the method of a listener of any level for an event of a reader.
macro_rules! call_for_reader {
    ($listener:expr, $reader:expr, $event:expr) => {
        match $event {
            ReaderEvent::DataAvailable => $listener.on_data_available($reader),
            ReaderEvent::Matched => {
                $listener.on_subscription_matched($reader, $reader.subscription_matched_status());
            }
            ReaderEvent::Incompatible => {
                let status = $reader.requested_incompatible_qos_status();
                $listener.on_requested_incompatible_qos($reader, status);
            }
            ReaderEvent::LivelinessChanged => {
                $listener.on_liveliness_changed($reader, $reader.liveliness_changed_status());
            }
            ReaderEvent::SampleRejected => {
                $listener.on_sample_rejected($reader, $reader.sample_rejected_status());
            }
            ReaderEvent::DeadlineMissed => {
                $listener.on_requested_deadline_missed($reader, $reader.requested_deadline_missed_status());
            }
            ReaderEvent::SampleLost => $listener.on_sample_lost($reader, $reader.sample_lost_status()),
        }
    };
}
pub(crate) use call_for_reader;

/// Calls the method of a listener of any level for an event of a writer.
macro_rules! call_for_writer {
    ($listener:expr, $writer:expr, $event:expr) => {
        match $event {
            WriterEvent::Matched => {
                $listener.on_publication_matched($writer, $writer.publication_matched_status());
            }
            WriterEvent::Incompatible => {
                $listener.on_offered_incompatible_qos($writer, $writer.offered_incompatible_qos_status());
            }
            WriterEvent::DeadlineMissed => {
                $listener.on_offered_deadline_missed($writer, $writer.offered_deadline_missed_status());
            }
            WriterEvent::LivelinessLost => {
                $listener.on_liveliness_lost($writer, $writer.liveliness_lost_status());
            }
        }
    };
}
pub(crate) use call_for_writer;
