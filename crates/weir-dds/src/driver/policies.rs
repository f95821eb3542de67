//! Announces changed policies of local endpoints.

use std::sync::Arc;

use weir_rtps::qos::Qos;
use weir_wire::EntityId;

use super::shared::Driver;
use crate::error::{DdsError, Result};
use crate::topic::TopicState;

impl Driver {
    /// Changes the announced policies of an endpoint, and matches it anew. `keep`: makes the change known to this
    /// participant, before the next change of any endpoint.
    pub(crate) fn announce_qos<R>(
        &self,
        entity: EntityId,
        change: impl FnOnce(&mut Qos),
        keep: impl FnOnce() -> R,
    ) -> Result<R> {
        let changed = self.with_discovery(|core, now| core.change_qos(now, entity, change).map(|()| keep()));
        changed.map_err(|error| DdsError::BadParameter(error.to_string()))
    }

    /// Announces the TOPIC_DATA of a topic with all its endpoints.
    pub(crate) fn announce_topic_data(&self, topic: &Arc<TopicState>) -> Result<()> {
        let table = self.routes.table();
        let writers = table.writers.values().filter(|it| Arc::ptr_eq(&it.topic, topic)).map(|it| it.entity);
        let readers = table.readers.values().filter(|it| Arc::ptr_eq(&it.topic, topic)).map(|it| it.entity);
        let entities: Vec<_> = writers.chain(readers).collect();
        drop(table);
        entities
            .into_iter()
            .try_for_each(|entity| self.announce_qos(entity, |qos| qos.topic_data = topic.data(), || ()))
    }
}

/// Takes over the policies of an endpoint, and of its publisher or subscriber. Those of its topic stay.
pub(crate) fn take_over(qos: &mut Qos, endpoint: Qos) {
    *qos = Qos { topic_data: core::mem::take(&mut qos.topic_data), ..endpoint };
}
