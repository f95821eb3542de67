//! What the kernel can do at best: the same datagrams as `udp`, but up to 64 of them leave by one
//! send (`UDP_SEGMENT`) and arrive by one receive (`UDP_GRO`).
//!
//! Samples wait here until a send is full, which is what no ping-pong can do: throughput only. On
//! loopback such a send is never cut into packets, so a full receive buffer drops all of its
//! datagrams at once.

use std::net::SocketAddrV4;
use std::time::Duration;

use weir_udp::{
    MAX_GSO_BYTES, MAX_GSO_SEGMENTS, Outgoing, RecvBatch, SendScratch, UdpSocket, receive_within,
};

use super::raw;
use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Publisher, ReliabilitySupport, Subscriber,
};
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::sink::SampleSink;

/// UDP with segmentation offload in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct UdpGso;

impl Engine for UdpGso {
    fn name(&self) -> &'static str {
        "udp-gso"
    }

    fn about(&self) -> Option<&'static str> {
        Some("the same datagrams by UDP GSO and GRO: what the kernel can do at best (throughput only)")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            latency: false,
            throughput: true,
            reliability: ReliabilitySupport::None,
            keyed: false,
            batching: false,
            many: false,
            multicast: false,
            loans: false,
            spinning: true,
            breakdown: false,
            size_bytes_max: raw::DATAGRAM_BYTES_MAX,
        }
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Ok(Box::new(GsoPublisher::open(case)?))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        Ok(Box::new(GroSubscriber::open(case)?))
    }
}

struct GsoPublisher {
    socket: UdpSocket,
    case: CaseSpec,
    /// As many samples as one send takes, end to end.
    train: Vec<u8>,
    /// Samples in the train.
    filled: usize,
    /// Samples that the train holds at most.
    capacity: usize,
    scratch: SendScratch,
    datagrams: u64,
    sends: u64,
    refused: u64,
}

impl GsoPublisher {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let capacity = (MAX_GSO_BYTES / case.size_bytes).clamp(1, MAX_GSO_SEGMENTS);
        Ok(Self {
            socket: raw::open(case, false)?,
            case: case.clone(),
            train: raw::sample_buffer(case).repeat(capacity),
            filled: 0,
            capacity,
            scratch: SendScratch::new(),
            datagrams: 0,
            sends: 0,
            refused: 0,
        })
    }

    #[inline]
    fn push(&mut self, header: &SampleHeader) -> Result<(), EndpointError> {
        let size = self.case.size_bytes;
        let sample = &mut self.train[self.filled * size..][..size];
        payload::write_header(sample, header);
        if self.case.verify {
            payload::fill_octets(header.seq_num, &mut sample[HEADER_BYTES..]);
        }
        self.filled += 1;
        if self.filled == self.capacity { self.send_train() } else { Ok(()) }
    }

    fn send_train(&mut self) -> Result<(), EndpointError> {
        let size = self.case.size_bytes;
        let segment = u16::try_from(size).unwrap_or(u16::MAX);
        let train =
            Outgoing { to: None, head: &self.train[..self.filled * size], tail: &[], segment, joins: false };
        let outcome = self.socket.send_all(&[train], &mut self.scratch);
        self.filled = 0;
        self.datagrams += outcome.datagrams + outcome.refused;
        self.sends += outcome.system_calls;
        self.refused += outcome.refused;
        match outcome.last_error {
            Some(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                Err(raw::failed("sending", &error))
            }
            _ => Ok(()),
        }
    }
}

impl End for GsoPublisher {
    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.socket.local_addr())
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, _timeout: Duration) -> Result<(), EndpointError> {
        raw::connect(&self.socket, peer)
    }

    fn report(&self) -> EndReport {
        EndReport {
            datagrams: Some(self.datagrams),
            sends: Some(self.sends),
            refused: self.refused,
            kernel_drops: raw::kernel_drops(&self.socket),
            buffers: raw::buffers(&self.case, &self.socket),
        }
    }
}

impl Publisher for GsoPublisher {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        for sequence in first..first + u64::from(count) {
            self.push(&SampleHeader::data(sequence, self.case.instances))?;
        }
        Ok(count)
    }

    fn flush(&mut self, _timeout: Duration) -> Result<bool, EndpointError> {
        if self.filled > 0 {
            self.send_train()?;
        }
        Ok(true)
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        self.push(&SampleHeader::last(sent))?;
        self.flush(Duration::ZERO)
    }
}

struct GroSubscriber {
    socket: UdpSocket,
    case: CaseSpec,
    batch: RecvBatch,
}

impl GroSubscriber {
    /// Buffers of 64 KiB each per receive; small trains use little of them.
    const BUFFERS: usize = 2;

    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        Ok(Self { socket: raw::open(case, true)?, case: case.clone(), batch: RecvBatch::new(Self::BUFFERS) })
    }
}

impl End for GroSubscriber {
    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.socket.local_addr())
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, _timeout: Duration) -> Result<(), EndpointError> {
        raw::connect(&self.socket, peer)
    }

    fn report(&self) -> EndReport {
        EndReport {
            kernel_drops: raw::kernel_drops(&self.socket),
            buffers: raw::buffers(&self.case, &self.socket),
            ..EndReport::default()
        }
    }
}

impl Subscriber for GroSubscriber {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let Self { socket, batch, case } = self;
        let received = receive_within(socket, case.wait.spin(timeout), timeout, |wait| {
            let count = socket.recv_batch(batch, usize::MAX, wait)?;
            Ok((count > 0).then_some(()))
        });
        if received.map_err(|error| raw::failed("receiving", &error))?.is_none() {
            return Ok(());
        }
        for datagram in batch.messages().flat_map(|message| message.datagrams()) {
            match payload::read(datagram) {
                Some(sample) => sink.accept(&sample.header, sample.octets),
                None => sink.reject(),
            }
        }
        Ok(())
    }
}
