//! The subscriber over plain UDP: receives, echoes and counts on one thread.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_baseline::Receiver;
use weir_dds::Guid;
use weir_measure::clock;
use weir_results::WaitStrategy;
use weir_telemetry::LossWatch;
use weir_udp::{RecvBatch, UdpSocket};

use super::super::message::{self, Description, Kind};
use super::super::receiver::{Limits, Received, Since, Tally};
use super::super::settings::SubscriberSettings;
use super::super::{End, Event};
use super::{ALIVE, RAW_BYTES_MAX, SILENCE_MAX, Sockets, TICK, failed, port, sample, samples};
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::{HEADER_BYTES, ReceivedSample};

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
    let mut run = Run {
        settings,
        socket,
        tally: Tally::default(),
        heard_ns: clock::now_ns(),
        since: Since::default(),
        is_described: false,
    };
    on_event(Event::Stage("Waiting for data ...".to_owned()));
    let mut receiver = Receiver::with_buffers(BATCH, RAW_BYTES_MAX);
    let second_ns = ALIVE.as_nanos() as u64;
    let mut next_ns = clock::now_ns() + second_ns;
    let end = loop {
        let received = receiver.receive(&run.socket, sockets.wait, TICK);
        if received.map_err(|error| failed("receiving", &error))? {
            run.accept(receiver.batch())?;
        }
        run.describe(on_event);
        let now_ns = clock::now_ns();
        if run.tally.is_finished() {
            break End::Complete;
        }
        if interrupted.load(Ordering::Relaxed) {
            break End::Interrupted;
        }
        if run.tally.has_begun && now_ns.saturating_sub(run.heard_ns) > SILENCE_MAX.as_nanos() as u64 {
            break End::PeerGone;
        }
        if now_ns >= next_ns {
            next_ns += second_ns;
            run.report(now_ns, on_event);
        }
    };
    if end == End::Complete {
        run.say_farewell(&mut receiver)?;
    }
    let kernel_drops = run.socket.kernel_drops().unwrap_or(0).into();
    // After the farewell nothing more arrives from them, and the next run may use the same port.
    Ok(Received { served: Vec::new(), ..run.tally.received(end, kernel_drops, loss_watch.counters()) })
}

struct Run<'a> {
    settings: &'a SubscriberSettings,
    socket: UdpSocket,
    tally: Tally,
    /// When something was last received.
    heard_ns: u64,
    since: Since,
    is_described: bool,
}

impl Run<'_> {
    /// Counts and answers what has arrived. Returns whether a served publisher was notified
    /// that its end is known.
    fn accept(&mut self, batch: &RecvBatch) -> Result<bool, EndpointError> {
        let mut has_told = false;
        let limits = Limits { sid: self.settings.sid, publishers: self.settings.num_publishers as usize };
        let now_ns = clock::now_ns();
        self.heard_ns = now_ns;
        for datagram in batch.messages() {
            let writer = guid(datagram.from);
            for received in samples(datagram.bytes) {
                let header = received.header;
                let bytes = received.octets.len() + HEADER_BYTES;
                let is_echoed = self.tally.accept(limits, &header, writer, bytes, now_ns);
                let kind = Kind::of(&header);
                if matches!(kind, Kind::Initialize | Kind::Final) {
                    self.tally.describe(writer, received.octets);
                }
                let is_served = self.tally.serves(header.entity_id, writer);
                if is_echoed {
                    self.echo(datagram.from, &received)?;
                } else if is_served && matches!(kind, Kind::Final | Kind::Serving) {
                    let answer = message::header(kind, self.settings.sid, 0, [0; 4]);
                    self.send(datagram.from, &sample(&answer, &[]))?;
                    has_told |= kind == Kind::Final;
                }
            }
        }
        Ok(has_told)
    }

    /// Echoes a sample.
    fn echo(&self, to: SocketAddrV4, received: &ReceivedSample<'_>) -> Result<(), EndpointError> {
        self.send(to, &sample(&received.header, received.octets))
    }

    fn send(&self, to: SocketAddrV4, bytes: &[u8]) -> Result<(), EndpointError> {
        let sent = weir_baseline::send(&self.socket, Some(to.into()), bytes);
        sent.map(drop).map_err(|error| failed("sending", &error))
    }

    fn describe(&mut self, on_event: &mut dyn FnMut(Event)) {
        let description: Option<Description> = self.tally.description.filter(|_| !self.is_described);
        if let Some(description) = description {
            self.is_described = true;
            on_event(Event::Described(description));
        }
    }

    /// The row of a second.
    fn report(&mut self, now_ns: u64, on_event: &mut dyn FnMut(Event)) {
        let interval = self.tally.interval(&mut self.since, now_ns);
        let interval = interval.filter(|_| self.settings.node.intervals);
        interval.into_iter().for_each(|interval| on_event(Event::Interval(interval)));
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
fn guid(from: SocketAddrV4) -> Guid {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&from.ip().octets());
    bytes[4..6].copy_from_slice(&from.port().to_be_bytes());
    Guid::from_bytes(bytes)
}
