//! One direction of a stream: send until the time is over, or receive and count.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use weir_baseline::Receiver;
use weir_measure::{Drain, Idle, Schedule, nanos, now_ns, wait_until};
use weir_results::WaitStrategy;
use weir_telemetry::thread_times;
use weir_udp::{SocketOptions, UdpSocket, Wait, affinity};

use crate::hpcbench::control::Counted;
use crate::hpcbench::datagram::{Datagram, MARK_BYTES, Mark, TrialId, payload};
use crate::hpcbench::settings::{DATAGRAM_BYTES_MAX, Settings};

/// Silence after the sender's end that means that nothing will arrive.
const QUIET: Duration = Duration::from_millis(200);
/// How long a receiver drains after the sender's end.
const DRAIN: Duration = Duration::from_secs(5);
/// A sender that cannot send for this long gives up.
const STALL: Duration = Duration::from_secs(60);
/// How often a receiver checks whether it is to stop.
const CHECK: Duration = Duration::from_millis(20);
/// Datagrams per receive call.
const BATCH: usize = 32;

/// When and how fast to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) write_bytes: usize,
    pub(crate) time: Duration,
    pub(crate) message_bytes: u64,
    pub(crate) rate_bps: Option<u64>,
}

impl Pace {
    /// When each datagram is due, if there is a rate.
    fn schedule(&self, start_ns: u64) -> Option<Schedule> {
        let per_s = |rate: u64| rate as f64 / 8.0 / self.write_bytes as f64;
        self.rate_bps.map(|rate| Schedule::new(per_s(rate), start_ns))
    }
}

/// Sends random bytes until both time and message are done, or `halt` is set. Counts no marks and no processor time.
///
/// With a rate, each datagram has an intended send time: a late one does not delay the following
/// ones.
pub(crate) fn send(socket: &UdpSocket, pace: &Pace, halt: &AtomicBool) -> io::Result<Counted> {
    if pace.rate_bps.is_some() {
        // By default, sleeps end up to 50 us late; spinning covers the rest.
        let _ = affinity::set_timer_slack_ns(1);
    }
    let payload = payload(pace.write_bytes);
    let mut sent = Counted::default();
    let mut refused_since: Option<Instant> = None;
    let start_ns = now_ns();
    let end_ns = start_ns.saturating_add(nanos(pace.time));
    let schedule = pace.schedule(start_ns);
    loop {
        let now_ns = now_ns();
        sent.elapsed_ns = now_ns - start_ns;
        let has_message = sent.sent_bytes >= pace.message_bytes;
        if (now_ns >= end_ns && has_message) || halt.load(Ordering::Relaxed) {
            return Ok(sent);
        }
        if let Some(schedule) = &schedule {
            let due_ns = schedule.intended_ns(sent.sent_packets);
            // What is due after the end is not sent.
            let is_beyond = due_ns >= end_ns && has_message;
            let until_ns = if is_beyond { end_ns } else { due_ns };
            wait_until(until_ns, Idle::SleepThenSpin, || halt.load(Ordering::Relaxed));
            if is_beyond {
                continue;
            }
        }
        if weir_baseline::send(socket, None, &payload)? {
            sent.sent_packets += 1;
            sent.sent_bytes += payload.len() as u64;
            refused_since = None;
        } else if refused_since.get_or_insert_with(Instant::now).elapsed() >= STALL {
            let text = format!("no datagram could be sent for {} s", STALL.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
    }
}

/// Announces data, or its end.
fn send_marks(socket: &UdpSocket, id: TrialId, mark: Mark) -> io::Result<()> {
    // The receiver needs one of each; the others are for lossy paths.
    let times = match mark {
        Mark::Sync => 3,
        Mark::Fin => 10,
    };
    (0..times).try_for_each(|_| weir_baseline::send(socket, None, &id.mark(mark)).map(drop))
}

/// Sends a stream between its marks. The first FIN counts as a datagram.
pub(crate) fn send_marked(
    socket: &UdpSocket,
    id: TrialId,
    pace: &Pace,
    halt: &AtomicBool,
) -> io::Result<Counted> {
    send_marks(socket, id, Mark::Sync)?;
    let sent = send(socket, pace, halt)?;
    send_marks(socket, id, Mark::Fin)?;
    Ok(sent.and(Counted { sent_packets: 1, sent_bytes: MARK_BYTES as u64, ..Counted::of_thread() }))
}

/// What has arrived, and the times that bound it. The first FIN counts as a datagram of 32 bytes, as in hpcbench.
#[derive(Debug, Default)]
struct Arrivals {
    counted: Counted,
    start: Option<Instant>,
    end: Option<Instant>,
    last: Option<Instant>,
}

impl Arrivals {
    /// Counts one batch.
    fn take(&mut self, receiver: &Receiver, id: TrialId) {
        let now = Instant::now();
        for datagram in receiver.datagrams() {
            match id.classify(datagram) {
                Datagram::Data => self.last = Some(now),
                // The last of them directly precedes the data.
                Datagram::Mark(Mark::Sync) if self.counted.recv_packets == 0 => {
                    self.start = Some(now);
                    continue;
                }
                Datagram::Mark(Mark::Fin) if self.end.is_none() => self.end = Some(now),
                Datagram::Mark(_) | Datagram::Stale => continue,
            }
            self.start.get_or_insert(now);
            self.counted.recv_packets += 1;
            self.counted.recv_bytes += datagram.len() as u64;
        }
    }

    fn finished(self) -> Counted {
        // Without a FIN, the last datagram is the end.
        let bounds = self.start.zip(self.end.or(self.last));
        let elapsed_ns = bounds.map_or(0, |(start, end)| nanos(end - start));
        Counted { elapsed_ns, ..self.counted }.and(Counted::of_thread())
    }
}

/// Receives until a FIN arrived, `sent` is set and nothing more arrives, or until `halt`. Calls
/// `begin` at the first datagram of the trial. Counts the processor time of the calling thread.
pub(crate) fn receive(
    socket: &UdpSocket,
    id: TrialId,
    sent: &AtomicBool,
    halt: &AtomicBool,
    begin: impl FnOnce(),
) -> io::Result<Counted> {
    let mut receiver = Receiver::with_buffers(BATCH, DATAGRAM_BYTES_MAX as usize).without_sources();
    let mut begin = Some(begin);
    let mut arrivals = Arrivals::default();
    let mut drain = Drain::new(QUIET, DRAIN);
    while !halt.load(Ordering::Relaxed) {
        let is_sent = sent.load(Ordering::Relaxed);
        // Once the peer is done, what has arrived is all there is, but for datagrams in flight.
        let is_ended = is_sent && arrivals.end.is_some();
        let has_arrived = if is_ended {
            receiver.receive_now(socket)?
        } else {
            receiver.receive(socket, WaitStrategy::Block, CHECK)?
        };
        if has_arrived {
            drain.arrived(now_ns());
            arrivals.take(&receiver, id);
            if let Some(begin) = arrivals.start.and_then(|_| begin.take()) {
                begin();
            }
        }
        if is_sent && (drain.is_over(now_ns()) || (is_ended && !has_arrived)) {
            break;
        }
    }
    Ok(arrivals.finished())
}

/// A socket with buffers of this size, as the kernel reports it; 0: the default.
pub(crate) fn buffered(bind: SocketAddr, buffer_bytes: u64, tos: u8) -> SocketOptions {
    // The kernel doubles the requested size.
    let half = usize::try_from(buffer_bytes / 2).ok().filter(|half| *half > 0);
    SocketOptions {
        recv_buffer: half,
        send_buffer: half,
        type_of_service: (tos != 0).then_some(tos),
        ..SocketOptions::new(bind)
    }
}

/// A client's socket.
pub(crate) fn client_socket(bind: SocketAddr, settings: &Settings) -> SocketOptions {
    buffered(bind, settings.client_buffer_bytes.unwrap_or(0), settings.tos())
}

/// Discards what a socket holds, so that it does not count in the next trial.
pub(crate) fn drain(socket: &UdpSocket) {
    let mut bytes = [0];
    // Bounded: a peer may keep sending.
    for _ in 0..1_000_000 {
        match socket.recv(&mut bytes, Wait::DontWait) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => return,
        }
    }
}

impl Counted {
    /// The processor time of the calling thread, which was started for this trial.
    fn of_thread() -> Self {
        let (user, system) = thread_times();
        Self { user_ns: nanos(user), system_ns: nanos(system), ..Self::default() }
    }

    /// The counts of a sending and a receiving thread; the time is that of `self`.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            recv_packets: self.recv_packets + other.recv_packets,
            recv_bytes: self.recv_bytes + other.recv_bytes,
            sent_packets: self.sent_packets + other.sent_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            ..self
        }
    }
}

/// What a thread of a trial ended with.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: TrialId = TrialId { token: 9, trial: 1 };

    fn pair() -> (UdpSocket, UdpSocket) {
        let options = SocketOptions::new("127.0.0.1:0".parse::<SocketAddr>().unwrap());
        let (one, other) = (UdpSocket::bind(&options).unwrap(), UdpSocket::bind(&options).unwrap());
        one.connect(other.local_addr()).unwrap();
        other.connect(one.local_addr()).unwrap();
        (one, other)
    }

    fn flag(value: bool) -> AtomicBool {
        AtomicBool::new(value)
    }

    #[test]
    fn the_first_fin_is_a_datagram_and_other_trials_are_none() {
        let (sender, receiver) = pair();
        let pace = Pace { write_bytes: 100, time: Duration::ZERO, message_bytes: 1000, rate_bps: None };
        send_marks(&sender, TrialId { trial: 0, ..ID }, Mark::Fin).unwrap();
        send_marks(&sender, ID, Mark::Sync).unwrap();
        let sent = send(&sender, &pace, &flag(false)).unwrap();
        send_marks(&sender, ID, Mark::Fin).unwrap();
        assert_eq!((sent.sent_packets, sent.sent_bytes), (10, 1000));
        let mut has_begun = false;
        let received = receive(&receiver, ID, &flag(true), &flag(false), || has_begun = true).unwrap();
        assert_eq!((received.recv_packets, received.recv_bytes), (11, 1032));
        assert!(has_begun);
    }

    #[test]
    fn without_marks_the_data_still_counts() {
        let (sender, receiver) = pair();
        sender.send(&[1]).unwrap();
        sender.send(&[2, 3]).unwrap();
        let received = receive(&receiver, ID, &flag(true), &flag(false), || {}).unwrap();
        assert_eq!((received.recv_packets, received.recv_bytes), (2, 3));
    }

    #[test]
    fn whoever_is_told_to_stop_stops() {
        let (sender, receiver) = pair();
        let pace = Pace {
            write_bytes: 1,
            time: Duration::from_secs(3600),
            message_bytes: u64::MAX,
            rate_bps: Some(1),
        };
        assert_eq!(send(&sender, &pace, &flag(true)).unwrap().sent_packets, 0);
        assert_eq!(receive(&receiver, ID, &flag(false), &flag(true), || {}).unwrap().recv_packets, 0);
    }

    #[test]
    fn a_rate_is_not_exceeded() {
        let (sender, _receiver) = pair();
        // 1000 bytes at 8 Mbit/s: one each millisecond, the first at once.
        let pace = Pace {
            write_bytes: 1000,
            time: Duration::from_millis(20),
            message_bytes: 0,
            rate_bps: Some(8_000_000),
        };
        let sent = send(&sender, &pace, &flag(false)).unwrap();
        // Fewer where the machine was busy elsewhere for the whole of the time.
        assert!((1..=20).contains(&sent.sent_packets), "{sent:?}");
        assert!(sent.elapsed_ns >= nanos(pace.time));
        let fast = Pace { rate_bps: Some(200_000_000), ..pace };
        assert_eq!(fast.schedule(7).unwrap().intended_ns(250_000), 10_000_000_007);
    }

    #[test]
    fn a_drained_socket_is_empty() {
        let (sender, receiver) = pair();
        sender.send(b"old").unwrap();
        drain(&receiver);
        let mut bytes = [0];
        assert_eq!(receiver.recv(&mut bytes, Wait::DontWait).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
