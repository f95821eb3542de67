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
    /// let writer = participant.create_publisher().create_datawriter(&topic, Default::default())?;
    /// // Others find the participant with all its endpoints.
    /// participant.enable()?;
    /// assert!(writer.is_enabled());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Publisher::enable`] and [`Subscriber::enable`], of the first one that cannot be enabled;
    /// [`DdsError::ThreadFailed`].
    pub fn enable(&self) -> Result<()> {
        let driver = &self.handle.driver;
        driver.check()?;
        let begin = |core: &mut ParticipantCore, now| {
            let is_first = !driver.state.is_enabled.swap(true, Ordering::SeqCst);
            if is_first {
                // The first announcement is due.
                core.handle_timeout(now);
            }
            is_first
        };
        if !driver.with_discovery(begin) || !driver.enables_groups() {
            return Ok(());
        }
        let (publishers, subscribers) = driver.state.contained.groups();
        for state in publishers {
            Publisher { handle: Arc::clone(&self.handle), state }.enable()?;
        }
        for state in subscribers {
            Subscriber { handle: Arc::clone(&self.handle), state }.enable()?;
        }
        Ok(())
    }

    /// Returns whether the participant is enabled.
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
