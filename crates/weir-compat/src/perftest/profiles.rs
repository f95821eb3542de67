//! `-qosFile`, `-qosLibrary`: QoS profiles for the topics of RTI Perftest.

use std::path::Path;

use weir_dds::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublisherQos, QosProvider, SubscriberQos,
};

use super::node::{ANNOUNCEMENT, LATENCY, THROUGHPUT};

/// The library that RTI Perftest reads unless `-qosLibrary` names another one.
pub const DEFAULT_LIBRARY: &str = "PerftestQosLibrary";

/// The profile of the participant. It may be missing.
const PARTICIPANT: &str = "BaseProfileQos";
/// The profiles of the topics.
const TOPICS: [(&str, &str); 3] =
    [(THROUGHPUT, "ThroughputQos"), (LATENCY, "LatencyQos"), (ANNOUNCEMENT, "AnnouncementQos")];

/// The QoS profiles of a library, by the names that RTI Perftest uses: `ThroughputQos`, `LatencyQos` and
/// `AnnouncementQos` for the topics, `BaseProfileQos` for the participant.
#[derive(Clone, Debug)]
pub struct Profiles {
    provider: QosProvider,
    library: String,
}

impl Profiles {
    /// Reads a file.
    ///
    /// # Errors
    /// A sentence with file, line and cause; or the profile that is missing.
    pub fn read(file: &Path, library: &str) -> Result<Self, String> {
        let provider = QosProvider::from_file(file).map_err(|error| error.to_string())?;
        let profiles = Self { provider, library: library.to_owned() };
        for (topic, profile) in TOPICS {
            let name = profiles.name(profile);
            let found = profiles.provider.datawriter_qos(&name, Some(topic));
            found.map_err(|error| format!("{}: {error}: the topic {topic} needs it", file.display()))?;
        }
        Ok(profiles)
    }

    /// Returns what was skipped, each with file and line.
    pub fn warnings(&self) -> &[String] {
        self.provider.warnings()
    }

    pub(super) fn writer(&self, topic: &str) -> DataWriterQos {
        self.provider.datawriter_qos(&self.name(profile_of(topic)), Some(topic)).unwrap_or_default()
    }

    pub(super) fn reader(&self, topic: &str) -> DataReaderQos {
        self.provider.datareader_qos(&self.name(profile_of(topic)), Some(topic)).unwrap_or_default()
    }

    /// Returns the QoS of a topic's publisher. Perftest has no step that enables entities later.
    pub(super) fn publisher(&self, topic: &str) -> PublisherQos {
        let qos = self.provider.publisher_qos(&self.name(profile_of(topic)), Some(topic)).unwrap_or_default();
        qos.autoenable_created_entities(true)
    }

    /// Returns the QoS of a topic's subscriber.
    pub(super) fn subscriber(&self, topic: &str) -> SubscriberQos {
        let qos =
            self.provider.subscriber_qos(&self.name(profile_of(topic)), Some(topic)).unwrap_or_default();
        qos.autoenable_created_entities(true)
    }

    pub(super) fn participant(&self) -> DomainParticipantQos {
        let qos = self.provider.participant_qos(&self.name(PARTICIPANT)).unwrap_or_default();
        qos.autoenable_created_entities(true)
    }

    fn name(&self, profile: &str) -> String {
        format!("{}::{profile}", self.library)
    }
}

fn profile_of(topic: &str) -> &'static str {
    TOPICS.iter().find(|(known, _)| *known == topic).map_or(PARTICIPANT, |(_, profile)| profile)
}
