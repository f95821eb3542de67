//! Listeners: calls that tell of news (DDS 1.4 §2.2.4.4).
//!
//! No lock of the engine is held meanwhile: a listener may read, write, and even wait.
//!
//! - Data (`on_data_available`), and what is noticed with it, is told on the thread that received it, which may be
//!   one of the application's that waits; never by two threads at a time for one reader.
//! - Matches and other statuses that discovery brings are told on a thread of their own, one after the other: a
//!   listener that waits for another match does not hold up discovery. It reads the status as it is then; when
//!   listeners take their time, one call may tell of several changes.
//! - A listener that panics has lost that call and nothing else: the next news are told as ever.

use crate::data_reader::DataReader;
use crate::data_writer::DataWriter;
use crate::status::{
    IncompatibleQosStatus, LivelinessChangedStatus, LivelinessLostStatus, MatchedStatus, SampleCountStatus,
    SampleRejectedStatus,
};

/// News of a reader. Every method does nothing unless it is implemented.
pub trait DataReaderListener<T>: Send + Sync {
    /// Samples wait to be taken.
    fn on_data_available(&self, _reader: &DataReader<T>) {}
    /// A writer was matched or unmatched.
    fn on_subscription_matched(&self, _reader: &DataReader<T>, _status: MatchedStatus) {}
    /// A writer offers less than is requested.
    fn on_requested_incompatible_qos(&self, _reader: &DataReader<T>, _status: IncompatibleQosStatus) {}
    /// A writer fell silent for longer than its lease, or is heard of again, or came or went.
    fn on_liveliness_changed(&self, _reader: &DataReader<T>, _status: LivelinessChangedStatus) {}
    /// Samples found no room: a limit of [`ResourceLimits`](crate::ResourceLimits) is reached.
    fn on_sample_rejected(&self, _reader: &DataReader<T>, _status: SampleRejectedStatus) {}
    /// Samples will never arrive.
    fn on_sample_lost(&self, _reader: &DataReader<T>, _status: SampleCountStatus) {}
}

/// News of a writer. Every method does nothing unless it is implemented.
pub trait DataWriterListener<T>: Send + Sync {
    /// A reader was matched or unmatched.
    fn on_publication_matched(&self, _writer: &DataWriter<T>, _status: MatchedStatus) {}
    /// A reader requests more than is offered.
    fn on_offered_incompatible_qos(&self, _writer: &DataWriter<T>, _status: IncompatibleQosStatus) {}
    /// The application has not asserted the writer within its lease.
    fn on_liveliness_lost(&self, _writer: &DataWriter<T>, _status: LivelinessLostStatus) {}
}
