//! Loss models of a link.
//!
//! A model decides by the datagram, its number on its link and the link's own random generator, so
//! traffic on one link never changes the losses of another.

use core::fmt;
use core::time::Duration;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::rng::Rng;

/// A loss model. A link may have several; a datagram must pass all of them.
#[derive(Clone)]
pub struct Loss(Kind);

/// The datagram that a predicate judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// When it was sent, since the start of the simulation.
    pub sent_at: Duration,
    /// Its number on this link (this direction between these two hosts), from 1; duplicates are not counted, fragments
    /// each.
    pub ordinal: u64,
    /// The sender.
    pub from: SocketAddrV4,
    /// The destination: an address or a multicast group.
    pub to: SocketAddrV4,
    /// The UDP payload.
    pub bytes: &'a [u8],
}

impl Loss {
    /// Loses each datagram with this probability (0 to 1), independently of the others.
    pub fn random(probability: f64) -> Self {
        Self(Kind::Random { probability })
    }

    /// The Gilbert-Elliott burst model: the link is either good (no losses) or bad (everything
    /// lost).
    ///
    /// It leaves the good state with probability `to_bad` and the bad one with probability
    /// `to_good`, drawn for each datagram. It starts good. The mean burst is `1 / to_good`
    /// datagrams and the mean loss `to_bad / (to_bad + to_good)`.
    pub fn burst(to_bad: f64, to_good: f64) -> Self {
        Self::gilbert_elliott(to_bad, to_good, 0.0, 1.0)
    }

    /// As [`burst`](Self::burst), by the share of packets lost (less than 1) and the mean length of
    /// a burst in packets (at least 1).
    ///
    /// Bursts are longer if more than `length / (length + 1)` are lost: there is at least one packet between two.
    pub fn bursts(share: f64, length: f64) -> Self {
        let odds = share / (1.0 - share);
        let length = length.max(odds);
        Self::burst(odds / length, 1.0 / length)
    }

    /// As [`burst`](Self::burst), with a loss probability for each of the two states.
    pub fn gilbert_elliott(to_bad: f64, to_good: f64, loss_good: f64, loss_bad: f64) -> Self {
        Self(Kind::Burst { to_bad, to_good, loss_good, loss_bad })
    }

    /// Loses the link's datagrams number n, 2n, 3n, ...; 0 loses none, 1 all.
    pub fn every_nth(n: u64) -> Self {
        Self(Kind::EveryNth { n })
    }

    /// Loses the datagrams for which the closure returns true. All links made from this value share
    /// it.
    pub fn when(predicate: impl Fn(&Datagram<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Kind::When(Arc::new(predicate)))
    }
}

impl fmt::Debug for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Random { probability } => write!(f, "random({probability})"),
            Kind::Burst { to_bad, to_good, loss_good, loss_bad } => {
                write!(f, "gilbert_elliott({to_bad}, {to_good}, {loss_good}, {loss_bad})")
            }
            Kind::EveryNth { n } => write!(f, "every_nth({n})"),
            Kind::When(_) => write!(f, "when(..)"),
        }
    }
}

/// The state of a [`Loss`] on one link.
#[derive(Debug)]
pub(crate) struct LossState {
    loss: Loss,
    is_bad: bool,
}

impl LossState {
    pub(crate) fn new(loss: Loss) -> Self {
        Self { loss, is_bad: false }
    }

    pub(crate) fn loses(&mut self, datagram: &Datagram<'_>, rng: &mut Rng) -> bool {
        match &self.loss.0 {
            Kind::Random { probability } => rng.chance(*probability),
            Kind::Burst { to_bad, to_good, loss_good, loss_bad } => {
                let flips = rng.chance(if self.is_bad { *to_good } else { *to_bad });
                self.is_bad ^= flips;
                rng.chance(if self.is_bad { *loss_bad } else { *loss_good })
            }
            Kind::EveryNth { n } => *n != 0 && datagram.ordinal.is_multiple_of(*n),
            Kind::When(predicate) => predicate(datagram),
        }
    }
}

#[derive(Clone)]
enum Kind {
    Random { probability: f64 },
    Burst { to_bad: f64, to_good: f64, loss_good: f64, loss_bad: f64 },
    EveryNth { n: u64 },
    When(Arc<dyn Fn(&Datagram<'_>) -> bool + Send + Sync>),
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn run(loss: Loss, count: u64) -> Vec<bool> {
        let mut state = LossState::new(loss);
        let mut rng = Rng::new(5);
        (1..=count)
            .map(|ordinal| {
                let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7400);
                let bytes = &[u8::try_from(ordinal % 256).unwrap()];
                let datagram =
                    Datagram { sent_at: Duration::ZERO, ordinal, from: address, to: address, bytes };
                state.loses(&datagram, &mut rng)
            })
            .collect()
    }

    fn lost(fates: &[bool]) -> usize {
        fates.iter().filter(|lost| **lost).count()
    }

    #[test]
    fn random_loss_meets_its_probability() {
        let count = lost(&run(Loss::random(0.1), 10_000));
        assert!((900..1100).contains(&count), "{count}");
        assert_eq!(lost(&run(Loss::random(0.0), 1000)), 0);
        assert_eq!(lost(&run(Loss::random(1.0), 1000)), 1000);
    }

    #[test]
    fn bursts_have_the_mean_length_and_the_mean_loss() {
        let fates = run(Loss::burst(0.01, 0.2), 100_000);
        let total = lost(&fates);
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        // 0.01 / 0.21 = 4.76 % of the datagrams, in bursts of 5.
        assert!((4000..5500).contains(&total), "{total}");
        let mean_x10 = total * 10 / bursts;
        assert!((43..57).contains(&mean_x10), "{mean_x10}");
    }

    #[test]
    fn bursts_may_be_given_by_share_and_length() {
        for (share, length) in [(0.02, 8.0), (0.1, 3.0), (0.3, 1.0), (0.005, 50.0)] {
            let fates = run(Loss::bursts(share, length), 1_000_000);
            let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            let found = lost(&fates) as f64 / fates.len() as f64;
            assert!((found / share - 1.0).abs() < 0.15, "{share}: {found}");
            // A burst of independent losses of one packet may follow the one before.
            let mean = lost(&fates) as f64 / bursts as f64;
            assert!((0.9..1.6).contains(&(mean / length)), "{length}: {mean}");
        }
    }

    #[test]
    fn bursts_are_longer_where_the_share_cannot_be_lost_otherwise() {
        for (share, length) in [(0.9, 8.0), (0.6, 1.0), (0.99, 3.0)] {
            let fates = run(Loss::bursts(share, length), 1_000_000);
            let found = lost(&fates) as f64 / fates.len() as f64;
            assert!((found - share).abs() < 0.005, "{share}: {found}");
        }
    }

    #[test]
    fn the_states_of_a_burst_have_losses_of_their_own() {
        assert_eq!(lost(&run(Loss::gilbert_elliott(0.0, 1.0, 1.0, 0.0), 100)), 100);
        assert_eq!(lost(&run(Loss::gilbert_elliott(1.0, 0.0, 1.0, 0.0), 100)), 0);
    }

    #[test]
    fn every_nth_loses_the_nth() {
        assert_eq!(run(Loss::every_nth(3), 7), [false, false, true, false, false, true, false]);
        assert_eq!(lost(&run(Loss::every_nth(0), 100)), 0);
        assert_eq!(lost(&run(Loss::every_nth(1), 100)), 100);
    }

    #[test]
    fn a_predicate_sees_the_datagram() {
        let fates = run(Loss::when(|datagram| datagram.bytes == [4] || datagram.ordinal == 2), 5);
        assert_eq!(fates, [false, true, false, true, false]);
    }

    #[test]
    fn debug_names_the_model() {
        assert_eq!(format!("{:?}", Loss::random(0.5)), "random(0.5)");
        assert_eq!(format!("{:?}", Loss::burst(0.5, 0.25)), "gilbert_elliott(0.5, 0.25, 0, 1)");
        assert_eq!(format!("{:?}", Loss::every_nth(5)), "every_nth(5)");
        assert_eq!(format!("{:?}", Loss::when(|_| true)), "when(..)");
    }
}
