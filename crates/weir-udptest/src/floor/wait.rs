//! Waiting for datagrams in the way that was asked for.

use std::hint;
use std::io;
use std::time::Duration;

use weir_results::WaitStrategy;
use weir_udp::{UdpSocket, Wait};

use super::clock::now_ns;

/// Calls `receive` as the strategy says until it has something or `timeout` is over.
///
/// Blocking gives the kernel the whole `timeout` again after spinning: one more or less does not matter, and the
/// receive timeout of the socket never has to be changed.
#[inline]
pub(super) fn wait<T>(
    socket: &UdpSocket,
    strategy: WaitStrategy,
    timeout: Duration,
    mut receive: impl FnMut(Wait) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let spin = match strategy {
        WaitStrategy::Block => Duration::ZERO,
        WaitStrategy::Spin => timeout,
        WaitStrategy::SpinThenBlock { spin_us } => timeout.min(Duration::from_micros(spin_us.into())),
    };
    if !spin.is_zero() {
        let end_ns = now_ns().saturating_add(nanos(spin));
        loop {
            for _ in 0..RECEIVES_PER_CLOCK_READ {
                if let Some(received) = receive(Wait::DontWait)? {
                    return Ok(Some(received));
                }
                hint::spin_loop();
            }
            if now_ns() >= end_ns {
                break;
            }
        }
        if strategy == WaitStrategy::Spin {
            return Ok(None);
        }
    }
    socket.set_recv_timeout(Some(timeout))?;
    receive(Wait::Block)
}

/// Nanoseconds, at most all that 64 bits hold.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How often a spinning receiver asks the socket before it looks at the clock.
const RECEIVES_PER_CLOCK_READ: u32 = 16;
