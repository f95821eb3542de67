//! Waiting for samples in an event loop: as a future, as a stream, by a file descriptor.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use weir_cdr::DdsType;

use super::DataReader;
use crate::driver::tasks::{Place, Tasks};
use crate::error::{DdsError, Result};
use crate::sample::Sample;
use crate::wait_set::{EventFd, no_event_fd};

impl<T> DataReader<T> {
    /// Waits until there is an unread sample, as a future of any runtime.
    ///
    /// The participant's own thread receives meanwhile.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # async fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
    /// reader.readable().await?;
    /// println!("{} samples", reader.take(100).len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`DdsError::ThreadFailed`]: the participant has failed, and there is none.
    /// - [`DdsError::AlreadyDeleted`]: the reader was closed, and there is none.
    pub async fn readable(&self) -> Result<()> {
        let mut waiting = self.inner.endpoint.watching.tasks.wait();
        poll_fn(|context| self.poll_unless_readable(|_| waiting.add(context.waker()))).await
    }

    /// Returns whether there is an unread sample, or has the task woken when one arrives.
    ///
    /// For up to 64 tasks. Of more, each poll wakes the oldest one: if that polls again, they keep a processor busy.
    /// [`DataReader::readable`] and [`DataReader::stream`] have no such limit: when they are dropped, they forget
    /// their task.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use std::task::{Context, Poll};
    ///
    /// # fn f<T: DdsType>(reader: &DataReader<T>, context: &mut Context<'_>) -> weir_dds::Result<()> {
    /// match reader.poll_readable(context) {
    ///     Poll::Ready(is_there) => is_there.map(|()| println!("{} samples", reader.take(100).len()))?,
    ///     Poll::Pending => println!("the task is woken when a sample arrives"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`DataReader::readable`].
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_unless_readable(|tasks| tasks.add_poll(context.waker()))
    }

    /// [`DataReader::poll_readable`]: `add` adds the task.
    fn poll_unless_readable(&self, add: impl FnOnce(&Tasks)) -> Poll<Result<()>> {
        let endpoint = &self.inner.endpoint;
        self.inner.driver().flush_queued();
        if endpoint.core.lock().has_unread() {
            return Poll::Ready(Ok(()));
        }
        endpoint.watch();
        add(&endpoint.watching.tasks);
        // Whatever arrives from here on wakes the task.
        if endpoint.core.lock().has_unread() {
            return Poll::Ready(Ok(()));
        }
        match self.inner.driver().failure() {
            Some(error) => Poll::Ready(Err(error)),
            None if self.inner.is_closed() => Poll::Ready(Err(DdsError::AlreadyDeleted("reader"))),
            None => Poll::Pending,
        }
    }

    /// Returns a descriptor that is readable while there are unread samples, for `epoll` and what is built on it.
    ///
    /// Made at the first call: until then, samples cost nothing for it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use weir_dds::{DataReaderQos, DdsType, DomainParticipant, ParticipantSettings};
    /// use std::os::fd::AsFd;
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Greeting {
    /// #     text: String,
    /// # }
    /// # let participant = DomainParticipant::new(85, ParticipantSettings::default().interface("lo"))?;
    /// # let topic = participant.create_topic::<Greeting>("Greetings")?;
    /// let reader = participant.create_subscriber()?.create_datareader(&topic, DataReaderQos::default())?;
    /// let event_fd = reader.event_fd()?;
    /// // Pass `event_fd`, or `event_fd.as_fd()`, to poll, epoll, tokio's AsyncFd, ...
    /// # let _ = event_fd.as_fd();
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::Network`]: the process is out of file descriptors.
    pub fn event_fd(&self) -> Result<EventFd> {
        self.inner.endpoint.event_fd().map(EventFd).map_err(no_event_fd)
    }
}

impl<T: DdsType> DataReader<T> {
    /// Returns the samples as a stream, which takes them one by one.
    ///
    /// The stream ends if the participant fails or the reader is closed. It works with every runtime: tasks are woken
    /// by the participant's own thread.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use futures::StreamExt;
    ///
    /// # async fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) {
    /// let mut samples = reader.stream();
    /// while let Some(sample) = samples.next().await {
    ///     println!("{:?}", sample.data());
    /// }
    /// # }
    /// ```
    pub fn stream(&self) -> SampleStream<T> {
        SampleStream { reader: self.clone(), place: Place::default() }
    }
}

/// The samples of a reader as a stream: see [`DataReader::stream`].
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// use futures::StreamExt;
///
/// # async fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let mut samples = reader.stream();
/// while let Some(sample) = samples.next().await {
///     println!("{:?}", sample.data());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SampleStream<T> {
    reader: DataReader<T>,
    place: Place,
}

impl<T> Clone for SampleStream<T> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), place: Place::default() }
    }
}

impl<T> Drop for SampleStream<T> {
    fn drop(&mut self) {
        self.reader.inner.endpoint.watching.tasks.remove(&self.place);
    }
}

impl<T> SampleStream<T> {
    /// Returns the reader.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # fn f<T: DdsType>(reader: &DataReader<T>) {
    /// let samples = reader.stream();
    /// println!("{} samples", samples.reader().available());
    /// # }
    /// ```
    pub fn reader(&self) -> &DataReader<T> {
        &self.reader
    }
}

impl<T: DdsType> Stream for SampleStream<T> {
    type Item = Sample<T>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Sample<T>>> {
        let Self { reader, place } = self.get_mut();
        loop {
            if let Some(sample) = reader.take(1).pop() {
                return Poll::Ready(Some(sample));
            }
            match reader.poll_unless_readable(|tasks| tasks.add(place, context.waker())) {
                // Another thread may have been faster.
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
