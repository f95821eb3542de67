//! An engine without a network and with its own time, so that the whole program, child processes
//! and tables included, is tested in milliseconds and with deterministic figures.
//!
//! Each end computes what the other one does. Every sample and ping takes a fixed time. A
//! best-effort mock loses one sample in a thousand. Each variant misbehaves in one way, for tests
//! of faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir_measure::{clock, nanos};
use weir_results::Reliability;

use crate::case::CaseSpec;
use crate::endpoint::{
    Capabilities, End, EndReport, EndpointError, Engine, Pinger, Ponger, Publisher, Subscriber,
};
use crate::open_loop;
use crate::payload::{self, HEADER_BYTES, SampleHeader};
use crate::sink::SampleSink;

use std::net::SocketAddrV4;

/// The mock, in the variant that its name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mock {
    /// Works.
    Sound,
    /// Loses samples although they are reliable.
    Lossy,
    /// Changes a byte of every hundredth sample.
    Corrupt,
    /// Never returns from its first burst or ping.
    Hang,
    /// Ends its process in the middle.
    Crash,
    /// Its subscriber stalls for 10 ms after every thousandth sample of a schedule.
    Stall,
    /// Reads the host's clock along with its own, to measure the harness.
    Clock,
}

impl Engine for Mock {
    fn name(&self) -> &'static str {
        match self {
            Self::Sound => "mock",
            Self::Lossy => "mock-lossy",
            Self::Corrupt => "mock-corrupt",
            Self::Hang => "mock-hang",
            Self::Crash => "mock-crash",
            Self::Stall => "mock-stall",
            Self::Clock => "mock-clock",
        }
    }

    fn about(&self) -> Option<&'static str> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { breakdown: false, ..Capabilities::ALL }
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        Ok(Box::new(MockEnd::new(*self, case)))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        Ok(Box::new(MockEnd::new(*self, case)))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        Ok(Box::new(MockEnd::new(*self, case)))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        Ok(Box::new(MockEnd::new(*self, case)))
    }
}

struct MockEnd {
    mock: Mock,
    case: CaseSpec,
    /// The mock's own time.
    now_ns: u64,
    /// The next sample that the subscriber makes up.
    next: u64,
    /// Samples that a run of this length has.
    samples: u64,
    payload: Vec<u8>,
}

impl MockEnd {
    fn new(mock: Mock, case: &CaseSpec) -> Self {
        let in_time = |time: Duration| {
            let ns = nanos(time);
            ns.div_ceil(sample_ns(case.size_bytes))
        };
        // As the harness does: large samples are measured longer than the case is.
        let unscheduled = in_time(case.warmup + case.duration).max(in_time(case.warmup) + 3);
        let samples = open_loop::schedule(case, 0).map_or(unscheduled, |schedule| schedule.count());
        let payload = vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)];
        Self { mock, case: case.clone(), now_ns: 0, next: 0, samples, payload }
    }

    fn misbehave(&self) {
        match self.mock {
            Mock::Hang => loop {
                thread::park();
            },
            Mock::Crash => std::process::exit(101),
            Mock::Sound | Mock::Lossy | Mock::Corrupt | Mock::Stall | Mock::Clock => {}
        }
    }

    /// Spends the time of a clock read, in that variant.
    #[inline]
    fn look_at_clock(&self) {
        if self.mock == Mock::Clock {
            std::hint::black_box(clock::now_ns());
        }
    }

    fn loses(&self, sequence: u64) -> bool {
        let may_lose = self.case.reliability == Reliability::BestEffort || self.mock == Mock::Lossy;
        may_lose && sequence % 1000 == 777
    }
}

impl End for MockEnd {
    fn connect(&mut self, _peer: Option<SocketAddrV4>, _timeout: Duration) -> Result<(), EndpointError> {
        Ok(())
    }

    fn report(&self) -> EndReport {
        EndReport { datagrams: Some(self.next), sends: Some(self.next), ..EndReport::default() }
    }

    fn now_ns(&self) -> u64 {
        self.look_at_clock();
        self.now_ns
    }

    fn wait_until(&mut self, until_ns: u64) -> u64 {
        self.look_at_clock();
        self.now_ns = self.now_ns.max(until_ns);
        self.now_ns
    }
}

impl Publisher for MockEnd {
    fn publish(&mut self, first: u64, count: u32) -> Result<u32, EndpointError> {
        self.misbehave();
        // Never more than the other end makes up.
        let count = u64::from(count).min(self.samples.saturating_sub(first));
        if count == 0 {
            self.now_ns += 1_000_000;
        }
        self.next = first + count;
        self.now_ns += count * sample_ns(self.case.size_bytes);
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn flush(&mut self, _timeout: Duration) -> Result<bool, EndpointError> {
        Ok(true)
    }

    fn publish_last(&mut self, _sent: u64) -> Result<bool, EndpointError> {
        Ok(true)
    }
}

impl Subscriber for MockEnd {
    fn receive(&mut self, sink: &mut SampleSink, timeout: Duration) -> Result<(), EndpointError> {
        if self.next == self.samples {
            self.now_ns += nanos(timeout);
            // Quiet, until the publisher's process has caught up.
            thread::park_timeout(Duration::from_millis(1));
            for publisher in 0..self.case.ends.publishers {
                sink.accept(&SampleHeader::last(self.samples).by(publisher), &[]);
            }
            return Ok(());
        }
        let end = self.samples.min(self.next + (BATCH_BYTES / self.case.size_bytes as u64).clamp(1, 64));
        for sequence in self.next..end {
            self.now_ns += sample_ns(self.case.size_bytes);
            if let Some(schedule) = sink.schedule() {
                self.now_ns = self.now_ns.max(schedule.intended_ns(sequence) + WAY_NS);
                self.look_at_clock();
                sink.set_now_ns(self.now_ns);
            }
            if self.mock == Mock::Stall && sequence % 1000 == 999 {
                self.now_ns += STALL_NS;
            }
            if self.loses(sequence) {
                continue;
            }
            let header = SampleHeader::data(sequence, self.case.instances);
            if self.case.verify {
                payload::fill(header.seq_num, &mut self.payload);
                if let (Mock::Corrupt, 3, Some(byte)) = (self.mock, sequence % 100, self.payload.last_mut()) {
                    *byte ^= 1;
                }
            }
            for publisher in 0..self.case.ends.publishers {
                sink.accept(&header.by(publisher), &self.payload);
            }
        }
        self.next = end;
        Ok(())
    }
}

impl Pinger for MockEnd {
    fn ping(&mut self, sequence: u64, _sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        self.misbehave();
        let came_back = !self.loses(sequence);
        self.now_ns += if came_back {
            2 * (sample_ns(self.case.size_bytes) + 10_000) + sequence % 100 * 10
        } else {
            nanos(timeout)
        };
        Ok(came_back)
    }
}

impl Ponger for MockEnd {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        while !stop.load(Ordering::Acquire) {
            thread::park_timeout(Duration::from_millis(1));
        }
        Ok(0)
    }
}

/// How long a sample of a schedule is in flight.
const WAY_NS: u64 = 20_000;

/// How long a stall takes.
const STALL_NS: u64 = 10_000_000;

/// What the mock's subscriber gets at a time, at most 64 samples.
const BATCH_BYTES: u64 = 1 << 20;

/// How long the mock takes for one sample: 10 us and a nanosecond for every eight bytes.
fn sample_ns(size_bytes: usize) -> u64 {
    10_000 + size_bytes as u64 / 8
}
