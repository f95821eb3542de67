//! Participants that are enabled later than they are created (DDS 1.4, 2.2.2.1.1.7).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_rtps::participant::ParticipantCore;

use crate::driver::shared::Driver;
use crate::error::{DdsError, Result};
use crate::participant::DomainParticipant;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;

impl DomainParticipant {
    /// Enables the participant: announces it, and receives what others announce. Does nothing if it is enabled.
    ///
    /// Then enables its publishers and subscribers, unless
    /// [`autoenable_created_entities`](crate::DomainParticipantQos::autoenable_created_entities) says otherwise. They
    /// enable their writers and readers likewise.
    ///
    /// Participants are enabled when they are created, unless
    /// [`ParticipantSettings::autoenable`](crate::ParticipantSettings::autoenable()) says otherwise (DDS 1.4,
    /// 2.2.2.1.1.7). Until then, the participant sends nothing and knows no other participant. Entities that it creates
    /// are not enabled either, so that writes fail with [`DdsError::NotEnabled`]. QoS, listeners and conditions can be
    /// set.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Greeting {
    /// #     text: String,
    /// # }
    /// let participant = DomainParticipant::new(0, ParticipantSettings::default().autoenable(false))?;
    /// let topic = participant.create_topic::<Greeting>("Greetings")?;
    /// let writer = participant.create_publisher()?.create_datawriter(&topic, Default::default())?;
    /// participant.enable()?;
    /// assert!(writer.is_enabled());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Publisher::enable`] and [`Subscriber::enable`], of the first one that cannot be enabled. The others are
    /// enabled all the same, and so is the participant. [`DdsError::AlreadyDeleted`]: the participant was closed.
    /// [`DdsError::ThreadFailed`]: the participant has failed.
    pub fn enable(&self) -> Result<()> {
        let driver = &self.handle.driver;
        driver.check()?;
        let begin = |core: &mut ParticipantCore, now| {
            let is_first = !driver.state.is_enabled.swap(true, Ordering::SeqCst);
            if is_first {
                // As often as at the start, in case that some are lost.
                core.restart_announcements(now);
                core.handle_timeout(now);
            }
            is_first
        };
        if !driver.with_discovery(begin) || !driver.enables_groups() {
            return Ok(());
        }
        let (publishers, subscribers) = driver.state.contained.groups();
        let publishers = publishers
            .into_iter()
            .map(|state| Publisher { handle: Arc::clone(&self.handle), state }.enable());
        let subscribers = subscribers
            .into_iter()
            .map(|state| Subscriber { handle: Arc::clone(&self.handle), state }.enable());
        // One that another thread has closed meanwhile need not be enabled.
        let is_failure = |outcome: &Result<()>| !matches!(outcome, Err(DdsError::AlreadyDeleted(_)));
        publishers.chain(subscribers).filter(is_failure).fold(Ok(()), Result::and)
    }

    /// Returns whether the participant is enabled.
    ///
    /// ```no_run
    /// # use weir_dds::DomainParticipant;
    /// # fn f(participant: &DomainParticipant) -> weir_dds::Result<()> {
    /// assert!(participant.is_enabled());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.handle.driver.state.is_enabled()
    }
}

impl Driver {
    /// Returns whether publishers and subscribers are enabled when they are created.
    pub(crate) fn enables_groups(&self) -> bool {
        self.state.is_enabled() && self.qos.lock().entity_factory.autoenable_created_entities
    }

    /// Refuses to enable an entity of a participant that is not enabled.
    pub(crate) fn check_enabled(&self) -> Result<()> {
        if self.state.is_enabled() {
            return Ok(());
        }
        let text = "the participant is not enabled: call DomainParticipant::enable first";
        Err(DdsError::PreconditionNotMet(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use weir_cdr::DdsType;

    use super::*;
    use crate::{DataReaderQos, DataWriterQos, ParticipantSettings, PublisherQos, SubscriberQos};

    #[derive(DdsType, Default)]
    #[dds(extensibility = "final")]
    struct Number {
        number: u32,
    }

    /// Calls `enable` and then `close` while discovery is locked. Returns the outcome of `enable`.
    fn enabled_beside(
        driver: &Driver,
        (enable, is_enabled): (impl Fn() -> Result<()> + Send, impl Fn() -> bool),
        (close, is_closed): (impl Fn() + Send, impl Fn() -> bool),
    ) -> Result<()> {
        let (sender, go_on) = mpsc::channel::<()>();
        let (locks, locked) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                driver.with_discovery(|_, _| {
                    locks.send(()).unwrap();
                    go_on.recv().unwrap();
                });
            });
            locked.recv().unwrap();
            let enabling = scope.spawn(enable);
            while !is_enabled() {
                std::thread::yield_now();
            }
            scope.spawn(close);
            while !is_closed() {
                std::thread::yield_now();
            }
            sender.send(()).unwrap();
            enabling.join().unwrap()
        })
    }

    /// It would stay announced.
    #[test]
    fn an_endpoint_that_is_closed_while_it_is_enabled_is_not_announced() {
        let settings = ParticipantSettings::default().interface("lo").without_multicast();
        let participant = DomainParticipant::new(86, settings).unwrap();
        let driver = &participant.handle.driver;
        let topic = participant.create_topic::<Number>("numbers").unwrap();
        let qos = SubscriberQos::default().autoenable_created_entities(false);
        let subscriber = participant.create_subscriber_with_qos(qos).unwrap();
        let reader = subscriber.create_datareader(&topic, DataReaderQos::default()).unwrap();
        let inner = reader.inner();
        let outcome = enabled_beside(
            driver,
            (|| inner.enable(), || reader.is_enabled()),
            (|| inner.close(), || inner.is_closed()),
        );
        assert!(matches!(outcome, Err(DdsError::AlreadyDeleted(_))), "{outcome:?}");
        let qos = PublisherQos::default().autoenable_created_entities(false);
        let publisher = participant.create_publisher_with_qos(qos).unwrap();
        let writer = publisher.create_datawriter(&topic, DataWriterQos::default()).unwrap();
        let inner = writer.inner();
        let outcome = enabled_beside(
            driver,
            (|| inner.enable(), || writer.is_enabled()),
            (|| _ = inner.close(), || inner.is_closed()),
        );
        assert!(matches!(outcome, Err(DdsError::AlreadyDeleted(_))), "{outcome:?}");
    }
}
