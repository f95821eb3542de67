//! What a change does to its instance (RTPS 2.5, 8.2.1.2).

/// What happened to an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new value.
    Alive,
    /// The instance was disposed.
    Disposed,
    /// The writer no longer writes the instance.
    Unregistered,
    /// Disposed and unregistered.
    DisposedUnregistered,
}
