//! Loaned samples, whose last member is filled by the application in the memory it is sent from.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::time::SystemTime;

use weir_cdr::DdsType;
use weir_rtps::writer::LOAN_FRONT_BYTES;
use weir_wire::Timestamp;

use super::DataWriter;
use super::memory::Memory;
use super::write::Source;
use crate::clock::timestamp_of;
use crate::error::{DdsError, Result};

/// Bytes reserved for the members in front of the bulk. If they need more, the bulk is copied once.
const FRONT_BYTES: usize = 4096;

impl<T: DdsType> DataWriter<T> {
    /// Lends memory for a sample that ends in a sequence of numbers, such as an image or a point
    /// cloud.
    ///
    /// The sequence has room for `count` elements. The application fills them through the [`Loan`],
    /// and they are sent from there: no user-space copy. Other writes of this writer continue
    /// meanwhile. Small samples are copied once when they are written, because contiguous samples
    /// leave in fewer system calls.
    ///
    /// A type that does not end in a `Vec` of numbers or in [`Bytes`](crate::Bytes) does not
    /// compile here.
    ///
    /// ```no_run
    /// # use weir_dds::{Bytes, DataWriter, DdsType, Result};
    /// #[derive(DdsType, Default)]
    /// #[dds(extensibility = "final")]
    /// struct Image {
    ///     height: u32,
    ///     width: u32,
    ///     pixels: Bytes,
    /// }
    ///
    /// # fn grab(pixels: &mut [u8]) {}
    /// # fn publish(writer: &DataWriter<Image>) -> Result<()> {
    /// let mut loan = writer.loan(1080 * 1920 * 3)?;
    /// loan.sample.height = 1080;
    /// loan.sample.width = 1920;
    /// grab(&mut loan);
    /// loan.write()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::BadParameter`]: more than 1 GiB.
    /// - [`DdsError::OutOfResources`]: 64 loans are outstanding.
    /// - [`DdsError::NotEnabled`]: the writer is not [enabled](DataWriter::enable) yet.
    /// - [`DdsError::AlreadyDeleted`]: the writer, its publisher or its participant was closed.
    /// - [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn loan(&self, count: usize) -> Result<Loan<T>> {
        let element = const {
            match T::BULK_ELEMENT {
                Some(element) => element,
                None => panic!("the last member of the type must be Bytes or a Vec of numbers"),
            }
        };
        let bytes = count.saturating_mul(element);
        let memory = Memory::lend(&self.inner, LOAN_FRONT_BYTES + FRONT_BYTES, bytes)?;
        Ok(Loan { sample: T::default(), memory, element })
    }
}

/// A sample under construction in its writer's memory.
///
/// Dereferences to the bytes of the last member's elements. Elements of more than one byte are
/// little-endian. Their initial values are unspecified, usually those of an earlier sample.
/// Dropping a loan writes nothing.
///
/// ```no_run
/// # use weir_dds::{Bytes, DataWriter, DdsType};
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "final")]
/// struct Scan {
///     number: u32,
///     points: Bytes,
/// }
///
/// # fn f(writer: &DataWriter<Scan>, receive: fn(&mut [u8]) -> usize) -> weir_dds::Result<()> {
/// let mut loan = writer.loan(1 << 20)?;
/// loan.sample.number = 7;
/// let received = receive(&mut loan);
/// loan.truncate(received);
/// loan.write()?;
/// # Ok(())
/// # }
/// ```
pub struct Loan<T: DdsType> {
    /// All members but the last, whose value is ignored: the bytes of the loan take its place.
    pub sample: T,
    memory: Memory,
    /// Bytes per element.
    element: usize,
}

impl<T: DdsType> Loan<T> {
    /// Shortens the last member to `count` elements. Has no effect if it has no more than that.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Scan {
    /// #     points: Vec<f32>,
    /// # }
    /// # fn f(writer: &DataWriter<Scan>) -> weir_dds::Result<()> {
    /// let mut loan = writer.loan(1000)?;
    /// // Only 300 points were measured.
    /// loan.truncate(300);
    /// loan.write()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn truncate(&mut self, count: usize) {
        self.memory.len = self.memory.len.min(count.saturating_mul(self.element));
    }

    /// Writes the sample, with the time of the call as source timestamp, as [`DataWriter::write`]
    /// does.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Scan {
    /// #     points: Vec<f32>,
    /// # }
    /// # fn f(writer: &DataWriter<Scan>) -> weir_dds::Result<()> {
    /// let mut loan = writer.loan(1000)?;
    /// loan.fill(0);
    /// if let Err(not_written) = loan.write() {
    ///     eprintln!("{not_written}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataWriter::write`]. The error contains the loan, which can be written later.
    pub fn write(self) -> std::result::Result<(), NotWritten<T>> {
        self.write_at(None)
    }

    /// Writes the sample with a source timestamp chosen by the caller.
    ///
    /// ```no_run
    /// # use weir_dds::{DataWriter, DdsType};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Scan {
    /// #     points: Vec<f32>,
    /// # }
    /// # fn f(writer: &DataWriter<Scan>) -> weir_dds::Result<()> {
    /// writer.loan(1000)?.write_w_timestamp(std::time::SystemTime::now())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Loan::write`]; [`DdsError::BadParameter`] also if the timestamp is before 1970 or after 2106.
    pub fn write_w_timestamp(self, timestamp: SystemTime) -> std::result::Result<(), NotWritten<T>> {
        match timestamp_of(timestamp) {
            Ok(timestamp) => self.write_at(Some(timestamp)),
            Err(error) => Err(NotWritten { error, loan: Box::new(self) }),
        }
    }

    fn write_at(mut self, timestamp: Option<Timestamp>) -> std::result::Result<(), NotWritten<T>> {
        match self.try_write(timestamp) {
            Ok(()) => Ok(()),
            Err(error) => Err(NotWritten { error, loan: Box::new(self) }),
        }
    }

    fn try_write(&mut self, timestamp: Option<Timestamp>) -> Result<()> {
        let inner = Arc::clone(&self.memory.writer);
        let key = inner.key_of_sample(&self.sample)?;
        let payload = self.frame()?;
        let len = payload.len();
        inner.write(Source::Loan(&self.sample, &mut self.memory, payload), (key, len), timestamp)
    }

    /// Encodes the other members in front of the bulk, and returns where the payload lies in the
    /// block.
    fn frame(&mut self) -> Result<Range<usize>> {
        let (encoding, count) = (self.memory.writer.encoding, self.memory.len / self.element);
        // An upper bound: the last member of `sample` is usually empty, and is ignored otherwise.
        let front_max = weir_cdr::payload_len_in(&self.sample, encoding) + self.element;
        if front_max > self.memory.start - LOAN_FRONT_BYTES {
            self.memory.make_front(LOAN_FRONT_BYTES + front_max);
        }
        let bulk_at = self.memory.start - LOAN_FRONT_BYTES;
        let room = &mut self.memory.block_mut()[LOAN_FRONT_BYTES..];
        let payload = weir_cdr::frame_bulk(&self.sample, encoding, room, bulk_at, count)?;
        Ok(payload.start + LOAN_FRONT_BYTES..payload.end + LOAN_FRONT_BYTES)
    }
}

impl<T: DdsType> Deref for Loan<T> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.memory.bytes()
    }
}

impl<T: DdsType> DerefMut for Loan<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

impl<T: DdsType> fmt::Debug for Loan<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.memory.len)
    }
}

/// A loan that was not written, with the reason.
///
/// ```no_run
/// # use weir_dds::{Bytes, DataWriter, DdsError, DdsType};
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Image {
/// #     pixels: Bytes,
/// # }
/// # fn f(writer: &DataWriter<Image>) -> weir_dds::Result<()> {
/// let mut loan = writer.loan(1000)?;
/// while let Err(not_written) = loan.write() {
///     // Readers may make room.
///     let DdsError::Timeout { .. } = not_written.error else { return Err(not_written.error) };
///     loan = *not_written.loan;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct NotWritten<T: DdsType> {
    /// Why the write failed.
    pub error: DdsError,
    /// The unchanged loan, to be written again or dropped.
    pub loan: Box<Loan<T>>,
}

impl<T: DdsType> fmt::Debug for NotWritten<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotWritten").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<T: DdsType> From<NotWritten<T>> for DdsError {
    fn from(not_written: NotWritten<T>) -> Self {
        not_written.error
    }
}
