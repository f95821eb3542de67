//! The ends of a ping-pong with timestamps: when samples pass from stage to stage, as the engine records it.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, DataWriter};
use weir_measure::clock;

use super::{Duplex, Node, PingerEnd, failed};
use crate::breakdown::{ReceiveStops, Recorder, SendStops, Stops, Trace};
use crate::case::CaseSpec;
use crate::endpoint::{End, EndReport, EndpointError, Pinger, Ponger};
use crate::payload::SampleHeader;
use crate::test_data::{Data, KeyedTestData, SharedKeyedTestData, SharedTestData, TestData};

pub(super) fn open_pinger(case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
    Ok(open!(TimestampPinger, case))
}

pub(super) fn open_ponger(case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
    Ok(open!(TimestampPonger, case))
}

/// What the writer just sent.
fn sent<T>(writer: &DataWriter<T>, written_ns: u64) -> SendStops {
    let times = writer.last_send_times().unwrap_or_default();
    SendStops { written_ns, called_ns: times.called_ns, returned_ns: times.returned_ns }
}

/// What was just taken from the reader.
fn received<T>(reader: &DataReader<T>, taken_ns: u64) -> ReceiveStops {
    let Some(times) = reader.last_receive_times() else { return ReceiveStops::default() };
    ReceiveStops {
        stamped_ns: times.stamped_ns.unwrap_or(0),
        returned_ns: times.returned_ns,
        sorted_ns: times.sorted_ns,
        taken_ns,
    }
}

struct TimestampPinger<T> {
    end: PingerEnd<T>,
    recorder: Recorder,
}

impl<T: Data> TimestampPinger<T> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        Ok(Self { end: PingerEnd::open(case)?, recorder: Recorder::new(case.warmup) })
    }
}

impl<T: Data> End for TimestampPinger<T> {
    fn connect(&mut self, peer: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.end.connect(peer, timeout)
    }

    fn report(&self) -> EndReport {
        self.end.report()
    }

    fn trace(&mut self) -> Option<Trace> {
        Some(self.recorder.finish())
    }
}

impl<T: Data> Pinger for TimestampPinger<T> {
    fn ping(&mut self, sequence: u64, sent_ns: u64, timeout: Duration) -> Result<bool, EndpointError> {
        let PingerEnd { duplex: Duplex { node, writer, reader }, sample, echo } = &mut self.end;
        let header = SampleHeader::ping(sequence, node.case.instances, sent_ns);
        let written_ns = clock::now_ns();
        sample.write(writer, &node.case, &header).map_err(failed)?;
        let sent = sent(writer, written_ns);
        while reader.wait_for_data(timeout) {
            while let Some(info) = reader.take_next_sample(echo) {
                let taken_ns = clock::now_ns();
                echo.release();
                if info.valid_data && echo.seq_num() == header.seq_num {
                    let received = received(reader, taken_ns);
                    self.recorder.record(Stops { seq_num: header.seq_num, sent, received });
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

struct TimestampPonger<T> {
    duplex: Duplex<T>,
    work: Arc<Mutex<EchoWork<T>>>,
}

/// What the echoing thread has in hand.
struct EchoWork<T> {
    sample: T,
    echoed: u64,
    recorder: Recorder,
}

/// Echoes on the thread that receives.
struct TimestampEcho<T> {
    writer: DataWriter<T>,
    work: Arc<Mutex<EchoWork<T>>>,
}

impl<T: Data> DataReaderListener<T> for TimestampEcho<T> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut work = self.work.lock();
        let EchoWork { sample, echoed, recorder } = &mut *work;
        while let Some(info) = reader.take_next_sample(sample) {
            let taken_ns = clock::now_ns();
            let received = received(reader, taken_ns);
            let written_ns = clock::now_ns();
            if info.valid_data && self.writer.write(sample).is_ok() {
                *echoed += 1;
                let sent = sent(&self.writer, written_ns);
                recorder.record(Stops { seq_num: sample.seq_num(), sent, received });
            }
            sample.release();
        }
    }
}

impl<T: Data> TimestampPonger<T> {
    fn open(case: &CaseSpec) -> Result<Self, EndpointError> {
        let node = Node::open(case)?;
        let writer = node.writer("_pong")?;
        let recorder = Recorder::new(case.warmup);
        let work = Arc::new(Mutex::new(EchoWork { sample: T::default(), echoed: 0, recorder }));
        let echo = TimestampEcho { writer: writer.clone(), work: Arc::clone(&work) };
        let reader = node.reader("_ping", Some(echo))?;
        Ok(Self { duplex: Duplex { node, writer, reader }, work })
    }
}

impl<T: Data> End for TimestampPonger<T> {
    fn connect(&mut self, _: Option<SocketAddrV4>, timeout: Duration) -> Result<(), EndpointError> {
        self.duplex.connect(timeout)
    }

    fn report(&self) -> EndReport {
        self.duplex.report()
    }

    fn trace(&mut self) -> Option<Trace> {
        Some(self.work.lock().recorder.finish())
    }
}

impl<T: Data> Ponger for TimestampPonger<T> {
    fn echo(&mut self, stop: &AtomicBool) -> Result<u64, EndpointError> {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.work.lock().echoed)
    }
}
