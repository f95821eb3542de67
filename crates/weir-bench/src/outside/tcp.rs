//! A TCP connection across a virtual link, by iperf3.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use super::process::{END_WAIT, Process};
use crate::case::{CaseError, CaseSpec};
use crate::control::Role;
use crate::path::{Place, VirtualLink};

/// A server that listens, and the client that will connect to it. Both end with this value.
pub(crate) struct TcpFlow {
    server: Process,
    client: Command,
    duration: Duration,
}

impl TcpFlow {
    /// Starts the server on the subscribers' side of the link. The client sends from the publishers' side, with CUBIC,
    /// which the host's default may not be.
    pub(crate) fn prepare(path: &VirtualLink, case: &CaseSpec) -> Result<Self, CaseError> {
        let [from, to] = [Role::Publisher, Role::Subscriber].map(|role| path.place(role));
        let address = to.address.to_string();
        let mut command = inside(&to);
        command.args(["--server", "--one-off", "--bind", &address, "--port", &PORT.to_string()]);
        let mut server = Process::start(command, None)?;
        server.wait_for_port(&sockets(&to.namespace), PORT)?;
        let (omitted, measured) = (whole_seconds(case.warmup), whole_seconds(case.duration).max(1));
        let mut client = inside(&from);
        client.args(["--client", &address, "--port", &PORT.to_string(), "--congestion", "cubic", "--json"]);
        client.args(["--omit", &omitted.to_string(), "--time", &measured.to_string()]);
        Ok(Self { server, client, duration: Duration::from_secs(omitted + measured) })
    }

    /// Sends, and returns what arrived after the warm-up, in Mbit/s.
    pub(crate) fn run(self, interrupted: &AtomicBool) -> Result<f64, CaseError> {
        let client = Process::start(self.client, None)?;
        let text = client.wait_for_end(self.duration + END_WAIT, interrupted, &mut |_| {})?;
        drop(self.server);
        parse(&text).ok_or_else(|| CaseError::Failed("iperf3's output is not understood".to_owned()))
    }
}

/// iperf3 in a network namespace.
fn inside(place: &Place) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", place.namespace.display())).arg("iperf3");
    command
}

/// The table of TCP sockets of a namespace with the file `/proc/PID/ns/net`.
fn sockets(namespace: &Path) -> String {
    let process = namespace.ancestors().nth(2).unwrap_or(namespace);
    process.join("net/tcp").display().to_string()
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

fn parse(text: &str) -> Option<f64> {
    let report: Value = serde_json::from_str(text).ok()?;
    Some(report.get("end")?.get("sum_received")?.get("bits_per_second")?.as_f64()? / 1e6)
}

/// The namespaces are our own: nothing else listens there.
const PORT: u16 = 5201;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_what_the_receiver_saw() {
        let text = r#"{"end":{"sum_sent":{"bits_per_second":5e6},"sum_received":{"bits_per_second":4.5e6}}}"#;
        assert_eq!(parse(text), Some(4.5));
        assert_eq!(parse(r#"{"error":"unable to connect"}"#), None);
    }

    #[test]
    fn sockets_are_those_of_the_namespace() {
        assert_eq!(sockets(Path::new("/proc/42/ns/net")), "/proc/42/net/tcp");
    }
}
