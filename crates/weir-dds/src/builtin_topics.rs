//! Builtin topics: the participants, topics, writers and readers of other participants as samples (DDS 1.4, 2.2.5).

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use weir_cdr::{CdrError, CdrReader, CdrValue, CdrWriter, DdsType, Encoding, Extensibility, Layout};
use weir_rtps::discovery_data::DiscoveryLimits;
use weir_rtps::qos::Qos;
use weir_rtps::sedp::{self, EndpointData, EndpointKind};
use weir_rtps::spdp::{self, ParticipantData};
use weir_wire::{EntityId, Guid, GuidPrefix, VendorId};

use crate::announced_qos::AnnouncedQos;

/// Another participant (DCPSParticipant).
///
/// ```no_run
/// # use weir_dds::BuiltinSubscriber;
/// # fn f(builtin: &BuiltinSubscriber) {
/// for sample in builtin.participants().take(100) {
///     if let Some(other) = sample.data() {
///         println!("{:?} at {:?}", other.name, other.addresses);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParticipantBuiltinTopicData {
    /// The participant. Its bytes are the sample's instance handle.
    pub key: Guid,
    /// Its USER_DATA.
    pub user_data: Vec<u8>,
    /// The id of its engine's vendor.
    pub vendor: VendorId,
    /// Its name.
    pub name: Option<String>,
    /// Its domain, if it has announced it.
    pub domain_id: Option<u32>,
    /// Longest silence before it counts as lost.
    pub lease_duration: Duration,
    /// Addresses of its endpoints that have none of their own.
    pub addresses: Vec<SocketAddr>,
}

/// A topic that endpoints of other participants have (DCPSTopic).
///
/// Known from the announcements of endpoints: the policies are those of the first endpoint that was found.
///
/// ```no_run
/// # use weir_dds::BuiltinSubscriber;
/// # fn f(builtin: &BuiltinSubscriber) {
/// for sample in builtin.topics().take(100) {
///     if let Some(topic) = sample.data() {
///         println!("{} of type {}", topic.name, topic.type_name);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicBuiltinTopicData {
    /// Its name.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// Policies, including TOPIC_DATA.
    pub qos: AnnouncedQos,
}

/// A writer of another participant (DCPSPublication).
///
/// ```no_run
/// # use weir_dds::BuiltinSubscriber;
/// # fn f(builtin: &BuiltinSubscriber) {
/// for sample in builtin.publications().take(100) {
///     if let Some(writer) = sample.data() {
///         println!("{} writes {}", writer.participant_key, writer.topic_name);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicationBuiltinTopicData {
    /// The writer. Its bytes are the sample's instance handle.
    pub key: Guid,
    /// Its participant.
    pub participant_key: Guid,
    /// The name of its topic.
    pub topic_name: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// All policies that it has announced, including USER_DATA.
    pub qos: AnnouncedQos,
    /// Its own addresses; none: those of its participant.
    pub addresses: Vec<SocketAddr>,
}

/// A reader of another participant (DCPSSubscription).
///
/// ```no_run
/// # use weir_dds::BuiltinSubscriber;
/// # fn f(builtin: &BuiltinSubscriber) {
/// for sample in builtin.subscriptions().take(100) {
///     if let Some(reader) = sample.data() {
///         println!("{} reads {}", reader.participant_key, reader.topic_name);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriptionBuiltinTopicData {
    /// The reader. Its bytes are the sample's instance handle.
    pub key: Guid,
    /// Its participant.
    pub participant_key: Guid,
    /// The name of its topic.
    pub topic_name: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// All policies that it has announced, including USER_DATA.
    pub qos: AnnouncedQos,
    /// Its own addresses; none: those of its participant.
    pub addresses: Vec<SocketAddr>,
}

/// The form of samples of builtin topics: the entity's announcement as it is on the wire.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final", crate = "weir_cdr")]
pub(crate) struct Announcement {
    #[dds(key)]
    pub(crate) key: [u8; 16],
    pub(crate) payload: Vec<u8>,
}

/// The identity of a topic.
#[derive(DdsType, Default)]
#[dds(extensibility = "final", crate = "weir_cdr")]
pub(crate) struct TopicKey {
    #[dds(key)]
    pub(crate) name: String,
    #[dds(key)]
    pub(crate) type_name: String,
}

/// What the samples of a builtin topic contain.
pub(crate) trait Announced: Sized {
    fn announcement(&self) -> Announcement;

    /// `None`: the payload is no such announcement.
    fn of_announcement(announcement: &Announcement) -> Option<Self>;

    /// A value of which only the key is known.
    fn of_key(key: [u8; 16]) -> Self;
}

impl ParticipantBuiltinTopicData {
    pub(crate) fn new(data: &ParticipantData) -> Self {
        Self {
            key: Guid::new(data.prefix, EntityId::PARTICIPANT),
            user_data: data.user_data.clone(),
            vendor: data.vendor,
            name: data.entity_name.clone(),
            domain_id: data.domain_id,
            lease_duration: data.lease,
            addresses: addresses(&data.default_unicast.addresses),
        }
    }

    /// Returns the form of a sample.
    pub(crate) fn announcement_of(data: &ParticipantData) -> Announcement {
        let mut payload = Vec::new();
        spdp::encode(data, &mut payload);
        Announcement { key: Guid::new(data.prefix, EntityId::PARTICIPANT).to_bytes(), payload }
    }
}

impl Announced for ParticipantBuiltinTopicData {
    fn announcement(&self) -> Announcement {
        let mut payload = Vec::new();
        let data = ParticipantData {
            prefix: self.key.prefix,
            version: weir_wire::ProtocolVersion::V2_5,
            vendor: self.vendor,
            domain_id: self.domain_id,
            builtin_endpoints: 0,
            lease: self.lease_duration,
            metatraffic_unicast: Default::default(),
            metatraffic_multicast: None,
            default_unicast: locators(&self.addresses),
            default_multicast: Default::default(),
            entity_name: self.name.clone(),
            receive_buffer: None,
            delimits_keys: true,
            user_data: self.user_data.clone(),
        };
        spdp::encode(&data, &mut payload);
        Announcement { key: self.key.to_bytes(), payload }
    }

    fn of_announcement(announcement: &Announcement) -> Option<Self> {
        let Announcement { key, payload } = announcement;
        let data = spdp::decode(payload, Some(*key), VendorId::UNKNOWN, &DiscoveryLimits::default()).ok()?;
        Some(Self::new(&data))
    }

    fn of_key(key: [u8; 16]) -> Self {
        Self {
            key: Guid::from_bytes(key),
            user_data: Vec::new(),
            vendor: VendorId::UNKNOWN,
            name: None,
            domain_id: None,
            lease_duration: Duration::ZERO,
            addresses: Vec::new(),
        }
    }
}

/// Returns the form of a sample about an endpoint. `key`: if it is about its topic.
pub(crate) fn announcement_of(
    kind: EndpointKind,
    data: &EndpointData,
    key: Option<[u8; 16]>,
) -> Announcement {
    let mut payload = Vec::new();
    sedp::encode(kind, data, VendorId::UNKNOWN, &mut payload);
    Announcement { key: key.unwrap_or(data.guid.to_bytes()), payload }
}

fn addresses(locators: &[SocketAddrV4]) -> Vec<SocketAddr> {
    locators.iter().copied().map(SocketAddr::V4).collect()
}

/// Those of IPv6 cannot be announced yet.
fn locators(addresses: &[SocketAddr]) -> weir_rtps::discovery_data::Locators {
    let ipv4 = |address: &SocketAddr| match address {
        SocketAddr::V4(address) => Some(*address),
        SocketAddr::V6(_) => None,
    };
    weir_rtps::discovery_data::Locators { addresses: addresses.iter().filter_map(ipv4).collect(), skipped: 0 }
}

fn endpoint_of(kind: EndpointKind, announcement: &Announcement) -> Option<EndpointData> {
    sedp::decode(kind, &announcement.payload, None, &DiscoveryLimits::default()).ok()
}

macro_rules! endpoint_data {
    ($data:ident, $kind:expr, $default:expr) => {
        impl $data {
            pub(crate) fn new(data: EndpointData) -> Self {
                Self {
                    key: data.guid,
                    participant_key: Guid::new(data.guid.prefix, EntityId::PARTICIPANT),
                    topic_name: data.topic,
                    type_name: data.type_name,
                    qos: data.qos.into(),
                    addresses: addresses(&data.unicast.addresses),
                }
            }
        }

        impl Announced for $data {
            fn announcement(&self) -> Announcement {
                let data = EndpointData {
                    guid: self.key,
                    topic: self.topic_name.clone(),
                    type_name: self.type_name.clone(),
                    qos: self.qos.clone().into(),
                    unicast: locators(&self.addresses),
                    multicast: Default::default(),
                    expects_inline_qos: false,
                    receive_buffer: None,
                    content_filter: None,
                };
                announcement_of($kind, &data, None)
            }

            fn of_announcement(announcement: &Announcement) -> Option<Self> {
                endpoint_of($kind, announcement).map(Self::new)
            }

            fn of_key(key: [u8; 16]) -> Self {
                let key = Guid::from_bytes(key);
                Self {
                    key,
                    participant_key: Guid::new(key.prefix, EntityId::PARTICIPANT),
                    topic_name: String::new(),
                    type_name: String::new(),
                    qos: $default.into(),
                    addresses: Vec::new(),
                }
            }
        }
    };
}

endpoint_data!(PublicationBuiltinTopicData, EndpointKind::Writer, Qos::for_writer());
endpoint_data!(SubscriptionBuiltinTopicData, EndpointKind::Reader, Qos::for_reader());

impl Announced for TopicBuiltinTopicData {
    fn announcement(&self) -> Announcement {
        let data = EndpointData {
            guid: Guid::new(GuidPrefix::UNKNOWN, EntityId::PARTICIPANT),
            topic: self.name.clone(),
            type_name: self.type_name.clone(),
            qos: self.qos.clone().into(),
            unicast: Default::default(),
            multicast: Default::default(),
            expects_inline_qos: false,
            receive_buffer: None,
            content_filter: None,
        };
        let key = TopicKey { name: self.name.clone(), type_name: self.type_name.clone() };
        announcement_of(EndpointKind::Writer, &data, crate::key::instance_of(&key).ok())
    }

    fn of_announcement(announcement: &Announcement) -> Option<Self> {
        let EndpointData { topic, type_name, qos, .. } = endpoint_of(EndpointKind::Writer, announcement)?;
        Some(Self { name: topic, type_name, qos: qos.into() })
    }

    fn of_key(_: [u8; 16]) -> Self {
        Self { name: String::new(), type_name: String::new(), qos: Qos::for_writer().into() }
    }
}

/// A value that is serialized as its [`Announcement`].
macro_rules! as_announcement {
    ($data:ident, $name:literal) => {
        impl Default for $data {
            fn default() -> Self {
                Self::of_key([0; 16])
            }
        }

        impl CdrValue for $data {
            const LAYOUT: Layout = Announcement::LAYOUT;
            const KEY_LAYOUT: Layout = Announcement::KEY_LAYOUT;

            fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
                self.announcement().end_offset(offset, encoding)
            }

            fn encode(&self, writer: &mut CdrWriter<'_>) -> weir_cdr::Result {
                self.announcement().encode(writer)
            }

            fn decode(reader: &mut CdrReader<'_>) -> weir_cdr::Result<Self> {
                Self::of_announcement(&Announcement::decode(reader)?).ok_or(CdrError::UnexpectedEnd)
            }

            fn skip(reader: &mut CdrReader<'_>) -> weir_cdr::Result {
                Announcement::skip(reader)
            }

            fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> weir_cdr::Result {
                Announcement::copy(reader, writer)
            }

            fn end_offset_as_key(&self, offset: usize, encoding: Encoding) -> usize {
                self.announcement().end_offset_as_key(offset, encoding)
            }

            fn encode_as_key(&self, writer: &mut CdrWriter<'_>) -> weir_cdr::Result {
                self.announcement().encode_as_key(writer)
            }

            fn decode_as_key(&mut self, reader: &mut CdrReader<'_>) -> weir_cdr::Result {
                let mut announcement = Announcement::default();
                announcement.decode_as_key(reader)?;
                *self = Self::of_key(announcement.key);
                Ok(())
            }

            fn copy_as_key(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> weir_cdr::Result {
                Announcement::copy_as_key(reader, writer)
            }
        }

        impl DdsType for $data {
            const TYPE_NAME: &'static str = $name;
            const EXTENSIBILITY: Extensibility = Announcement::EXTENSIBILITY;
            const HAS_KEY: bool = true;
        }
    };
}

as_announcement!(ParticipantBuiltinTopicData, "DDS::ParticipantBuiltinTopicData");
as_announcement!(TopicBuiltinTopicData, "DDS::TopicBuiltinTopicData");
as_announcement!(PublicationBuiltinTopicData, "DDS::PublicationBuiltinTopicData");
as_announcement!(SubscriptionBuiltinTopicData, "DDS::SubscriptionBuiltinTopicData");

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: DdsType + PartialEq + std::fmt::Debug>(value: &T) {
        let mut payload = Vec::new();
        weir_cdr::to_payload(value, &mut payload).unwrap();
        assert_eq!(weir_cdr::from_payload::<T>(&payload).as_ref(), Ok(value));
        let by_value = crate::key::instance_of(value).unwrap();
        assert_eq!(crate::key::instance_of_payload::<T>(&payload, false), Some(by_value));
    }

    #[test]
    fn data_of_builtin_topics_are_written_and_read_as_any_type() {
        let key = Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(3, true));
        let address = SocketAddr::from(([10, 0, 0, 1], 7411));
        let qos: AnnouncedQos =
            Qos { user_data: vec![1, 2, 3], partition: vec!["a".to_owned()], ..Qos::for_writer() }.into();
        let writer = PublicationBuiltinTopicData {
            topic_name: "Square".to_owned(),
            type_name: "ShapeType".to_owned(),
            qos: qos.clone(),
            addresses: vec![address],
            ..PublicationBuiltinTopicData::of_key(key.to_bytes())
        };
        check(&writer);
        assert_eq!(crate::key::instance_of(&writer).unwrap(), key.to_bytes());
        let key_payload = weir_cdr::key_payload(&writer, Encoding::Xcdr1).unwrap();
        let of_key: PublicationBuiltinTopicData = weir_cdr::from_key_payload(&key_payload).unwrap();
        assert_eq!((of_key.key, of_key.topic_name.as_str()), (key, ""));
        check(&TopicBuiltinTopicData { name: "Square".to_owned(), type_name: "ShapeType".to_owned(), qos });
        check(&ParticipantBuiltinTopicData {
            name: Some("shapes".to_owned()),
            domain_id: Some(3),
            lease_duration: Duration::from_secs(10),
            addresses: vec![address],
            ..ParticipantBuiltinTopicData::of_key(Guid::new(key.prefix, EntityId::PARTICIPANT).to_bytes())
        });
    }
}
