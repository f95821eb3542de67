//! The published figures of RTI and of hpcbench, and the same measured here.
//!
//! `tables` has the figures and where they are from, `run` measures a table with both ends of `perftest`, `differences` says in
//! what the two are not alike, `show` prints them beside each other, and `page` puts all tables on one page.

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
