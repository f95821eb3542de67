//! The subscriber over plain UDP: receives, echoes and counts on one thread.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_baseline::Receiver;
use weir_dds::InstanceHandle;
use weir_measure::clock;
use weir_results::WaitStrategy;
use weir_telemetry::LossWatch;
use weir_udp::{RecvBatch, UdpSocket};

use super::super::event::{End, Event};
use super::super::intervals::Intervals;
use super::super::message::{self, Kind};
use super::super::receiver::{Limits, Received, Tally};
use super::super::settings::SubscriberSettings;
use super::super::waiting::NextSize;
use super::{RAW_BYTES_MAX, SILENCE_MAX, Sockets, TICK, failed, port, sample, samples};
use weir_bench::endpoint::EndpointError;

/// Datagrams that are received at a time.
const BATCH: usize = 32;

/// How long a finished subscriber goes on answering final markers.
const FAREWELL: Duration = Duration::from_millis(300);

/// Serves one run of every publisher.
pub(in crate::perftest) fn subscribe(
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Received, EndpointError> {
    settings.node.threads.prepare()?;
    settings.node.threads.apply()?;
    let sockets = Sockets::new(&settings.node)?;
    let socket = sockets.open(port(settings.node.domain, settings.sid)?)?;
    let loss_watch = LossWatch::start(None);
    let mut run = Run { settings, socket, tally: Tally::default() };
    let (mut intervals, mut is_described) = (Intervals::start(clock::now_ns()), false);
    on_event(Event::Stage("Waiting for data ...".to_owned()));
    let mut receiver = Receiver::with_buffers(BATCH, RAW_BYTES_MAX);
    let mut next_size = NextSize::start(settings.is_next_size, clock::now_ns());
    let end = loop {
        let received = receiver.receive(&run.socket, sockets.wait, TICK);
        if received.map_err(|error| failed("receiving", &error))? {
            run.accept(receiver.batch())?;
        }
        if let Some(description) = run.tally.description.filter(|_| !is_described) {
            is_described = true;
            on_event(Event::Described(description));
        }
        if intervals.begin(run.tally.first_ns) {
            on_event(Event::Begun);
        }
        let now_ns = clock::now_ns();
        if run.tally.is_finished() {
            break End::Complete;
        }
        if interrupted.load(Ordering::Relaxed) {
            break End::Interrupted;
        }
        if run.tally.has_silent(now_ns, SILENCE_MAX) {
            break End::PeerGone;
        }
        if next_size.is_over(run.tally.has_all(settings.num_publishers as usize), now_ns) {
            break End::PeerGone;
        }
        if intervals.is_due(now_ns) {
            let interval = intervals.next(&run.tally, now_ns).filter(|_| settings.node.intervals);
            interval.into_iter().for_each(|interval| on_event(Event::Interval(interval)));
        }
    };
    if end == End::Complete {
        run.say_farewell(&mut receiver)?;
    }
    let kernel_drops = u64::from(run.socket.kernel_drops().unwrap_or(0));
    // After the farewell nothing more arrives from them, and the next run may use the same port.
    Ok(Received { served: Vec::new(), ..run.tally.received(end, (kernel_drops, 0), loss_watch.counters()) })
}

struct Run<'a> {
    settings: &'a SubscriberSettings,
    socket: UdpSocket,
    tally: Tally,
}

impl Run<'_> {
    /// Counts and answers what has arrived. Returns whether a served publisher was notified
    /// that its end is known.
    fn accept(&mut self, batch: &RecvBatch) -> Result<bool, EndpointError> {
        let mut has_told = false;
        let limits = Limits::of(self.settings);
        let now_ns = clock::now_ns();
        for datagram in batch.messages() {
            let writer = guid(datagram.from);
            for received in samples(datagram.bytes) {
                let kind = Kind::of(&received.header);
                if !self.tally.accept(limits, &received, writer, now_ns) {
                    continue;
                }
                if limits.echo(kind) {
                    self.send(datagram.from, &sample(&received.header, received.payload))?;
                } else if matches!(kind, Kind::Final | Kind::Serving) {
                    let answer = message::header(kind, self.settings.sid, 0, [0; 4]);
                    self.send(datagram.from, &sample(&answer, &[]))?;
                    has_told |= kind == Kind::Final;
                }
            }
        }
        Ok(has_told)
    }

    fn send(&self, to: SocketAddrV4, bytes: &[u8]) -> Result<(), EndpointError> {
        let sent = weir_baseline::send(&self.socket, Some(to.into()), bytes);
        sent.map(drop).map_err(|error| failed("sending", &error))
    }

    /// Answers final markers as long as they arrive: the first answer may have been lost. The next
    /// run's publisher waits until that is over.
    fn say_farewell(&mut self, receiver: &mut Receiver) -> Result<(), EndpointError> {
        let mut told_ns = clock::now_ns();
        loop {
            let left = FAREWELL.saturating_sub(Duration::from_nanos(clock::now_ns() - told_ns));
            if left.is_zero() {
                return Ok(());
            }
            match receiver.receive(&self.socket, WaitStrategy::Block, left) {
                Ok(false) | Err(_) => return Ok(()),
                Ok(_) if self.accept(receiver.batch())? => told_ns = clock::now_ns(),
                Ok(_) => {}
            }
        }
    }
}

/// Distinguishes the publishers of two runs.
fn guid(from: SocketAddrV4) -> InstanceHandle {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&from.ip().octets());
    bytes[4..6].copy_from_slice(&from.port().to_be_bytes());
    weir_dds::Guid::from_bytes(bytes).into()
}
