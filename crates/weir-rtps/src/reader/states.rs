//! Masks of sample, view and instance states (DDS 1.4 §2.2.2.5.1).

use core::ops::BitOr;

use super::cache::InstanceState;

/// States that samples may be in. Of each of the three groups, any of those that are named will do; of a group of
/// which none is named, every one.
///
/// ```
/// use weir_rtps::reader::{InstanceState, States};
///
/// let fresh = States::NOT_READ | States::NOT_ALIVE_DISPOSED | States::NOT_ALIVE_NO_WRITERS;
/// assert!(fresh.contains(false, true, InstanceState::NotAliveDisposed));
/// assert!(!fresh.contains(false, true, InstanceState::Alive));
/// assert!(!fresh.contains(true, true, InstanceState::NotAliveDisposed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States(u8);

impl States {
    /// Every state.
    pub const ANY: Self = Self(0);
    /// Samples that were read.
    pub const READ: Self = Self(1);
    /// Samples that were not read.
    pub const NOT_READ: Self = Self(1 << 1);
    /// Instances that are seen for the first time since they were born or came back to life.
    pub const NEW: Self = Self(1 << 2);
    /// Instances that were seen.
    pub const NOT_NEW: Self = Self(1 << 3);
    /// Instances that are written.
    pub const ALIVE: Self = Self(1 << 4);
    /// Instances that were disposed.
    pub const NOT_ALIVE_DISPOSED: Self = Self(1 << 5);
    /// Instances that nobody writes any more.
    pub const NOT_ALIVE_NO_WRITERS: Self = Self(1 << 6);
    /// Instances that are not written, for either reason.
    pub const NOT_ALIVE: Self = Self(0b11 << 5);

    /// Whether read samples are not meant, whatever else is.
    pub(super) fn is_unread_only(self) -> bool {
        self.0 & Self::SAMPLE == Self::NOT_READ.0
    }

    const SAMPLE: u8 = 0b11;
    const VIEW: u8 = 0b11 << 2;
    const INSTANCE: u8 = 0b111 << 4;

    /// Whether a sample in these states is meant.
    #[inline]
    #[must_use]
    pub fn contains(self, was_read: bool, is_new: bool, instance: InstanceState) -> bool {
        if self == Self::ANY {
            return true;
        }
        let sample = if was_read { Self::READ } else { Self::NOT_READ };
        let view = if is_new { Self::NEW } else { Self::NOT_NEW };
        let instance = match instance {
            InstanceState::Alive => Self::ALIVE,
            InstanceState::NotAliveDisposed => Self::NOT_ALIVE_DISPOSED,
            InstanceState::NotAliveNoWriters => Self::NOT_ALIVE_NO_WRITERS,
        };
        [(Self::SAMPLE, sample), (Self::VIEW, view), (Self::INSTANCE, instance)]
            .iter()
            .all(|(group, state)| self.0 & group == 0 || self.0 & state.0 != 0)
    }
}

impl BitOr for States {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
