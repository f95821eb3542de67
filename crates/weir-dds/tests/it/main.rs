//! The engine as an application sees it: participants on the loopback interface, each test in a domain of its
//! own. Tests wait for goals, with deadlines that are only there to end a test that failed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asynchronous;
mod best_effort;
mod blocking;
mod durability;
mod examples;
mod hostile;
mod instances;
mod large;
mod limits;
mod listeners;
mod liveliness;
mod loans;
mod multicast;
mod participants;
mod policies;
mod reliable;
mod representations;
mod routes;
mod samples;
mod serialized;
mod settings;
mod stage_times;
mod stalled;
mod statuses;
mod support;
mod waiting;
