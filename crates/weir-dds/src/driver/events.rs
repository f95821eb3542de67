//! The events that listeners are called for.

use std::sync::Arc;

use crate::status_mask::StatusKind;

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

impl ReaderEvent {
    pub(crate) const STATUSES: [Self; 6] = [
        Self::Matched,
        Self::Incompatible,
        Self::LivelinessChanged,
        Self::SampleRejected,
        Self::SampleLost,
        Self::DeadlineMissed,
    ];

    /// One bit, which no other event has.
    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }

    pub(crate) fn kind(self) -> StatusKind {
        match self {
            Self::DataAvailable => StatusKind::DataAvailable,
            Self::Matched => StatusKind::SubscriptionMatched,
            Self::Incompatible => StatusKind::RequestedIncompatibleQos,
            Self::LivelinessChanged => StatusKind::LivelinessChanged,
            Self::SampleRejected => StatusKind::SampleRejected,
            Self::SampleLost => StatusKind::SampleLost,
            Self::DeadlineMissed => StatusKind::RequestedDeadlineMissed,
        }
    }
}

impl WriterEvent {
    pub(crate) const ALL: [Self; 4] =
        [Self::Matched, Self::Incompatible, Self::LivelinessLost, Self::DeadlineMissed];

    /// One bit, which no other event has.
    pub(crate) fn bit(self) -> u16 {
        1 << self as u16
    }

    pub(crate) fn kind(self) -> StatusKind {
        match self {
            Self::Matched => StatusKind::PublicationMatched,
            Self::Incompatible => StatusKind::OfferedIncompatibleQos,
            Self::LivelinessLost => StatusKind::LivelinessLost,
            Self::DeadlineMissed => StatusKind::OfferedDeadlineMissed,
        }
    }
}

/// A reader's listener, without its sample type.
pub(crate) type ReaderListener = Arc<dyn Fn(ReaderEvent) + Send + Sync>;
/// A writer's listener, without its sample type.
pub(crate) type WriterListener = Arc<dyn Fn(WriterEvent) + Send + Sync>;
