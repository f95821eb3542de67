//! The entity ids of our own endpoints: those of the file for endpoints in the file, others for the rest.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use weir_rtps::qos::Qos;
use weir_rtps::sedp::EndpointKind;
use weir_rtps::static_peers::differing;
use weir_wire::EntityId;

use super::Endpoint;
use crate::driver::routes::Table;
use crate::error::{DdsError, Result};

/// Our own endpoints.
#[derive(Debug)]
pub(crate) struct Own {
    file: String,
    endpoints: Vec<Endpoint>,
    /// The ids of endpoints that are being created, and are not in the table yet.
    claimed: Mutex<BTreeSet<EntityId>>,
    next_key: AtomicU32,
}

/// The id of an endpoint that is being created. Drop it when the endpoint is in the table.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    own: &'a Own,
    pub(crate) entity: EntityId,
}

impl Default for Own {
    fn default() -> Self {
        Self::new("", &[])
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.own.endpoints.is_empty() {
            self.own.claimed.lock().remove(&self.entity);
        }
    }
}

impl Own {
    pub(super) fn new(file: &str, endpoints: &[Endpoint]) -> Self {
        let (claimed, next_key) = (Mutex::default(), AtomicU32::new(1));
        Self { file: file.to_owned(), endpoints: endpoints.to_vec(), claimed, next_key }
    }

    /// Returns a key that no endpoint of the file has.
    pub(crate) fn new_key(&self) -> u32 {
        loop {
            let [_, key @ ..] = self.next_key.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let is_taken = self.endpoints.iter().any(|it| it.known.entity.0[..3] == key);
            if !is_taken && key != [0; 3] {
                let [a, b, c] = key;
                return u32::from_be_bytes([0, a, b, c]);
            }
        }
    }

    /// Returns the id of a new endpoint: the first one that the file has for such an endpoint, and that is not in use.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`]: the file has endpoints of this kind and topic, and describes them differently, or
    /// all are in use.
    pub(crate) fn claim(
        &self,
        kind: EndpointKind,
        (topic, type_name, is_keyed): (&str, &str, bool),
        qos: &Qos,
        table: &Table,
    ) -> Result<Claim<'_>> {
        let is_writer = kind == EndpointKind::Writer;
        let is_meant = |it: &&Endpoint| it.known.entity.is_writer() == is_writer && it.known.topic == topic;
        let mut meant = self.endpoints.iter().filter(is_meant).peekable();
        if meant.peek().is_none() {
            let key = self.new_key();
            let entity = if is_writer {
                EntityId::user_writer(key, is_keyed)
            } else {
                EntityId::user_reader(key, is_keyed)
            };
            return Ok(Claim { own: self, entity });
        }
        let name = if is_writer { "writer" } else { "reader" };
        let mut claimed = self.claimed.lock();
        let is_in_use = |it: &&Endpoint| {
            let entity = it.known.entity;
            claimed.contains(&entity)
                || table.writers.contains_key(&entity)
                || table.readers.contains_key(&entity)
        };
        let lines: Vec<_> = meant.clone().map(|it| it.line.to_string()).collect();
        let Some(Endpoint { line, known }) = meant.find(|it| !is_in_use(it)) else {
            let text = format!(
                "{}: all {name}s of the topic {topic:?} are in use already (line {}): add one to the file",
                self.file,
                lines.join(", ")
            );
            return Err(DdsError::BadParameter(text));
        };
        let differs = |what: String| {
            let text =
                format!("{}:{line}: the {name} of the topic {topic:?} {what}: change one of them", self.file);
            Err(DdsError::BadParameter(text))
        };
        if known.type_name != type_name {
            return differs(format!(
                "has the type {:?} here, and the type {type_name:?} in the program",
                known.type_name
            ));
        }
        if known.entity.is_keyed() != is_keyed {
            return differs(format!(
                "has keyed = {} here, and its type has {is_keyed}",
                known.entity.is_keyed()
            ));
        }
        let policies: Vec<_> = differing(&known.qos, qos, is_writer).iter().map(|it| it.name()).collect();
        if !policies.is_empty() {
            return differs(format!("has other policies here than in the program ({})", policies.join(", ")));
        }
        claimed.insert(known.entity);
        Ok(Claim { own: self, entity: known.entity })
    }
}
