//! What a group of cases shows, in sentences. They state only what the figures support.

use weir_results::{Comparison, Interval, Test, Verdict};

use crate::compact::{lost_percent, three_digits};
use crate::group::{Group, Load, Point, is_raw_udp};
use crate::html::headline::Headline;
use crate::html::number::{range, spoken, spoken_us};
use crate::html::palette::name_of;
use crate::loss::has_failed;
use crate::plot::{HEAVY_LOSS_PERCENT, p99};
use crate::table::is_not_supported;

/// Returns the sentences about a group.
pub(crate) fn sentences(group: &Group<'_>, headlines: &[Headline<'_>], base: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let measured: Vec<&Headline<'_>> = headlines.iter().filter(|it| it.spread.is_some()).collect();
    if let Some(subject) = subject(&measured) {
        let own = || measured.iter().copied().filter(|it| it.point.engine == subject);
        let first = own().next();
        let last = own().next_back().filter(|last| first.is_some_and(|first| !std::ptr::eq(first, *last)));
        sentences.extend(first.into_iter().chain(last).map(|it| about(it, group, base)));
        sentences.extend(first.and_then(|first| best(first, &measured, group)));
    }
    sentences.extend(losses(headlines));
    let failed = headlines.iter().filter(|it| it.spread.is_none() && !is_not_supported(it.point)).count();
    if failed > 0 {
        sentences.push(format!("{failed} of {} points failed and have no figures.", headlines.len()));
    } else if measured.is_empty() {
        sentences.push("No engine of this run supports it.".to_owned());
    }
    sentences
}

/// Returns a sentence about the first measurements of UDP tests.
pub(crate) fn udp_sentence(points: &[Point<'_>]) -> String {
    let clause = |point: &Point<'_>| {
        let at = format!("{} at {} B", point.engine, point.size_bytes);
        if let Some(rate) = point.spread(|case| Some(case.figures.throughput?.mbps)) {
            let lost = lost_percent(point);
            let lost = if lost > 0.0 {
                format!(", {}{} % lost", most_of(point), three_digits(lost))
            } else {
                String::new()
            };
            return Some(format!("{at}: {} Mbit/s{lost}", three_digits(rate.median)));
        }
        let median = point.spread(|case| Some(case.figures.latency_us?.p50))?.median;
        Some(format!("{at}: median {}", spoken_us(median)))
    };
    let clauses: Vec<String> = points.iter().filter_map(clause).take(NAMED_MAX).collect();
    if clauses.is_empty() { "No figures.".to_owned() } else { format!("{}.", clauses.join("; ")) }
}

/// The loss of several repeats is that of the worst.
fn most_of(point: &Point<'_>) -> &'static str {
    if point.repeats.len() > 1 { "up to " } else { "" }
}

/// Returns the engine that sentences are about: Weir, or else the first one that is no baseline.
fn subject(measured: &[&Headline<'_>]) -> Option<String> {
    let engines = || measured.iter().map(|it| it.point.engine.as_str());
    let other = || engines().find(|engine| !is_raw_udp(engine));
    engines().find(|engine| *engine == "weir").or_else(other).or_else(|| engines().next()).map(str::to_owned)
}

/// `At 32 B, weir reached 3.67 M samples/s, 20.4 x udp (95 % interval 20.1..20.8).`
fn about(it: &Headline<'_>, group: &Group<'_>, base: &str) -> String {
    let (name, size) = (name_of(it.point), it.point.size_bytes);
    let median = it.spread.map_or(0.0, |spread| spread.median);
    let mut text = match group.key.test {
        Test::Latency => {
            let tail =
                it.point.spread(p99).map(|tail| format!(" (99th percentile {})", spoken_us(tail.median)));
            let tail = tail.unwrap_or_default();
            format!("At {size} B, {name} had a median latency of {}{tail}", spoken_us(median))
        }
        Test::Throughput | Test::Workload => {
            format!("At {size} B, {name} reached {} samples/s", spoken(median))
        }
    };
    if let Some(found) = it.comparison.filter(|_| it.point.engine != base && is_comparable(it)) {
        let decimals = if found.ratio < 10.0 { 2 } else { 1 };
        text +=
            &format!(", {:.decimals$} x {base}{}{}", found.ratio, interval(found.interval), verdict(&found));
    }
    if it.lost_percent >= HEAVY_LOSS_PERCENT {
        text += &format!(", but lost {}{:.1} % of the samples", most_of(it.point), it.lost_percent);
    }
    text + "."
}

/// Returns whether a ratio to the baseline means something: a load in percent is another rate for each engine.
pub(crate) fn is_comparable(it: &Headline<'_>) -> bool {
    !matches!(it.point.load, Some(Load::Percent(_)))
}

fn interval(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |interval| format!(" (95 % interval {})", range(interval, 2)))
}

/// Why a difference counts as none.
fn verdict(found: &Comparison) -> String {
    let (Verdict::CannotTell, Some(interval)) = (found.verdict, found.interval) else { return String::new() };
    if interval.contains(1.0) {
        return ", inconclusive".to_owned();
    }
    let close = Comparison::CLOSE * 100.0;
    if found.pairs < Comparison::CLOSE_PAIRS_MIN {
        format!(", inconclusive (a difference below {close} % needs {} repeats)", Comparison::CLOSE_PAIRS_MIN)
    } else {
        let width = Comparison::CLOSE_WIDTH * 100.0;
        format!(", inconclusive (a difference below {close} % needs an interval narrower than {width} %)")
    }
}

/// Returns who was best at the size of `first`, of at least three that lost little.
fn best(first: &Headline<'_>, measured: &[&Headline<'_>], group: &Group<'_>) -> Option<String> {
    let is_rival = |it: &&&Headline<'_>| {
        it.point.size_bytes == first.point.size_bytes
            && it.point.load == first.point.load
            && !is_raw_udp(&it.point.engine)
            && it.lost_percent < HEAVY_LOSS_PERCENT
    };
    let mut rivals: Vec<(&str, f64)> = measured
        .iter()
        .filter(is_rival)
        .filter_map(|it| Some((it.point.engine.as_str(), it.spread?.median)))
        .collect();
    if rivals.len() < 3 {
        return None;
    }
    rivals.sort_by(|a, b| a.1.total_cmp(&b.1));
    let what = match group.key.test {
        Test::Latency => "lowest median",
        Test::Throughput | Test::Workload => {
            rivals.reverse();
            "highest rate"
        }
    };
    let names: Vec<String> =
        rivals.iter().take(3).map(|(name, value)| format!("{name} ({})", spoken(*value))).collect();
    Some(format!(
        "Of {} engines, the {what} at {} B: {}.",
        rivals.len(),
        first.point.size_bytes,
        names.join(", then ")
    ))
}

/// What was lost: of reliable cases at all, of others if it was much.
fn losses(headlines: &[Headline<'_>]) -> Option<String> {
    use weir_results::Reliability::Reliable;
    let is_reliable =
        |it: &&Headline<'_>| it.point.repeats.iter().any(|case| case.point.reliability == Reliable);
    let all = headlines.iter().filter(is_reliable);
    let reliable: Vec<&Headline<'_>> = all.clone().filter(|it| it.spread.is_some()).collect();
    let broken: Vec<String> = reliable
        .iter()
        .filter(|it| it.lost > 0)
        .map(|it| format!("{} at {} B ({})", name_of(it.point), it.point.size_bytes, spoken(it.lost as f64)))
        .collect();
    if broken.is_empty() {
        // A repeat may have failed because of a loss.
        let has_failed = all.flat_map(|it| &it.point.repeats).any(|case| has_failed(case));
        let text = if has_failed {
            "In the repeats that did not fail, no reliable sample was lost."
        } else {
            "No reliable sample was lost."
        };
        return (!reliable.is_empty()).then(|| text.to_owned());
    }
    let more = if broken.len() > NAMED_MAX {
        format!(" and {} more", broken.len() - NAMED_MAX)
    } else {
        String::new()
    };
    let named = &broken[..broken.len().min(NAMED_MAX)];
    Some(format!("Reliable samples were lost by {}{more}.", named.join(", ")))
}

/// The most points that a sentence names.
const NAMED_MAX: usize = 3;
