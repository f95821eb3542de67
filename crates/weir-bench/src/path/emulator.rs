//! The link emulator: a thread between two TUN devices.
//!
//! It reads the packets that the kernel sends through either device, gives each to the link model
//! of that direction, and writes it to the other device when its time has come. All times are
//! absolute: packets whose time has come while the thread slept leave together, so a late wake-up
//! delays packets and does not lower the rate. What it has read late leaves late, too, at the rate of the link
//! ([`Departures`]).

use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use weir_measure::{clock, rounded};
use weir_netsim::{Ecn, Link, LinkPair, LinkState, Rng, Traffic, Verdict};
use weir_results::{LinkDirection, LinkFigures, LinkSeries};
use weir_udp::{Tun, Waker, affinity, poll};

use super::departures::{Departure, Departures, Planned, arrived_ns};

/// A running emulator; dropping it ends the thread and removes the devices.
#[derive(Debug)]
pub(super) struct Emulator {
    pair: LinkPair,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with the program.
#[derive(Debug)]
struct Shared {
    lanes: Mutex<Lanes>,
    /// Why the thread ended early, until it is reported.
    failure: Mutex<Option<io::Error>>,
    /// Set at the end.
    stop: AtomicBool,
    waker: Waker,
}

/// Both directions, and what the thread found.
#[derive(Debug)]
struct Lanes {
    /// By the device that packets come from.
    states: [LinkState; 2],
    /// The time zero of the states.
    origin_ns: u64,
    lateness: Lateness,
    overrun_packets: u64,
    /// Packets that the kernel had dropped when the case began.
    refused_before: u64,
}

/// By how much packets were delivered too late: read late, written late, or both.
#[derive(Clone, Copy, Debug, Default)]
struct Lateness {
    packets: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Emulator {
    /// Starts to carry packets between the devices of the publishers and the subscribers, which are
    /// up.
    pub(super) fn start(pair: LinkPair, tuns: [Tun; 2]) -> io::Result<Self> {
        let links = pair.links().map(|link| link.without_faults());
        let lanes = Lanes::new(links, pair.seed, 0);
        let shared = Arc::new(Shared {
            lanes: Mutex::new(lanes),
            failure: Mutex::new(None),
            stop: AtomicBool::new(false),
            waker: Waker::new()?,
        });
        let mut carrier = Carrier::new(tuns, Arc::clone(&shared), &pair);
        let body = move || {
            let ended = carrier.run();
            *carrier.shared.failure.lock() = ended.err();
        };
        let thread = thread::Builder::new().name("weir-link".to_owned()).spawn(body)?;
        Ok(Self { pair, shared, thread: Some(thread) })
    }

    /// Starts the faults and the counts of a case. Each repeat, counted from 1, has the next seed, so that repeats are
    /// independent, and engines in the same one are not. `refused_packets` have been dropped by the kernel until now.
    pub(super) fn begin(&self, repeat: u32, refused_packets: u64) {
        let links = self.pair.links().map(|link| link.series(SERIES_STEP));
        self.replace(Lanes::new(links, seed_of(&self.pair, repeat), refused_packets));
    }

    /// Ends the faults, and returns the counts since they began.
    pub(super) fn end(&self, refused_packets: u64) -> io::Result<LinkFigures> {
        let links = self.pair.links().map(|link| link.without_faults());
        let mut lanes = self.replace(Lanes::new(links, self.pair.seed, 0));
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let failure = self.shared.failure.lock().take();
            return Err(failure.unwrap_or_else(|| io::Error::other("it has ended")));
        }
        let now = lanes.now(clock::now_ns());
        let [down, up] = &mut lanes.states;
        let refused = refused_packets.saturating_sub(lanes.refused_before);
        Ok(LinkFigures {
            to_subscribers: direction(&down.traffic(now)),
            to_publishers: direction(&up.traffic(now)),
            late_mean_us: rounded(lanes.lateness.sum_ns as f64 / lanes.lateness.packets.max(1) as f64 / 1e3),
            late_max_us: rounded(lanes.lateness.max_ns as f64 / 1e3),
            overrun_packets: lanes.overrun_packets + refused,
            ..LinkFigures::default()
        })
    }

    /// Whether it carries packets.
    pub(super) fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    fn replace(&self, lanes: Lanes) -> Lanes {
        let mut current = self.shared.lanes.lock();
        std::mem::replace(&mut current, lanes)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            let _ = thread.join();
        }
    }
}

impl Lanes {
    fn new(links: [Link; 2], seed: u64, refused_before: u64) -> Self {
        let mut label = 0;
        let states = links.map(|link| {
            label += 1;
            LinkState::new(link, Rng::new(seed).fork(label))
        });
        Self {
            states,
            origin_ns: clock::now_ns(),
            lateness: Lateness::default(),
            overrun_packets: 0,
            refused_before,
        }
    }

    /// A time of the clock as the states have it.
    fn now(&self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.origin_ns))
    }

    /// A time of the states as the clock has it.
    fn clock_ns(&self, at: Duration) -> u64 {
        self.origin_ns.saturating_add(nanos(at))
    }
}

/// The thread's own things.
struct Carrier {
    tuns: [Tun; 2],
    shared: Arc<Shared>,
    /// Where packets are read to, as long as the link's MTU.
    scratch: Vec<u8>,
    /// How long to wait for further packets while they arrive.
    interval: Duration,
    /// The delay of what arrives at each device.
    delay_ns: [u64; 2],
    departures: [Departures; 2],
    flights: Flights,
    /// Packets just read.
    batch: Vec<Vec<u8>>,
    free: Buffers,
    /// When the devices were read last.
    read_ns: [u64; 2],
    /// When a packet was read last.
    active_ns: u64,
}

/// Packets between the devices.
#[derive(Default)]
struct Flights {
    heap: BinaryHeap<Flight>,
    /// What their memory takes.
    bytes: usize,
    /// Numbers the packets, so that those of equal times keep their order.
    next_order: u64,
}

/// A packet. The one with the earliest time is the greatest, first in the heap.
struct Flight {
    at_ns: u64,
    /// By how much that is later than the link has planned.
    late_ns: u64,
    order: u64,
    /// The device to write it to.
    to: usize,
    packet: Vec<u8>,
}

impl Carrier {
    fn new(tuns: [Tun; 2], shared: Arc<Shared>, pair: &LinkPair) -> Self {
        Self {
            tuns,
            shared,
            scratch: vec![0; pair.mtu as usize],
            interval: (pair.down.delay.min(pair.up.delay) / 4).clamp(INTERVAL_MIN, INTERVAL_MAX),
            delay_ns: [&pair.down, &pair.up].map(|way| nanos(way.delay)),
            departures: [Departures::default(); 2],
            flights: Flights::default(),
            batch: Vec::new(),
            free: Buffers::default(),
            read_ns: [clock::now_ns(); 2],
            active_ns: 0,
        }
    }

    /// Carries packets until the end of the emulator.
    fn run(&mut self) -> io::Result<()> {
        // Both make waking more exact, where the system allows it. A real-time priority would keep the
        // ends of a fast link from their processors.
        let _ = affinity::set_timer_slack_ns(1);
        let _ = setpriority_process(Some(gettid()), NICE);
        while !self.shared.stop.load(Ordering::Acquire) {
            let read = self.read(0)? + self.read(1)?;
            self.write_due();
            if read > 0 {
                self.active_ns = clock::now_ns();
            }
            if read < READS_MAX {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Takes what has arrived at a device since the last time, up to a limit, and gives it to the
    /// link; returns how many packets.
    ///
    /// When exactly they arrived is unknown: they are spread evenly over the time since then. If the
    /// thread got no processor in between, the link was still in use. None arrives at the other end sooner than the
    /// link's delay after it was read, so that no round trip is shorter than the link's,
    /// and those read together leave at its rate ([`Departures`]).
    fn read(&mut self, from: usize) -> io::Result<usize> {
        let Self { tuns, batch, free, scratch, .. } = self;
        while batch.len() < READS_MAX {
            let Some(len) = tuns[from].receive(scratch)? else { break };
            batch.push(free.copy_of(&scratch[..len]));
        }
        let now_ns = clock::now_ns();
        let since_ns = std::mem::replace(&mut self.read_ns[from], now_ns);
        let count = self.batch.len();
        if count > 0 {
            self.offer(from, since_ns, now_ns);
        }
        Ok(count)
    }

    /// Gives the link the packets that arrived at a device between two times.
    fn offer(&mut self, from: usize, since_ns: u64, now_ns: u64) {
        let Self { shared, batch, flights, free, delay_ns, departures, .. } = self;
        let mut lanes = shared.lanes.lock();
        let soonest_ns = now_ns.saturating_add(delay_ns[from]);
        let count = batch.len() as u64;
        for (index, mut packet) in (0..).zip(batch.drain(..)) {
            if flights.bytes > IN_FLIGHT_BYTES_MAX {
                lanes.overrun_packets += 1;
                free.give_back(packet);
                continue;
            }
            let now = lanes.now(arrived_ns(since_ns, now_ns, index, count));
            let wire_ns = nanos(lanes.states[from].wire_time(now, packet.len()));
            let sent = Ecn::of_packet(&packet).unwrap_or_default();
            let verdict = lanes.states[from].offer_with(now, packet.len(), sent);
            let Verdict::Arrives { at, copy_at, is_held, ecn } = verdict else {
                free.give_back(packet);
                continue;
            };
            if ecn != sent {
                ecn.write_to(&mut packet);
            }
            let planned = Planned { at_ns: lanes.clock_ns(at), wire_ns, is_held };
            let departure = departures[from].next(planned, soonest_ns);
            if let Some(copy_at) = copy_at {
                let at_ns = lanes.clock_ns(copy_at).saturating_add(departure.late_ns);
                flights.put(Departure { at_ns, ..departure }, 1 - from, packet.clone());
            }
            flights.put(departure, 1 - from, packet);
        }
    }

    /// Writes the packets whose time has come, up to a limit.
    fn write_due(&mut self) {
        let now_ns = clock::now_ns();
        let mut lateness = Lateness::default();
        let mut refused = 0;
        for _ in 0..WRITES_MAX {
            let Some(flight) = self.flights.take_due(now_ns) else { break };
            lateness.note(now_ns - flight.at_ns + flight.late_ns);
            refused += u64::from(self.tuns[flight.to].send(&flight.packet).is_err());
            self.free.give_back(flight.packet);
        }
        if lateness.packets > 0 {
            let mut lanes = self.shared.lanes.lock();
            lanes.lateness.merge(lateness);
            lanes.overrun_packets += refused;
        }
    }

    /// Waits for the time of the next packet in flight, and for further packets.
    ///
    /// While packets arrive, it looks for more of them at intervals: a thread that waits for each
    /// one makes every send of the other end wake it, which takes longer than the send.
    fn wait(&mut self) -> io::Result<()> {
        let now_ns = clock::now_ns();
        let next = self.flights.heap.peek();
        let until = next.map(|flight| Duration::from_nanos(flight.at_ns.saturating_sub(now_ns)));
        if until == Some(Duration::ZERO) {
            return Ok(());
        }
        let waker = Some(&self.shared.waker);
        if now_ns.saturating_sub(self.active_ns) < ACTIVE_NS {
            // Several packets leave together: each time, the receiver at the other end has to be woken.
            let least = if self.flights.heap.len() > FEW { INTERVAL_MIN } else { Duration::ZERO };
            let interval = self.interval.min(until.unwrap_or(self.interval)).max(least);
            poll::<&Tun>(&[], waker, Some(interval))?;
        } else {
            poll(&[&self.tuns[0], &self.tuns[1]], waker, until)?;
            // What arrives after a pause has just arrived.
            self.read_ns = [clock::now_ns(); 2];
        }
        Ok(())
    }
}

impl Flights {
    fn put(&mut self, Departure { at_ns, late_ns }: Departure, to: usize, packet: Vec<u8>) {
        self.bytes += memory_of(&packet);
        self.heap.push(Flight { at_ns, late_ns, order: self.next_order, to, packet });
        self.next_order += 1;
    }

    fn take_due(&mut self, now_ns: u64) -> Option<Flight> {
        let flight =
            self.heap.peek().is_some_and(|flight| flight.at_ns <= now_ns).then(|| self.heap.pop())??;
        self.bytes -= memory_of(&flight.packet);
        Some(flight)
    }
}

/// The memory of a packet in flight: its buffer may be longer.
fn memory_of(packet: &Vec<u8>) -> usize {
    packet.capacity() + size_of::<Flight>()
}

/// A few buffers to use again.
#[derive(Default)]
struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    fn copy_of(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut packet = self.0.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(bytes);
        packet
    }

    fn give_back(&mut self, packet: Vec<u8>) {
        if self.0.len() < READS_MAX {
            self.0.push(packet);
        }
    }
}

impl Lateness {
    fn note(&mut self, late_ns: u64) {
        self.packets += 1;
        self.sum_ns += late_ns;
        self.max_ns = self.max_ns.max(late_ns);
    }

    fn merge(&mut self, other: Self) {
        self.packets += other.packets;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at_ns, other.order).cmp(&(self.at_ns, self.order))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The traffic as the results have it.
fn direction(traffic: &Traffic) -> LinkDirection {
    let bins = traffic.series.bins();
    LinkDirection {
        offered_packets: traffic.offered.packets,
        offered_bytes: traffic.offered.bytes,
        delivered_packets: traffic.delivered.packets,
        delivered_bytes: traffic.delivered.bytes,
        queue_full_packets: traffic.queue_full.packets,
        lost_packets: traffic.lost.packets,
        duplicated_packets: traffic.duplicated.packets,
        held_back_packets: traffic.held_back.packets,
        too_big_packets: traffic.too_big.packets,
        marked_packets: traffic.marked.packets,
        queue_mean_bytes: rounded(traffic.queue.mean_bytes()),
        queue_max_bytes: traffic.queue.max_bytes(),
        queue_mean_ms: rounded(traffic.queue.mean_wait().as_secs_f64() * 1e3),
        queue_max_ms: rounded(traffic.queue.max_wait().as_secs_f64() * 1e3),
        series: LinkSeries {
            step_ms: traffic.series.width().as_secs_f64() * 1e3,
            offered_bytes: bins.iter().map(|bin| bin.offered_bytes).collect(),
            delivered_bytes: bins.iter().map(|bin| bin.delivered_bytes).collect(),
            queue_bytes: bins.iter().map(|bin| bin.queue_bytes).collect(),
        },
    }
}

const SERIES_STEP: Duration = Duration::from_millis(10);

/// Packets of one direction before those in flight have their turn: what arrives in 5 ms at
/// 200 000 packets/s.
const READS_MAX: usize = 1024;
const WRITES_MAX: usize = 128;

/// The shortest and the longest wait for further packets: a quarter of the link's delay, between these. A packet is
/// delayed by no more.
const INTERVAL_MIN: Duration = Duration::from_micros(50);
const INTERVAL_MAX: Duration = Duration::from_micros(500);

/// So many packets in flight leave at their exact times.
const FEW: usize = 4;

/// Priority of the thread.
const NICE: i32 = -15;

/// How long after a packet others are expected soon.
const ACTIVE_NS: u64 = 2_000_000;

/// Ten seconds of 200 Mbit/s. Only a link without a rate and with a delay gets there.
const IN_FLIGHT_BYTES_MAX: usize = 256 << 20;

/// The seed of a repeat.
fn seed_of(pair: &LinkPair, repeat: u32) -> u64 {
    pair.seed.wrapping_add(u64::from(repeat.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repeat_has_another_seed() {
        let of = |seed, repeat| seed_of(&LinkPair { seed, ..LinkPair::default() }, repeat);
        assert_eq!([of(7, 1), of(7, 2), of(7, 3), of(u64::MAX, 2)], [7, 8, 9, 0]);
    }

    #[test]
    fn packets_in_flight_count_with_their_buffers_of_which_few_are_kept() {
        let (mut flights, mut free) = (Flights::default(), Buffers::default());
        let packet = free.copy_of(&[7; 60]);
        assert_eq!((packet.as_slice(), packet.capacity() < 100), ([7; 60].as_slice(), true));
        free.give_back(Vec::with_capacity(9000));
        let departure = Departure { at_ns: 1, late_ns: 0 };
        flights.put(departure, 0, free.copy_of(&packet));
        assert!(flights.bytes >= 9000, "{}", flights.bytes);
        free.give_back(flights.take_due(1).unwrap().packet);
        assert_eq!((flights.bytes, free.0.len()), (0, 1));
        (0..2 * READS_MAX).for_each(|_| free.give_back(Vec::new()));
        assert_eq!(free.0.len(), READS_MAX);
    }

    #[test]
    fn packets_leave_in_the_order_of_their_times_and_then_of_reading() {
        let flight = |at_ns, order| Flight { at_ns, late_ns: 0, order, to: 0, packet: Vec::new() };
        let mut heap: BinaryHeap<Flight> = [flight(5, 0), flight(3, 2), flight(3, 1), flight(9, 3)].into();
        let order: Vec<u64> = std::iter::from_fn(|| heap.pop()).map(|flight| flight.order).collect();
        assert_eq!(order, [1, 2, 0, 3]);
    }
}
