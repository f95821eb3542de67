//! What an engine measured of its paths to other hosts, and did on them.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::latency::rounded;
use crate::link::is_zero;

/// A path from the (first) publisher to another host during a case, by the publisher's engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// Address of the host.
    pub host: Ipv4Addr,
    /// Bytes of IP packets sent, in the whole life of the path, as the other counts.
    pub sent_bytes: u64,
    /// Bytes reported lost.
    pub lost_bytes: u64,
    /// Bytes sent again.
    pub repaired_bytes: u64,
    /// Times that a writer had to wait.
    pub waits: u64,
    /// Datagrams sent with an ECN field that routers may mark.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ecn_datagrams: u64,
    /// Datagrams that arrived marked as having met congestion.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_datagrams: u64,
    /// The shortest round trip known last, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_min_ms: Option<f64>,
    /// Round trip with the time in queues, mean over the series, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_ms: Option<f64>,
    /// Time in queues, an estimate, mean over the series, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    /// Rate to send at, mean over the series where there was one, megabits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<f64>,
    /// Bytes in flight, mean over the series.
    pub in_flight_bytes: f64,
    /// The figures over time.
    pub series: PathSeries,
}

/// Readings of a path at equal distances, from the meeting of the ends to the end of the case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PathSeries {
    /// Time between two readings, milliseconds.
    pub step_ms: f64,
    /// Round trip with the time in queues, milliseconds; `None`: not measured yet.
    pub round_trip_ms: Vec<Option<f64>>,
    /// Time in queues, an estimate, milliseconds.
    pub queue_ms: Vec<Option<f64>>,
    /// Rate to send at, megabits per second; `None`: as fast as the writers' windows allow.
    pub rate_mbps: Vec<Option<f64>>,
    /// Bytes in flight.
    pub in_flight_bytes: Vec<u64>,
    /// Bytes sent again until then.
    pub repaired_bytes: Vec<u64>,
}

/// What an engine knows of a path at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PathReading {
    /// The shortest round trip.
    pub round_trip_min: Option<Duration>,
    /// The last round trip, with the time in queues.
    pub round_trip: Option<Duration>,
    /// The part of it that is spent in queues, an estimate.
    pub queue: Option<Duration>,
    /// Bits per second that may be sent; `None`: not limited.
    pub rate_bps: Option<f64>,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Bytes of IP packets sent.
    pub sent_bytes: u64,
    /// Bytes reported lost.
    pub lost_bytes: u64,
    /// Bytes sent again.
    pub repaired_bytes: u64,
    /// Times that a writer had to wait.
    pub waits: u64,
    /// Datagrams sent with an ECN field that routers may mark.
    pub ecn_datagrams: u64,
    /// Datagrams that arrived marked as having met congestion.
    pub marked_datagrams: u64,
}

impl PathFigures {
    /// Summarises readings at equal distances and one at the end.
    #[must_use]
    pub fn new(host: Ipv4Addr, step: Duration, readings: &[PathReading], last: &PathReading) -> Self {
        let series = PathSeries {
            step_ms: ms(step),
            round_trip_ms: readings.iter().map(|it| it.round_trip.map(ms)).collect(),
            queue_ms: readings.iter().map(|it| it.queue.map(ms)).collect(),
            rate_mbps: readings.iter().map(|it| it.rate_bps.map(|bps| rounded(bps / 1e6))).collect(),
            in_flight_bytes: readings.iter().map(|it| it.in_flight_bytes).collect(),
            repaired_bytes: readings.iter().map(|it| it.repaired_bytes).collect(),
        };
        Self {
            host,
            sent_bytes: last.sent_bytes,
            lost_bytes: last.lost_bytes,
            repaired_bytes: last.repaired_bytes,
            waits: last.waits,
            ecn_datagrams: last.ecn_datagrams,
            marked_datagrams: last.marked_datagrams,
            round_trip_min_ms: last.round_trip_min.map(ms),
            round_trip_ms: mean(series.round_trip_ms.iter().flatten().copied()),
            queue_ms: mean(series.queue_ms.iter().flatten().copied()),
            rate_mbps: mean(series.rate_mbps.iter().flatten().copied()),
            in_flight_bytes: mean(series.in_flight_bytes.iter().map(|bytes| *bytes as f64)).unwrap_or(0.0),
            series,
        }
    }
}

fn ms(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| rounded(sum / f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_of_the_readings_that_have_the_figure_and_counts_are_the_last() {
        let reading = |sent_bytes, rate_bps, queue: Option<u64>| PathReading {
            round_trip_min: Some(Duration::from_millis(10)),
            round_trip: queue.map(|queue| Duration::from_millis(10 + queue)),
            queue: queue.map(Duration::from_millis),
            rate_bps,
            in_flight_bytes: 1500,
            sent_bytes,
            ..PathReading::default()
        };
        let readings =
            [reading(0, None, None), reading(9, Some(8e6), Some(4)), reading(20, Some(9e6), Some(2))];
        let step = Duration::from_millis(50);
        let figures = PathFigures::new(Ipv4Addr::LOCALHOST, step, &readings, &reading(25, None, None));
        assert_eq!((figures.sent_bytes, figures.round_trip_min_ms), (25, Some(10.0)));
        assert_eq!(
            (figures.rate_mbps, figures.queue_ms, figures.round_trip_ms),
            (Some(8.5), Some(3.0), Some(13.0))
        );
        assert_eq!((figures.in_flight_bytes, figures.series.step_ms), (1500.0, 50.0));
        assert_eq!(figures.series.rate_mbps, [None, Some(8.0), Some(9.0)]);
    }

    #[test]
    fn a_path_without_readings_has_no_means() {
        let figures =
            PathFigures::new(Ipv4Addr::LOCALHOST, Duration::from_millis(50), &[], &PathReading::default());
        assert_eq!((figures.rate_mbps, figures.queue_ms, figures.in_flight_bytes), (None, None, 0.0));
    }
}
