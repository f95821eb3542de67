//! Status conditions of participants, publishers, subscribers and topics.

use std::sync::Arc;

use crate::condition::{StatusCondition, StatusSource};
use crate::driver::observers::Observers;
use crate::driver::start::Handle;
use crate::levels::EnabledStatuses;
use crate::participant::DomainParticipant;
use crate::publisher::Publisher;
use crate::status_mask::StatusMask;
use crate::subscriber::Subscriber;
use crate::topic::{Topic, TopicState};

impl DomainParticipant {
    /// Returns the status condition (DDS 1.4, 2.2.2.1.1.5). A participant has no statuses, so it is never true.
    ///
    /// Attached to a wait set, it lets [`WaitSet::wait`](crate::WaitSet::wait) receive for this participant, also if
    /// the other conditions are [`GuardCondition`](crate::GuardCondition)s.
    ///
    /// ```
    /// use std::time::Duration;
    /// use weir_dds::{DomainParticipant, GuardCondition, ParticipantSettings, WaitSet};
    ///
    /// let settings = ParticipantSettings::default().interface("lo").without_threads();
    /// let participant = DomainParticipant::new(83, settings)?;
    /// let (wait_set, stop) = (WaitSet::new(), GuardCondition::new());
    /// wait_set.attach_condition(&participant.status_condition());
    /// wait_set.attach_condition(&stop);
    /// stop.set_trigger_value(true);
    /// assert!(wait_set.wait(Duration::from_secs(10))?.contains(&stop));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::new(self.clone()) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for DomainParticipant {
    fn changes(&self) -> StatusMask {
        self.status_changes()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.handle.driver.state.enabled
    }

    fn observers(&self) -> &Observers {
        &self.handle.driver.state.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.handle))
    }
}

impl Publisher {
    /// Returns the status condition (DDS 1.4, 2.2.2.1.1.5). A publisher has no statuses, so it is never true: use those
    /// of its [writers](crate::DataWriter::status_condition).
    ///
    /// ```
    /// # use weir_dds::{DomainParticipant, ParticipantSettings};
    /// use weir_dds::WaitSet;
    ///
    /// # let settings = ParticipantSettings::default().interface("lo").without_threads();
    /// # let participant = DomainParticipant::new(83, settings)?;
    /// let publisher = participant.create_publisher()?;
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&publisher.status_condition());
    /// assert!(wait_set.active().is_empty());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::new(self.clone()) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for Publisher {
    fn changes(&self) -> StatusMask {
        self.status_changes()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.state.enabled
    }

    fn observers(&self) -> &Observers {
        &self.state.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.handle))
    }
}

impl Subscriber {
    /// Returns the condition that is true while DATA_ON_READERS is set and enabled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{States, Subscriber, WaitSet};
    /// # fn f(subscriber: &Subscriber) -> weir_dds::Result<()> {
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&subscriber.status_condition());
    /// wait_set.wait(Duration::from_secs(10))?;
    /// println!("{} readers have samples", subscriber.datareaders(States::NOT_READ).len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::new(self.clone()) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for Subscriber {
    fn changes(&self) -> StatusMask {
        self.status_changes()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.state.enabled
    }

    fn observers(&self) -> &Observers {
        &self.state.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        Some(Arc::clone(&self.handle))
    }

    fn watch(&self) {
        Self::watch(self);
    }
}

impl<T> Topic<T> {
    /// Returns the condition that is true while INCONSISTENT_TOPIC has changed and is enabled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use weir_dds::{Topic, WaitSet};
    /// # fn f<T>(topic: &Topic<T>) -> weir_dds::Result<()> {
    /// let wait_set = WaitSet::new();
    /// wait_set.attach_condition(&topic.status_condition());
    /// wait_set.wait(Duration::from_secs(10))?;
    /// println!("{:?}", topic.inconsistent_topic_status());
    /// # Ok(())
    /// # }
    /// ```
    pub fn status_condition(&self) -> StatusCondition {
        StatusCondition::new(Arc::clone(&self.state) as Arc<dyn StatusSource>)
    }
}

impl StatusSource for TopicState {
    fn changes(&self) -> StatusMask {
        self.status_changes()
    }

    fn enabled(&self) -> &EnabledStatuses {
        &self.enabled
    }

    fn observers(&self) -> &Observers {
        &self.observers
    }

    fn handle(&self) -> Option<Arc<Handle>> {
        self.handle.upgrade()
    }
}
