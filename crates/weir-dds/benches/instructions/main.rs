//! The cases whose instructions `cargo xtask instructions` counts under callgrind.
//!
//! Without arguments, prints the names of the cases, each with the function inside of which it is
//! counted. With a name, runs that case and prints the number of samples measured.
//!
//! Only what runs inside of that function is counted, on the thread that called it: mostly
//! [`measured`]. Time is an argument where possible, hash seeds are fixed and memory is warm, so
//! the same code always gives the same count.
//!
//! - `codec`: encoding and decoding.
//! - `cores`: writer and reader cores, from a value to a datagram and back; `sink` is the receiving
//!   end.
//! - `policies`: the same cores with policies that act on each sample.
//! - `engine`: the complete engine with its locks and system calls; instructions in the kernel are
//!   not counted.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks")]
#![expect(clippy::unwrap_used, reason = "a case that cannot go on fails")]

use std::process::ExitCode;

mod codec;
mod cores;
mod engine;
mod policies;
mod sink;

use policies::Policy;

/// A case. Returns the number of samples measured.
type Case = fn() -> u32;

/// The name of [`measured`] in callgrind.
const MEASURED: &str = "instructions::measured*";

/// The engine's function for one receive call and its consequences, on any thread.
const RECEIVE: &str = "*Driver*::receive_batch*";

const CASES: [(&str, Case); 30] = [
    ("encode-32", || codec::encode(32)),
    ("encode-1024", || codec::encode(1024)),
    ("decode-32", || codec::decode(32)),
    ("write-alone-32", || cores::write(32, cores::Pace::Alone, Policy::None)),
    ("write-single-32", || cores::write_single(32)),
    ("write-burst-32", || cores::write(32, cores::Pace::Burst, Policy::None)),
    ("write-batch-32", || cores::write(32, cores::Pace::Batch, Policy::None)),
    ("write-batch-1024", || cores::write(1024, cores::Pace::Batch, Policy::None)),
    ("receive-alone-32", || cores::receive(32, cores::Pace::Alone)),
    ("receive-burst-32", || cores::receive(32, cores::Pace::Burst)),
    ("receive-batch-32", || cores::receive(32, cores::Pace::Batch)),
    ("receive-batch-1024", || cores::receive(1024, cores::Pace::Batch)),
    ("key-write-100000", cores::write_instances),
    ("key-receive-100000", cores::receive_instances),
    ("fan-out-1", || cores::fan_out(1)),
    ("fan-out-16", || cores::fan_out(16)),
    ("silent-writers-1000", cores::receive_beside_silent_writers),
    ("deadline-write-32", || cores::write(32, cores::Pace::Alone, Policy::Deadline)),
    ("deadline-receive-32", || policies::receive(Policy::Deadline)),
    ("lifespan-write-32", || cores::write(32, cores::Pace::Alone, Policy::Lifespan)),
    ("lifespan-receive-32", || policies::receive(Policy::Lifespan)),
    ("filter-receive-32", || policies::receive(Policy::Filter)),
    ("key-receive-1", || policies::receive_instances(1, Policy::None)),
    ("key-receive-100", || policies::receive_instances(100, Policy::None)),
    ("ownership-receive-1", || policies::receive_instances(1, Policy::Ownership)),
    ("ownership-receive-100", || policies::receive_instances(100, Policy::Ownership)),
    ("engine-write-32", engine::write),
    ("engine-write-batch-32", engine::write_batch),
    ("engine-receive-32", || engine::receive(32)),
    ("engine-receive-1024", || engine::receive(1024)),
];

/// Returns the function inside of which a case is counted.
fn counted_in(name: &str) -> &'static str {
    if name.starts_with("engine-receive") { RECEIVE } else { MEASURED }
}

fn main() -> ExitCode {
    // `cargo bench` adds an option.
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

/// Runs the counted code. callgrind identifies this function by its name.
#[inline(never)]
fn measured<R>(work: impl FnOnce() -> R) -> R {
    std::hint::black_box(work())
}
