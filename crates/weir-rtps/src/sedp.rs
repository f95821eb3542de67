//! Simple endpoint discovery: the announcement of a writer or reader (RTPS 2.5, 8.5.4,
//! 9.6.3).
//!
//! Stateless encoding and decoding; the reliable exchange is in
//! [`ParticipantCore`](crate::participant::ParticipantCore).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_wire::{EntityId, Guid, Parameter, ParameterId, ParameterListWriter, ProtocolVersion, VendorId};

use crate::content_filter::ContentFilterProperty;
use crate::discovery_data::{
    DiscoveryDataError, DiscoveryLimits, Locators, Result, open, push_encapsulation, text,
};
use crate::qos::Qos;
use crate::qos_parameters;

/// The kind of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointKind {
    /// It publishes.
    Writer,
    /// It subscribes.
    Reader,
}

/// The announcement of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointData {
    /// The endpoint.
    pub guid: Guid,
    /// The topic's name.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Its offered or requested policies.
    pub qos: Qos,
    /// Its addresses; none: its participant's default ones.
    pub unicast: Locators,
    /// The multicast groups that it has also joined.
    pub multicast: Locators,
    /// The filter of a reader.
    pub content_filter: Option<Arc<ContentFilterProperty>>,
    /// Whether a reader requests the policies with each sample.
    pub expects_inline_qos: bool,
    /// Its granted socket buffer in bytes; only from Weir.
    pub receive_buffer: Option<u32>,
}

/// Appends the payload of an announcement with its encapsulation header.
pub fn encode(kind: EndpointKind, data: &EndpointData, vendor: VendorId, out: &mut Vec<u8>) {
    push_encapsulation(out);
    let mut list = ParameterListWriter::new(out);
    list.bytes4(
        ParameterId::PROTOCOL_VERSION,
        [ProtocolVersion::V2_5.major, ProtocolVersion::V2_5.minor, 0, 0],
    );
    list.bytes4(ParameterId::VENDORID, [vendor.0[0], vendor.0[1], 0, 0]);
    list.guid(ParameterId::ENDPOINT_GUID, data.guid);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(data.guid.prefix, EntityId::PARTICIPANT));
    // Older engines look for the endpoint's GUID here.
    list.guid(ParameterId::KEY_HASH, data.guid);
    list.string(ParameterId::TOPIC_NAME, &data.topic);
    list.string(ParameterId::TYPE_NAME, &data.type_name);
    qos_parameters::encode(kind, &data.qos, &mut list);
    if let Some(filter) = &data.content_filter {
        list.content_filter(&filter.value());
    }
    list.addresses(ParameterId::UNICAST_LOCATOR, &data.unicast.addresses);
    list.addresses(ParameterId::MULTICAST_LOCATOR, &data.multicast.addresses);
    if let Some(bytes) = data.receive_buffer {
        list.u32(ParameterId::WEIR_RECEIVE_BUFFER, bytes);
    }
    list.finish();
}

/// Appends the payload of a disposal: only the key.
pub fn encode_key(guid: Guid, out: &mut Vec<u8>) {
    push_encapsulation(out);
    let mut list = ParameterListWriter::new(out);
    list.guid(ParameterId::ENDPOINT_GUID, guid);
    list.finish();
}

/// Decodes the payload of an announcement; absent policies have their defaults. `key_hash` (from
/// inline QoS) is the GUID if the list has none.
///
/// # Errors
/// Malformed or invalid data, an unknown parameter that must be understood, or no GUID, topic or
/// type name.
pub fn decode(
    kind: EndpointKind,
    payload: &[u8],
    key_hash: Option<[u8; 16]>,
    limits: &DiscoveryLimits,
) -> Result<EndpointData> {
    let mut data = EndpointData::nothing();
    decode_into(kind, payload, key_hash, limits, &mut data)?;
    Ok(data)
}

/// The same, into data whose memory is used again.
///
/// # Errors
/// As [`decode`]. The data mean nothing then.
pub(crate) fn decode_into(
    kind: EndpointKind,
    payload: &[u8],
    key_hash: Option<[u8; 16]>,
    limits: &DiscoveryLimits,
    data: &mut EndpointData,
) -> Result {
    data.forget(kind);
    data.guid = key_hash.map_or(Guid::UNKNOWN, Guid::from_bytes);
    let mut found = Found { data, has_topic: false, has_type_name: false };
    for parameter in open(payload)?.iter() {
        let parameter = parameter?;
        found.take_in(&parameter, limits).map_err(|error| error.about(parameter.id))?;
    }
    for (is_there, id) in [
        (found.data.guid != Guid::UNKNOWN, ParameterId::ENDPOINT_GUID),
        (found.has_topic, ParameterId::TOPIC_NAME),
        (found.has_type_name, ParameterId::TYPE_NAME),
    ] {
        if !is_there {
            return Err(DiscoveryDataError::Missing(id));
        }
    }
    Ok(())
}

/// Decodes the payload of a disposal: the key in a parameter list.
///
/// # Errors
/// A malformed list, or no GUID.
pub fn decode_key(payload: &[u8]) -> Result<Guid> {
    let mut guid = None;
    if !payload.is_empty() {
        for parameter in open(payload)?.iter() {
            let parameter = parameter?;
            if parameter.id == ParameterId::ENDPOINT_GUID {
                guid = Some(parameter.guid()?);
            }
        }
    }
    guid.ok_or(DiscoveryDataError::Missing(ParameterId::ENDPOINT_GUID))
}

impl EndpointData {
    /// Returns data of nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            guid: Guid::UNKNOWN,
            topic: String::new(),
            type_name: String::new(),
            qos: Qos::for_reader(),
            unicast: Locators::default(),
            multicast: Locators::default(),
            content_filter: None,
            expects_inline_qos: false,
            receive_buffer: None,
        }
    }

    /// Becomes data of nothing, with the default policies, and keeps the memory.
    fn forget(&mut self, kind: EndpointKind) {
        let qos = match kind {
            EndpointKind::Writer => Qos::for_writer(),
            EndpointKind::Reader => Qos::for_reader(),
        };
        self.qos.become_copy_of(&qos);
        self.topic.clear();
        self.type_name.clear();
        self.unicast = core::mem::take(&mut self.unicast).emptied();
        self.multicast = core::mem::take(&mut self.multicast).emptied();
        (self.content_filter, self.expects_inline_qos, self.receive_buffer) = (None, false, None);
    }
}

/// The values read so far.
struct Found<'d> {
    data: &'d mut EndpointData,
    has_topic: bool,
    has_type_name: bool,
}

impl Found<'_> {
    fn take_in(&mut self, parameter: &Parameter<'_>, limits: &DiscoveryLimits) -> Result {
        let data = &mut *self.data;
        match parameter.id {
            ParameterId::ENDPOINT_GUID => data.guid = parameter.guid()?,
            ParameterId::KEY_HASH if data.guid == Guid::UNKNOWN => data.guid = parameter.guid()?,
            ParameterId::TOPIC_NAME => {
                let name = text(parameter, limits.name_bytes)?;
                data.topic.clear();
                data.topic.push_str(name);
                self.has_topic = true;
            }
            ParameterId::TYPE_NAME => {
                let name = text(parameter, limits.name_bytes)?;
                data.type_name.clear();
                data.type_name.push_str(name);
                self.has_type_name = true;
            }
            ParameterId::UNICAST_LOCATOR => data.unicast.add(parameter, limits)?,
            ParameterId::MULTICAST_LOCATOR => data.multicast.add_group(parameter, limits)?,
            // One that cannot be used is left out: the reader filters what it receives.
            ParameterId::CONTENT_FILTER_PROPERTY => {
                data.content_filter = ContentFilterProperty::decode(parameter).map(Arc::new);
            }
            ParameterId::EXPECTS_INLINE_QOS => data.expects_inline_qos = parameter.bool()?,
            ParameterId::WEIR_RECEIVE_BUFFER => data.receive_buffer = parameter.u32().ok(),
            id if qos_parameters::decode(parameter, limits, &mut data.qos)? || !id.must_understand() => {}
            id => return Err(DiscoveryDataError::NotUnderstood(id)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use core::net::{Ipv4Addr, SocketAddrV4};
    use core::time::Duration;

    use weir_wire::GuidPrefix;

    use super::*;
    use crate::qos::{
        DestinationOrder, Durability, DurabilityService, History, INFINITE, Liveliness, LivelinessKind,
        Ownership, Presentation, PresentationScope, Reliability, TypeConsistency, TypeConsistencyKind, XCDR1,
        XCDR2,
    };

    fn example(kind: EndpointKind, qos: Qos) -> EndpointData {
        let entity = match kind {
            EndpointKind::Writer => EntityId::user_writer(1, true),
            EndpointKind::Reader => EntityId::user_reader(1, true),
        };
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7500);
        EndpointData {
            guid: Guid::new(GuidPrefix([5; 12]), entity),
            topic: "Square".to_owned(),
            type_name: "ShapeType".to_owned(),
            qos,
            unicast: Locators { addresses: vec![address], skipped: 0 },
            multicast: Locators::default(),
            content_filter: None,
            expects_inline_qos: false,
            receive_buffer: None,
        }
    }

    /// A value other than the default for every announced policy.
    fn unusual() -> Qos {
        Qos {
            reliability: Reliability::BestEffort,
            max_blocking_time: INFINITE,
            durability: Durability::TransientLocal,
            history: History::KeepLast(7),
            deadline: Duration::from_millis(100),
            latency_budget: Duration::from_nanos(1),
            transport_priority: i32::MIN,
            liveliness: Liveliness {
                kind: LivelinessKind::ManualByTopic,
                lease: Duration::new(3, 999_999_999),
            },
            ownership: Ownership::Exclusive,
            ownership_strength: -5,
            destination_order: DestinationOrder::BySourceTimestamp,
            presentation: Presentation {
                scope: PresentationScope::Group,
                coherent_access: true,
                ordered_access: true,
            },
            partition: vec!["a".to_owned(), String::new(), "four".to_owned()],
            lifespan: Duration::from_micros(1_500_001),
            representation: vec![XCDR2],
            user_data: vec![1, 2, 3],
            topic_data: vec![4],
            group_data: vec![5; 5],
            durability_service: DurabilityService {
                service_cleanup_delay: Duration::new(4, 500_000_000),
                history: History::KeepLast(12),
                max_samples: Some(100),
                max_instances: None,
                max_samples_per_instance: Some(13),
            },
            ..Qos::for_writer()
        }
    }

    fn list(write: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
        let mut payload = Vec::new();
        push_encapsulation(&mut payload);
        let mut list = ParameterListWriter::new(&mut payload);
        write(&mut list);
        list.finish();
        payload
    }

    fn minimum(list: &mut ParameterListWriter<'_>) {
        list.guid(
            ParameterId::ENDPOINT_GUID,
            Guid::new(GuidPrefix([7; 12]), EntityId::user_writer(1, false)),
        );
        list.string(ParameterId::TOPIC_NAME, "Square");
        list.string(ParameterId::TYPE_NAME, "ShapeType");
    }

    fn read(kind: EndpointKind, payload: &[u8]) -> Result<EndpointData> {
        decode(kind, payload, None, &DiscoveryLimits::default())
    }

    #[test]
    fn what_is_written_is_read() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401);
        let mut qos_of_reader = unusual();
        // Policies that only writers have stay at their defaults for readers.
        qos_of_reader.ownership_strength = 0;
        qos_of_reader.transport_priority = 0;
        qos_of_reader.lifespan = INFINITE;
        qos_of_reader.durability_service = DurabilityService::DEFAULT;
        qos_of_reader.type_consistency = TypeConsistency {
            kind: TypeConsistencyKind::DisallowTypeCoercion,
            ignore_sequence_bounds: false,
            ignore_string_bounds: true,
            ignore_member_names: true,
            prevent_type_widening: false,
            force_type_validation: true,
        };
        qos_of_reader.representation = vec![XCDR2, XCDR1];
        for (kind, qos) in [
            (EndpointKind::Writer, unusual()),
            (EndpointKind::Writer, Qos::for_writer()),
            (EndpointKind::Writer, Qos { history: History::KeepAll, ..Qos::for_writer() }),
            (EndpointKind::Reader, qos_of_reader),
            (EndpointKind::Reader, Qos::for_reader()),
        ] {
            let mut data = example(kind, qos);
            if kind == EndpointKind::Reader {
                data.multicast.addresses.push(group);
            }
            let mut payload = Vec::new();
            encode(kind, &data, VendorId::WEIR, &mut payload);
            assert_eq!(read(kind, &payload), Ok(data));
            assert_eq!(payload.len() % 4, 0);
        }
    }

    #[test]
    fn a_writer_offers_its_first_representation_only() {
        let kind = EndpointKind::Writer;
        let data = example(kind, Qos { representation: vec![XCDR2, XCDR1], ..Qos::for_writer() });
        let mut payload = Vec::new();
        encode(kind, &data, VendorId::WEIR, &mut payload);
        assert_eq!(read(kind, &payload).unwrap().qos.representation, [XCDR2]);
    }

    #[test]
    fn reliability_and_durability_are_always_said_and_other_defaults_never() {
        let mut payload = Vec::new();
        encode(
            EndpointKind::Writer,
            &example(EndpointKind::Writer, Qos::for_writer()),
            VendorId::WEIR,
            &mut payload,
        );
        let ids: Vec<_> = open(&payload).unwrap().iter().map(|parameter| parameter.unwrap().id).collect();
        let expected = [
            ParameterId::PROTOCOL_VERSION,
            ParameterId::VENDORID,
            ParameterId::ENDPOINT_GUID,
            ParameterId::PARTICIPANT_GUID,
            ParameterId::KEY_HASH,
            ParameterId::TOPIC_NAME,
            ParameterId::TYPE_NAME,
            ParameterId::RELIABILITY,
            ParameterId::DURABILITY,
            ParameterId::UNICAST_LOCATOR,
        ];
        assert_eq!(ids, expected);
    }

    #[test]
    fn absent_policies_have_the_defaults_of_their_kind() {
        assert_eq!(read(EndpointKind::Writer, &list(minimum)).unwrap().qos, Qos::for_writer());
        assert_eq!(read(EndpointKind::Reader, &list(minimum)).unwrap().qos, Qos::for_reader());
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let check = |write: &dyn Fn(&mut ParameterListWriter<'_>), expected: DiscoveryDataError| {
            let payload = list(|list| {
                minimum(list);
                write(list);
            });
            assert_eq!(read(EndpointKind::Writer, &payload), Err(expected));
        };
        let bad = DiscoveryDataError::BadValue;
        check(&|list| list.u32(ParameterId::RELIABILITY, 9), bad(ParameterId::RELIABILITY));
        check(&|list| list.u32(ParameterId::DURABILITY, 4), bad(ParameterId::DURABILITY));
        check(&|list| list.u32(ParameterId::OWNERSHIP, u32::MAX), bad(ParameterId::OWNERSHIP));
        check(&|list| list.u32(ParameterId::PARTITION, 3), bad(ParameterId::PARTITION));
        check(
            &|list| list.duration(ParameterId::DEADLINE, weir_wire::Duration { seconds: -1, fraction: 0 }),
            bad(ParameterId::DEADLINE),
        );
        check(
            &|list| list.u32(ParameterId::PARTITION, u32::MAX),
            DiscoveryDataError::TooLong(ParameterId::PARTITION),
        );
        check(
            &|list| list.string(ParameterId::TOPIC_NAME, &"t".repeat(4097)),
            DiscoveryDataError::TooLong(ParameterId::TOPIC_NAME),
        );
        check(
            &|list| list.u32(ParameterId(0x4abc), 0),
            DiscoveryDataError::NotUnderstood(ParameterId(0x4abc)),
        );
        for missing in [ParameterId::ENDPOINT_GUID, ParameterId::TOPIC_NAME, ParameterId::TYPE_NAME] {
            let payload = list(|list| {
                if missing != ParameterId::ENDPOINT_GUID {
                    list.guid(
                        ParameterId::ENDPOINT_GUID,
                        example(EndpointKind::Reader, Qos::for_reader()).guid,
                    );
                }
                if missing != ParameterId::TOPIC_NAME {
                    list.string(ParameterId::TOPIC_NAME, "t");
                }
                if missing != ParameterId::TYPE_NAME {
                    list.string(ParameterId::TYPE_NAME, "t");
                }
            });
            assert_eq!(read(EndpointKind::Reader, &payload), Err(DiscoveryDataError::Missing(missing)));
        }
    }

    #[test]
    fn odd_values_that_decide_nothing_here_are_left_out_and_the_endpoint_stays() {
        for odd in [[0_u32, 0], [0, u32::MAX], [7, 1], [1, 0]] {
            let payload = list(|list| {
                minimum(list);
                list.i32s(ParameterId::HISTORY, &odd.map(u32::cast_signed));
                list.u32(ParameterId::RESOURCE_LIMITS, 1);
                list.u32(ParameterId::USER_DATA, 3);
                list.u32(ParameterId::DURABILITY_SERVICE, 3);
                list.u32(ParameterId::TYPE_CONSISTENCY_ENFORCEMENT, 7);
                list.u32(ParameterId::TRANSPORT_PRIORITY, 4);
            });
            let qos = read(EndpointKind::Writer, &payload).unwrap().qos;
            let history = if odd == [1, 0] { History::KeepAll } else { History::KeepLast(1) };
            assert_eq!((qos.history, qos.transport_priority), (history, 4), "{odd:?}");
            assert_eq!((qos.resource_limits, qos.user_data), (Qos::for_writer().resource_limits, Vec::new()));
        }
        let payload = list(|list| {
            minimum(list);
            list.u32(ParameterId::HISTORY, 0);
        });
        assert_eq!(read(EndpointKind::Writer, &payload).unwrap().qos, Qos::for_writer());
    }

    #[test]
    fn long_names_and_many_partitions_are_read() {
        let (name, partitions) = ("n".repeat(4096), vec!["p"; 1024]);
        let payload = list(|list| {
            minimum(list);
            list.string(ParameterId::TOPIC_NAME, &name);
            list.string(ParameterId::TYPE_NAME, &name);
            list.strings(ParameterId::PARTITION, partitions.iter().copied());
        });
        let data = read(EndpointKind::Writer, &payload).unwrap();
        assert_eq!((data.topic, data.type_name), (name.clone(), name));
        assert_eq!(data.qos.partition, partitions);
    }

    #[test]
    fn partitions_that_are_not_utf_8_are_read_with_replacements() {
        let payload = list(|list| {
            minimum(list);
            list.raw(ParameterId::PARTITION, &[2, 0, 0, 0, 2, 0, 0, 0, 0xe9, 0, 0, 0, 2, 0, 0, 0, b'p', 0]);
        });
        assert_eq!(read(EndpointKind::Writer, &payload).unwrap().qos.partition, ["\u{fffd}", "p"]);
    }

    #[test]
    fn user_data_over_the_limit_is_left_out_and_the_endpoint_stays() {
        let payload = list(|list| {
            minimum(list);
            list.byte_sequence(ParameterId::USER_DATA, &[1; 1025]);
        });
        assert_eq!(read(EndpointKind::Writer, &payload).unwrap().qos.user_data, []);
    }

    #[test]
    fn every_nanosecond_survives_the_wire() {
        for nanos in (0..1_000_000_000).step_by(9_999_991).chain([1, 999_999_999]) {
            let period = Duration::new(2, nanos);
            let payload = list(|list| {
                minimum(list);
                list.duration(ParameterId::DEADLINE, crate::discovery_data::wire_duration(period));
            });
            assert_eq!(read(EndpointKind::Writer, &payload).unwrap().qos.deadline, period);
        }
    }

    #[test]
    fn the_key_is_found_in_the_payload() {
        let guid = Guid::new(GuidPrefix([5; 12]), EntityId::user_reader(3, false));
        let mut payload = Vec::new();
        encode_key(guid, &mut payload);
        assert_eq!(decode_key(&payload), Ok(guid));
        assert_eq!(decode_key(&[]), Err(DiscoveryDataError::Missing(ParameterId::ENDPOINT_GUID)));
        assert_eq!(decode_key(&[0, 1, 0, 0]), Err(DiscoveryDataError::NotAParameterList));
    }
}
