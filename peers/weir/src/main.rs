//! The `weir` command with other engines built in: everything else is in the library of weir-cli.

use std::process::ExitCode;

fn main() -> ExitCode {
    weir_cli::weir(weir_peers::PEERS)
}
