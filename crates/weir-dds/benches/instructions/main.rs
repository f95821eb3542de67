//! The work that `cargo xtask instructions` counts the instructions of, under callgrind: without arguments the names of
//! the cases, each with the function inside of which it is counted; with one of the names that case, and then the number
//! of samples that it measured.
//!
//! Only what runs inside of that function is counted, by the thread that called it: mostly [`measured`]. Time is an argument wherever it can be,
//! hash seeds are fixed, and memory is warm, so that the same code gives the same number every time.
//!
//! - `codec`: values to bytes and back.
//! - `cores`: writer and reader as state machines, from a value to a datagram and back; `sink` is the receiving end.
//! - `engine`: the whole engine with its locks and system calls; what the kernel executes is not counted.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks")]
#![expect(clippy::unwrap_used, reason = "a case that cannot go on fails")]

use std::process::ExitCode;

mod codec;
mod cores;
mod engine;
mod sink;

/// What can be measured; returns the number of samples that it measured.
type Case = fn() -> u32;

/// What callgrind calls [`measured`].
const MEASURED: &str = "instructions::measured*";

/// The engine's own function for one receive call and all that follows from it, on whichever thread.
const RECEIVE: &str = "*Driver*::receive_batch*";

const CASES: [(&str, Case); 18] = [
    ("encode-32", || codec::encode(32)),
    ("encode-1024", || codec::encode(1024)),
    ("decode-32", || codec::decode(32)),
    ("write-alone-32", || cores::write(32, cores::Pace::Alone)),
    ("write-single-32", || cores::write_single(32)),
    ("write-burst-32", || cores::write(32, cores::Pace::Burst)),
    ("write-batch-32", || cores::write(32, cores::Pace::Batch)),
    ("write-batch-1024", || cores::write(1024, cores::Pace::Batch)),
    ("receive-alone-32", || cores::receive(32, cores::Pace::Alone)),
    ("receive-burst-32", || cores::receive(32, cores::Pace::Burst)),
    ("receive-batch-32", || cores::receive(32, cores::Pace::Batch)),
    ("receive-batch-1024", || cores::receive(1024, cores::Pace::Batch)),
    ("key-write-100000", cores::write_instances),
    ("key-receive-100000", cores::receive_instances),
    ("engine-write-32", engine::write),
    ("engine-write-batch-32", engine::write_batch),
    ("engine-receive-32", || engine::receive(32)),
    ("engine-receive-1024", || engine::receive(1024)),
];

/// Inside of which function a case is counted.
fn counted_in(name: &str) -> &'static str {
    if name.starts_with("engine-receive") { RECEIVE } else { MEASURED }
}

fn main() -> ExitCode {
    // `cargo bench` adds an option of its own.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let Some(wanted) = wanted else {
        CASES.iter().for_each(|(name, _)| println!("{name} {}", counted_in(name)));
        return ExitCode::SUCCESS;
    };
    let Some((_, run)) = CASES.iter().find(|(name, _)| *name == wanted) else {
        eprintln!("instructions: there is no case {wanted:?}");
        return ExitCode::from(2);
    };
    println!("{}", run());
    ExitCode::SUCCESS
}

/// Runs what is counted. callgrind knows this function by its name.
#[inline(never)]
fn measured<R>(work: impl FnOnce() -> R) -> R {
    std::hint::black_box(work())
}
