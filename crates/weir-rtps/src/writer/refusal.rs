//! Why a writer refuses samples.

/// Why a sample was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// Unacknowledged samples fill the window or a resource limit. Wait for acknowledgements and
    /// try again.
    #[error("the window is full: some matched reader has not acknowledged earlier samples")]
    WindowFull,
    /// The sample is too long.
    #[error("a sample of {len} bytes is too long: the limit is {max} bytes")]
    TooLarge {
        /// Serialized size with its encapsulation header, in bytes.
        len: usize,
        /// The largest size that fits, in bytes.
        max: usize,
    },
    /// Samples kept for late readers fill a resource limit. Waiting does not help.
    #[error(
        "the history is full of samples kept for late readers: raise max_samples, max_samples_per_instance or \
         max_bytes, or keep fewer samples"
    )]
    LimitReached,
    /// Another instance would exceed the resource limits.
    #[error("no room for another instance: unregister some, or raise the resource limit max_instances")]
    TooManyInstances,
    /// The instance is not registered, and the writer asks for new ones: see
    /// [`WriterCore::ask_for_new_instances`](super::WriterCore::ask_for_new_instances).
    #[error("the instance is not registered: register it, and write again")]
    NewInstance,
    /// The writer was closed.
    #[error("the writer is closed")]
    Closed,
    /// Too many loans are outstanding.
    #[error("{max} loans are outstanding: write or drop some of them")]
    TooManyLoans {
        /// Most loans at a time.
        max: usize,
    },
}
