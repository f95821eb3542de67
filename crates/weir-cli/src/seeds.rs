//! The published figures of RTI and of hpcbench, and the same measured here.
//!
//! `published` has the figures and where they are from, `run` measures a table with both ends of `perftest`, `differences` says in
//! what the two are not alike, `show` prints them beside each other, and `page` puts all tables on one page.

mod differences;
mod ends;
mod page;
mod published;
mod run;
mod show;

pub(crate) use differences::differences;
pub(crate) use page::page;
pub(crate) use published::{Table, all, documents, find};
pub(crate) use run::{OurRow, PathChoice, Plan, measure};
pub(crate) use show::{Shown, csv, document_text, json, table_text};
