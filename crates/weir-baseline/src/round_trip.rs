//! Round trips: the end that waits for an answer, and the end that answers.

use std::io;
use std::time::Duration;

use weir_measure::{nanos, now_ns};
use weir_results::WaitStrategy;
use weir_udp::UdpSocket;

use crate::{Sender, receive_one};

/// Waits for the answer to what was sent at `sent_ns`; false when it is not there after `timeout`. Other datagrams are
/// ignored. A success costs no clock read.
#[inline]
pub fn await_answer(
    socket: &UdpSocket,
    wait: WaitStrategy,
    (sent_ns, timeout): (u64, Duration),
    buffer: &mut [u8],
    mut is_answer: impl FnMut(&[u8]) -> bool,
) -> io::Result<bool> {
    let end_ns = sent_ns.saturating_add(nanos(timeout));
    loop {
        match receive_one(socket, wait, timeout, buffer)? {
            Some(length) if is_answer(&buffer[..length]) => return Ok(true),
            Some(_) if now_ns() < end_ns => {}
            _ => return Ok(false),
        }
    }
}

/// Sends every datagram back that `is_asked`, until `is_over`; returns how many.
pub fn echo(
    socket: &UdpSocket,
    wait: WaitStrategy,
    sender: &mut Sender,
    buffer: &mut [u8],
    is_asked: impl Fn(&[u8]) -> bool,
    is_over: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut echoed = 0;
    while !is_over() {
        if let Some(length) = receive_one(socket, wait, ECHO_WAIT, buffer)?
            && is_asked(&buffer[..length])
        {
            sender.send(socket, &buffer[..length])?;
            echoed += 1;
        }
    }
    Ok(echoed)
}

/// How long an echo waits before it checks whether it is over.
const ECHO_WAIT: Duration = Duration::from_millis(20);
