//! `Debug` that prints what `Display` prints, to keep assertions and logs short.

use core::fmt;

use crate::guid::{EntityId, Guid, GuidPrefix};
use crate::parameter_id::ParameterId;
use crate::sequence_number::SequenceNumberSet;
use crate::vendor::VendorId;

macro_rules! debug_as_display {
    ($($name:ty),+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    )+};
}

debug_as_display!(EntityId, Guid, GuidPrefix, ParameterId, SequenceNumberSet, VendorId);
