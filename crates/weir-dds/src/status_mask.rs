//! The kinds of communication statuses, and sets of them (DDS 1.4, 2.2.4.1, 2.3.3).

use core::ops::{BitAnd, BitOr, Not};

/// The kind of a communication status, with its value in DDS (`StatusKind`).
///
/// | entity | statuses |
/// |---|---|
/// | [`Topic`](crate::Topic) | `InconsistentTopic` |
/// | [`Subscriber`](crate::Subscriber) | `DataOnReaders` |
/// | [`DataReader`](crate::DataReader) | `DataAvailable`, `Sample...`, `Requested...`, and those of its writers |
/// | [`DataWriter`](crate::DataWriter) | `LivelinessLost`, `Offered...`, `PublicationMatched` |
///
/// ```
/// use weir_dds::{StatusKind, StatusMask};
///
/// let mask = StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST;
/// assert_eq!(mask.iter().collect::<Vec<_>>(), [StatusKind::SampleLost, StatusKind::DataAvailable]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum StatusKind {
    /// An endpoint of the topic has another type.
    InconsistentTopic = 1,
    /// A writer did not write an instance in time.
    OfferedDeadlineMissed = 1 << 1,
    /// A reader did not receive an instance in time.
    RequestedDeadlineMissed = 1 << 2,
    /// A reader requests more than the writer offers.
    OfferedIncompatibleQos = 1 << 5,
    /// A writer offers less than the reader requests.
    RequestedIncompatibleQos = 1 << 6,
    /// Samples will never arrive.
    SampleLost = 1 << 7,
    /// Samples were over a limit.
    SampleRejected = 1 << 8,
    /// A reader of the subscriber has new data.
    DataOnReaders = 1 << 9,
    /// The reader has new data.
    DataAvailable = 1 << 10,
    /// The application did not assert the writer in time.
    LivelinessLost = 1 << 11,
    /// Matched writers became alive, or ceased to be.
    LivelinessChanged = 1 << 12,
    /// A reader was matched or unmatched.
    PublicationMatched = 1 << 13,
    /// A writer was matched or unmatched.
    SubscriptionMatched = 1 << 14,
}

impl StatusKind {
    /// All kinds, in the order of their values.
    ///
    /// ```
    /// use weir_dds::{StatusKind, StatusMask};
    ///
    /// assert!(StatusKind::ALL.iter().all(|kind| StatusMask::ALL.contains(*kind)));
    /// ```
    pub const ALL: &'static [Self] = &[
        Self::InconsistentTopic,
        Self::OfferedDeadlineMissed,
        Self::RequestedDeadlineMissed,
        Self::OfferedIncompatibleQos,
        Self::RequestedIncompatibleQos,
        Self::SampleLost,
        Self::SampleRejected,
        Self::DataOnReaders,
        Self::DataAvailable,
        Self::LivelinessLost,
        Self::LivelinessChanged,
        Self::PublicationMatched,
        Self::SubscriptionMatched,
    ];
}

/// A set of statuses (`StatusMask`).
///
/// ```
/// use weir_dds::{StatusKind, StatusMask};
///
/// let mask = StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST;
/// assert!(mask.contains(StatusKind::SampleLost) && !mask.contains(StatusKind::DataOnReaders));
/// assert_eq!(mask.iter().count(), 2);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct StatusMask(u32);

impl StatusMask {
    /// No status (`STATUS_MASK_NONE`).
    pub const NONE: Self = Self(0);
    /// Every status (`STATUS_MASK_ALL`).
    pub const ALL: Self = Self(0b111_1111_1110_0111);
    /// [`StatusKind::InconsistentTopic`].
    pub const INCONSISTENT_TOPIC: Self = Self::of(StatusKind::InconsistentTopic);
    /// [`StatusKind::OfferedDeadlineMissed`].
    pub const OFFERED_DEADLINE_MISSED: Self = Self::of(StatusKind::OfferedDeadlineMissed);
    /// [`StatusKind::RequestedDeadlineMissed`].
    pub const REQUESTED_DEADLINE_MISSED: Self = Self::of(StatusKind::RequestedDeadlineMissed);
    /// [`StatusKind::OfferedIncompatibleQos`].
    pub const OFFERED_INCOMPATIBLE_QOS: Self = Self::of(StatusKind::OfferedIncompatibleQos);
    /// [`StatusKind::RequestedIncompatibleQos`].
    pub const REQUESTED_INCOMPATIBLE_QOS: Self = Self::of(StatusKind::RequestedIncompatibleQos);
    /// [`StatusKind::SampleLost`].
    pub const SAMPLE_LOST: Self = Self::of(StatusKind::SampleLost);
    /// [`StatusKind::SampleRejected`].
    pub const SAMPLE_REJECTED: Self = Self::of(StatusKind::SampleRejected);
    /// [`StatusKind::DataOnReaders`].
    pub const DATA_ON_READERS: Self = Self::of(StatusKind::DataOnReaders);
    /// [`StatusKind::DataAvailable`].
    pub const DATA_AVAILABLE: Self = Self::of(StatusKind::DataAvailable);
    /// [`StatusKind::LivelinessLost`].
    pub const LIVELINESS_LOST: Self = Self::of(StatusKind::LivelinessLost);
    /// [`StatusKind::LivelinessChanged`].
    pub const LIVELINESS_CHANGED: Self = Self::of(StatusKind::LivelinessChanged);
    /// [`StatusKind::PublicationMatched`].
    pub const PUBLICATION_MATCHED: Self = Self::of(StatusKind::PublicationMatched);
    /// [`StatusKind::SubscriptionMatched`].
    pub const SUBSCRIPTION_MATCHED: Self = Self::of(StatusKind::SubscriptionMatched);

    /// What a subscriber's readers report.
    pub(crate) const OF_READERS: Self = Self(
        Self::REQUESTED_DEADLINE_MISSED.0
            | Self::REQUESTED_INCOMPATIBLE_QOS.0
            | Self::SAMPLE_LOST.0
            | Self::SAMPLE_REJECTED.0
            | Self::DATA_ON_READERS.0
            | Self::DATA_AVAILABLE.0
            | Self::LIVELINESS_CHANGED.0
            | Self::SUBSCRIPTION_MATCHED.0,
    );

    const fn of(kind: StatusKind) -> Self {
        Self(kind as u32)
    }

    /// Returns the set with the bits of DDS's `StatusMask`; bits without a meaning are left out.
    ///
    /// ```
    /// use weir_dds::StatusMask;
    ///
    /// assert_eq!(StatusMask::from_bits(0x0400), StatusMask::DATA_AVAILABLE);
    /// ```
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the bits of DDS's `StatusMask`.
    ///
    /// ```
    /// use weir_dds::StatusMask;
    ///
    /// assert_eq!(StatusMask::DATA_AVAILABLE.bits(), 0x0400);
    /// ```
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether a status is in the set.
    ///
    /// ```
    /// use weir_dds::{StatusKind, StatusMask};
    ///
    /// assert!(StatusMask::ALL.contains(StatusKind::SampleLost));
    /// ```
    #[must_use]
    pub const fn contains(self, kind: StatusKind) -> bool {
        self.0 & kind as u32 != 0
    }

    /// Returns whether the sets have a status in common.
    ///
    /// ```
    /// use weir_dds::StatusMask;
    ///
    /// let changed = StatusMask::DATA_AVAILABLE | StatusMask::SAMPLE_LOST;
    /// assert!(changed.intersects(!StatusMask::DATA_AVAILABLE));
    /// ```
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether the set is empty.
    ///
    /// ```
    /// use weir_dds::StatusMask;
    ///
    /// assert!(StatusMask::NONE.is_empty());
    /// ```
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the statuses of the set, in the order of their values.
    ///
    /// ```
    /// use weir_dds::{StatusKind, StatusMask};
    ///
    /// assert!(StatusMask::SAMPLE_LOST.iter().eq([StatusKind::SampleLost]));
    /// ```
    pub fn iter(self) -> impl Iterator<Item = StatusKind> {
        StatusKind::ALL.iter().copied().filter(move |kind| self.contains(*kind))
    }
}

impl From<StatusKind> for StatusMask {
    fn from(kind: StatusKind) -> Self {
        Self::of(kind)
    }
}

impl FromIterator<(StatusKind, bool)> for StatusMask {
    /// Collects the kinds that are paired with `true`.
    fn from_iter<I: IntoIterator<Item = (StatusKind, bool)>>(kinds: I) -> Self {
        let is_set = kinds.into_iter().filter(|(_, is_set)| *is_set);
        is_set.fold(Self::NONE, |mask, (kind, _)| mask | kind.into())
    }
}

impl BitOr for StatusMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for StatusMask {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for StatusMask {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0 & Self::ALL.0)
    }
}

impl core::fmt::Debug for StatusMask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_are_those_of_the_specification() {
        let bits: Vec<_> = StatusKind::ALL.iter().map(|kind| *kind as u32).collect();
        assert_eq!(bits, [1, 2, 4, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]);
        assert_eq!(bits.iter().sum::<u32>(), StatusMask::ALL.bits());
        assert_eq!(StatusMask::from_bits(u32::MAX), StatusMask::ALL);
        assert_eq!(!StatusMask::ALL, StatusMask::NONE);
    }

    #[test]
    fn sets_are_printed_by_their_names() {
        let mask = StatusMask::SAMPLE_LOST | StatusMask::INCONSISTENT_TOPIC;
        assert_eq!(format!("{mask:?}"), "{InconsistentTopic, SampleLost}");
    }
}
