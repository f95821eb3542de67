//! The ends of a ping-pong with timestamps: when samples pass from stage to stage.
//!
//! They differ from the others in the call that receives: it returns the kernel's timestamp.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_baseline::Sender;
use weir_measure::{clock, nanos};
use weir_udp::UdpSocket;

use super::{UdpEnd, failed, write};
use crate::breakdown::{ReceiveStops, Recorder, SendStops, Stops, Trace};
use crate::endpoint::{End, EndReport, EndpointError, Pinger, Ponger};
use crate::payload::{self, SampleHeader};

/// Pinger or ponger.
pub(super) struct TimestampEnd {
    end: UdpEnd,
    recorder: Recorder,
}

impl TimestampEnd {
    pub(super) fn new(end: UdpEnd) -> Self {
        let recorder = Recorder::new(end.case.warmup);
        Self { end, recorder }
    }

    fn send_ping(&mut self, header: &SampleHeader) -> Result<SendStops, EndpointError> {
        let UdpEnd { socket, case, sample, sender, .. } = &mut self.end;
        let written_ns = clock::now_ns();
        write(sample, header, case.verify);
        send(sender, socket, sample, written_ns)
    }

    /// Sends back what was received last.
    fn send_echo(&mut self) -> Result<SendStops, EndpointError> {
        let UdpEnd { socket, sender, receiver, .. } = &mut self.end;
        let written_ns = clock::now_ns();
        let Some(message) = receiver.batch().get(0) else { return Ok(SendStops::default()) };
        send(sender, socket, message.bytes, written_ns)
    }

    /// Receives one sample; returns its number, if it is whole, and when it passed each stage.
    fn receive(&mut self, timeout: Duration) -> Result<Option<(Option<u32>, ReceiveStops)>, EndpointError> {
        let UdpEnd { socket, case, receiver, .. } = &mut self.end;
        let received = receiver.receive(socket, case.wait, timeout);
        let returned_ns = clock::now_ns();
        if !received.map_err(|error| failed("receiving", &error))? {
            return Ok(None);
        }
        let batch = receiver.batch();
        let bytes = batch.get(0).map_or(&[][..], |message| message.bytes);
        let sample = payload::read(bytes).filter(|_| bytes.len() == case.size_bytes);
        let seq_num = sample.map(|sample| sample.header.seq_num);
        // The application reads the sample where it was received: there is nothing to deliver.
        let sorted_ns = clock::now_ns();
        let stamped_ns = batch.stamped_ns().unwrap_or(0);
        Ok(Some((seq_num, ReceiveStops { stamped_ns, returned_ns, sorted_ns, taken_ns: sorted_ns })))
    }
}

fn send(
    sender: &mut Sender,
    socket: &UdpSocket,
    bytes: &[u8],
    written_ns: u64,
) -> Result<SendStops, EndpointError> {
    let called_ns = clock::now_ns();
    let sent = sender.send(socket, bytes);
    let returned_ns = clock::now_ns();
    sent.map_err(|error| failed("sending", &error))?;
    Ok(SendStops { written_ns, called_ns, returned_ns })
}

impl End for TimestampEnd {
    fn address(&self) -> Option<SocketAddrV4> {
        self.end.address()
    }

    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.end.connect(peer, timeout)
    }

    fn report(&self) -> EndReport {
        self.end.report()
    }

    fn trace(&mut self) -> Option<Trace> {
        Some(self.recorder.finish())
    }
}

impl Pinger for TimestampEnd {
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        let header = SampleHeader::ping(sequence, self.end.case.instances, sent_ns);
        let sent = self.send_ping(&header)?;
        let end_ns = sent_ns + nanos(timeout);
        loop {
            let Some((seq_num, received)) = self.receive(timeout)? else { return Ok(false) };
            if seq_num == Some(header.seq_num) {
                self.recorder.record(Stops { seq_num: header.seq_num, sent, received });
                return Ok(true);
            }
            if received.taken_ns >= end_ns {
                return Ok(false);
            }
        }
    }
}

impl Ponger for TimestampEnd {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        let mut echoed = 0;
        while !stop.load(Ordering::Acquire) {
            let Some((seq_num, received)) = self.receive(CHECK)? else { continue };
            let sent = self.send_echo()?;
            echoed += 1;
            if let Some(seq_num) = seq_num {
                self.recorder.record(Stops { seq_num, sent, received });
            }
        }
        Ok(echoed)
    }
}

/// How often an echo checks whether it is over.
const CHECK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use weir_baseline::Receiver;
    use weir_udp::{RecvBatch, SocketOptions, UdpSocket, Wait};

    use super::super::Udp;
    use super::*;
    use crate::breakdown;
    use crate::case::tests::case;
    use crate::case::{CaseSpec, Method};
    use weir_results::{Test, WaitStrategy};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Returns a socket that received a timestamped datagram. The kernel starts to timestamp some
    /// time after the first socket asks for it, and for all sockets while that one exists.
    fn stamped() -> UdpSocket {
        let options = SocketOptions {
            timestamps: true,
            ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
        };
        let socket = UdpSocket::bind(&options).unwrap();
        let mut batch = RecvBatch::with_buffer_bytes(1, 8);
        while batch.stamped_ns().is_none() {
            socket.send_to(&[0], socket.local_addr().into()).unwrap();
            socket.recv_batch(&mut batch, 1, Wait::Block).unwrap();
        }
        socket
    }

    #[test]
    fn every_ping_is_accounted_for_in_both_directions() {
        let _stamped = stamped();
        for wait in [WaitStrategy::Block, WaitStrategy::Spin] {
            let method = Method { breakdown: true, ..Method::default() };
            let case = CaseSpec { wait, warmup: Duration::ZERO, method, ..case("udp", Test::Latency) };
            let open = || {
                let receiver = Receiver::with_buffers(1, case.size_bytes);
                TimestampEnd::new(UdpEnd::open(Udp::Plain, &case, receiver).unwrap())
            };
            let (mut pinger, mut ponger) = (open(), open());
            pinger.connect(ponger.address(), PATIENCE).unwrap();
            ponger.connect(pinger.address(), PATIENCE).unwrap();
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                let echo = scope.spawn(|| ponger.echo(&stop));
                for sequence in 0..100 {
                    assert!(pinger.ping(sequence, clock::now_ns(), PATIENCE).unwrap(), "{wait} {sequence}");
                }
                stop.store(true, Ordering::Release);
                assert_eq!(echo.join().unwrap().unwrap(), 100);
            });
            let (here, there) = (pinger.trace().unwrap(), ponger.trace().unwrap());
            assert_eq!((here.stops.len(), there.stops.len()), (100, 100));
            let found = breakdown::account(&here, &there).unwrap();
            assert_eq!(found.samples + found.left_out, 200);
            assert!(found.samples > 0, "{found:?}");
        }
    }
}
