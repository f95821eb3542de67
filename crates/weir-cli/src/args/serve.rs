//! The options of `weir serve`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Show the runs of a results folder in a browser, while they are measured and afterwards
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Read-only. Pages of runs that are being measured reload by themselves. /metrics has the latest
figures of each case as OpenMetrics. An address other than loopback needs --token-file: open
http://HOST:PORT/?token=TOKEN once, or send the header `Authorization: Bearer TOKEN`. The
connection is not encrypted: prefer loopback and `ssh -L 7480:localhost:7480 HOST`.

Examples:
  weir serve                                   # http://127.0.0.1:7480/
  weir serve results --port 0                  # prints the port that it got
  weir serve --bind 0.0.0.0 --token-file token

Exit codes: 0 success, 2 usage, 3 environment, 130 interrupted")]
pub(crate) struct ServeArgs {
    /// The folder of runs
    #[arg(value_name = "DIR", default_value = "weir-results")]
    pub(crate) folder: PathBuf,

    /// Listen on this address
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) bind: IpAddr,

    /// Listen on this TCP port; 0: any free one
    #[arg(long, default_value_t = 7480)]
    pub(crate) port: u16,

    /// Ask for the token in this file, at least 16 characters
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}
