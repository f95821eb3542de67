//! The `udptest` command: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_cli::udptest()
}
