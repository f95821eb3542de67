//! Why writers refuse samples.

/// Why a sample was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefused {
    /// As much as allowed is unacknowledged: wait for acknowledgements and try again.
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
    /// A resource limit is reached, and what is kept for late readers makes no room: waiting does not help.
    #[error(
        "the history is full, and is kept for readers that come late: raise max_samples, max_samples_per_instance or \
         max_bytes, or keep less"
    )]
    LimitReached,
    /// No more instances fit the resource limits.
    #[error("no room for another instance: unregister some, or raise the resource limit max_instances")]
    TooManyInstances,
    /// No more memory is lent.
    #[error("{max} loans are out: write some of them, or drop them")]
    TooManyLoans {
        /// How many there may be.
        max: usize,
    },
}
