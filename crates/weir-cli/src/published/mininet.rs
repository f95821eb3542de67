//! Open Robotics' experiment on lossy links (2020): the published figures, and the links to repeat it on.

use std::time::Duration;

use weir_bench::path::PathSpec;
use weir_results::Case;

/// Name on the command line.
pub(crate) const NAME: &str = "osrf-mininet";

/// Samples that writers and readers keep.
pub(crate) const KEEP_LAST: u32 = 10;

/// Samples per second.
pub(crate) const RATE_HZ: u64 = 30;

/// Seconds of a published run.
pub(crate) const SECONDS: u64 = 15;

/// Published runs of each cell.
pub(crate) const RUNS: u32 = 10;

/// The messages: their published names, their sizes in bytes, and what they are.
pub(crate) const MESSAGES: [(&str, u64, &str); 2] =
    [("Array1k", 1024, "1 kB arrays"), ("PointCloud512k", 512 << 10, "512 kB point clouds")];

/// The published bandwidths, Mbit/s.
pub(crate) const BANDWIDTHS: [u64; 3] = [54, 300, 1000];

/// The published shares of lost packets, percent.
pub(crate) const LOSSES: [u32; 5] = [0, 10, 20, 30, 40];

/// The published engines and their modes of publishing, with a heading.
pub(crate) const ENGINES: [(&str, &str, &str); 3] = [
    ("cyclonedds", "sync", "Cyclone DDS"),
    ("fastrtps", "sync", "Fast DDS sync"),
    ("fastrtps", "async", "Fast DDS async"),
];

/// netem's default queue, 1000 packets, in bytes of full ones.
const QUEUE_BYTES: u32 = 1000 * 1500;

const FIGURES: &str = include_str!("../../published/osrf-mininet.csv");

/// A link of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossyLink {
    /// Bandwidth in each direction.
    pub(crate) mbps: u64,
    /// Share of packets lost in each direction.
    pub(crate) loss_percent: u32,
    /// Delay in each direction; none as published.
    pub(crate) delay: Duration,
}

impl LossyLink {
    /// The emulated link, with other random decisions for each run.
    pub(crate) fn spec(&self, run: u32) -> Option<PathSpec> {
        let Self { mbps, loss_percent, delay } = self;
        let delay_us = delay.as_micros();
        let text = format!(
            "tun,rate={mbps}M,queue={QUEUE_BYTES},loss={loss_percent}%,delay={delay_us}us,seed={run}"
        );
        text.parse().ok()
    }

    /// Whether a case was measured on this link.
    pub(crate) fn carried(&self, case: &Case) -> bool {
        let expected = self.spec(case.conditions.repeat).map(|spec| spec.to_string());
        case.conditions.path == expected
    }
}

/// The links of all combinations, the slowest first.
pub(crate) fn links(bandwidths: &[u64], losses: &[u32], delays: &[Duration]) -> Vec<LossyLink> {
    let mut links = Vec::new();
    for &delay in delays {
        for &mbps in bandwidths {
            links.extend(losses.iter().map(|&loss_percent| LossyLink { mbps, loss_percent, delay }));
        }
    }
    links
}

/// What an engine delivered per second in 2020, the mean of ten runs.
pub(crate) fn delivered(message: &str, link: &LossyLink, engine: &str, mode: &str) -> Option<f64> {
    let (mbps, loss) = (link.mbps.to_string(), link.loss_percent.to_string());
    FIGURES.lines().skip(1).find_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        match cells[..] {
            [of, _, at, lost, by, how, _, _, received]
                if (of, at, lost, by, how) == (message, &*mbps, &*loss, engine, mode) =>
            {
                received.parse().ok()
            }
            _ => None,
        }
    })
}

/// The published figures as they are.
pub(crate) fn figures() -> &'static str {
    FIGURES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_figure_of_every_engine() {
        let all = links(&BANDWIDTHS, &LOSSES, &[Duration::ZERO]);
        assert_eq!(all.len(), 15);
        for (message, ..) in MESSAGES {
            for (link, (engine, mode, _)) in all.iter().flat_map(|link| ENGINES.map(|engine| (link, engine)))
            {
                assert!(delivered(message, link, engine, mode).is_some(), "{message} {link:?} {engine}");
            }
        }
        assert_eq!(FIGURES.lines().count(), 1 + 2 * 15 * 3);
        let lossy = LossyLink { mbps: 300, loss_percent: 10, delay: Duration::ZERO };
        assert_eq!(delivered("Array1k", &lossy, "cyclonedds", "sync"), Some(28.45));
    }

    #[test]
    fn a_link_has_netems_queue_and_is_found_again_in_the_results() {
        let link = LossyLink { mbps: 54, loss_percent: 10, delay: Duration::from_millis(20) };
        let spec = link.spec(3).unwrap().to_string();
        assert_eq!(spec, "tun,mtu=1500,rate=54M,delay=20ms,queue=1500000,loss=10%,seed=3");
        let case = Case::new("weir", weir_results::Test::Latency, weir_results::Reliability::Reliable, 1024)
            .with(|case| {
                case.conditions.repeat = 3;
                case.conditions.path = Some(spec);
            });
        assert!(link.carried(&case));
        assert!(!LossyLink { loss_percent: 20, ..link }.carried(&case));
    }
}
