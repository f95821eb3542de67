//! Calls that wait: for samples, for history, and for matches.

use std::time::Duration;

use super::DataReader;
use crate::clock;
use crate::driver::matching::MatchOf;
use crate::error::{DdsError, Result};
use crate::wait_strategy::WaitStrategy;

impl<T> DataReader<T> {
    /// Waits until there is an unread sample.
    ///
    /// Waits as [`ParticipantSettings::wait`](crate::ParticipantSettings::wait) says. Meanwhile the
    /// calling thread receives for all endpoints of the participant.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// reader.wait_for_data(Duration::from_secs(10))?;
    /// println!("{:?}", reader.take(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: there is none.
    /// - [`DdsError::AlreadyDeleted`]: there is none, and the reader, its subscriber or its participant was closed,
    ///   also while the call waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, and there is none. Returns without waiting for the
    ///   timeout.
    pub fn wait_for_data(&self, timeout: Duration) -> Result<()> {
        self.wait_for_data_by(timeout, self.inner.driver().wait)
    }

    /// As [`DataReader::wait_for_data`], with a wait strategy for this call.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// use weir_dds::WaitStrategy;
    ///
    /// let spin = WaitStrategy::SpinThenBlock(Duration::from_micros(50));
    /// reader.wait_for_data_by(Duration::from_secs(10), spin)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataReader::wait_for_data`].
    pub fn wait_for_data_by(&self, timeout: Duration, strategy: WaitStrategy) -> Result<()> {
        let (driver, endpoint) = (self.inner.driver(), &self.inner.endpoint);
        let until = clock::now() + timeout;
        let is_there = match endpoint.shared_sets.get() {
            None => driver.receive_until_unread(endpoint, until, strategy, || self.inner.is_closed()),
            // Another reader may have received the end of a set.
            Some(access) => driver.receive_until(Some(until), strategy, || {
                access.settle();
                endpoint.core.lock().has_unread() || self.inner.is_closed()
            }),
        };
        if is_there && (!self.inner.is_closed() || endpoint.core.lock().has_unread()) {
            return Ok(());
        }
        driver.check()?;
        if self.inner.is_closed() {
            return Err(DdsError::AlreadyDeleted("reader"));
        }
        Err(DdsError::Timeout { what: "the arrival of a sample", waited: timeout, hint: String::new() })
    }

    /// Waits until the reader has what its matched writers had written before (DDS 1.4, 2.2.2.5.3.33).
    ///
    /// Those are the samples of reliable writers that they still keep, for a reader whose durability is not VOLATILE.
    /// Returns at once if no writer is matched.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// reader.wait_for_publications(1, Duration::from_secs(10))?;
    /// reader.wait_for_historical_data(Duration::from_secs(10))?;
    /// println!("{} samples were written before", reader.take(1000).len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: some of it has not arrived.
    /// - [`DdsError::AlreadyDeleted`]: the reader, its subscriber or its participant was closed, also while the call
    ///   waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, also while the call waited.
    pub fn wait_for_historical_data(&self, timeout: Duration) -> Result<()> {
        let (driver, endpoint) = (self.inner.driver(), &self.inner.endpoint);
        driver.check()?;
        let is_done = || endpoint.core.lock().is_caught_up() || self.inner.is_closed();
        if driver.receive_until(Some(clock::now() + timeout), driver.wait, is_done) {
            return if self.inner.is_closed() { Err(DdsError::AlreadyDeleted("reader")) } else { Ok(()) };
        }
        driver.check()?;
        Err(DdsError::Timeout {
            what: "the arrival of historical data",
            waited: timeout,
            hint: String::new(),
        })
    }

    /// Waits until at least `count` writers are matched.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// reader.wait_for_publications(2, Duration::from_secs(10))?;
    /// assert!(reader.matched_publications().len() >= 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::Timeout`]: fewer are. The text says how many.
    /// - [`DdsError::AlreadyDeleted`]: the reader, its subscriber or its participant was closed, also while the call
    ///   waited.
    /// - [`DdsError::ThreadFailed`]: the participant has failed, also while the call waited.
    pub fn wait_for_publications(&self, count: u64, timeout: Duration) -> Result<()> {
        let of = MatchOf { endpoint: "reader", others: "writers", what: "a match with writers" };
        let wanted = (&self.inner.endpoint.matched, count);
        self.inner.driver().wait_for_match_count(wanted, timeout, || self.inner.is_closed(), &of)
    }
}
