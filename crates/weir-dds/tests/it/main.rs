//! The engine as an application sees it: participants on the loopback interface, each test in a domain of its
//! own. Tests wait for goals, with deadlines that are only there to end a test that failed.

mod best_effort;
mod blocking;
mod examples;
mod hostile;
mod instances;
mod listeners;
mod participants;
mod reliable;
mod samples;
mod settings;
mod statuses;
mod support;
mod waiting;
