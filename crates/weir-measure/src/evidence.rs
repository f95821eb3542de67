//! Evidence for the figures of a case, and doubts about them.

use weir_results::{
    Carried, Case, DropCounters, EngineCounts, LossAttribution, LossEvidence, SocketBuffers, Warning,
    attribute,
};

/// Datagrams of one kernel buffer at most, where the kernel coalesces them: `UDP_MAX_SEGMENTS`.
pub const SEGMENTS_MAX: u64 = 128;

/// Enters the buffers that count: the receiver's for receiving, the sender's for sending.
pub fn enter_buffers(case: &mut Case, sender: SocketBuffers, receiver: SocketBuffers) {
    let SocketBuffers { send_asked, send_granted, .. } = sender;
    let buffers = SocketBuffers { send_asked, send_granted, ..receiver };
    if buffers == SocketBuffers::default() {
        return;
    }
    case.evidence.socket_buffers = Some(buffers);
    let small = |asked: Option<u64>, granted: Option<u64>| {
        let (asked, granted) = asked.zip(granted)?;
        // The kernel reports twice what it granted: half is for its own overhead.
        (granted < 2 * asked).then_some(Warning::SocketBufferSmall { asked, granted: granted / 2 })
    };
    let receive = small(buffers.receive_asked, buffers.receive_granted);
    let send = small(buffers.send_asked, buffers.send_granted);
    case.evidence.warnings.extend(receive.or(send));
}

/// Enters a doubt unless the publisher reached the share `kept` of its target rate.
pub fn check_rate(case: &mut Case, target: Option<f64>, reached: f64, kept: f64) {
    if let Some(asked_samples_per_s) = target.filter(|target| reached < target * kept) {
        let reached_samples_per_s = reached;
        let lag = Warning::ScheduleLag { asked_samples_per_s, reached_samples_per_s };
        case.evidence.warnings.push(lag);
    }
}

/// Attributes lost round trips. A datagram may be lost in either direction: each end is sender and receiver.
#[must_use]
pub fn round_trip_loss(lost: u64, ends: &[DropCounters]) -> LossAttribution {
    let both = DropCounters::together(ends);
    let evidence = LossEvidence::new(lost, EngineCounts::default(), &both, &both, Carried::ONE);
    LossAttribution { sender: both.clone(), receiver: both, ..attribute(&evidence) }
}

/// Attributes `lost` datagrams or samples of a stream. `engine`: what the ends counted themselves.
#[must_use]
pub fn stream_loss(
    (lost, engine): (u64, EngineCounts),
    (sent, sender): (u64, DropCounters),
    (received, receiver): (u64, DropCounters),
    per_buffer_max: u64,
) -> LossAttribution {
    let carried = Carried::measured(sent, &sender, received, &receiver, per_buffer_max);
    let evidence = LossEvidence::new(lost, engine, &sender, &receiver, carried);
    LossAttribution { sender, receiver, ..attribute(&evidence) }
}

#[cfg(test)]
mod tests {
    use weir_results::{Reliability, Test};

    use super::*;

    #[test]
    fn a_clamped_socket_buffer_is_a_doubt() {
        let granted = |bytes| SocketBuffers {
            receive_asked: Some(4 << 20),
            receive_granted: Some(bytes),
            send_asked: Some(4 << 20),
            send_granted: Some(8 << 20),
        };
        for (bytes, expected) in [(8 << 20, 0), (425_984, 1)] {
            let mut case = Case::new("udp", Test::Latency, Reliability::None, 32);
            enter_buffers(&mut case, granted(bytes), granted(bytes));
            assert_eq!(case.evidence.warnings.len(), expected, "{bytes}");
        }
    }
}
