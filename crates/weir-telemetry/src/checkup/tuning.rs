//! The changes that a script may make: a closed list of fixed commands.
//!
//! A script runs as root, often over the network that it tunes. So no entry touches a network
//! interface or takes a processor offline, and no entry contains text from the host. Commands that
//! may interrupt the network (`ip link`, `ethtool -s`, `-C`, `-G`, `-K`, `-L`: several drivers
//! reset the device) are advice, see [`Finding::see`].
//!
//! [`Finding::see`]: super::Finding::see

/// One change of the host, undone by a reboot. Idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tuning {
    ReceiveBufferMax,
    SendBufferMax,
    Backlog,
    BusyPolling,
    PerformanceGovernor,
    NoIdleStates,
    NoIrqbalance,
}

impl Tuning {
    /// Returns the command to enter at a prompt.
    pub(super) fn command(self) -> String {
        match self.effect() {
            Effect::Raise(minimums) => {
                let pairs: Vec<String> =
                    minimums.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("sysctl -w {}", pairs.join(" "))
            }
            Effect::Run(command) => command.to_owned(),
        }
    }

    /// Returns the lines of a script. A setting is raised to its minimum and never lowered.
    pub(super) fn script_lines(self) -> Vec<String> {
        match self.effect() {
            Effect::Raise(minimums) => minimums.iter().map(raise).collect(),
            Effect::Run(command) => vec![command.to_owned()],
        }
    }

    const fn effect(self) -> Effect {
        match self {
            Self::ReceiveBufferMax => Effect::Raise(&[("net.core.rmem_max", BUFFER_MAX)]),
            Self::SendBufferMax => Effect::Raise(&[("net.core.wmem_max", BUFFER_MAX)]),
            Self::Backlog => Effect::Raise(&[("net.core.netdev_max_backlog", BACKLOG)]),
            Self::BusyPolling => {
                Effect::Raise(&[("net.core.busy_poll", BUSY_POLL_US), ("net.core.busy_read", BUSY_POLL_US)])
            }
            Self::PerformanceGovernor => Effect::Run(
                "for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; \
                 do echo performance > \"$file\"; done",
            ),
            Self::NoIdleStates => Effect::Run("cpupower idle-set --disable-by-latency 1"),
            Self::NoIrqbalance => Effect::Run("systemctl stop irqbalance"),
        }
    }
}

/// What a [`Tuning`] does.
#[derive(Debug)]
enum Effect {
    /// Raises kernel settings to at least these values.
    Raise(&'static [(&'static str, u64)]),
    /// Runs a fixed command.
    Run(&'static str),
}

fn raise((key, value): &(&'static str, u64)) -> String {
    format!("[ \"$(sysctl -n {key})\" -ge {value} ] || sysctl -w {key}={value}")
}

/// Received packets that a processor queues before it drops.
pub(super) const BACKLOG: u64 = 10_000;
/// Four times the buffer that `weir bench` requests for its sockets, in bytes.
const BUFFER_MAX: u64 = 16 << 20;
const BUSY_POLL_US: u64 = 50;

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Every entry of the list. The compiler rejects a new one that is missing in the match.
    fn all() -> [Tuning; 7] {
        use Tuning::{
            Backlog, BusyPolling, NoIdleStates, NoIrqbalance, PerformanceGovernor, ReceiveBufferMax,
            SendBufferMax,
        };
        let position = |tuning| match tuning {
            ReceiveBufferMax => 0,
            SendBufferMax => 1,
            Backlog => 2,
            BusyPolling => 3,
            PerformanceGovernor => 4,
            NoIdleStates => 5,
            NoIrqbalance => 6,
        };
        let all = [
            ReceiveBufferMax,
            SendBufferMax,
            Backlog,
            BusyPolling,
            PerformanceGovernor,
            NoIdleStates,
            NoIrqbalance,
        ];
        assert!(all.iter().enumerate().all(|(i, tuning)| position(*tuning) == i));
        all
    }

    #[test]
    fn every_line_that_a_script_can_contain_is_on_the_allow_list() {
        let lines: Vec<String> = all().into_iter().flat_map(Tuning::script_lines).collect();
        assert_eq!(lines.len(), 8);
        for line in lines {
            assert!(super::super::tests::is_harmless(&line), "{line}");
        }
    }

    /// The shell has the two functions below and no programs, so nothing of the host is read or
    /// changed.
    #[test]
    fn a_setting_is_raised_and_never_lowered() {
        for (key, minimum) in [("net.core.rmem_max", BUFFER_MAX), ("net.core.busy_read", BUSY_POLL_US)] {
            let pair = (key, minimum);
            let written = |current: u64| {
                let stub =
                    format!("sysctl() {{ if [ $1 = -n ]; then echo {current}; else echo \"$2\"; fi; }}");
                let mut shell = Command::new("/bin/sh");
                shell.env_clear().env("PATH", "/nonexistent");
                let output = shell.args(["-c", &format!("{stub}\n{}", raise(&pair))]).output().unwrap();
                assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
                String::from_utf8(output.stdout).unwrap()
            };
            assert_eq!(written(minimum - 1), format!("{key}={minimum}\n"));
            // A second run, and a host with a higher value.
            assert_eq!(written(minimum), "");
            assert_eq!(written(64 << 20), "");
        }
    }
}
