//! Status conditions of subscribers and topics.

use std::sync::Arc;

use crate::condition::{StatusCondition, StatusSource};
use crate::driver::observers::Observers;
use crate::driver::start::Handle;
use crate::levels::EnabledStatuses;
use crate::status_mask::StatusMask;
use crate::subscriber::Subscriber;
use crate::topic::{Topic, TopicState};

impl Subscriber {
    /// Returns the condition that is true while DATA_ON_READERS is set and enabled.
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
