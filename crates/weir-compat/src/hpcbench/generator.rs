//! The generator: datagrams at a rate to a host without a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_udp::{Interface, SocketOptions, UdpSocket, interfaces};

use crate::hpcbench::control::Counted;
use crate::hpcbench::flow::{self, Pace};
use crate::hpcbench::settings::{Console, Settings};
use crate::hpcbench::trial::mbps;
use weir_measure::{MeasureError, resolve};

/// Bytes of a datagram, as in hpcbench.
const DATAGRAM_BYTES: usize = 1460;

pub(super) fn run(
    settings: &Settings,
    halt: &AtomicBool,
    console: &mut Console<'_>,
) -> Result<(), MeasureError> {
    let target = resolve(&settings.host, settings.port, settings.family)?[0];
    if !settings.many_receivers && reaches_many(target.ip()) {
        return Err(many_receivers(target.ip()));
    }
    let any = if target.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let options = SocketOptions {
        broadcast: settings.many_receivers,
        ..flow::client_socket(SocketAddr::new(any, 0), settings)
    };
    let socket = UdpSocket::bind(&options)?;
    socket.connect(target).map_err(|error| match error.kind() {
        // The kernel knows broadcast addresses that no interface lists.
        io::ErrorKind::PermissionDenied => many_receivers(target.ip()),
        _ => MeasureError::Socket(error),
    })?;
    let rate = settings.rate_bps.unwrap_or(1);
    let mut say = |text: String| console(&text).map_err(MeasureError::Console);
    say(format!("Try to send UDP packets to {} on port {}", settings.host, settings.port))?;
    let (time_s, rate_mbps) = (settings.time.as_secs_f64(), rate as f64 / 1e6);
    say(format!("Send-time(Seconds): {time_s:.2}  Target-througput(Mbps): {rate_mbps:.2}"))?;
    let pace =
        Pace { write_bytes: DATAGRAM_BYTES, time: settings.time, message_bytes: 0, rate_bps: Some(rate) };
    let sent = flow::send(&socket, &pace, halt).map_err(MeasureError::Transfer)?;
    let Counted { sent_packets, sent_bytes, elapsed_ns, .. } = sent;
    say(format!("Done! Elapsed-time(Seconds): {:.2}", Duration::from_nanos(elapsed_ns).as_secs_f64()))?;
    let throughput = mbps(sent_bytes, elapsed_ns);
    say(format!(
        "Sent-packets: {sent_packets}  Sent-bytes: {sent_bytes}  Throughput(Mbps): {throughput:.6}"
    ))?;
    // The figures are of the time until then.
    if halt.load(Ordering::Relaxed) { Err(MeasureError::Interrupted) } else { Ok(()) }
}

/// Whether more than one host may receive there, by the interfaces of this host.
fn reaches_many(target: IpAddr) -> bool {
    let IpAddr::V4(ip) = target else { return target.is_multicast() };
    // A network of one or two addresses (/32, /31) has no broadcast address.
    let is_broadcast = |interface: &Interface| {
        let host_bits = !interface.netmask.to_bits();
        host_bits > 1 && interface.address.to_bits() | host_bits == ip.to_bits()
    };
    ip.is_multicast() || ip.is_broadcast() || interfaces().unwrap_or_default().iter().any(is_broadcast)
}

fn many_receivers(target: IpAddr) -> MeasureError {
    MeasureError::Usage(format!(
        "{target} reaches more than one host: --allow-multicast says that this is meant"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpcbench::settings::Mode;

    #[test]
    fn an_interrupted_generator_prints_its_figures_and_says_so() {
        let any = SocketOptions::new("127.0.0.1:0".parse::<SocketAddr>().unwrap());
        let target = UdpSocket::bind(&any).unwrap();
        for is_halted in [true, false] {
            let settings = Settings {
                port: target.local_addr().port(),
                time: Duration::ZERO,
                rate_bps: Some(1),
                ..Settings::new("127.0.0.1", Mode::Generator)
            };
            let mut shown = String::new();
            let mut console = |text: &str| {
                shown += text;
                Ok(())
            };
            let done = run(&settings, &AtomicBool::new(is_halted), &mut console);
            assert_eq!(matches!(done, Err(MeasureError::Interrupted)), is_halted, "{done:?}");
            assert!(shown.contains("Sent-packets: 0"), "{shown}");
        }
    }
}
