//! What idle states do to this host's latencies: a check of about 150 ms before a run.
//!
//! One thread sends a datagram over loopback to another one, which has slept for a known time on a processor of its
//! own, and the time until the sleeper has it is taken. Half of the rounds keep the processors out of idle states.
//! Where both differ, an engine that sleeps a little less than its baseline wakes up sooner, and seems faster.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use weir_measure::clock;
use weir_results::WakeUp;
use weir_udp::affinity;

use crate::host;
use crate::keep_awake::KeepAwake;

/// Measures how long waking up takes on this host, with idle states and without. Empty if it cannot be measured: with
/// one processor, without a loopback interface, or when the check takes too long.
#[must_use]
pub fn wake_ups() -> Vec<WakeUp> {
    measure().unwrap_or_default()
}

/// How long the sleeper sleeps before each datagram, and how many a round has.
const SLEEPS: [(u64, usize); 3] = [(20, 100), (200, 50), (1_000, 20)];

/// Rounds of each kind, which alternate.
const ROUNDS: usize = 2;

/// A datagram that takes longer ends the check.
const PATIENCE: Duration = Duration::from_millis(100);

fn measure() -> io::Result<Vec<WakeUp>> {
    let cpus = host::default_cpus().map_err(io::Error::other)?;
    let cpus = cpus.ok_or_else(|| io::Error::other("there is only one processor"))?;
    let (mut idle, mut awake) = (vec![Vec::new(); SLEEPS.len()], vec![Vec::new(); SLEEPS.len()]);
    for _ in 0..ROUNDS {
        round(cpus.publisher, cpus.subscriber, &mut idle)?;
        let _awake = KeepAwake::start()?;
        round(cpus.publisher, cpus.subscriber, &mut awake)?;
    }
    let mut found = Vec::new();
    for (((slept_us, _), idle), awake) in SLEEPS.into_iter().zip(idle).zip(awake) {
        if let (Some(idle_ns), Some(awake_ns)) = (median(idle), median(awake)) {
            found.push(WakeUp { slept_us, idle_ns, awake_ns });
        }
    }
    Ok(found)
}

/// Adds the times of one round, by length of sleep.
fn round(waker_cpu: usize, sleeper_cpu: usize, times_ns: &mut [Vec<u64>]) -> io::Result<()> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.connect(receiver.local_addr()?)?;
    // Datagrams of other programs do not count.
    receiver.connect(sender.local_addr()?)?;
    let received = AtomicUsize::new(0);
    let count: usize = SLEEPS.iter().map(|(_, count)| count).sum();
    let arrived = thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep(&receiver, sleeper_cpu, count, &received));
        let waker = scope.spawn(|| wake(&sender, waker_cpu, &received));
        let arrived = sleeper.join().map_err(|_| io::Error::other("a thread panicked"))?;
        waker.join().map_err(|_| io::Error::other("a thread panicked"))??;
        arrived
    })?;
    let mut arrived = arrived.into_iter();
    for ((_, count), times_ns) in SLEEPS.iter().zip(times_ns) {
        times_ns.extend(arrived.by_ref().take(*count));
    }
    Ok(())
}

/// The receiving thread: returns how long each datagram took.
fn sleep(socket: &UdpSocket, cpu: usize, count: usize, received: &AtomicUsize) -> io::Result<Vec<u64>> {
    affinity::pin_current_thread(cpu)?;
    let mut times_ns = Vec::with_capacity(count);
    let mut sent_at = [0; 8];
    while times_ns.len() < count {
        socket.recv(&mut sent_at)?;
        let now_ns = clock::now_ns();
        times_ns.push(now_ns.saturating_sub(u64::from_le_bytes(sent_at)));
        received.store(times_ns.len(), Ordering::Release);
    }
    Ok(times_ns)
}

/// The sending thread, which never sleeps itself.
fn wake(socket: &UdpSocket, cpu: usize, received: &AtomicUsize) -> io::Result<()> {
    affinity::pin_current_thread(cpu)?;
    let patience_ns = weir_measure::nanos(PATIENCE);
    let mut sent = 0;
    let mut idle_from_ns = clock::now_ns();
    for (slept_us, count) in SLEEPS {
        for _ in 0..count {
            while clock::now_ns() < idle_from_ns + slept_us * 1_000 {
                std::hint::spin_loop();
            }
            let sent_ns = clock::now_ns();
            socket.send(&sent_ns.to_le_bytes())?;
            sent += 1;
            while received.load(Ordering::Acquire) < sent {
                if clock::now_ns() > sent_ns + patience_ns {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                std::hint::spin_loop();
            }
            idle_from_ns = clock::now_ns();
        }
    }
    Ok(())
}

fn median(mut times_ns: Vec<u64>) -> Option<u64> {
    times_ns.sort_unstable();
    times_ns.get(times_ns.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_sleep_has_both_figures_or_the_host_has_none() {
        let found = wake_ups();
        let lengths: Vec<u64> = found.iter().map(|it| it.slept_us).collect();
        assert!(lengths.is_empty() || lengths == [20, 200, 1_000], "{found:?}");
        assert!(found.iter().all(|it| it.idle_ns > 0 && it.awake_ns > 0), "{found:?}");
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!((median(vec![3, 1, 2]), median(Vec::new())), (Some(2), None));
    }
}
