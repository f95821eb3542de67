//! What a process pays for samples: allocations, counted over all of its threads, so one test at a time; and the
//! threads that are left when everything is dropped.

mod paths;
mod support;
mod threads;
