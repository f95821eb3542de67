//! RTI Perftest's type, with a key or without, its payload owned or loaned.

use weir_dds::{Bytes, DataWriter, DdsError, DdsType};

use crate::case::CaseSpec;
use crate::payload::{self, HEADER_BYTES, SampleHeader};

/// RTI Perftest's type, with a key or without.
pub trait Data: DdsType + Sync {
    /// Its payload, owned or loaned.
    type Payload: Payload;

    /// Sets the fields before the payload.
    fn set_header(&mut self, header: &SampleHeader);
    /// The fields before the payload.
    fn header(&self) -> SampleHeader;
    /// The sequence number.
    fn seq_num(&self) -> u32;
    /// The payload.
    fn payload(&self) -> &[u8];
    /// The payload, to be changed.
    fn payload_mut(&mut self) -> &mut Self::Payload;

    /// Writes a sample with this header. `self` is the sample written before, whose memory is used again.
    #[inline(always)]
    fn write(
        &mut self,
        writer: &DataWriter<Self>,
        case: &CaseSpec,
        header: &SampleHeader,
    ) -> Result<(), DdsError> {
        Self::Payload::write(self, writer, case, header)
    }

    /// Releases memory of the receive path, if the value borrows some.
    #[inline]
    fn release(&mut self) {
        self.payload_mut().release();
    }
}

/// The forms with an owned payload.
pub trait Owned: Data<Payload = Vec<u8>> + Clone {}

impl<T: Data<Payload = Vec<u8>> + Clone> Owned for T {}

/// How the payload of a sample is written.
pub trait Payload: Sized {
    /// Writes a sample.
    fn write<T: Data<Payload = Self>>(
        sample: &mut T,
        writer: &DataWriter<T>,
        case: &CaseSpec,
        header: &SampleHeader,
    ) -> Result<(), DdsError>;

    /// Releases memory of the receive path.
    fn release(&mut self);
}

/// Owned by the application, copied when sent and received.
impl Payload for Vec<u8> {
    // A call for each sample would count as the engine's time.
    #[inline(always)]
    fn write<T: Data<Payload = Self>>(
        sample: &mut T,
        writer: &DataWriter<T>,
        case: &CaseSpec,
        header: &SampleHeader,
    ) -> Result<(), DdsError> {
        sample.payload_mut().resize(case.size_bytes.saturating_sub(HEADER_BYTES), 0);
        sample.set_header(header);
        if case.verify {
            payload::fill(header.seq_num, sample.payload_mut());
        }
        writer.write(sample)
    }

    #[inline]
    fn release(&mut self) {}
}

/// Loaned: written and read in place.
impl Payload for Bytes {
    #[inline]
    fn write<T: Data<Payload = Self>>(
        _: &mut T,
        writer: &DataWriter<T>,
        case: &CaseSpec,
        header: &SampleHeader,
    ) -> Result<(), DdsError> {
        let mut loan = writer.loan(case.size_bytes.saturating_sub(HEADER_BYTES))?;
        loan.sample.set_header(header);
        if case.verify {
            payload::fill(header.seq_num, &mut loan);
        }
        Ok(loan.write()?)
    }

    #[inline]
    fn release(&mut self) {
        *self = Self::new();
    }
}

macro_rules! test_data {
    ($(#[$doc:meta])* $name:ident, $payload:ty, $type_name:literal $(, #[$key:meta])?) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, DdsType)]
        #[dds(extensibility = "final", name = $type_name)]
        pub struct $name {
            $(#[$key])?
            key: [u8; 4],
            entity_id: i32,
            seq_num: u32,
            ts_sec: i32,
            ts_usec: u32,
            latency_ping: i32,
            bin_data: $payload,
        }

        impl Data for $name {
            type Payload = $payload;

            #[inline]
            fn set_header(&mut self, header: &SampleHeader) {
                self.key = header.key;
                self.entity_id = header.entity_id;
                self.seq_num = header.seq_num;
                self.ts_sec = header.timestamp_sec;
                self.ts_usec = header.timestamp_usec;
                self.latency_ping = header.latency_ping;
            }

            #[inline]
            fn header(&self) -> SampleHeader {
                let Self { key, entity_id, seq_num, ts_sec, ts_usec, latency_ping, .. } = *self;
                let (timestamp_sec, timestamp_usec) = (ts_sec, ts_usec);
                SampleHeader { key, entity_id, seq_num, timestamp_sec, timestamp_usec, latency_ping }
            }

            #[inline]
            fn seq_num(&self) -> u32 {
                self.seq_num
            }

            #[inline]
            fn payload(&self) -> &[u8] {
                &self.bin_data
            }

            #[inline]
            fn payload_mut(&mut self) -> &mut $payload {
                &mut self.bin_data
            }
        }
    };
}

test_data!(
    /// The type of unkeyed runs.
    TestData, Vec<u8>, "TestData_t"
);
test_data!(
    /// The type of keyed runs.
    KeyedTestData, Vec<u8>, "TestDataKeyed_t", #[dds(key)]
);
test_data!(
    /// The type of unkeyed runs with loans: the same on the wire.
    SharedTestData, Bytes, "TestData_t"
);
test_data!(
    /// The type of keyed runs with loans.
    SharedKeyedTestData, Bytes, "TestDataKeyed_t", #[dds(key)]
);
