//! The commands of `weir`: one file each.

pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod budget;
pub(crate) mod by_hand;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod domain;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod host;
pub(crate) mod lab;
pub(crate) mod manual;
mod mininet;
pub(crate) mod published;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod serve;
mod setup;
pub(crate) mod targets;
pub(crate) mod udp;
