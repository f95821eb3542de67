//! The events that listeners are called for.

use std::sync::Arc;

/// An event for a reader's listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderEvent {
    DataAvailable,
    Matched,
    Incompatible,
    LivelinessChanged,
    SampleRejected,
    SampleLost,
    DeadlineMissed,
}

/// An event for a writer's listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterEvent {
    Matched,
    Incompatible,
    LivelinessLost,
    DeadlineMissed,
}

/// A reader's listener, without its sample type.
pub(crate) type ReaderListener = Arc<dyn Fn(ReaderEvent) + Send + Sync>;
/// A writer's listener, without its sample type.
pub(crate) type WriterListener = Arc<dyn Fn(WriterEvent) + Send + Sync>;
