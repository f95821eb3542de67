//! The publisher over plain UDP.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, Scope};
use std::time::Duration;

use weir_baseline::{await_answer, receive_one, send};
use weir_measure::{clock, nanos};
use weir_results::WaitStrategy;
use weir_udp::{UdpSocket, Wait};

use super::super::drive::{Carrier, Run};
use super::super::echoes::Published;
use super::super::event::{Echo, End, Event};
use super::super::message::{self, Description, Kind};
use super::super::settings::{PublisherSettings, RawPeer};
use super::{ALIVE, RAW_BYTES_MAX, SILENCE_MAX, Sockets, TICK, failed, port, sample, samples};
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::{self, HEADER_BYTES, SampleHeader, wire_sequence};

/// How long to wait for an echo.
const ECHO_PATIENCE: Duration = Duration::from_millis(200);
/// The default number of initialization pings.
const PINGS: u64 = 50;
/// How often the final marker is sent, and how long to wait after each.
const FINAL_TRIES: u32 = 50;
const FINAL_PATIENCE: Duration = Duration::from_millis(100);

/// Runs once for the subscribers at the peers.
pub(in crate::perftest) fn publish(
    settings: &PublisherSettings,
    peers: &[RawPeer],
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Published, EndpointError> {
    let most = settings.data_len.max(settings.batch_bytes);
    if most > RAW_BYTES_MAX {
        let text = format!("a datagram has at most {RAW_BYTES_MAX} bytes, not {most}");
        return Err(EndpointError::Engine(text));
    }
    settings.node.threads.prepare()?;
    settings.node.threads.apply()?;
    let sockets = Sockets::new(&settings.node)?;
    let mut lines = Vec::new();
    for (sid, to) in targets(settings, peers)? {
        let socket = sockets.open(0)?;
        socket.connect(to).map_err(|error| EndpointError::Environment(error.to_string()))?;
        lines.push(Line { sid, socket, heard_ns: AtomicU64::new(0), is_done: AtomicBool::new(false) });
    }
    let (sender, echoes) = mpsc::channel();
    let run = Run::new(settings, interrupted, on_event, echoes);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut carrier = UdpCarrier {
            settings,
            interrupted,
            lines: &lines,
            wait: sockets.wait,
            sample: vec![0; settings.data_len],
            batch: Vec::with_capacity(settings.batch_bytes),
            buffer: vec![0; RAW_BYTES_MAX],
            scope,
            stop: &stop,
            echoes: sender,
        };
        let published = run.publish(&mut carrier);
        stop.store(true, Ordering::Relaxed);
        published
    })
}

/// The numbers of the subscribers, and where they are.
fn targets(
    settings: &PublisherSettings,
    peers: &[RawPeer],
) -> Result<Vec<(u32, SocketAddrV4)>, EndpointError> {
    let domain = settings.node.domain;
    let wanted = settings.num_subscribers as usize;
    let mut targets = Vec::new();
    for peer in peers {
        let (first, count) = match peer.sid {
            Some(sid) => (sid, 1),
            // A single host without a number stands for all subscribers.
            None if peers.len() == 1 => (0, settings.num_subscribers),
            None => (0, 1),
        };
        for sid in first..first.saturating_add(count) {
            targets.push((sid, SocketAddrV4::new(peer.address, port(domain, sid)?)));
        }
    }
    if targets.len() != wanted {
        let text = format!("-peer names {} subscribers, but -numSubscribers is {wanted}", targets.len());
        return Err(EndpointError::Engine(text));
    }
    Ok(targets)
}

/// A subscriber, and when it was last received from.
struct Line {
    /// The subscriber's number at its host: those of two hosts may have the same one.
    sid: u32,
    socket: UdpSocket,
    heard_ns: AtomicU64,
    is_done: AtomicBool,
}

impl Line {
    /// One datagram; `None` when none arrived.
    fn receive(&self, buffer: &mut [u8], timeout: Duration) -> Result<Option<usize>, EndpointError> {
        let received = receive_one(&self.socket, WaitStrategy::Block, timeout, buffer);
        received.map_err(|error| failed("receiving", &error))
    }

    /// Records what has arrived meanwhile.
    fn hear(&self, buffer: &mut [u8]) {
        while let Ok(length) = self.socket.recv(buffer, Wait::DontWait) {
            samples(&buffer[..length]).for_each(|received| self.note(&received.header));
        }
    }

    fn note(&self, header: &SampleHeader) {
        self.heard_ns.store(clock::now_ns(), Ordering::Relaxed);
        if Kind::of(header) == Kind::Final {
            self.is_done.store(true, Ordering::Release);
        }
    }

    fn is_silent(&self) -> bool {
        let heard_ns = self.heard_ns.load(Ordering::Relaxed);
        clock::now_ns().saturating_sub(heard_ns) > SILENCE_MAX.as_nanos() as u64
    }

    /// Sends, and loses what cannot leave.
    #[inline]
    fn send(&self, bytes: &[u8]) -> Result<(), EndpointError> {
        send(&self.socket, None, bytes).map(drop).map_err(|error| failed("sending", &error))
    }

    /// Receives from the subscriber until `stop`.
    fn listen(&self, echoes: &mpsc::Sender<Echo>, stop: &AtomicBool) {
        let mut buffer = vec![0; RAW_BYTES_MAX];
        while !stop.load(Ordering::Relaxed) {
            let Ok(Some(length)) = self.receive(&mut buffer, TICK) else { continue };
            let now_ns = clock::now_ns();
            for received in samples(&buffer[..length]) {
                self.note(&received.header);
                if matches!(Kind::of(&received.header), Kind::Ping(_)) {
                    let rtt_ns = now_ns.saturating_sub(message::sent_ns(&received.header));
                    // Fails once the run is over.
                    let _ = echoes.send(Echo { rtt_ns });
                }
            }
        }
    }
}

/// Reports once a second that this end is alive, which subscribers answer.
fn say_alive(lines: &[Line], pid: u32, stop: &AtomicBool) {
    let alive = sample(&message::header(Kind::Serving, pid, 0, [0; 4]), &[]);
    let mut next_ns = clock::now_ns();
    while !stop.load(Ordering::Relaxed) {
        if clock::now_ns() >= next_ns {
            next_ns += ALIVE.as_nanos() as u64;
            // Lost or not, another one follows.
            lines.iter().for_each(|line| _ = line.send(&alive));
        }
        thread::sleep(TICK);
    }
}

/// A connected socket for each subscriber.
struct UdpCarrier<'scope, 'env> {
    settings: &'env PublisherSettings,
    interrupted: &'env AtomicBool,
    lines: &'env [Line],
    wait: WaitStrategy,
    sample: Vec<u8>,
    batch: Vec<u8>,
    buffer: Vec<u8>,
    /// Where its threads run, until `stop`.
    scope: &'scope Scope<'scope, 'env>,
    stop: &'env AtomicBool,
    echoes: mpsc::Sender<Echo>,
}

impl UdpCarrier<'_, '_> {
    /// A sample that describes the run.
    fn described(&self, description: Description, kind: Kind, number: u64) -> Vec<u8> {
        let mut payload = Vec::new();
        description.write(&mut payload);
        sample(&message::header(kind, self.settings.pid, number, [0; 4]), &payload)
    }

    /// Starts what reports that this end is alive, and receives echoes.
    fn start_threads(&self) {
        let (lines, pid, stop) = (self.lines, self.settings.pid, self.stop);
        self.scope.spawn(move || say_alive(lines, pid, stop));
        // A ping-pong receives by itself.
        if !self.settings.latency_test {
            for line in lines {
                let echoes = self.echoes.clone();
                self.scope.spawn(move || line.listen(&echoes, stop));
            }
        }
    }
}

impl Carrier for UdpCarrier<'_, '_> {
    fn wait_for_subscribers(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError> {
        run.stage(format!("Waiting for an answer of {} subscribers ...", self.lines.len()));
        let hello = self.described(self.settings.description(), Kind::Initialize, 0);
        for line in self.lines {
            loop {
                line.send(&hello)?;
                if let Some(length) = line.receive(&mut self.buffer, TICK)? {
                    if let Some(received) = samples(&self.buffer[..length]).next() {
                        line.note(&received.header);
                        break;
                    }
                } else {
                    // A closed port refuses at once: do not retry without a pause.
                    thread::sleep(TICK);
                }
                if run.is_stopped() {
                    return Ok(End::Interrupted);
                }
            }
        }
        Ok(End::Complete)
    }

    fn subscribers(&self) -> Vec<u32> {
        self.lines.iter().map(|line| line.sid).collect()
    }

    /// The echoes of initialization pings are discarded.
    fn initialize(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError> {
        let pings = self.settings.initial_burst.unwrap_or(PINGS);
        run.stage(format!("Sending {pings} initialization pings ..."));
        for number in 0..pings {
            let ping = self.described(self.settings.description(), Kind::Initialize, number);
            for line in self.lines {
                line.send(&ping)?;
                // One at a time: no echo must be left when samples start.
                line.receive(&mut self.buffer, TICK)?;
            }
        }
        for line in self.lines {
            while line.receive(&mut self.buffer, TICK)?.is_some() {}
            line.heard_ns.store(clock::now_ns(), Ordering::Relaxed);
        }
        self.start_threads();
        Ok(End::Complete)
    }

    fn finish(&mut self, run: &mut Run<'_>, sent: u64, end: End) -> Result<End, EndpointError> {
        let last = self.described(self.settings.last_description(end), Kind::Final, sent);
        for _ in 0..FINAL_TRIES {
            let is_waiting = |line: &&Line| !line.is_done.load(Ordering::Acquire);
            let waiting: Vec<&Line> = self.lines.iter().filter(is_waiting).collect();
            let Some(first) = waiting.first() else {
                run.stage("Finishing test...");
                return Ok(end);
            };
            waiting.iter().try_for_each(|line| line.send(&last))?;
            if !self.settings.latency_test {
                // The listening threads receive the answer.
                thread::sleep(FINAL_PATIENCE);
            } else if let Ok(Some(length)) = first.receive(&mut self.buffer, FINAL_PATIENCE) {
                samples(&self.buffer[..length]).for_each(|received| first.note(&received.header));
            }
        }
        Ok(if end == End::Complete { End::PeerGone } else { end })
    }

    fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.sample[HEADER_BYTES..]
    }

    /// Sends the sample to every subscriber, now or with its batch.
    #[inline]
    fn write(&mut self, header: &SampleHeader) -> Result<Option<End>, EndpointError> {
        payload::write_header(&mut self.sample, header);
        if self.settings.batch_bytes == 0 {
            self.lines.iter().try_for_each(|line| line.send(&self.sample))?;
            return Ok(None);
        }
        if self.batch.len() + self.sample.len() > self.settings.batch_bytes {
            self.flush()?;
        }
        self.batch.extend_from_slice(&self.sample);
        Ok(None)
    }

    fn flush(&mut self) -> Result<(), EndpointError> {
        if !self.batch.is_empty() {
            self.lines.iter().try_for_each(|line| line.send(&self.batch))?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Echoes of earlier pings arrive too late: those pings are lost already.
    #[inline]
    fn wait_for_echo(
        &mut self,
        place: usize,
        sequence: u64,
        sent_ns: u64,
    ) -> Result<Option<u64>, EndpointError> {
        let line = &self.lines[place];
        let end_ns = sent_ns + nanos(ECHO_PATIENCE);
        loop {
            let mut has_heard = false;
            let is_echo = |datagram: &[u8]| {
                let Some(received) = payload::read(datagram) else { return false };
                has_heard = true;
                let is_ping = matches!(Kind::of(&received.header), Kind::Ping(_));
                is_ping && received.header.seq_num == wire_sequence(sequence)
            };
            let left = (sent_ns, ECHO_PATIENCE);
            let is_back = await_answer(&line.socket, self.wait, left, &mut self.buffer, is_echo);
            let now_ns = clock::now_ns();
            let is_back = is_back.map_err(|error| failed("receiving", &error))?;
            if has_heard {
                line.heard_ns.store(now_ns, Ordering::Relaxed);
            }
            // A closed port ends a wait early.
            if is_back || now_ns >= end_ns {
                return Ok(is_back.then_some(now_ns));
            }
        }
    }

    fn may_lose(&self) -> bool {
        true
    }

    fn trouble(&mut self) -> Option<End> {
        if self.settings.latency_test {
            self.lines.iter().for_each(|line| line.hear(&mut self.buffer));
        }
        if self.interrupted.load(Ordering::Relaxed) {
            return Some(End::Interrupted);
        }
        self.lines.iter().any(Line::is_silent).then_some(End::PeerGone)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::perftest::settings::tests::publisher;

    #[test]
    fn subscribers_are_addressed_by_their_numbers_at_their_hosts() {
        let [first, second] = [1, 2].map(|byte| Ipv4Addr::new(10, 0, 0, byte));
        let numbers = |num_subscribers: u32, peers: &[RawPeer]| -> Vec<u32> {
            let settings = PublisherSettings { num_subscribers, ..publisher(32) };
            let targets = targets(&settings, peers).unwrap();
            for (sid, to) in &targets {
                assert_eq!(to.port(), port(settings.node.domain, *sid).unwrap());
            }
            targets.into_iter().map(|(sid, _)| sid).collect()
        };
        assert_eq!(numbers(1, &[RawPeer { address: first, sid: Some(1) }]), [1]);
        assert_eq!(numbers(2, &[RawPeer { address: first, sid: None }]), [0, 1]);
        assert_eq!(numbers(2, &[first, second].map(|address| RawPeer { address, sid: None })), [0, 0]);
    }
}
