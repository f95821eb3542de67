//! Names of typical links. docs/reference/links.md has the values with their reasons.

/// A named pair of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// Its options, as [`LinkPair`](crate::LinkPair) reads them.
    pub options: &'static str,
}

/// All presets, from the fastest.
pub const PRESETS: [Preset; 7] = [
    Preset { name: "lan10g", options: "mtu=9000,rate=10G,rtt=200us,queue=1M" },
    Preset { name: "lan1g", options: "rate=1G,rtt=200us,queue=256k" },
    Preset { name: "lan100", options: "rate=100M,rtt=200us,queue=128k" },
    Preset { name: "wan", options: "rate=200M,rtt=80ms,loss=0.1%,queue=2M" },
    Preset { name: "wifi", options: "rate=50M,rtt=4ms,jitter=3ms,burst-loss=2%,queue=256k" },
    Preset { name: "lte", options: "down-rate=20M,up-rate=5M,rtt=60ms,jitter=10ms,loss=0.5%,queue=1M" },
    Preset { name: "satellite", options: "rate=10M,rtt=600ms,loss=0.5%,queue=768k" },
];

/// Returns the options of a preset.
pub fn preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|preset| preset.name == name).map(|preset| preset.options)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{LinkPair, LinkState, Rng, Traffic};

    /// Full packets at this share of the rate for five seconds, down and up.
    fn carry(pair: &LinkPair, share: f64) -> [Traffic; 2] {
        let rates = [&pair.down, &pair.up].map(|direction| direction.first_rate_bps().unwrap());
        let mut rates = rates.into_iter();
        pair.links().map(|link| {
            let gap = f64::from(pair.mtu) * 8.0 / (rates.next().unwrap() as f64 * share);
            let mut state = LinkState::new(link, Rng::new(pair.seed));
            for i in 0..(5.0 / gap) as u64 {
                state.offer(Duration::from_secs_f64(gap * i as f64), pair.mtu as usize);
            }
            state.traffic(Duration::from_secs(5))
        })
    }

    #[test]
    fn a_preset_carries_its_rate_but_for_its_losses() {
        for Preset { name, .. } in PRESETS {
            let pair: LinkPair = name.parse().unwrap();
            for traffic in carry(&pair, 0.995) {
                assert_eq!(traffic.queue_full.packets, 0, "{name}");
                // What one packet waits for the one before.
                assert!(traffic.queue.max_bytes() <= 2 * u64::from(pair.mtu), "{name}: {:?}", traffic.queue);
                let loss = pair.down.loss.probability() + pair.down.burst_loss.probability();
                let lost = traffic.lost.packets as f64 / traffic.offered.packets as f64;
                assert!((lost - loss).abs() <= loss * 0.4, "{name}: {lost}");
            }
        }
    }

    #[test]
    fn the_queue_of_a_preset_is_bounded() {
        for Preset { name, .. } in PRESETS {
            let pair: LinkPair = name.parse().unwrap();
            for traffic in carry(&pair, 1.5) {
                let queue = u64::from(pair.down.queue_bytes);
                assert!(traffic.queue_full.packets > 0, "{name}");
                assert!((queue - 9000..=queue).contains(&traffic.queue.max_bytes()), "{name}");
            }
        }
    }
}
