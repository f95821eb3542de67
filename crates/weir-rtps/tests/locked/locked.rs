//! The allocator, and what is allocated while it is locked.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What was allocated in calls that may allocate nothing.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    /// Allocations and reallocations.
    pub(crate) allocations: usize,
    /// The first call that allocated: its name, and how often.
    pub(crate) first: Option<(&'static str, usize)>,
}

impl Lock {
    /// Calls `f`, which may allocate nothing.
    pub(crate) fn call<T>(&mut self, name: &'static str, f: impl FnOnce() -> T) -> T {
        let before = allocations();
        let result = f();
        let count = allocations() - before;
        self.allocations += count;
        if count > 0 {
            self.first.get_or_insert((name, count));
        }
        result
    }
}

/// Allocations and reallocations so far.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}
