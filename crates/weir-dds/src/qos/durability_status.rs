//! What a writer's durability amounts to.

use std::fmt;

use super::Durability;

/// What is kept of a writer's samples, and for how long.
///
/// Weir has no durability service. A writer with durability `Transient` or `Persistent` is matched with readers that
/// request this, and serves late ones from its own history.
///
/// ```
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) {
/// let status = writer.durability_status();
/// if !status.is_as_announced() {
///     eprintln!("{status}");
/// }
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurabilityStatus {
    /// The durability that the writer announces.
    pub announced: Durability,
    /// The durability that late readers get.
    pub served: Durability,
}

impl DurabilityStatus {
    pub(crate) fn new(announced: Durability, is_reliable: bool) -> Self {
        // A best-effort writer keeps nothing.
        let most = if is_reliable { Durability::TransientLocal } else { Durability::Volatile };
        Self { announced, served: announced.min(most) }
    }

    /// Returns whether late readers get what the writer announces.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
    /// if !writer.durability_status().is_as_announced() {
    ///     eprintln!("late readers may receive less than the durability promises");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_as_announced(&self) -> bool {
        self.announced == self.served
    }
}

impl fmt::Display for DurabilityStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.announced {
            Durability::Volatile => "VOLATILE",
            Durability::TransientLocal => "TRANSIENT_LOCAL",
            Durability::Transient => "TRANSIENT",
            Durability::Persistent => "PERSISTENT",
        };
        let kept = match (self.served, self.announced) {
            (Durability::Volatile, Durability::Volatile) => "late readers get no earlier samples",
            (Durability::Volatile, _) => {
                "late readers get no earlier samples, as a best-effort writer keeps none: make it reliable"
            }
            (_, Durability::TransientLocal) => {
                "late readers get what the writer keeps, for as long as it exists"
            }
            _ => {
                "late readers get what the writer keeps, for as long as it exists; there is no durability service, so \
                 nothing is kept beyond that"
            }
        };
        write!(f, "DURABILITY {name}: {kept}")
    }
}
