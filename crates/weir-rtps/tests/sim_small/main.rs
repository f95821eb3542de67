//! The simulations of `tests/sim` again, with the limits tables of the small profile: see `profile.rs` there.
//!
//! Left out are those of the rate of paths, of the goodput and of the budget of repairs, which a history of 32 samples
//! does not fill; those of samples in pieces, which a writer with a limits table sends whole; and `classes`, whose
//! counts are those of the default limits. `small` fills every table instead.

#[path = "../sim"]
#[expect(dead_code, unused_imports, reason = "shared with the simulations that are left out")]
mod sim {
    mod asynchronous;
    mod coherent;
    mod crowd;
    pub(crate) mod cubic;
    mod duplicate;
    pub(crate) mod harness;
    mod hostile;
    mod late_joiner;
    pub(crate) mod live;
    mod lives;
    mod loss;
    mod multicast;
    mod partition;
    pub(crate) mod profile;
    mod reorder;
    mod slow_reader;
    mod small;
    mod small_buffer;
    mod swarm;
    mod writer_restart;
}

// Where the simulations look for each other.
use sim::{cubic, harness, live, profile};
