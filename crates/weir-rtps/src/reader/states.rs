//! Sample, view and instance states (DDS 1.4, 2.2.2.5.1).

use core::ops::BitOr;

/// State of an instance (DDS 1.4, 2.2.2.5.1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstanceState {
    /// At least one writer writes it.
    Alive,
    /// A writer disposed it.
    NotAliveDisposed,
    /// No writer writes it any more.
    NotAliveNoWriters,
}

/// A mask of sample, view and instance states.
///
/// Within each of the three groups, any named state matches. A group of which none is named matches
/// every state.
///
/// ```
/// use weir_rtps::reader::{InstanceState, States};
///
/// let fresh = States::NOT_READ | States::NOT_ALIVE_DISPOSED | States::NOT_ALIVE_NO_WRITERS;
/// assert!(fresh.contains(false, true, InstanceState::NotAliveDisposed));
/// assert!(!fresh.contains(false, true, InstanceState::Alive));
/// assert!(!fresh.contains(true, true, InstanceState::NotAliveDisposed));
/// assert_eq!(States::ANY | States::READ, States::ANY);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct States(u8);

impl Default for States {
    fn default() -> Self {
        Self::ANY
    }
}

impl States {
    /// Every state.
    pub const ANY: Self = Self(0b111_1111);
    /// Samples that were read.
    pub const READ: Self = Self(1);
    /// Samples that were not read.
    pub const NOT_READ: Self = Self(1 << 1);
    /// Instances not accessed since they were created or became alive again.
    pub const NEW: Self = Self(1 << 2);
    /// Instances accessed before.
    pub const NOT_NEW: Self = Self(1 << 3);
    /// Instances that are alive.
    pub const ALIVE: Self = Self(1 << 4);
    /// Instances that were disposed.
    pub const NOT_ALIVE_DISPOSED: Self = Self(1 << 5);
    /// Instances without writers.
    pub const NOT_ALIVE_NO_WRITERS: Self = Self(1 << 6);
    /// Instances that are not alive, for either reason.
    pub const NOT_ALIVE: Self = Self(0b11 << 5);

    const SAMPLE: u8 = 0b11;
    const VIEW: u8 = 0b11 << 2;
    const INSTANCE: u8 = 0b111 << 4;

    /// Whether the mask excludes read samples.
    pub(super) fn is_unread_only(self) -> bool {
        self.0 & Self::SAMPLE == Self::NOT_READ.0
    }

    /// Whether a sample may get into these states when it is read: the mask names samples that were read, or instances
    /// that were accessed.
    #[must_use]
    pub fn may_follow_access(self) -> bool {
        self != Self::ANY && self.0 & (Self::READ.0 | Self::NOT_NEW.0) != 0
    }

    /// Whether the mask includes a sample in these states.
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
