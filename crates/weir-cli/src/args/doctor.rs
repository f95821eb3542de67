//! The options of `weir doctor`.

use clap::ValueEnum;

/// List what would spoil a measurement on this host, each with the command that fixes it.
///
/// Checks limits, processors, clocks, memory, the network interface, and for one second the load of the host.
/// Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir doctor
  weir doctor --peer 192.168.1.20              the way to the other host, too
  weir doctor --interface eth1 --json
  weir doctor --script throughput > tune.sh    print the safe commands as a script, to a file
  less tune.sh && sudo sh tune.sh              review it, then run it

Exit codes: 0 nothing found (notes do not count), 1 something found, 2 usage, 3 environment;
            with --script 0")]
pub(crate) struct DoctorArgs {
    /// The other host of the measurement, a name or an address: also looks at the route there, its MTU, and
    /// whether it answers (one TCP connection is tried)
    #[arg(long, value_name = "HOST")]
    pub(crate) peer: Option<String>,

    /// Network interface that will carry the samples [default: the one to the peer, or that of the default route]
    #[arg(long, value_name = "NAME")]
    pub(crate) interface: Option<String>,

    /// Print a shell script that prepares for this, in place of the list; it changes no network interface, takes no
    /// processor offline and lowers no value
    #[arg(long, value_enum, value_name = "PURPOSE", conflicts_with = "json")]
    pub(crate) script: Option<ScriptPurpose>,

    /// Print facts and findings as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a script prepares for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptPurpose {
    /// The time of one sample
    Latency,
    /// The rate of many
    Throughput,
}
