//! The round trips of a publisher.

use std::sync::mpsc;
use std::time::Duration;

use weir_results::{LatencyRecorder, LatencySummary};

use super::event::{Echo, End, Event};

/// What a publisher found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Samples sent.
    pub sent: u64,
    /// How long that took.
    pub sent_in: Duration,
    /// Half round trips of all pings but the first; only publisher 0 sends pings.
    pub latency: LatencySummary,
    /// How it ended.
    pub end: End,
}

/// Records echoes as they arrive.
pub(super) struct Echoes {
    arriving: mpsc::Receiver<Echo>,
    pub(super) recorder: LatencyRecorder,
    /// The first one is not counted, as in RTI Perftest.
    has_first: bool,
    /// Whether each one is an event, too.
    is_shown: bool,
}

impl Echoes {
    /// Receiving threads send echoes through `arriving`.
    pub(super) fn new(arriving: mpsc::Receiver<Echo>, is_shown: bool) -> Self {
        Self { arriving, recorder: LatencyRecorder::new(), has_first: false, is_shown }
    }

    /// Records all echoes that have arrived.
    pub(super) fn note_arrived(&mut self, on_event: &mut dyn FnMut(Event)) {
        while let Ok(echo) = self.arriving.try_recv() {
            self.note(echo, on_event);
        }
    }

    pub(super) fn note(&mut self, echo: Echo, on_event: &mut dyn FnMut(Event)) {
        if !std::mem::replace(&mut self.has_first, true) {
            return;
        }
        self.recorder.record(echo.rtt_ns);
        if self.is_shown {
            on_event(Event::Echo(echo));
        }
    }
}
