//! The options that place the ends on hosts.

use weir_bench::hosts::HostsSpec;

/// Where the ends run.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HostsArgs {
    /// Run the ends on these hosts, as pub=local,sub=user@beta; see Hosts below
    #[arg(long, value_name = "PLACES")]
    pub(crate) hosts: Option<HostsSpec>,

    /// Reach remote hosts by this command [default: ssh]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) rsh: Option<String>,

    /// Run this weir of the same version on remote hosts, instead of a copy of this one
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_weir: Option<String>,
}

/// The paragraph on hosts in a help text.
macro_rules! hosts_help {
    () => {
        "\
Hosts:
  --hosts pub=PLACE,sub=PLACE places publishers and subscribers. With several places, as sub=b,sub=c, the ends are
  placed round-robin; sub2=PLACE places the second subscriber. A place is one of
    local           this host
    HOST, USER@HOST a remote host, by SSH with its configuration; weir is copied there if missing
    netns:NAME      a network namespace of this host (root)
    lab:NAME        a host of the lab (weir lab)
    slurm:NODE      a node of this Slurm allocation, by srun
  %INTERFACE after a place names the interface for the samples (default: that in the subnet which the hosts share).
  For example --hosts pub=alpha%ib0,sub=beta%ib0.
"
    };
}
pub(crate) use hosts_help;
