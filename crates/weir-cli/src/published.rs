//! Reference tables published by RTI and hpcbench, and the same measured on this host.
//!
//! - `tables`: the published figures and their sources
//! - `run`, `ends`: measure a table with both ends of `perftest`
//! - `differences`: how the two setups differ
//! - `mininet`, `mininet_report`: Open Robotics' experiment on lossy links, which `weir bench` repeats
//! - `beside`: the tables as a report shows them beside a run
//! - `show`, `page`: print both beside each other, and all tables on one page

mod beside;
mod differences;
mod ends;
pub(crate) mod mininet;
pub(crate) mod mininet_report;
mod page;
mod run;
mod show;
mod tables;

pub(crate) use beside::{beside, named_in, row_batch_bytes};
pub(crate) use differences::differences;
pub(crate) use page::page;
pub(crate) use run::{LinkChoice, OurRow, Plan, measure, table_link};
pub(crate) use show::{Shown, csv, document_text, json, table_text};
pub(crate) use tables::{Document, Row, Table, all, columns, documents, find};
