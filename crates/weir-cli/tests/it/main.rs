//! The commands as a user runs them, mostly with a mock engine that needs neither network nor time.

#![expect(clippy::unwrap_used, reason = "a helper of tests that can't go on fails the test")]

mod bench;
mod budget;
mod by_hand;
mod compare;
mod doctor;
mod domain;
mod faults;
mod help;
mod history;
mod hosts;
mod kills;
mod lab;
mod link;
mod peers;
mod perftest;
mod perftest_peers;
mod perftest_scripts;
mod published;
mod report;
mod run;
mod run_published;
mod serve;
mod slurm;
mod support;
mod targets;
mod udp;
mod udptest;
mod udptest_page;
mod view;
mod workload;
