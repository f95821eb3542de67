//! QoS of participants.

/// QoS of a participant.
///
/// ```
/// use weir_dds::DomainParticipantQos;
///
/// let qos = DomainParticipantQos::default().user_data(*b"robot 7");
/// assert!(qos.entity_factory.autoenable_created_entities);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DomainParticipantQos {
    /// Bytes for applications that discover the participant (USER_DATA, DDS 1.4, 2.2.3.1).
    pub user_data: Vec<u8>,
    /// Whether what the participant creates is enabled at once.
    pub entity_factory: EntityFactory,
}

impl DomainParticipantQos {
    /// Sets the bytes for applications that discover the participant; none by default.
    ///
    /// ```
    /// use weir_dds::DomainParticipantQos;
    ///
    /// assert_eq!(DomainParticipantQos::default().user_data(*b"robot 7").user_data, b"robot 7");
    /// ```
    #[must_use]
    pub fn user_data(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.user_data = bytes.into();
        self
    }

    /// Sets whether writers and readers are enabled when they are created; `true` by default.
    ///
    /// ```
    /// use weir_dds::DomainParticipantQos;
    ///
    /// let qos = DomainParticipantQos::default().autoenable_created_entities(false);
    /// # let _ = qos;
    /// ```
    #[must_use]
    pub fn autoenable_created_entities(mut self, autoenable: bool) -> Self {
        self.entity_factory.autoenable_created_entities = autoenable;
        self
    }
}

/// ENTITY_FACTORY: whether entities are enabled when they are created (DDS 1.4, 2.2.3.20).
///
/// ```
/// use weir_dds::PublisherQos;
///
/// let qos = PublisherQos::default().autoenable_created_entities(false);
/// assert!(!qos.entity_factory.autoenable_created_entities);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntityFactory {
    /// Whether they are; `true` by default. Otherwise the application calls `enable`.
    pub autoenable_created_entities: bool,
}

impl Default for EntityFactory {
    fn default() -> Self {
        Self { autoenable_created_entities: true }
    }
}
