//! The `weir` command: everything is in the library. A build with other engines is in `peers/`.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_cli::weir(&[])
}
