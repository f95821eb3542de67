//! The queueing disciplines of the network devices and their drops, by netlink.
//!
//! Parses only the necessary bytes: the options of disciplines differ between kernels, and an
//! unknown one must not hide the counters.

use std::collections::BTreeMap;
use std::io;

use netlink_packet_core::{NetlinkBuffer, NlasIterator};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// The root discipline of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    /// E.g. `fq_codel`.
    pub(crate) kind: String,
    /// Drops since it was set up. Counts buffers: a segmented send that was not split yet is one.
    pub(crate) drops: u32,
}

/// Returns the queues of this thread's network namespace, by device index. A device without an
/// entry has no queue that could drop.
///
/// # Errors
/// If the kernel does not answer: no netlink in this container.
pub(crate) fn queues() -> io::Result<BTreeMap<u32, Queue>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&dump_request(), 0)?;
    let mut queues = BTreeMap::new();
    while take_messages(&socket.recv_from_full()?.0, &mut queues)? == Progress::GoesOn {}
    Ok(queues)
}

/// Message types, linux/rtnetlink.h and linux/netlink.h.
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `struct nlmsghdr` and `struct tcmsg`.
const HEADER_BYTES: usize = 16;
const TCMSG_BYTES: usize = 20;
/// The parent of a root discipline, linux/pkt_sched.h.
const TC_H_ROOT: u32 = u32::MAX;
/// Attributes, linux/rtnetlink.h and linux/gen_stats.h.
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
/// Offset of the drops in `struct gnet_stats_queue`, after length and backlog.
const DROPS_AT: usize = 8;

/// Requests all queueing disciplines.
fn dump_request() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_BYTES + TCMSG_BYTES];
    let mut header = NetlinkBuffer::new(&mut bytes[..]);
    header.set_length((HEADER_BYTES + TCMSG_BYTES) as u32);
    header.set_message_type(RTM_GETQDISC);
    header.set_flags(DUMP);
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    GoesOn,
    IsDone,
}

/// Parses the messages of one response.
fn take_messages(mut bytes: &[u8], queues: &mut BTreeMap<u32, Queue>) -> io::Result<Progress> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "no netlink message");
    while !bytes.is_empty() {
        let message = NetlinkBuffer::new_checked(bytes).map_err(|_| damaged())?;
        match message.message_type() {
            NLMSG_DONE => return Ok(Progress::IsDone),
            NLMSG_ERROR => return Err(io::Error::other("the kernel does not list its queues")),
            RTM_NEWQDISC => take_discipline(message.payload(), queues),
            _ => {}
        }
        // Messages start at multiples of four.
        let length = (message.length() as usize).next_multiple_of(4);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(Progress::GoesOn)
}

/// Adds a discipline, if it is a device's root.
fn take_discipline(payload: &[u8], queues: &mut BTreeMap<u32, Queue>) {
    // struct tcmsg: family and padding, index, handle, parent, info.
    let (Some(device), Some(TC_H_ROOT)) = (number(payload, 4), number(payload, 12)) else { return };
    let attributes = payload.get(TCMSG_BYTES..).unwrap_or_default();
    if let Some(drops) = dropped(attributes) {
        let kind = attribute(attributes, TCA_KIND).unwrap_or_default();
        let kind = String::from_utf8_lossy(&kind).trim_end_matches('\0').to_owned();
        queues.insert(device, Queue { kind, drops });
    }
}

/// Finds the drops among the attributes of a discipline.
fn dropped(attributes: &[u8]) -> Option<u32> {
    let statistics = attribute(attributes, TCA_STATS2)?;
    number(&attribute(&statistics, TCA_STATS_QUEUE)?, DROPS_AT)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn attribute(attributes: &[u8], kind: u16) -> Option<Vec<u8>> {
    let mut found = NlasIterator::new(attributes).filter_map(Result::ok);
    found.find(|attribute| attribute.kind() == kind).map(|attribute| attribute.value().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(kind: u16, body: &[u8]) -> Vec<u8> {
        let length = (4 + body.len()) as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(body);
        bytes
    }

    fn discipline(device: u32, parent: u32, drops: u32) -> Vec<u8> {
        let numbers = [0, device, 0x10000, parent, 0];
        let mut body: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let queue: Vec<u8> =
            [1, 2, drops, 4, 5].iter().flat_map(|number: &u32| number.to_ne_bytes()).collect();
        body.extend(with_header(1, b"tbf\0"));
        body.extend(with_header(TCA_STATS2, &[with_header(1, &[0; 12]), with_header(3, &queue)].concat()));
        message(RTM_NEWQDISC, &body)
    }

    #[test]
    fn roots_are_counted_by_device_and_children_are_not() {
        let answer =
            [discipline(2, TC_H_ROOT, 7), discipline(2, 0x10001, 100), discipline(3, TC_H_ROOT, 0)].concat();
        let mut queues = BTreeMap::new();
        assert_eq!(take_messages(&answer, &mut queues).unwrap(), Progress::GoesOn);
        let queue = |drops| Queue { kind: "tbf".to_owned(), drops };
        assert_eq!(queues, BTreeMap::from([(2, queue(7)), (3, queue(0))]));
        assert_eq!(take_messages(&message(NLMSG_DONE, &[0; 4]), &mut queues).unwrap(), Progress::IsDone);
        take_messages(&message(NLMSG_ERROR, &[0; 20]), &mut queues).unwrap_err();
    }

    #[test]
    fn damaged_answers_are_errors_or_nothing() {
        let whole = discipline(2, TC_H_ROOT, 7);
        for length in 0..whole.len() {
            let mut queues = BTreeMap::new();
            let taken = take_messages(&whole[..length], &mut queues);
            assert!(taken.is_err() || length == 0, "{length}");
            // The same with the correct length.
            if length > HEADER_BYTES {
                let mut cut = whole[..length].to_vec();
                cut[..4].copy_from_slice(&(length as u32).to_ne_bytes());
                let _ = take_messages(&cut, &mut queues);
            }
        }
    }

    #[test]
    fn this_host_answers() {
        queues().unwrap();
    }
}
