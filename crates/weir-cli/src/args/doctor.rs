//! The options of `weir doctor`.

use super::values::ScriptPurpose;

/// List what would distort a measurement on this host, with the commands that fix it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks limits, CPUs, clocks, memory, the network interface and, for one second, the load. Changes nothing. The \
script changes no network interface, takes no CPU offline and lowers no value.

Examples:
  weir doctor
  weir doctor --peer 192.168.1.20              # the route to the other host as well
  weir doctor --interface eth1 --json
  weir doctor --script throughput > tune.sh    # then: less tune.sh && sudo sh tune.sh

Exit codes: 0 no problem found (or --script), 1 problem found, 2 usage, 3 environment")]
pub(crate) struct DoctorArgs {
    /// Check the route to this host as well: MTU and one TCP connection
    #[arg(long, value_name = "HOST")]
    pub(crate) peer: Option<String>,

    /// Check this network interface [default: that of the route to the peer]
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,

    /// Print the safe commands as a script for latency or throughput
    #[arg(long, value_enum, hide_possible_values = true, value_name = "PURPOSE", conflicts_with = "json")]
    pub(crate) script: Option<ScriptPurpose>,

    /// Print facts and findings as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
