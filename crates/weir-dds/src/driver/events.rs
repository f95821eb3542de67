//! What listeners are called for.

use std::sync::Arc;

/// What a reader's listener is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReaderEvent {
    DataAvailable,
    Matched,
    Incompatible,
    LivelinessChanged,
    SampleRejected,
    SampleLost,
}

/// What a writer's listener is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterEvent {
    Matched,
    Incompatible,
    LivelinessLost,
}

/// A reader's listener without its type.
pub(crate) type ReaderListener = Arc<dyn Fn(ReaderEvent) + Send + Sync>;
/// A writer's listener without its type.
pub(crate) type WriterListener = Arc<dyn Fn(WriterEvent) + Send + Sync>;
