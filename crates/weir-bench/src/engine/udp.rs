//! The baselines: raw UDP on a connected socket, through the loops of weir-baseline.
//!
//! `udp` sends one datagram per system call. Every middleware pays at least that per sample that it
//! does not batch, so every ratio divides by it. `udp-gso` sends the same datagrams, up to 64 per
//! call (`UDP_SEGMENT`), and receives them coalesced (`UDP_GRO`): the best that the kernel can do.
//! Its samples wait until a call is full, so it measures throughput only. On loopback such a send
//! is never segmented: a full receive buffer drops all of its datagrams at once. In workloads, `udp` sends samples that
//! fit no datagram as several.
//!
//! `udp-fresh` makes the calls of `udp`, each from and into other memory: parts of a ring that the
//! caches do not hold. `udp` sends one buffer that stays in the cache. An engine that keeps samples
//! in a history cannot, so large samples are compared with `udp-fresh`.

mod pieces;
mod timestamps;
mod workload;

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_baseline::{Receiver, Sender, await_answer, echo};
use weir_results::{EngineCounts, SocketBuffers, UdpMode};
use weir_udp::{SocketOptions, UdpError, UdpSocket};

use timestamps::TimestampEnd;
use workload::UdpNode;

use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, ReliabilitySupport,
    Subscriber, WorkloadNode,
};
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::sink::SampleSink;

/// Raw UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Udp {
    /// One datagram per system call.
    Plain,
    /// Segmentation offload in both directions.
    Gso,
    /// One datagram per system call, from and into memory that is in no cache.
    Fresh,
}

impl Engine for Udp {
    fn name(&self) -> &'static str {
        match self {
            Self::Plain => "udp",
            Self::Gso => "udp-gso",
            Self::Fresh => "udp-fresh",
        }
    }

    fn about(&self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => "plain UDP, one send per sample: the baseline",
            Self::Gso => {
                "the same datagrams by UDP GSO and GRO: the best that the kernel can do (throughput only)"
            }
            Self::Fresh => {
                "as udp, each send and receive in the next part of 64 MiB: not in the cache (throughput only)"
            }
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            latency: *self == Self::Plain,
            reliability: ReliabilitySupport::None,
            keyed: false,
            batching: false,
            many: false,
            multicast: false,
            loans: false,
            keep_last: false,
            breakdown: *self == Self::Plain,
            size_bytes_max: weir_baseline::DATAGRAM_BYTES_MAX,
            ..Capabilities::ALL
        }
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Ok(Box::new(UdpEnd::open(*self, case, Receiver::with_buffers(1, case.size_bytes))?))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        let receiver = match self {
            Self::Plain => Receiver::new(case.size_bytes, false),
            Self::Gso => Receiver::new(case.size_bytes, true),
            Self::Fresh => Receiver::fresh(case.size_bytes),
        };
        Ok(Box::new(UdpEnd::open(*self, case, receiver)?))
    }

    fn open_node(&self, case: &CaseSpec) -> Result<Box<dyn WorkloadNode>, EndpointError> {
        match self {
            Self::Plain => Ok(Box::new(UdpNode::open(case)?)),
            Self::Gso => {
                Err(EndpointError::not_supported(self.name(), "workloads: its samples wait for each other"))
            }
            Self::Fresh => Err(EndpointError::not_supported(self.name(), "workloads: measure udp")),
        }
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        let receiver = Receiver::with_buffers(1, case.size_bytes);
        let end = UdpEnd::open(*self, case, receiver)?;
        Ok(if case.method.breakdown { Box::new(TimestampEnd::new(end)) } else { Box::new(end) })
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        let receiver = Receiver::with_buffers(1, case.size_bytes);
        let end = UdpEnd::open(*self, case, receiver)?;
        Ok(if case.method.breakdown { Box::new(TimestampEnd::new(end)) } else { Box::new(end) })
    }
}

/// Any of the four ends.
struct UdpEnd {
    socket: UdpSocket,
    case: CaseSpec,
    sample: Vec<u8>,
    sender: Sender,
    receiver: Receiver,
}

impl UdpEnd {
    fn open(udp: Udp, case: &CaseSpec, receiver: Receiver) -> Result<Self, EndpointError> {
        let options = SocketOptions {
            recv_buffer: Some(case.place.socket_buffer_bytes),
            send_buffer: Some(case.place.socket_buffer_bytes),
            gro: udp == Udp::Gso,
            timestamps: case.method.breakdown,
            ..SocketOptions::new(SocketAddrV4::new(case.place.address, case.place.port.unwrap_or(0)))
        };
        let socket = UdpSocket::bind(&options).map_err(|error| environment(&error))?;
        let mut sample = vec![0; case.size_bytes];
        payload::fill(0, &mut sample[HEADER_BYTES..]);
        let sender = match udp {
            Udp::Plain => Sender::new(UdpMode::Send, None, &sample),
            Udp::Gso => Sender::new(UdpMode::Gso, None, &sample),
            Udp::Fresh => Sender::fresh(&sample),
        };
        Ok(Self { socket, case: case.clone(), sample, sender, receiver })
    }

    /// Sends a sample when a call is full.
    #[inline]
    fn push(&mut self, header: &SampleHeader) -> Result<(), EndpointError> {
        let verify = self.case.verify;
        let pushed = self.sender.push(&self.socket, |sample| write(sample, header, verify));
        pushed.map_err(|error| failed("sending", &error))
    }

    /// Sends a sample now.
    #[inline]
    fn send(&mut self, header: &SampleHeader) -> Result<(), EndpointError> {
        write(&mut self.sample, header, self.case.verify);
        self.sender.send(&self.socket, &self.sample).map_err(|error| failed("sending", &error))
    }
}

#[inline]
fn write(sample: &mut [u8], header: &SampleHeader, verify: bool) {
    payload::write_header(sample, header);
    if verify {
        payload::fill(header.seq_num, &mut sample[HEADER_BYTES..]);
    }
}

/// An error of the socket in the middle of a run.
fn failed(what: &str, error: &io::Error) -> EndpointError {
    EndpointError::Engine(format!("{what} failed: {error}"))
}

fn environment(error: &UdpError) -> EndpointError {
    EndpointError::Environment(error.to_string())
}

impl End for UdpEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.socket.local_addr())
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, _timeout: Duration) -> Result<(), EndpointError> {
        let peer = peer.ok_or_else(|| EndpointError::NoPeer("the other end sent no address".to_owned()))?;
        self.socket.connect(peer).map_err(|error| environment(&error))
    }

    fn report(&self) -> EndReport {
        let (counts, asked) = (self.sender.counts(), Some(self.case.place.socket_buffer_bytes as u64));
        EndReport {
            datagrams: Some(counts.datagrams),
            sends: Some(counts.system_calls),
            engine: EngineCounts { refused: counts.refused, ..EngineCounts::default() },
            kernel_drops: self.socket.kernel_drops().ok().map(u64::from),
            buffers: SocketBuffers {
                receive_asked: asked,
                receive_granted: Some(self.socket.granted_recv_buffer() as u64),
                send_asked: asked,
                send_granted: Some(self.socket.granted_send_buffer() as u64),
            },
        }
    }
}

impl Publisher for UdpEnd {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        for sequence in first..first + u64::from(count) {
            self.push(&self.case.header(sequence))?;
        }
        Ok(count)
    }

    fn flush(&mut self, _timeout: Duration) -> Result<bool, EndpointError> {
        self.sender.flush(&self.socket).map_err(|error| failed("sending", &error))?;
        Ok(true)
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        self.push(&SampleHeader::last(sent))?;
        self.flush(Duration::ZERO)
    }
}

impl Subscriber for UdpEnd {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let received = self.receiver.receive(&self.socket, self.case.wait, timeout);
        if !received.map_err(|error| failed("receiving", &error))? {
            return Ok(());
        }
        for datagram in self.receiver.datagrams() {
            match payload::read(datagram) {
                Some(sample) => sink.accept(&sample.header, sample.payload),
                None => sink.reject(),
            }
        }
        Ok(())
    }
}

impl Pinger for UdpEnd {
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        let header = SampleHeader::ping(sequence, self.case.instances, sent_ns);
        self.send(&header)?;
        let size_bytes = self.case.size_bytes;
        let is_echo = |datagram: &[u8]| {
            datagram.len() == size_bytes
                && payload::read(datagram).is_some_and(|echo| echo.header.seq_num == header.seq_num)
        };
        await_answer(&self.socket, self.case.wait, (sent_ns, timeout), &mut self.sample, is_echo)
            .map_err(|error| failed("receiving", &error))
    }
}

impl Ponger for UdpEnd {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        let Self { socket, case, sample, sender, .. } = self;
        echo(socket, case.wait, sender, sample, |_| true, || stop.load(Ordering::Acquire))
            .map_err(|error| failed("echoing", &error))
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use weir_measure::clock;
    use weir_results::{Test, WaitStrategy};

    use super::*;
    use crate::case::tests::case;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Two ends of the same case, connected to each other.
    fn pair(case: &CaseSpec) -> (UdpEnd, UdpEnd) {
        let open = || UdpEnd::open(Udp::Plain, case, Receiver::with_buffers(8, case.size_bytes)).unwrap();
        let (mut one, mut other) = (open(), open());
        one.connect(other.address(), PATIENCE).unwrap();
        other.connect(one.address(), PATIENCE).unwrap();
        (one, other)
    }

    #[test]
    fn pings_come_back_with_every_way_of_waiting() {
        for wait in [WaitStrategy::Block, WaitStrategy::Spin, WaitStrategy::SpinThenBlock { spin_us: 10 }] {
            let (mut pinger, mut ponger) = pair(&CaseSpec { wait, ..case("udp", Test::Latency) });
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                let echo = scope.spawn(|| ponger.echo(&stop));
                for sequence in 0..100 {
                    assert!(pinger.ping(sequence, clock::now_ns(), PATIENCE).unwrap(), "{wait} {sequence}");
                }
                stop.store(true, Ordering::Release);
                assert_eq!(echo.join().unwrap().unwrap(), 100);
            });
            assert_eq!(pinger.report().datagrams, Some(100));
        }
    }

    #[test]
    fn echoes_of_earlier_pings_are_ignored() {
        let (mut pinger, mut ponger) = pair(&case("udp", Test::Latency));
        // The other end answers by itself, in advance: twice with old numbers, then with the right one.
        for sequence in [3, 4, 5] {
            ponger.send(&SampleHeader::ping(sequence, 0, 0)).unwrap();
        }
        assert!(pinger.ping(5, clock::now_ns(), PATIENCE).unwrap());
        assert!(!pinger.ping(6, clock::now_ns(), Duration::from_millis(1)).unwrap());
    }

    #[test]
    fn a_closed_port_loses_samples_and_does_not_end_the_run() {
        let (mut publisher, subscriber) = pair(&case("udp", Test::Throughput));
        drop(subscriber);
        assert_eq!(publisher.publish(0, 10).unwrap(), 10);
        assert!((1..10).contains(&publisher.report().engine.refused));
    }

    #[test]
    fn a_sample_of_another_size_is_counted_as_damaged() {
        let case = case("udp", Test::Throughput);
        let (mut publisher, mut subscriber) = pair(&case);
        publisher.publish(0, 2).unwrap();
        publisher.sample.push(0);
        publisher.send(&SampleHeader::data(2, 0)).unwrap();
        let mut sink = SampleSink::new(&case);
        while sink.arrivals() < 3 {
            subscriber.receive(&mut sink, PATIENCE).unwrap();
        }
        assert_eq!((sink.counts().received, sink.corrupt()), (2, 1));
    }
}
