//! Reference tables published by RTI and hpcbench, and the same measured on this host.
//!
//! - `tables`: the published figures and their sources
//! - `run`, `ends`: measure a table with both ends of `perftest`
//! - `differences`: how the two setups differ
//! - `show`, `page`: print both beside each other, and all tables on one page

mod differences;
mod ends;
mod page;
mod run;
mod show;
mod tables;

pub(crate) use differences::differences;
pub(crate) use page::page;
pub(crate) use run::{LinkChoice, OurRow, Plan, measure};
pub(crate) use show::{Shown, csv, document_text, json, table_text};
pub(crate) use tables::{Table, all, documents, find};
