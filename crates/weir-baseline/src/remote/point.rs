//! One measurement, and its limits.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_results::{UdpMode, WaitStrategy};
use weir_telemetry::{Sampler, SamplerOptions};

use super::header::HEADER_BYTES;

/// The smallest datagram: the header has to fit.
pub const UDP_BYTES_MIN: usize = HEADER_BYTES;

/// Most streams of a measurement.
pub(super) const FLOWS_MAX: u32 = 64;

/// The most bytes of socket buffers of a measurement, over all flows.
const BUFFER_BYTES_MAX: u64 = 256 << 20;

/// Sampling a host takes some tenths of this.
const TELEMETRY_PERIOD_MIN: Duration = Duration::from_millis(1);

/// The highest rate, datagrams per second.
const RATE_MAX: f64 = 1e9;

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The test.
    pub test: PointTest,
    /// Bytes of UDP payload of each datagram.
    pub size_bytes: usize,
    /// How datagrams are passed to the kernel.
    pub mode: UdpMode,
    /// Streams in each direction, each with a socket and a thread of its own at either end.
    pub flows: u32,
    /// Whether receivers accept coalesced datagrams (GRO).
    pub gro: bool,
    /// Whether sockets are connected.
    pub connected: bool,
    /// How receivers wait.
    pub wait: WaitStrategy,
    /// The processor of the server's end.
    pub server_cpu: Option<usize>,
    /// The differentiated services code point, 0 to 63.
    pub dscp: Option<u8>,
    /// The group that datagrams go to.
    pub multicast: Option<IpAddr>,
    /// The time to live of multicast.
    pub multicast_ttl: u8,
    /// Whether the client sends.
    pub forward: bool,
    /// Whether the server sends.
    pub reverse: bool,
    /// Target rate in each direction, datagrams per second of all flows; `None`: as fast as
    /// possible.
    pub datagrams_per_s: Option<f64>,
    /// The length of the warm-up.
    pub warmup: Duration,
    /// The length of the measured part.
    pub duration: Duration,
    /// Bytes of socket buffers to request, in each direction; `None`: the system's default.
    pub buffer_bytes: Option<usize>,
    /// How often both ends sample their hosts; `None`: never.
    pub telemetry_period: Option<Duration>,
    /// How much longer a round trip may take over an emulated link. Only the client's end needs it.
    #[serde(skip)]
    pub echo_wait: Duration,
}

/// The test of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointTest {
    /// Streams of datagrams.
    Stream,
    /// Round trips.
    RoundTrip,
}

impl Point {
    /// The most bytes of a datagram over IPv4 or IPv6.
    #[must_use]
    pub const fn size_bytes_max(is_ipv6: bool) -> usize {
        // 65535 less the headers: IPv6's own does not count into its length.
        if is_ipv6 { 65_527 } else { 65_507 }
    }

    /// Datagrams per second of one flow.
    pub(super) fn flow_rate(&self) -> Option<f64> {
        self.datagrams_per_s.map(|rate| rate / f64::from(self.flows))
    }

    /// Starts to sample this end's host, when enabled.
    pub(super) fn watch(&self) -> Option<Sampler> {
        let options = |period| SamplerOptions { period, cpus: Vec::new() };
        self.telemetry_period.map(options).map(Sampler::start)
    }

    /// The length of warm-up and measured part.
    pub(super) fn length(&self) -> Duration {
        self.warmup.saturating_add(self.duration)
    }

    /// Checks a measurement.
    pub fn check(&self, is_ipv6: bool) -> Result<(), String> {
        self.refusal(is_ipv6).or_else(|| self.test_refusal().map(str::to_owned)).map_or(Ok(()), Err)
    }

    /// Which limit it exceeds.
    fn refusal(&self, is_ipv6: bool) -> Option<String> {
        let (most, size, flows) = (Self::size_bytes_max(is_ipv6), self.size_bytes, self.flows);
        let buffers = (self.buffer_bytes.unwrap_or(0) as u64).saturating_mul(u64::from(flows));
        let foreign = |group: &IpAddr| !group.is_multicast() || group.is_ipv6() != is_ipv6;
        Some(if size < UDP_BYTES_MIN {
            format!(
                "a datagram has {UDP_BYTES_MIN} to {most} bytes here, not {size}: its number and times need \
                 {UDP_BYTES_MIN}; `udptest` and `udpserver` measure smaller ones, and count totals only"
            )
        } else if !(UDP_BYTES_MIN..=most).contains(&size) {
            format!("a datagram has {UDP_BYTES_MIN} to {most} bytes here, not {size}")
        } else if !(1..=FLOWS_MAX).contains(&flows) {
            format!("there are 1 to {FLOWS_MAX} flows, not {flows}")
        } else if self.dscp.is_some_and(|dscp| dscp > 63) {
            "a DSCP lies within 0 and 63".to_owned()
        } else if self.duration.is_zero() {
            "a measurement takes some time".to_owned()
        } else if self.telemetry_period.is_some_and(|period| period < TELEMETRY_PERIOD_MIN) {
            "a host is looked at once a millisecond at most".to_owned()
        } else if self.datagrams_per_s.is_some_and(|rate| !(rate > 0.0 && rate <= RATE_MAX)) {
            "a rate is more than 0 and at most 10^9 datagrams per second".to_owned()
        } else if buffers > BUFFER_BYTES_MAX {
            format!("the flows ask for {buffers} bytes of buffers, {BUFFER_BYTES_MAX} are the most")
        } else if let Some(group) = self.multicast.filter(foreign) {
            format!("{group} is no multicast group of the version of IP in use")
        } else {
            return None;
        })
    }

    /// Which settings do not go together.
    fn test_refusal(&self) -> Option<&'static str> {
        let is_stream = self.test == PointTest::Stream;
        let is_one_flow = self.flows == 1 && self.mode == UdpMode::Send && self.forward && !self.reverse;
        Some(if self.multicast.is_some() && (!is_stream || self.reverse) {
            "multicast goes from the client to the server only"
        } else if is_stream && !self.forward && !self.reverse {
            "neither end would send"
        } else if !is_stream && !is_one_flow {
            "a round trip is one flow from the client and back, one send for each datagram"
        } else if !is_stream && self.datagrams_per_s.is_some() {
            "a round trip has no rate: the next one begins when the last is over"
        } else {
            return None;
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A stream of 100 ms from client to server, at once.
    pub(in crate::remote) fn stream() -> Point {
        Point {
            test: PointTest::Stream,
            size_bytes: 100,
            mode: UdpMode::Send,
            flows: 1,
            gro: false,
            connected: true,
            wait: WaitStrategy::Block,
            server_cpu: None,
            dscp: None,
            multicast: None,
            multicast_ttl: 1,
            forward: true,
            reverse: false,
            datagrams_per_s: None,
            warmup: Duration::from_millis(20),
            duration: Duration::from_millis(100),
            buffer_bytes: Some(1 << 20),
            telemetry_period: Some(TELEMETRY_PERIOD_MIN),
            echo_wait: Duration::ZERO,
        }
    }

    #[test]
    fn nonsense_and_too_much_are_refused_by_name() {
        let check = |change: fn(&mut Point), is_ipv6: bool, word: &str| {
            let mut point = stream();
            assert_eq!(point.check(is_ipv6), Ok(()));
            change(&mut point);
            let text = point.check(is_ipv6).unwrap_err();
            assert!(text.contains(word), "{text}");
        };
        check(|point| point.size_bytes = 19, false, "20 to 65507 bytes");
        check(|point| point.size_bytes = 65_508, false, "65507");
        check(|point| point.size_bytes = 65_528, true, "65527");
        check(|point| point.flows = 0, false, "flows");
        check(|point| point.flows = 65, false, "flows");
        check(|point| point.dscp = Some(64), false, "DSCP");
        check(|point| point.duration = Duration::ZERO, false, "time");
        check(|point| point.telemetry_period = Some(Duration::from_micros(999)), false, "millisecond");
        check(|point| point.datagrams_per_s = Some(0.0), false, "rate");
        check(|point| point.datagrams_per_s = Some(f64::NAN), false, "rate");
        check(|point| (point.flows, point.buffer_bytes) = (64, Some(1 << 29)), false, "buffers");
        check(|point| point.buffer_bytes = Some(usize::MAX), false, "buffers");
        check(|point| point.multicast = Some([10, 0, 0, 1].into()), false, "multicast");
        check(|point| point.multicast = Some([239, 0, 0, 1].into()), true, "multicast");
        check(
            |point| (point.multicast, point.reverse) = (Some([239, 0, 0, 1].into()), true),
            false,
            "multicast",
        );
        check(|point| point.forward = false, false, "neither end");
        check(|point| (point.test, point.flows) = (PointTest::RoundTrip, 2), false, "one flow");
        check(
            |point| (point.test, point.datagrams_per_s) = (PointTest::RoundTrip, Some(1.0)),
            false,
            "no rate",
        );
        let unconnected = Point { mode: UdpMode::Gso, connected: false, ..stream() };
        assert_eq!(unconnected.check(true), Ok(()));
    }
}
