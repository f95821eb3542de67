//! The rate of a paced path.
//!
//! It follows a cycle: for one round more is sent than the bottleneck is known to carry, which shows whether it carries
//! more; for one round less, which empties the queue again; then as much as it carries, or a little less while there is
//! a queue.

use super::longer::{Longer, Shown};
use super::rival::{Rival, Suspicion};
use super::rounds::Seen;
use crate::config;
use crate::time::Time;

/// The rate of a paced path.
#[derive(Debug)]
pub(super) struct Rate {
    /// What the bottleneck carries, in bytes per second.
    pub(super) bottleneck: f64,
    /// What is sent, as a multiple of that.
    gain: f64,
    /// The gain a round ago, with which what passes now was sent.
    last_gain: f64,
    /// Rounds until marks reduce it again. What passes in the round after a reduction was sent before it, and the queue
    /// is longest then.
    marked_rounds: u32,
    /// Bytes per second that arrived when marks were last set, until more was sent without any.
    marked_at: Option<f64>,
    phase: Phase,
    /// What passes next was sent to empty the queue.
    is_drained: bool,
    /// By how much the next probe exceeds what the bottleneck is known to carry.
    probe: f64,
    /// What it was known to carry before the last probe.
    probed_at: f64,
    /// The mean round trip while neither probing nor draining.
    calm_ns: u64,
    /// The share that is always lost.
    calm_loss: f64,
    /// How much the share that is lost varies from round to round, and what it was in the last one.
    loss_jitter: f64,
    last_loss: f64,
    /// What was lost in the last probe, if that shows in its own round.
    probe_loss: f64,
    /// Rounds in a row in which much more was lost than is always lost.
    lossy_rounds: u32,
    /// Bytes per second that arrived in each of the last rounds in which the path was the limit.
    arrived: Arrived,
    pub(super) measured_at: Time,
    suspicion: Suspicion,
    longer: Longer,
    /// Who fills the queue beside us.
    pub(super) rival: Option<Rival>,
}

/// What the rate is for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// Sends more from flight to flight, at the rate that the bottleneck carries, or more unless that is the most.
    /// `carried`: the bytes per second of the last flight that arrived.
    Start { flight: u64, is_most: bool, carried: f64 },
    /// Looks for more.
    Probe,
    /// What the probe has found shows a round later.
    Observe,
    /// Empties the queue.
    Drain,
    /// Sends what the bottleneck carries, for so many rounds more.
    Cruise(u32),
}

/// The last rates, without memory of its own.
#[derive(Debug, Default)]
struct Arrived {
    rates: [f64; RATES_KEPT],
    /// How many there are.
    count: usize,
    /// Where the next one goes.
    next: usize,
}

impl Arrived {
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a rate, in place of the oldest one if there are too many.
    fn push(&mut self, rate: f64) {
        self.rates[self.next] = rate;
        self.next = (self.next + 1) % RATES_KEPT;
        self.count = (self.count + 1).min(RATES_KEPT);
    }

    /// Returns the highest.
    fn most(&self) -> f64 {
        self.rates[..self.count].iter().copied().fold(0.0, f64::max)
    }
}

impl Rate {
    pub(super) fn new(now: Time, bottleneck: f64) -> Self {
        Self {
            bottleneck: bottleneck.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX),
            gain: DRAIN_GAIN,
            last_gain: 1.0,
            marked_rounds: 0,
            marked_at: None,
            phase: Phase::Drain,
            is_drained: false,
            probe: PROBE_FIRST,
            probed_at: bottleneck,
            calm_ns: 0,
            calm_loss: 0.0,
            loss_jitter: LOSS_JITTER_FIRST,
            last_loss: 0.0,
            probe_loss: 0.0,
            lossy_rounds: 0,
            arrived: Arrived::default(),
            measured_at: now,
            suspicion: Suspicion::default(),
            longer: Longer::default(),
            rival: None,
        }
    }

    /// Returns the rate of a path that is limited because of losses alone. Little may have arrived because little was
    /// sent.
    pub(super) fn after_losses(self, round_trip_ns: u64, usual_loss: f64) -> Self {
        let (phase, probe, gain) = (Phase::Probe, PROBE_AFTER_LOSS, 1.0 + PROBE_AFTER_LOSS);
        Self { phase, probe, gain, calm_ns: round_trip_ns, calm_loss: usual_loss, ..self }
    }

    /// Returns the rate of a path that carries `carried` bytes per second, and no more if `is_most`, as a flight has
    /// shown, which took `spread_ns` to arrive. In slow start, `flight` bytes would be in flight after it.
    pub(super) fn starting(now: Time, carried: f64, is_most: bool, flight: u64, spread_ns: u64) -> Self {
        let mut rate = Self { gain: 1.0, ..Self::new(now, 0.0) };
        rate.phase = Phase::Start { flight: flight * rise(spread_ns, is_most), is_most, carried };
        rate.bottleneck = carried * if is_most { START_SHARE } else { 2.0 };
        rate
    }

    /// Takes what a further flight has shown.
    pub(super) fn start_on(&mut self, carried: f64, is_spread: bool, base_ns: u64, spread_ns: u64) {
        let Phase::Start { flight, is_most, carried: before } = self.phase else { return };
        // It was sent twice as fast as the one before (as BBR leaves start-up).
        let is_spread = is_spread || !is_most && carried < before * START_GROWTH_MIN;
        if is_spread {
            self.bottleneck = carried.max(before) * START_SHARE;
        } else if !is_most {
            self.bottleneck *= 2.0;
        }
        let is_most = is_most || is_spread;
        let is_whole = flight as f64 * 1e9 >= self.bottleneck * base_ns as f64;
        if is_most && is_whole {
            (self.phase, self.gain, self.calm_ns) = (Phase::Probe, 1.0 + self.probe, base_ns);
        } else {
            self.phase = Phase::Start { flight: flight * rise(spread_ns, is_most), is_most, carried };
        }
    }

    /// Returns how many bytes may be in flight, while little is known.
    pub(super) fn flight(&self) -> Option<u64> {
        if let Phase::Start { flight, .. } = self.phase { Some(flight) } else { None }
    }

    /// Returns how many bytes show what is carried, while little is known: half of what may be in flight, but no more
    /// than pass in two round trips. An application that writes little would take seconds for more.
    pub(super) fn flight_wanted(&self, base_ns: u64) -> u64 {
        let of_round_trip = (self.bottleneck * base_ns as f64 / 1e9) as u64;
        (self.flight().unwrap_or(0) / 2).min(2 * of_round_trip)
    }

    /// Returns the round trip that is tested, in nanoseconds: it may be that of the path without a queue.
    pub(super) fn tested_ns(&self) -> Option<u64> {
        self.longer.tested_ns()
    }

    /// Returns the bytes per second to be sent.
    pub(super) fn pacing_rate(&self) -> f64 {
        self.bottleneck * self.gain
    }

    /// Sends no more than the bottleneck is known to carry until the end of the round.
    pub(super) fn end_probe(&mut self) {
        self.gain = self.gain.min(1.0);
    }

    /// Adapts the rate to what a round has shown. Returns the round trip of the path without a queue, in nanoseconds,
    /// if it has become longer.
    pub(super) fn adapt(&mut self, now: Time, seen: &Seen) -> Option<u64> {
        self.measured_at = now;
        if self.rival.is_some() {
            self.compete(now, seen);
            return None;
        }
        let shown = self.shows_longer_path(seen);
        if matches!(shown, Shown::Nothing | Shown::Queue) {
            self.rival = self.suspicion.note(now, seen, self.is_short(seen), self.bottleneck);
        }
        match shown {
            Shown::Longer { round_trip_ns, rate } => {
                self.go_on_at(rate);
                self.suspicion = Suspicion::after(rate);
                return Some(round_trip_ns);
            }
            Shown::Test(sent) => {
                self.bottleneck = sent.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
                (self.gain, self.last_gain) = (1.0, 1.0);
            }
            Shown::TestRuns => {}
            _ if self.rival.is_some() => self.compete(now, seen),
            Shown::Queue => {
                self.arrived.clear();
                let least = (self.bottleneck * FALL_MAX_LONG).max(config::PATH_RATE_MIN);
                self.bottleneck = seen.arrived.clamp(least, self.bottleneck.max(least));
                (self.phase, self.gain) = (Phase::Drain, DRAIN_GAIN);
            }
            Shown::Nothing => self.adapt_alone(seen),
        }
        None
    }

    /// Records a round. Returns whether it shows that what seems to be a queue is the time of a longer path.
    fn shows_longer_path(&mut self, seen: &Seen) -> Shown {
        if self.is_short(seen) {
            self.longer.clear();
            return Shown::Nothing;
        }
        self.longer.note(seen, self.calm_loss, self.suspicion.rate)
    }

    /// Sends again what the bottleneck carried before a queue seemed to grow. Nothing is known about that path.
    fn go_on_at(&mut self, rate: f64) {
        self.arrived.clear();
        self.bottleneck = rate.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
        (self.probe, self.phase) = (PROBE_FIRST, Phase::Cruise(CRUISE_ROUNDS_MIN));
        (self.gain, self.last_gain, self.calm_ns) = (1.0, 1.0, 0);
    }

    /// Adapts the rate where no rival fills the queue.
    fn adapt_alone(&mut self, seen: &Seen) {
        let before = self.bottleneck;
        let arrived = self.arrived_but_for_usual_losses(seen);
        let margin_ns = 2 * seen.jitter_ns;
        let is_queue = seen.queue_ns > self.queue_max_ns(seen) + margin_ns;
        let is_lossy =
            seen.loss > config::PATH_LOSS_SHARE && seen.queue_ns > self.queue_target_ns(seen) + margin_ns;
        let is_marked = seen.is_marked && self.marked_rounds == 0;
        self.marked_rounds = if is_marked { MARKED_ROUNDS } else { self.marked_rounds.saturating_sub(1) };
        let is_flooded = self.flight().is_some() && seen.loss > START_LOSS_MAX;
        let is_lossy = self.is_overloaded(seen) || is_lossy || is_flooded;
        if self.flight().is_some() && !is_queue && !is_lossy && !is_marked {
            return;
        }
        if (is_queue || is_lossy) && seen.is_limited {
            // What was measured before is out of date.
            self.arrived.clear();
            // Beside a long queue, no error of measurement matters.
            let is_long = seen.queue_ns > 2 * self.queue_max_ns(seen) + margin_ns && !seen.is_doubtful;
            let least = before * if is_long { FALL_MAX_LONG } else { FALL_MAX };
            self.bottleneck = arrived.clamp(least, before);
        } else if seen.is_limited {
            let arrived = if seen.is_prompt() { arrived.min(self.sent_most(before)) } else { arrived };
            self.arrived.push(arrived);
            if self.arrived.count >= RATES_KEPT || arrived > before {
                let most = self.arrived.most();
                self.bottleneck = most.clamp(before * FALL_MAX, before * RISE_MAX);
            }
        } else {
            // A burst that the path need not hold back shows its rate if it leaves a queue behind.
            let most = seen.queued.map_or(f64::INFINITY, |queued| queued.max(before * FALL_MAX));
            self.bottleneck = before.max(arrived.min(before * RISE_MAX)).min(most);
        }
        if is_marked {
            self.reduce(before, seen);
        }
        self.bottleneck = self.bottleneck.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
        self.next_phase(seen, is_queue || is_lossy || is_marked);
    }

    /// Reduces the rate after a round with marks, to what leaves as much in flight as TCP does (RFC 8511). `before`:
    /// the bottleneck before the round.
    fn reduce(&mut self, before: f64, seen: &Seen) {
        self.arrived.clear();
        let queue = seen.mean_ns as f64 / seen.base_ns.max(1) as f64;
        let share = (ECN_BETA * queue.max(self.gain).max(self.last_gain)).min(1.0);
        let arrived = self.arrived_but_for_usual_losses(seen);
        self.marked_at = Some(arrived);
        // What an application sends of itself may continue.
        let most = if seen.is_limited { arrived * share } else { arrived.max(before * share) };
        self.bottleneck = self.bottleneck.min(most.max(before * FALL_MAX));
    }

    /// Returns the bytes per second that would have arrived if nothing was lost that is always lost.
    fn arrived_but_for_usual_losses(&self, seen: &Seen) -> f64 {
        seen.arrived / (1.0 - seen.loss) * (1.0 - (seen.loss - self.calm_loss).max(0.0))
    }

    /// Returns the most bytes per second that can have arrived of a round that shows what it sent. What a pause of a
    /// host held back, and trains at the ends of a round, look like more.
    fn sent_most(&self, before: f64) -> f64 {
        before * self.gain.max(self.last_gain).max(1.0)
    }

    /// Adapts the rate beside a rival.
    fn compete(&mut self, now: Time, seen: &Seen) {
        let is_short = self.is_short(seen);
        let Some(rival) = &mut self.rival else { return };
        if let Some(arrived) = rival.note(now, seen, self.calm_loss, is_short) {
            self.rival = None;
            self.longer.clear();
            self.arrived.clear();
            (self.bottleneck, self.phase, self.gain) = (arrived, Phase::Drain, DRAIN_GAIN);
            return;
        }
        // A shorter queue in a test is no reason to send more.
        if self.gain >= 1.0 || !rival.is_testing() {
            let rate = rival.window_bytes() * 1e9 / seen.mean_ns as f64;
            self.bottleneck = rate.clamp(config::PATH_RATE_MIN, config::PATH_RATE_MAX);
        }
        self.gain = if rival.is_testing() { TEST_GAIN } else { 1.0 };
    }

    /// Returns whether the queue was short in a round, as it is after each cycle unless someone else fills it.
    fn is_short(&self, seen: &Seen) -> bool {
        seen.queue_ns <= self.queue_max_ns(seen) / 2 + 2 * seen.jitter_ns
    }

    fn next_phase(&mut self, seen: &Seen, is_full: bool) {
        let has_queue = seen.queue_ns > self.queue_target_ns(seen) + seen.jitter_ns;
        // A full bottleneck would have a queue as long as this share of the round after a probe.
        let expected_ns = seen.length_ns as f64 * self.probe;
        let target_ns = self.queue_target_ns(seen).max(2 * seen.jitter_ns) as f64;
        let quiet_ns = (expected_ns * QUIET_SHARE).min(target_ns);
        let is_quiet = seen.mean_ns as f64 <= self.calm_ns as f64 + quiet_ns
            && seen.loss.max(self.probe_loss) <= self.quiet_loss_max(seen);
        self.note_loss(seen);
        let mut is_calm_known = false;
        self.phase = match self.phase {
            _ if is_full => {
                self.probe = PROBE_FIRST;
                Phase::Drain
            }
            Phase::Start { .. } | Phase::Probe => Phase::Observe,
            Phase::Observe if is_quiet && seen.is_limited => {
                self.raise();
                Phase::Probe
            }
            Phase::Observe => {
                self.probe = PROBE_FIRST;
                Phase::Drain
            }
            // Jitter ends slow start early, so the path may carry much more.
            Phase::Drain if self.calm_ns == 0 => {
                self.calm_ns = seen.mean_ns;
                Phase::Probe
            }
            Phase::Drain => {
                // Otherwise, what was lost in this round shows in the next one.
                self.is_drained = !seen.is_prompt();
                is_calm_known = !self.is_drained && self.note_calm_loss(seen);
                Phase::Cruise(cruise_rounds(self.measured_at))
            }
            Phase::Cruise(0) if has_queue => Phase::Drain,
            Phase::Cruise(0) => Phase::Probe,
            Phase::Cruise(rounds) => {
                let before_ns = if self.calm_ns == 0 { seen.mean_ns } else { self.calm_ns };
                // The first flights may have made it much too long.
                let weight = if seen.mean_ns < before_ns { 1 } else { 3 };
                self.calm_ns = (before_ns * weight + seen.mean_ns) / (weight + 1);
                if core::mem::take(&mut self.is_drained) {
                    is_calm_known = self.note_calm_loss(seen);
                }
                Phase::Cruise(rounds - 1)
            }
        };
        if is_calm_known {
            // The rate was taken for what arrived. If nothing but chance loses the rest, so much more is carried.
            let more = self.calm_loss / (1.0 - self.calm_loss);
            (self.probe, self.phase) = (more.clamp(PROBE_FIRST, PROBE_AFTER_LOSS), Phase::Probe);
        }
        if self.phase == Phase::Probe {
            self.probed_at = self.bottleneck;
        }
        let horizon_ns = (2 * seen.base_ns).max(HORIZON_MIN_NS) as f64;
        let excess_ns = seen.queue_ns.saturating_sub(self.queue_target_ns(seen));
        self.last_gain = self.gain;
        self.gain = match self.phase {
            Phase::Probe => 1.0 + self.probe,
            Phase::Drain if is_full => (1.0 - seen.queue_ns as f64 / horizon_ns).clamp(GAIN_MIN, DRAIN_GAIN),
            Phase::Drain => drain_gain(seen),
            Phase::Start { .. } | Phase::Observe => 1.0,
            Phase::Cruise(_) => (1.0 - excess_ns as f64 / horizon_ns).max(CRUISE_GAIN_MIN),
        };
    }

    /// Takes the bottleneck to carry most of what the last probe sent, which found no queue, and sets the next probe.
    fn raise(&mut self) {
        let most = self.arrived.most();
        let has_risen = most >= self.probed_at * PROBE_RISE_MIN;
        let more = self.bottleneck * (1.0 + self.probe * QUIET_RISE);
        self.bottleneck = self.bottleneck.max(more.min(most * (1.0 + PROBE_NEXT)));
        self.arrived.clear();
        let is_unknown = self.probe >= PROBE_AFTER_LOSS && has_risen;
        self.probe = if is_unknown { PROBE_AFTER_LOSS } else { PROBE_NEXT };
        self.marked_at = self.marked_at.filter(|marked| self.bottleneck <= *marked);
        if let Some(marked) = self.marked_at {
            // No further beyond what was marked than by the first probe.
            let beyond = marked * (1.0 + PROBE_FIRST) / self.bottleneck - 1.0;
            self.probe = beyond.clamp(PROBE_FIRST, self.probe);
        }
    }

    /// Learns what is always lost from the little that was sent to empty the queue, of which no queue has dropped
    /// anything. Returns whether that is much, and was not known before.
    fn note_calm_loss(&mut self, seen: &Seen) -> bool {
        let is_credible = seen.loss <= CALM_LOSS_MAX && !seen.is_of_silent;
        let is_news =
            self.calm_loss <= config::PATH_LOSS_SHARE && seen.loss > config::PATH_LOSS_SHARE && is_credible;
        let share = match () {
            () if is_news => 1.0,
            () if is_credible && (seen.is_prompt() || self.calm_loss > config::PATH_LOSS_SHARE) => 4.0,
            () if seen.loss < self.calm_loss => 2.0,
            () => 8.0,
        };
        self.calm_loss += (seen.loss - self.calm_loss) / share;
        is_news
    }

    /// Records how much the losses of rounds vary.
    fn note_loss(&mut self, seen: &Seen) {
        let last = core::mem::replace(&mut self.last_loss, seen.loss);
        match self.phase {
            Phase::Cruise(_) => self.loss_jitter += ((seen.loss - last).abs() - self.loss_jitter) / 4.0,
            Phase::Probe => self.probe_loss = if seen.is_prompt() { seen.loss } else { 0.0 },
            _ => {}
        }
    }

    /// Returns which share is lost at most in a round that shows no queue.
    fn quiet_loss_max(&self, seen: &Seen) -> f64 {
        let (usual, varying) = (self.calm_loss.min(QUIET_LOSS_MORE), 2.0 * self.loss_jitter);
        let more = match seen.is_prompt() {
            true => varying.min(QUIET_LOSS_JITTER_MAX),
            // Losses show in other rounds than what was sent with them.
            false => usual.max(varying.min(QUIET_LOSS_JITTER_LATE)),
        };
        self.calm_loss + more + QUIET_LOSS
    }

    /// Returns whether much more is lost than always, round for round, at a rate that should be carried: a queue that
    /// is too short to be seen overflows.
    fn is_overloaded(&mut self, seen: &Seen) -> bool {
        let is_lossy = seen.is_prompt()
            && matches!(self.phase, Phase::Cruise(_))
            && seen.loss > self.quiet_loss_max(seen).max(config::PATH_LOSS_SHARE);
        self.lossy_rounds = if is_lossy { self.lossy_rounds + 1 } else { 0 };
        self.lossy_rounds >= OVERLOADED_ROUNDS
    }

    /// Returns how long a queue may be, as time: two trains of packets at least, which take long on a slow path.
    fn queue_max_ns(&self, seen: &Seen) -> u64 {
        queue_max_ns(seen.base_ns).max(2 * self.train_ns())
    }

    /// Returns from which queue on less is sent, as time.
    fn queue_target_ns(&self, seen: &Seen) -> u64 {
        queue_target_ns(seen.base_ns).max(self.train_ns())
    }

    /// Returns how long the bottleneck takes for the shortest train.
    fn train_ns(&self) -> u64 {
        (config::PACING_TRAIN_MIN_BYTES / self.bottleneck * 1e9) as u64
    }
}

/// Returns by how much the next flight may exceed one that took so long to arrive.
fn rise(spread_ns: u64, is_most: bool) -> u64 {
    match spread_ns {
        _ if !is_most => START_RISE_BLIND,
        START_SURE_NS.. => START_RISE_SURE,
        _ => START_RISE,
    }
}

/// Returns how long a queue may be, as time.
pub(super) fn queue_max_ns(base_ns: u64) -> u64 {
    (config::QUEUE_MAX.as_nanos() as u64).max(base_ns / 4)
}

/// Returns from which queue on less is sent, as time.
fn queue_target_ns(base_ns: u64) -> u64 {
    (config::QUEUE_TARGET.as_nanos() as u64).max(base_ns / 16)
}

/// Returns the gain that empties the queue in one round, and leaves some room beyond it.
fn drain_gain(seen: &Seen) -> f64 {
    // What is always lost is learned from this round, so that nothing may be left in the queue.
    if !seen.is_prompt() || seen.loss > config::PATH_LOSS_SHARE {
        return DRAIN_GAIN;
    }
    let queued_ns = seen.mean_ns.saturating_sub(seen.base_ns) as f64;
    (1.0 - DRAIN_EXCESS * queued_ns / seen.length_ns as f64).clamp(DRAIN_GAIN, CRUISE_GAIN_MIN)
}

/// Returns for how many rounds to send what the bottleneck carries.
///
/// The number is drawn by lot. Paths with cycles of the same length would probe and drain together: the one with less
/// would never arrive faster than before beside the others, so that their shares would stay as they are. (BBR varies
/// its cycle for the same reason.)
fn cruise_rounds(now: Time) -> u32 {
    let lot = now.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    CRUISE_ROUNDS_MIN + (lot % (CRUISE_ROUNDS_MORE + 1)) as u32
}

/// The bottleneck carries the highest rate of this many rounds: a cycle and a half.
const RATES_KEPT: usize = 12;
/// In one round the bottleneck grows and shrinks at most by these factors.
const RISE_MAX: f64 = 1.5;
/// From flight to flight, what may be in flight grows by this factor...
const START_RISE: u64 = 16;
/// ... and by this if the last took so long to arrive that no pause of a host can have pushed it together...
const START_RISE_SURE: u64 = 64;
const START_SURE_NS: u64 = 8_000_000;
/// ... and by this while more may be carried: what is sent twice too fast overflows a queue of half of it.
const START_RISE_BLIND: u64 = 4;
/// This share is sent of what seems to be carried.
const START_SHARE: f64 = 0.9;
/// What is sent twice as fast and arrives less than so many times as fast as before has found the bottleneck.
const START_GROWTH_MIN: f64 = 1.25;
/// If more than this is lost meanwhile, it was sent faster than the bottleneck carries.
const START_LOSS_MAX: f64 = 0.5;
const FALL_MAX: f64 = 0.7;
const FALL_MAX_LONG: f64 = 0.1;
/// After a probe that found no queue, the bottleneck is taken to carry this share of the excess.
const QUIET_RISE: f64 = 0.8;
/// A probe has found no queue if there is less than this share of what a full bottleneck would have.
const QUIET_SHARE: f64 = 0.25;
/// ... and no more than this share is lost, beside what is always lost.
const QUIET_LOSS: f64 = 0.03;
/// ... or twice that, up to this; or so much more as losses vary, up to this if they show in their own round...
const QUIET_LOSS_MORE: f64 = 0.1;
const QUIET_LOSS_JITTER_MAX: f64 = 0.15;
/// ... and up to this if they do not.
const QUIET_LOSS_JITTER_LATE: f64 = 0.3;
/// As long as no more is known, losses vary by this share from round to round.
const LOSS_JITTER_FIRST: f64 = 0.02;
/// That more than this is always lost is not believed so soon: a reader may lie.
const CALM_LOSS_MAX: f64 = 0.45;
/// A burst of losses is shorter than this.
const OVERLOADED_ROUNDS: u32 = 3;
/// The queue is corrected within two round trips, or this time.
const HORIZON_MIN_NS: u64 = 40_000_000;
const GAIN_MIN: f64 = 0.4;
/// By how much the first probe of a path that is limited because of losses alone exceeds what arrived.
const PROBE_AFTER_LOSS: f64 = 1.0;
/// ... and it is repeated if so many times as much arrived. Otherwise, what may be in flight has limited it.
const PROBE_RISE_MIN: f64 = 1.25;
/// The first probe asks for a little more, and those after one that found no queue for much more.
const PROBE_FIRST: f64 = 0.1;
const PROBE_NEXT: f64 = 0.25;
/// With half of what passes, for three rounds, a queue that is ours is empty.
const TEST_GAIN: f64 = 0.5;
/// What empties the queue sends at least this share...
const DRAIN_GAIN: f64 = 0.75;
/// ... and leaves out so many times what the queue holds, if the round is long enough for that.
const DRAIN_EXCESS: f64 = 1.5;
/// What is left after a mark (RFC 8511: 0.8 for New Reno, 0.85 for CUBIC).
pub(super) const ECN_BETA: f64 = 0.85;
const MARKED_ROUNDS: u32 = 2;
const CRUISE_GAIN_MIN: f64 = 0.9;
/// Between draining and probing there are so many rounds, and up to so many more.
const CRUISE_ROUNDS_MIN: u32 = 2;
const CRUISE_ROUNDS_MORE: u64 = 4;
