//! The floor: plain UDP, one `send(2)` per sample on a connected socket.
//!
//! This is what every middleware of today pays at least per sample that it does not batch, so every
//! ratio divides by it: nothing here is slower than it must be. The ping-pong receives by one
//! `recv(2)`; the stream's receiver may take several datagrams per call (`recvmmsg`), since the
//! sender is what limits it.

mod noting;

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_results::WaitStrategy;
use weir_udp::{RecvBatch, UdpSocket, receive_within};

use noting::NotingEnd;

use super::raw;
use crate::case::CaseSpec;
use crate::clock;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, ReliabilitySupport,
    Subscriber,
};
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::sink::SampleSink;

/// Plain UDP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Udp;

impl Engine for Udp {
    fn name(&self) -> &'static str {
        "udp"
    }

    fn about(&self) -> Option<&'static str> {
        Some("plain UDP, one send per sample: the baseline")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            latency: true,
            throughput: true,
            reliability: ReliabilitySupport::None,
            keyed: false,
            batching: false,
            many: false,
            multicast: false,
            loans: false,
            spinning: true,
            breakdown: true,
            size_bytes_max: raw::DATAGRAM_BYTES_MAX,
        }
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Ok(Box::new(UdpEnd::open(case, 1)?))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        Ok(Box::new(UdpEnd::open(case, (BATCH_BYTES / case.size_bytes).clamp(1, 64))?))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        if case.method.breakdown {
            return Ok(Box::new(NotingEnd::open(case)?));
        }
        Ok(Box::new(UdpEnd::open(case, 1)?))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        if case.method.breakdown {
            return Ok(Box::new(NotingEnd::open(case)?));
        }
        Ok(Box::new(UdpEnd::open(case, 1)?))
    }
}

/// What a receive batch may take of the processor's cache, bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How long an echo loop waits before it looks whether it shall stop.
const ECHO_WAIT: Duration = Duration::from_millis(50);

/// Any of the four ends.
struct UdpEnd {
    socket: UdpSocket,
    case: CaseSpec,
    sample: Vec<u8>,
    batch: RecvBatch,
    sent: u64,
    refused: u64,
}

impl UdpEnd {
    fn open(case: &CaseSpec, buffers: usize) -> Result<Self, EndpointError> {
        let socket = raw::open(case, false)?;
        // One byte more than a sample has, so that a longer datagram is noticed.
        let batch = RecvBatch::with_buffer_bytes(buffers, case.size_bytes + 1);
        Ok(Self { socket, case: case.clone(), sample: raw::sample_buffer(case), batch, sent: 0, refused: 0 })
    }

    #[inline]
    fn send(&mut self, header: &SampleHeader) -> Result<(), EndpointError> {
        payload::write_header(&mut self.sample, header);
        if self.case.verify {
            payload::fill_octets(header.seq_num, &mut self.sample[HEADER_BYTES..]);
        }
        let result = self.socket.send(&self.sample);
        self.count_send(result)
    }

    #[inline]
    fn count_send(&mut self, result: io::Result<usize>) -> Result<(), EndpointError> {
        self.sent += 1;
        match result {
            Ok(_) => Ok(()),
            Err(error) => self.count_refusal(&error),
        }
    }

    /// A full queue, a firewall or a closed port loses this sample; anything else ends the run.
    #[cold]
    fn count_refusal(&mut self, error: &io::Error) -> Result<(), EndpointError> {
        if !weir_udp::is_transient(error) {
            return Err(raw::failed("sending", error));
        }
        self.refused += 1;
        Ok(())
    }
}

/// One datagram into `buffer`, or none when `timeout` is over.
#[inline]
fn receive_one(
    socket: &UdpSocket,
    strategy: WaitStrategy,
    timeout: Duration,
    buffer: &mut [u8],
) -> Result<Option<usize>, EndpointError> {
    receive_within(socket, strategy.spin(timeout), timeout, |wait| match socket.recv(buffer, wait) {
        Ok(length) => Ok(Some(length)),
        // Refused: an earlier send met a closed port, and nothing was received.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    })
    .map_err(|error| raw::failed("receiving", &error))
}

impl End for UdpEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.socket.local_addr())
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, _timeout: Duration) -> Result<(), EndpointError> {
        raw::connect(&self.socket, peer)
    }

    fn report(&self) -> EndReport {
        EndReport {
            datagrams: Some(self.sent),
            sends: Some(self.sent),
            refused: self.refused,
            kernel_drops: raw::kernel_drops(&self.socket),
            buffers: raw::buffers(&self.case, &self.socket),
        }
    }
}

impl Publisher for UdpEnd {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        for sequence in first..first + u64::from(count) {
            self.send(&SampleHeader::data(sequence, self.case.instances))?;
        }
        Ok(count)
    }

    fn flush(&mut self, _timeout: Duration) -> Result<bool, EndpointError> {
        Ok(true)
    }

    fn publish_last(&mut self, sent: u64) -> Result<bool, EndpointError> {
        self.send(&SampleHeader::last(sent)).map(|()| true)
    }
}

impl Subscriber for UdpEnd {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        let Self { socket, batch, case, .. } = self;
        let received = receive_within(socket, case.wait.spin(timeout), timeout, |wait| {
            let count = socket.recv_batch(batch, usize::MAX, wait)?;
            Ok((count > 0).then_some(()))
        });
        if received.map_err(|error| raw::failed("receiving", &error))?.is_none() {
            return Ok(());
        }
        for message in batch.messages() {
            match payload::read(message.bytes) {
                Some(sample) => sink.accept(&sample.header, sample.octets),
                None => sink.reject(),
            }
        }
        Ok(())
    }
}

impl Pinger for UdpEnd {
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        self.send(&SampleHeader::ping(sequence, self.case.instances, sent_ns))?;
        let seq_num = payload::wire_sequence(sequence);
        let end_ns = sent_ns + u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let Some(length) = receive_one(&self.socket, self.case.wait, timeout, &mut self.sample)? else {
                return Ok(false);
            };
            let echo = payload::read(&self.sample[..length]);
            if echo.is_some_and(|echo| echo.header.seq_num == seq_num && length == self.case.size_bytes) {
                return Ok(true);
            }
            if clock::now_ns() >= end_ns {
                return Ok(false);
            }
        }
    }
}

impl Ponger for UdpEnd {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        let mut echoed = 0;
        while !stop.load(Ordering::Acquire) {
            if let Some(length) = receive_one(&self.socket, self.case.wait, ECHO_WAIT, &mut self.sample)? {
                let result = self.socket.send(&self.sample[..length]);
                self.count_send(result)?;
                echoed += 1;
            }
        }
        Ok(echoed)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::case::tests::case;
    use weir_results::Test;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Two ends of the same case, connected to each other.
    fn pair(case: &CaseSpec) -> (UdpEnd, UdpEnd) {
        let (mut one, mut other) = (UdpEnd::open(case, 8).unwrap(), UdpEnd::open(case, 8).unwrap());
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
        assert!((1..10).contains(&publisher.report().refused));
    }

    #[test]
    fn a_sample_of_another_size_is_counted_as_damaged() {
        let case = case("udp", Test::Throughput);
        let (mut publisher, mut subscriber) = pair(&case);
        publisher.publish(0, 2).unwrap();
        publisher.sample.push(0);
        publisher.publish(2, 1).unwrap();
        let mut sink = SampleSink::new(&case);
        while sink.arrivals() < 3 {
            subscriber.receive(&mut sink, PATIENCE).unwrap();
        }
        assert_eq!((sink.counts().received, sink.corrupt()), (2, 1));
    }
}
