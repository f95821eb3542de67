//! The engine through its public API: participants on the loopback interface, one domain per test.
//! Tests wait for events; deadlines only end tests that failed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asynchronous;
mod best_effort;
mod blocking;
mod builtin_topics;
mod changing;
mod closing;
mod conditions;
mod content_filters;
mod dscp;
mod durability;
mod endpoints_that_come_and_go;
mod event_loops;
mod examples;
mod factories;
mod group_policies;
mod hostile;
mod instances;
mod killed;
mod large;
mod limits;
mod limits_tables;
mod listeners;
mod liveliness;
mod loans;
mod multicast;
mod notifications;
mod omg_suite;
mod participants;
mod policies;
mod presentation;
mod profile_text;
mod profiles;
mod propagation;
mod reliable;
mod representations;
mod runtimes;
mod samples;
mod serialized;
mod settings;
mod stage_times;
mod stalled;
mod static_discovery;
mod statuses;
mod support;
mod unthreaded;
mod waiting;
