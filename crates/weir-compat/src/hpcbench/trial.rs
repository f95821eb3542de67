//! A trial: the counts of both ends, and hpcbench's figures.

use crate::hpcbench::control::Counted;

/// The counts of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trial {
    pub(crate) write_bytes: u64,
    pub(crate) client: Counted,
    pub(crate) server: Counted,
}

impl Trial {
    /// Received by both ends, Mbit/s by the server's clock.
    pub(crate) fn network_mbps(&self) -> f64 {
        mbps(self.server.recv_bytes + self.client.recv_bytes, self.server.elapsed_ns)
    }

    /// Sent by both ends, Mbit/s by the client's clock.
    pub(crate) fn local_mbps(&self) -> f64 {
        mbps(self.server.sent_bytes + self.client.sent_bytes, self.client.elapsed_ns)
    }

    /// Datagrams from client to server that did not arrive.
    pub(crate) fn lost_packets(&self) -> u64 {
        self.client.sent_packets.saturating_sub(self.server.recv_packets)
    }

    /// The fraction of lost datagrams.
    pub(crate) fn loss_rate(&self) -> f64 {
        match self.client.sent_packets {
            0 => 0.0,
            sent => self.lost_packets() as f64 / sent as f64,
        }
    }
}

/// 10^6 bits per second; 0 when no time has passed.
pub(crate) fn mbps(bytes: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { bytes as f64 * 8e3 / elapsed_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_the_counts() {
        let client = Counted {
            sent_packets: 409_395,
            sent_bytes: 597_715_272,
            elapsed_ns: 5_000_000_000,
            ..Counted::default()
        };
        let server = Counted {
            recv_packets: 409_129,
            recv_bytes: 597_326_912,
            elapsed_ns: 4_000_000_000,
            ..Counted::default()
        };
        let trial = Trial { write_bytes: 1460, client, server };
        assert_eq!(trial.lost_packets(), 266);
        assert_eq!(format!("{:.6}", trial.loss_rate()), "0.000650");
        assert_eq!(format!("{:.3}", trial.local_mbps()), "956.344");
        assert_eq!(format!("{:.3}", trial.network_mbps()), "1194.654");
        let both = Trial {
            client: Counted { recv_bytes: 597_326_912, ..client },
            server: Counted { sent_bytes: 597_715_272, ..server },
            ..trial
        };
        assert_eq!(format!("{:.3}", both.local_mbps()), "1912.689");
        assert_eq!(format!("{:.3}", both.network_mbps()), "2389.308");
        assert_eq!(Trial::default().network_mbps().to_bits(), 0.0_f64.to_bits());
    }
}
