//! Writers and readers as hosts on a simulated network with virtual time: the guarantees of
//! reliable and best-effort delivery, under loss, reordering, duplication, partitions, slow readers
//! and hostile peers.
//!
//! A failing run prints its seed and writes a capture to the temporary folder; `WEIR_SIM_SEED=n`
//! runs only that seed. `WEIR_SIM_SEEDS=n` widens the swarm to `n` random configurations,
//! `WEIR_SIM_DEPTH=n` deepens the search of [`lives`] to `n` steps, and `WEIR_SIM_FAULTS=n` lengthens
//! the [sequences](swarm) of faults to `n`. `WEIR_SIM_MATRIX=` prints the [tables](matrix) of links.
//! There are goals instead of waits and a limit of steps instead of a timeout, so a run only depends
//! on computing time.
//!
//! `tests/sim_small` runs most of it again with the limits tables of the small profile.

mod answers;
mod asynchronous;
mod best_effort;
mod bottleneck;
mod camera;
mod classes;
mod coherent;
mod crowd;
mod cubic;
mod duplicate;
mod ecn;
mod fairness;
mod goodput_table;
mod harness;
mod hostile;
mod large_under_loss;
mod late_history;
mod late_joiner;
mod liars;
mod links;
mod live;
mod lives;
mod loss;
mod matrix;
mod multicast;
mod partition;
mod path_changes;
mod pieces;
mod profile;
mod reorder;
mod repairs;
mod slow_hosts;
mod slow_reader;
mod small;
mod small_buffer;
mod swarm;
mod withheld;
mod writer_restart;
