//! A ping-pong that another engine's receiving thread drives.
//!
//! Its listener takes an echo and sends the next ping from there, as the engine's users would: no
//! thread of the harness is woken in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use weir_measure::clock;
use weir_peer_api::{Header, Writer};

use crate::case::CaseSpec;
use crate::endpoint::EndpointError;
use crate::latency::Pings;
use crate::payload::{HEADER_BYTES, SampleHeader};

/// The pings of one end, sent from the thread that receives their echoes.
#[derive(Debug)]
pub struct PingPong {
    /// `None` outside of a run.
    state: Mutex<Option<PingPongState>>,
    is_over: Condvar,
    instances: u32,
    payload: Vec<u8>,
}

#[derive(Debug)]
struct PingPongState {
    pings: Pings,
    /// The ping in flight.
    seq_num: u32,
    is_over: bool,
    /// An error on the engine's thread.
    error: Option<EndpointError>,
}

impl PingPong {
    /// Nothing sent yet.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self {
            state: Mutex::new(None),
            is_over: Condvar::new(),
            instances: case.instances,
            payload: vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)],
        }
    }

    /// Whether a run is in progress.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.state.lock().is_some()
    }

    /// Takes an echo on the engine's thread, and sends the next ping from there; one clock read
    /// serves both.
    pub fn answer(&self, writer: &dyn Writer, header: &Header) {
        let now_ns = clock::now_ns();
        let mut state = self.state.lock();
        let Some(state) = state.as_mut().filter(|state| !state.is_over && state.seq_num == header.seq_num)
        else {
            return;
        };
        state.is_over = state.pings.came_back(now_ns);
        if !state.is_over {
            self.serve(writer, state, now_ns);
        }
        if state.is_over {
            self.is_over.notify_all();
        }
    }

    /// Sends the first ping, and returns when the time is over or `stop` is set.
    pub fn run(&self, writer: &dyn Writer, pings: Pings, stop: &AtomicBool) -> Result<Pings, EndpointError> {
        let timeout = pings.timeout();
        let mut state = PingPongState { pings, seq_num: 0, is_over: false, error: None };
        let mut shared = self.state.lock();
        self.serve(writer, &mut state, clock::now_ns());
        let (mut watched, mut since) = (state.seq_num, Instant::now());
        *shared = Some(state);
        loop {
            self.is_over.wait_for(&mut shared, WATCH_PAUSE);
            let Some(state) = shared.as_mut() else {
                return Err(EndpointError::Engine("the ping-pong has no state".to_owned()));
            };
            if !state.is_over && state.seq_num == watched && since.elapsed() >= timeout {
                // A best-effort ping is lost: the next one follows.
                let now_ns = clock::now_ns();
                state.is_over = state.pings.is_lost(now_ns)?;
                if !state.is_over {
                    self.serve(writer, state, now_ns);
                }
            }
            if state.seq_num != watched {
                (watched, since) = (state.seq_num, Instant::now());
            }
            if (state.is_over || stop.load(Ordering::Relaxed))
                && let Some(state) = shared.take()
            {
                return state.error.map_or(Ok(state.pings), Err);
            }
        }
    }

    /// Sends the next ping.
    fn serve(&self, writer: &dyn Writer, state: &mut PingPongState, now_ns: u64) {
        let header = SampleHeader::ping(state.pings.next(now_ns), self.instances, now_ns);
        state.seq_num = header.seq_num;
        if let Err(error) = writer.write(&header, &self.payload) {
            state.error = Some(error.into());
            state.is_over = true;
        }
    }
}

/// How often the harness checks whether a ping was lost.
const WATCH_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use weir_peer_api::{PeerError, Written};
    use weir_results::Test;

    /// Sends every sample back to a listener, or loses it.
    struct Echo {
        loses: fn(u32) -> bool,
        sent: Mutex<Vec<Header>>,
    }

    impl Writer for Echo {
        fn write(&self, header: &Header, _: &[u8]) -> Result<Written, PeerError> {
            if !(self.loses)(header.seq_num) {
                self.sent.lock().push(*header);
            }
            Ok(Written::Taken)
        }
    }

    #[test]
    fn a_ping_pong_goes_on_with_every_echo_and_ignores_others() {
        let case = case("weir", Test::Latency);
        let ping_pong = PingPong::new(&case);
        let echo = Echo { loses: |seq_num| seq_num == 2, sent: Mutex::new(Vec::new()) };
        let now_ns = clock::now_ns();
        let mut state =
            PingPongState { pings: Pings::new(&case, now_ns), seq_num: 0, is_over: false, error: None };
        ping_pong.serve(&echo, &mut state, now_ns);
        *ping_pong.state.lock() = Some(state);
        for stale in [7, 0, 0, 1] {
            ping_pong.answer(&echo, &SampleHeader::ping(stale, 0, 0));
        }
        let sent: Vec<u32> = echo.sent.lock().iter().map(|header| header.seq_num).collect();
        assert_eq!(sent, [0, 1]);
        assert_eq!(ping_pong.state.lock().as_ref().map(|state| state.seq_num), Some(2));
    }
}
