//! Samples one by one, by an iterator that waits.

use std::time::Duration;

use weir_cdr::DdsType;

use super::DataReader;
use crate::clock;
use crate::sample::Sample;

impl<T: DdsType> DataReader<T> {
    /// Takes samples one by one, oldest first, and waits for each for at most `timeout`.
    ///
    /// The iterator ends when none arrives in time. It also ends when the reader or its participant was closed or has
    /// failed, after all that had arrived; [`DataReader::wait_for_data`] then returns the reason. A thread that waits
    /// receives for all endpoints of the participant. For tasks, see [`DataReader::stream`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) {
    /// for sample in reader.iter(Duration::from_secs(10)) {
    ///     println!("{:?}", sample.data());
    /// }
    /// println!("nothing for ten seconds");
    /// # }
    /// ```
    pub fn iter(&self, timeout: Duration) -> SampleIter<'_, T> {
        SampleIter { reader: self, timeout }
    }
}

/// The samples of a reader, waited for: see [`DataReader::iter`].
///
/// ```no_run
/// # use std::time::Duration;
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) {
/// // The next ten values; samples without one report the end of an instance.
/// let values = reader.iter(Duration::from_secs(10)).filter_map(|sample| sample.into_data());
/// println!("{:?}", values.take(10).collect::<Vec<_>>());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SampleIter<'a, T> {
    reader: &'a DataReader<T>,
    timeout: Duration,
}

impl<T: DdsType> Iterator for SampleIter<'_, T> {
    type Item = Sample<T>;

    fn next(&mut self) -> Option<Sample<T>> {
        let mut sample = Sample::default();
        if self.reader.take_next_sample(&mut sample) {
            return Some(sample);
        }
        let deadline = clock::now() + self.timeout;
        loop {
            self.reader.wait_for_data(deadline.since(clock::now())).ok()?;
            // Another thread may have been faster.
            if self.reader.take_next_sample(&mut sample) {
                return Some(sample);
            }
        }
    }
}
