//! QoS of publishers and subscribers (DDS 1.4, 2.2.3).

use weir_rtps::participant::check_policy_lengths;
use weir_rtps::qos::{Presentation, PresentationScope, Qos};
use weir_wire::EntityId;

use crate::error::{DdsError, Result};
use crate::qos::{EntityFactory, USER_DATA_MAX};

/// QoS of a publisher. Default: neither coherent nor ordered, the partition with the empty name, no data, and writers
/// that are enabled when they are created.
///
/// ```
/// use weir_dds::{PresentationScope, PublisherQos};
///
/// let qos = PublisherQos::default().coherent_access(PresentationScope::Group).partition(["north"]);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PublisherQos {
    /// Which changes become accessible together, and in which order.
    pub presentation: Presentation,
    /// Names or patterns of partitions; empty: those that each writer names.
    pub partition: Vec<String>,
    /// Bytes for applications that discover the writers (GROUP_DATA, DDS 1.4, 2.2.3.3).
    pub group_data: Vec<u8>,
    /// Whether writers are enabled when they are created.
    pub entity_factory: EntityFactory,
}

/// QoS of a subscriber. Default: neither coherent nor ordered, the partition with the empty name, no data, and readers
/// that are enabled when they are created.
///
/// ```
/// use weir_dds::{PresentationScope, SubscriberQos};
///
/// let qos = SubscriberQos::default().ordered_access(PresentationScope::Topic);
/// # let _ = qos;
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SubscriberQos {
    /// Which changes become accessible together, and in which order.
    pub presentation: Presentation,
    /// Names or patterns of partitions; empty: those that each reader names.
    pub partition: Vec<String>,
    /// Bytes for applications that discover the readers (GROUP_DATA, DDS 1.4, 2.2.3.3).
    pub group_data: Vec<u8>,
    /// Whether readers are enabled when they are created.
    pub entity_factory: EntityFactory,
}

macro_rules! fluent {
    ($qos:ty) => {
        impl $qos {
            /// Sets what is coherent and ordered (PRESENTATION, DDS 1.4, 2.2.3.6).
            ///
            /// A subscriber that requests more than a publisher offers does not match: a wider scope, or a flag that
            /// the publisher does not have.
            ///
            /// ```
            /// use weir_dds::{Presentation, PresentationScope, PublisherQos};
            ///
            /// let presentation =
            ///     Presentation { scope: PresentationScope::Topic, coherent_access: true, ordered_access: false };
            /// let qos = PublisherQos::default().presentation(presentation);
            /// # let _ = qos;
            /// ```
            #[must_use]
            pub fn presentation(mut self, presentation: Presentation) -> Self {
                self.presentation = presentation;
                self
            }

            /// Makes sets of changes accessible as a whole, within this scope or a wider one that is set already.
            ///
            /// The changes between
            /// [`Publisher::begin_coherent_changes`](crate::Publisher::begin_coherent_changes) and
            /// [`Publisher::end_coherent_changes`](crate::Publisher::end_coherent_changes) form a set. With the scopes
            /// INSTANCE and TOPIC, the changes of each writer do; with GROUP, those of all writers of the publisher.
            ///
            /// ```
            /// use weir_dds::{PresentationScope, SubscriberQos};
            ///
            /// let qos = SubscriberQos::default().coherent_access(PresentationScope::Group);
            /// assert!(qos.presentation.coherent_access);
            /// ```
            #[must_use]
            pub fn coherent_access(mut self, scope: PresentationScope) -> Self {
                self.presentation.coherent_access = true;
                self.presentation.scope = self.presentation.scope.max(scope);
                self
            }

            /// Preserves the order of changes, within this scope or a wider one that is set already.
            ///
            /// INSTANCE: of the changes of each instance, which follow each other. TOPIC: of the changes of a writer.
            /// GROUP: of the changes of all writers of a publisher.
            ///
            /// ```
            /// use weir_dds::{PresentationScope, SubscriberQos};
            ///
            /// let qos = SubscriberQos::default().ordered_access(PresentationScope::Group);
            /// assert!(qos.presentation.ordered_access);
            /// ```
            #[must_use]
            pub fn ordered_access(mut self, scope: PresentationScope) -> Self {
                self.presentation.ordered_access = true;
                self.presentation.scope = self.presentation.scope.max(scope);
                self
            }

            /// Sets the partitions; names are patterns as in `fnmatch(3)` (PARTITION, DDS 1.4, 2.2.3.13).
            ///
            /// ```
            /// use weir_dds::SubscriberQos;
            ///
            /// assert_eq!(SubscriberQos::default().partition(["north", "south"]).partition.len(), 2);
            /// ```
            #[must_use]
            pub fn partition(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
                self.partition = names.into_iter().map(Into::into).collect();
                self
            }

            /// Sets the bytes for applications that discover the writers or readers; none by default.
            ///
            /// ```
            /// use weir_dds::PublisherQos;
            ///
            /// assert_eq!(PublisherQos::default().group_data(*b"calibrated").group_data, b"calibrated");
            /// ```
            #[must_use]
            pub fn group_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
                self.group_data = bytes.into();
                self
            }

            /// Sets whether writers or readers are enabled when they are created; `true` by default.
            ///
            /// ```
            /// use weir_dds::PublisherQos;
            ///
            /// let qos = PublisherQos::default().autoenable_created_entities(false);
            /// assert!(!qos.entity_factory.autoenable_created_entities);
            /// ```
            #[must_use]
            pub fn autoenable_created_entities(mut self, autoenable: bool) -> Self {
                self.entity_factory.autoenable_created_entities = autoenable;
                self
            }
        }
    };
}

fluent!(PublisherQos);
fluent!(SubscriberQos);

/// The policies of a publisher or subscriber that its writers or readers announce.
#[derive(Debug, Clone)]
pub(crate) struct AnnouncedByGroup {
    presentation: Presentation,
    /// The publisher, if the samples of its writers share numbers.
    group: Option<EntityId>,
    /// Empty: those of the endpoint.
    partition: Vec<String>,
    group_data: Vec<u8>,
}

impl AnnouncedByGroup {
    /// Adds them to the policies of an endpoint.
    pub(crate) fn add_to(self, endpoint: &mut Qos) {
        endpoint.presentation = self.presentation;
        endpoint.group = self.group;
        endpoint.group_data = self.group_data;
        if !self.partition.is_empty() {
            endpoint.partition = self.partition;
        }
    }

    /// Refuses what is longer than peers would accept.
    pub(crate) fn check(self) -> Result<()> {
        let mut qos = Qos::for_writer();
        self.add_to(&mut qos);
        let checked = check_policy_lengths(&qos, USER_DATA_MAX);
        checked.map_err(|error| DdsError::BadParameter(error.to_string()))
    }
}

impl PublisherQos {
    /// What the writers announce. `publisher`: its id.
    pub(crate) fn announced(&self, publisher: EntityId) -> AnnouncedByGroup {
        AnnouncedByGroup {
            presentation: self.presentation,
            group: self.shares_sequence().then_some(publisher),
            partition: self.partition.clone(),
            group_data: self.group_data.clone(),
        }
    }

    /// Returns whether the samples of all writers have a common order, or common sets.
    pub(crate) fn shares_sequence(&self) -> bool {
        let Presentation { scope, coherent_access, ordered_access } = self.presentation;
        scope == PresentationScope::Group && (coherent_access || ordered_access)
    }
}

impl SubscriberQos {
    /// What the readers announce.
    pub(crate) fn announced(&self) -> AnnouncedByGroup {
        AnnouncedByGroup {
            presentation: self.presentation,
            group: None,
            partition: self.partition.clone(),
            group_data: self.group_data.clone(),
        }
    }
}
