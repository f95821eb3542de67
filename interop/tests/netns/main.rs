//! What the loopback interface never does: lose packets one by one, change, vanish, or lead to
//! another host.
//!
//! | file | content |
//! |---|---|
//! | `changes` | interfaces and addresses that change while participants run |
//! | `chosen` | traffic is kept to the chosen interfaces |
//! | `losses` | a cable that loses packets |
//! | `narrow` | a router with a smaller MTU behind it |
//! | `paced` | a participant without threads sends at a limited rate |
//! | `pair` | a writer and a reader in a namespace each |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "figures, shown with --nocapture")]

mod changes;
mod chosen;
mod losses;
mod narrow;
mod paced;
mod pair;
