//! What to do about what was typed: one file per command.

pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod by_hand;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod goals;
pub(crate) mod report;
pub(crate) mod seeds;
pub(crate) mod udp;
