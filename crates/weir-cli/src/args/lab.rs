//! The options of `weir lab`.

use std::ffi::OsString;

use clap::Subcommand;
use weir_bench::path::PathSpec;
use weir_bench::path::lab::DEFAULT;

/// Make virtual hosts on this machine, with links between them (root)
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A host of the lab is a network namespace, and stays until `weir lab down`. Two hosts are joined by a cable or an \
emulated link, more by cables to a switch, which limits the rate in both directions. Links are those of `weir bench \
--link`. `weir lab down` also removes the remains of a lab that ended early.

Examples:
  weir lab up                                       # hosts a and b, with a cable
  weir lab up --link veth,rate=1G,mtu=9000 a b c    # three hosts and a switch
  weir run smoke --hosts pub=lab:a,sub=lab:b        # measures between them
  weir lab exec b -- ip address                     # runs a command on a host
  weir lab down

Exit codes: 0 success, 1 the lab is down or broken (status), 2 usage, 3 environment; exec: that of the command")]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Make the hosts and their link
    #[command(after_help = "\
Examples:
  weir lab up                                       # hosts a and b, with a cable
  weir lab up --link lte                            # an emulated cellular link
  weir lab up --link veth,rate=100M alpha beta gamma

Exit codes: 0 success, 2 usage, 3 environment, or the lab is up")]
    Up(LabUpArgs),
    /// Run a command on a host
    #[command(after_help = "\
Examples:
  weir lab exec b -- ip address
  weir lab exec a -- weir udp --to 10.78.0.2 --secret-file secret

Exit codes: those of the command; 2 usage, 3 environment, or the lab is down")]
    Exec(LabExecArgs),
    /// Remove the lab, or the remains of one
    #[command(after_help = "\
Examples:
  weir lab down
  weir lab down --name second

Exit codes: 0 success, also if nothing was there, 2 usage, 3 environment")]
    Down(LabNameArgs),
    /// Show the hosts and the link
    #[command(after_help = "\
Examples:
  weir lab status
  weir lab status --name second

Exit codes: 0 the lab is up, 1 it is down or broken, 2 usage, 3 environment")]
    Status(LabNameArgs),
    /// Emulate the link of a lab; started by `weir lab up`
    #[command(hide = true)]
    Emulate {
        /// The lab
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct LabUpArgs {
    /// Names of the hosts
    #[arg(value_name = "HOST", default_values = ["a", "b"])]
    pub(crate) hosts: Vec<String>,

    /// Join the hosts by this link, such as veth,rate=1G or lte; see `weir bench --help`
    #[arg(long, value_name = "LINK", default_value = "veth")]
    pub(crate) link: PathSpec,

    #[command(flatten)]
    pub(crate) lab: LabNameArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LabExecArgs {
    /// The host
    #[arg(value_name = "HOST")]
    pub(crate) host: String,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) lab: LabNameArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LabNameArgs {
    /// Name the lab, to have several; its hosts are lab:NAME/HOST
    #[arg(long, value_name = "NAME", default_value = DEFAULT)]
    pub(crate) name: String,
}
