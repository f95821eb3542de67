//! The small profile: a participant without threads, small socket buffers, and small histories.
//!
//! The thread that measures polls the participant, in its writes, waits and pauses. While it waits for the other
//! processes of a case, before and after the measurement, a [`Caretaker`] polls instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_dds::{DdsError, DomainParticipant, ResourceLimits, SEND_BUFFER_BYTES};
use weir_measure::{Idle, clock, wait_until};
use weir_peer_api::settings::Setting;
use weir_results::{SocketBuffers, parse_size};

use crate::case::CaseSpec;
use crate::endpoint::EndpointError;

/// What the participant and its endpoints may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// Whether the engine has threads of its own.
    pub has_threads: bool,
    /// Socket buffers to request, bytes.
    pub socket_buffer: usize,
    /// Limits of each history; `None`: those of its QoS.
    pub limits: Option<ResourceLimits>,
}

/// Samples that histories and socket buffers hold in any case.
const SAMPLES_MIN: usize = 4;
/// Bytes of a sample in a history or a datagram beyond its own, at most.
const OVERHEAD: usize = 128;
/// Socket buffers of the small profile.
const SOCKET_BUFFER: &str = "512k";
/// Each history of the small profile.
const HISTORY: &str = "256k";

pub(super) const THREADS: Setting = Setting {
    name: "threads",
    value: "yes",
    about: "ParticipantSettings::without_threads: yes, or no, and the thread that measures polls",
};
pub(super) const BUFFER: Setting = Setting {
    name: "socket_buffer",
    value: "",
    about: "ParticipantSettings::receive_buffer and send_buffer, at least four samples; empty: --socket-buffer",
};
pub(super) const LIMIT: Setting = Setting {
    name: "history",
    value: "",
    about: "ResourceLimits::max_bytes of writers and readers, at least four samples; empty: the engine's",
};
pub(super) const SMALL: [Setting; 3] = [
    Setting { value: "no", ..THREADS },
    Setting { value: SOCKET_BUFFER, ..BUFFER },
    Setting { value: HISTORY, ..LIMIT },
];

impl Means {
    /// Those of a case, by its settings.
    ///
    /// # Errors
    /// When a setting is none.
    pub(super) fn of(case: &CaseSpec) -> Result<Self, EndpointError> {
        let text = |setting: &Setting| case.settings.get(setting.name).map_or("", String::as_str);
        let has_threads = match text(&THREADS) {
            "" | "yes" => true,
            "no" => false,
            other => return Err(refused(&THREADS, other, "yes or no")),
        };
        let bytes = |setting: &Setting| match text(setting) {
            "" => Ok(None),
            text => match parse_size(text).ok().and_then(|bytes| usize::try_from(bytes).ok()) {
                Some(bytes @ 1..) => Ok(Some(with_room(bytes, case.size_bytes))),
                _ => Err(refused(setting, text, "a size such as 256k, or empty")),
            },
        };
        let asked = case.place.socket_buffer_bytes;
        // --socket-buffer may ask for less.
        let socket_buffer = bytes(&BUFFER)?.map_or(asked, |buffer| buffer.min(asked));
        // A history by count, as the case may have, needs no other limit.
        let max_bytes = bytes(&LIMIT)?.filter(|_| case.method.keep_last.is_none());
        let limits = max_bytes.map(limits);
        Ok(Self { has_threads, socket_buffer, limits })
    }

    /// The send buffer to request: the engine's own unless the case has another size, since that is right for slow
    /// devices.
    #[must_use]
    pub fn send_buffer(&self) -> usize {
        if self.socket_buffer == CaseSpec::SOCKET_BUFFER_BYTES {
            SEND_BUFFER_BYTES
        } else {
            self.socket_buffer
        }
    }

    /// The sizes requested, and those that the kernel reports for receiving and sending.
    #[must_use]
    pub fn buffers(&self, (receive, send): (usize, usize)) -> SocketBuffers {
        let bytes = |bytes: usize| u64::try_from(bytes).ok();
        SocketBuffers {
            receive_asked: bytes(self.socket_buffer),
            receive_granted: bytes(receive),
            send_asked: bytes(self.send_buffer()),
            send_granted: bytes(send),
        }
    }

    /// Those of the small profile for samples of this size.
    #[must_use]
    pub fn small(size_bytes: usize) -> Self {
        let bytes = |text| parse_size(text).ok().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
        Self {
            has_threads: false,
            socket_buffer: with_room(bytes(SOCKET_BUFFER), size_bytes),
            limits: Some(limits(with_room(bytes(HISTORY), size_bytes))),
        }
    }
}

fn limits(max_bytes: usize) -> ResourceLimits {
    ResourceLimits::UNLIMITED.max_bytes(max_bytes)
}

fn with_room(bytes: usize, size_bytes: usize) -> usize {
    bytes.max(SAMPLES_MIN.saturating_mul(size_bytes.saturating_add(OVERHEAD)))
}

fn refused(setting: &Setting, value: &str, expected: &str) -> EndpointError {
    EndpointError::Environment(format!(
        "the setting {} of weir is `{value}`: it should be {expected}",
        setting.name
    ))
}

/// Who polls a participant.
pub(super) enum Poller {
    /// Its own threads do what polls do.
    Threads,
    /// The thread that measures.
    Measuring {
        /// The participant.
        participant: DomainParticipant,
        /// Polls meanwhile, while no thread measures.
        caretaker: Option<Caretaker>,
    },
}

impl Poller {
    pub(super) fn new(means: &Means, participant: &DomainParticipant) -> Self {
        match means.has_threads {
            true => Self::Threads,
            false => Self::Measuring { participant: participant.clone(), caretaker: None },
        }
    }

    /// The thread that measures turns to something else.
    pub(super) fn leave(&mut self) {
        if let Self::Measuring { participant, caretaker } = self {
            caretaker.get_or_insert_with(|| Caretaker::start(participant.clone()));
        }
    }

    /// The thread that measures polls from now on.
    #[inline]
    pub(super) fn take_over(&mut self) {
        if let Self::Measuring { caretaker, .. } = self
            && caretaker.is_some()
        {
            *caretaker = None;
        }
    }

    /// Does what is due, without waiting.
    #[inline]
    pub(super) fn poll(&self) -> Result<(), DdsError> {
        if let Self::Measuring { participant, .. } = self {
            participant.poll(Duration::ZERO)?;
        }
        Ok(())
    }

    /// Whether a thread has to poll.
    pub(super) fn is_manual(&self) -> bool {
        matches!(self, Self::Measuring { .. })
    }

    /// [`End::wait_until`](crate::endpoint::End::wait_until), polling.
    pub(super) fn wait_until(&mut self, until_ns: u64) -> u64 {
        self.take_over();
        if let Self::Measuring { participant, .. } = self {
            loop {
                let left = until_ns.saturating_sub(clock::now_ns()).saturating_sub(AWAKE_NS);
                // A participant that has failed says so in the next write.
                if left == 0 || participant.poll(Duration::from_nanos(left)).is_err() {
                    break;
                }
            }
        }
        wait_until(until_ns, Idle::SleepThenYield, || false)
    }
}

/// Before a scheduled sample, the thread stays awake for so long.
const AWAKE_NS: u64 = 200_000;

/// Polls a participant on a thread of its own until dropped.
pub(super) struct Caretaker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Caretaker {
    fn start(participant: DomainParticipant) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let polling = move || {
            while !stopped.load(Ordering::Relaxed) && participant.poll(CARE).is_ok() {}
        };
        // Without one, the participant rests until it is measured.
        let thread = std::thread::Builder::new().name("caretaker".to_owned()).spawn(polling).ok();
        Self { stop, thread }
    }
}

impl Drop for Caretaker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The longest poll of a caretaker.
const CARE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use weir_measure::enter_buffers;
    use weir_results::{Case, Reliability, Test};

    use super::*;
    use crate::case::tests::case;

    #[test]
    fn a_send_buffer_that_is_as_small_as_requested_is_no_doubt() {
        for engine in ["weir", "weir-small"] {
            let means = Means::of(&case(engine, Test::Throughput)).unwrap();
            // The kernel reports twice what it grants.
            let buffers = means.buffers((2 * means.socket_buffer, 2 * means.send_buffer()));
            let mut case = Case::new(engine, Test::Throughput, Reliability::Reliable, 32);
            enter_buffers(&mut case, buffers, buffers);
            assert!(case.evidence.warnings.is_empty(), "{engine}: {:?}", case.evidence.warnings);
        }
    }

    #[test]
    fn the_small_profile_holds_at_least_four_samples_and_never_more_than_is_asked_for() {
        let of = |size_bytes: usize, change: &dyn Fn(&mut CaseSpec)| {
            let case = case("weir-small", Test::Throughput).with(|case| {
                case.settings = SMALL.iter().map(|it| (it.name.to_owned(), it.value.to_owned())).collect();
                case.size_bytes = size_bytes;
                change(case);
            });
            Means::of(&case)
        };
        let small = of(32, &|_| {}).unwrap();
        assert_eq!((small.has_threads, small.socket_buffer), (false, 512 << 10));
        assert_eq!((small.limits, small), (Some(limits(256 << 10)), Means::small(32)));
        let large = of(1 << 20, &|_| {}).unwrap();
        assert_eq!((large.socket_buffer, large.limits), (4 << 20, Some(limits((4 << 20) + 512))));
        assert_eq!(of(32, &|case| case.place.socket_buffer_bytes = 9000).unwrap().socket_buffer, 9000);
        assert_eq!(of(32, &|case| case.method.keep_last = Some(1)).unwrap().limits, None);
        let full = of(32, &|case| case.settings.clear()).unwrap();
        assert_eq!((full.has_threads, full.socket_buffer), (true, 4 << 20));
        assert_eq!((full.send_buffer(), small.send_buffer()), (SEND_BUFFER_BYTES, 512 << 10));
        for (name, value) in [("threads", "2"), ("history", "much"), ("socket_buffer", "0")] {
            let set = |case: &mut CaseSpec| _ = case.settings.insert(name.to_owned(), value.to_owned());
            let error = of(32, &set).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the setting {name} of weir is `{value}`")), "{error}");
        }
    }
}
