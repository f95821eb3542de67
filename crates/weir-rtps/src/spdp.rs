//! Simple participant discovery: the announcement of a participant (RTPS 2.5, 8.5.3, 9.6.3).
//!
//! Stateless encoding and decoding; when to announce and how to process an announcement is in
//! [`ParticipantCore`](crate::participant::ParticipantCore).

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::{
    EntityId, Guid, GuidPrefix, Parameter, ParameterId, ParameterListWriter, ProtocolVersion, VendorId,
};

use crate::discovery_data::{
    DiscoveryDataError, DiscoveryLimits, Locators, Result, beginning, duration, open, push_encapsulation,
    wire_duration,
};
use crate::qos_parameters::opaque;

/// Bits of BUILTIN_ENDPOINT_SET (RTPS 2.5, 9.3.2, table 9.4).
pub mod builtin_endpoints {
    /// Writer of participant announcements.
    pub const PARTICIPANT_ANNOUNCER: u32 = 1 << 0;
    /// Reader of participant announcements.
    pub const PARTICIPANT_DETECTOR: u32 = 1 << 1;
    /// Writer of announcements of writers.
    pub const PUBLICATIONS_ANNOUNCER: u32 = 1 << 2;
    /// Reader of announcements of writers.
    pub const PUBLICATIONS_DETECTOR: u32 = 1 << 3;
    /// Writer of announcements of readers.
    pub const SUBSCRIPTIONS_ANNOUNCER: u32 = 1 << 4;
    /// Reader of announcements of readers.
    pub const SUBSCRIPTIONS_DETECTOR: u32 = 1 << 5;
    /// Writer of liveliness assertions.
    pub const PARTICIPANT_MESSAGE_WRITER: u32 = 1 << 10;
    /// Reader of liveliness assertions.
    pub const PARTICIPANT_MESSAGE_READER: u32 = 1 << 11;
    /// Those of this engine: SPDP, SEDP and participant messages.
    pub const WEIR: u32 = PARTICIPANT_ANNOUNCER
        | PARTICIPANT_DETECTOR
        | PUBLICATIONS_ANNOUNCER
        | PUBLICATIONS_DETECTOR
        | SUBSCRIPTIONS_ANNOUNCER
        | SUBSCRIPTIONS_DETECTOR
        | PARTICIPANT_MESSAGE_WRITER
        | PARTICIPANT_MESSAGE_READER;
}

/// The lease of a participant that names none (RTPS 2.5, 9.6.3.2).
pub const DEFAULT_LEASE: Duration = Duration::from_secs(100);

/// Of a longer entity name, so many bytes are kept.
const ENTITY_NAME_MAX: usize = 256;

/// One participant's announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantData {
    /// Its identity.
    pub prefix: GuidPrefix,
    /// Its protocol version.
    pub version: ProtocolVersion,
    /// Its vendor.
    pub vendor: VendorId,
    /// Its domain; older engines omit it.
    pub domain_id: Option<u32>,
    /// Its builtin endpoints: see [`builtin_endpoints`].
    pub builtin_endpoints: u32,
    /// Maximum silence before it counts as lost.
    pub lease: Duration,
    /// Its addresses for discovery.
    pub metatraffic_unicast: Locators,
    /// Its group for announcements. Informational, never sent to.
    pub metatraffic_multicast: Option<SocketAddrV4>,
    /// The addresses of its endpoints without their own.
    pub default_unicast: Locators,
    /// The multicast groups that those endpoints have also joined.
    pub default_multicast: Locators,
    /// A human-readable name.
    pub entity_name: Option<String>,
    /// Bytes for applications (USER_DATA).
    pub user_data: Vec<u8>,
    /// Its granted socket buffers in bytes; only from Weir.
    pub receive_buffer: Option<u32>,
    /// Whether it delimits keys of appendable types in XCDR2 (DDS-XTypes 1.3, 7.4.3.4): all engines
    /// except Cyclone DDS before 0.11. Not sent.
    pub delimits_keys: bool,
}

/// Appends the payload of an announcement with its encapsulation header.
pub fn encode(data: &ParticipantData, out: &mut Vec<u8>) {
    push_encapsulation(out);
    let mut list = ParameterListWriter::new(out);
    list.bytes4(ParameterId::PROTOCOL_VERSION, [data.version.major, data.version.minor, 0, 0]);
    list.bytes4(ParameterId::VENDORID, [data.vendor.0[0], data.vendor.0[1], 0, 0]);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(data.prefix, EntityId::PARTICIPANT));
    if let Some(domain_id) = data.domain_id {
        list.u32(ParameterId::DOMAIN_ID, domain_id);
    }
    list.u32(ParameterId::BUILTIN_ENDPOINT_SET, data.builtin_endpoints);
    list.duration(ParameterId::PARTICIPANT_LEASE_DURATION, wire_duration(data.lease));
    list.addresses(ParameterId::METATRAFFIC_UNICAST_LOCATOR, &data.metatraffic_unicast.addresses);
    list.addresses(ParameterId::METATRAFFIC_MULTICAST_LOCATOR, data.metatraffic_multicast.as_slice());
    list.addresses(ParameterId::DEFAULT_UNICAST_LOCATOR, &data.default_unicast.addresses);
    list.addresses(ParameterId::DEFAULT_MULTICAST_LOCATOR, &data.default_multicast.addresses);
    if let Some(name) = &data.entity_name {
        list.string(ParameterId::ENTITY_NAME, name);
    }
    if !data.user_data.is_empty() {
        list.byte_sequence(ParameterId::USER_DATA, &data.user_data);
    }
    if let Some(bytes) = data.receive_buffer {
        list.u32(ParameterId::WEIR_RECEIVE_BUFFER, bytes);
    }
    list.finish();
}

/// Appends the payload of a disposal: only the key.
pub fn encode_key(prefix: GuidPrefix, out: &mut Vec<u8>) {
    push_encapsulation(out);
    let mut list = ParameterListWriter::new(out);
    list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(prefix, EntityId::PARTICIPANT));
    list.finish();
}

/// Decodes the payload of an announcement. `key_hash` (from inline QoS) and `sender_vendor` (from
/// the message's header) replace values missing in the list.
///
/// # Errors
/// Malformed or invalid data, an unknown parameter that must be understood (such as a domain tag),
/// or no BUILTIN_ENDPOINT_SET.
pub fn decode(
    payload: &[u8],
    key_hash: Option<[u8; 16]>,
    sender_vendor: VendorId,
    limits: &DiscoveryLimits,
) -> Result<ParticipantData> {
    let (mut data, mut name) = (ParticipantData::nothing(), String::new());
    decode_into(payload, key_hash, sender_vendor, limits, (&mut data, &mut name))?;
    Ok(data)
}

/// The same, into data whose memory is used again. `spare_name`: memory for a name, which stays there without one.
///
/// # Errors
/// As [`decode`]. The data mean nothing then.
pub(crate) fn decode_into(
    payload: &[u8],
    key_hash: Option<[u8; 16]>,
    sender_vendor: VendorId,
    limits: &DiscoveryLimits,
    (data, spare_name): (&mut ParticipantData, &mut String),
) -> Result {
    data.forget(spare_name);
    data.prefix = key_hash.map_or(GuidPrefix::UNKNOWN, |hash| Guid::from_bytes(hash).prefix);
    data.vendor = sender_vendor;
    let mut has_endpoint_set = false;
    for parameter in open(payload)?.iter() {
        let parameter = parameter?;
        has_endpoint_set |= parameter.id == ParameterId::BUILTIN_ENDPOINT_SET;
        data.take_in(&parameter, limits, spare_name).map_err(|error| error.about(parameter.id))?;
    }
    if data.prefix == GuidPrefix::UNKNOWN {
        return Err(DiscoveryDataError::Missing(ParameterId::PARTICIPANT_GUID));
    }
    if !has_endpoint_set {
        return Err(DiscoveryDataError::Missing(ParameterId::BUILTIN_ENDPOINT_SET));
    }
    if data.vendor != VendorId::WEIR {
        data.receive_buffer = None;
    }
    data.delimits_keys |= data.vendor != VendorId::CYCLONE;
    Ok(())
}

/// Returns the GUID in the payload of a disposal, if there is one.
#[must_use]
pub fn decode_key(payload: &[u8]) -> Option<Guid> {
    let list = open(payload).ok()?;
    let mut parameters = list.iter().map_while(|parameter| parameter.ok());
    parameters.find(|parameter| parameter.id == ParameterId::PARTICIPANT_GUID)?.guid().ok()
}

impl ParticipantData {
    /// Returns data of nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            prefix: GuidPrefix::UNKNOWN,
            version: ProtocolVersion::V2_5,
            vendor: VendorId::UNKNOWN,
            domain_id: None,
            builtin_endpoints: 0,
            lease: DEFAULT_LEASE,
            metatraffic_unicast: Locators::default(),
            metatraffic_multicast: None,
            default_unicast: Locators::default(),
            default_multicast: Locators::default(),
            entity_name: None,
            user_data: Vec::new(),
            receive_buffer: None,
            delimits_keys: true,
        }
    }

    /// Becomes data of nothing, and keeps the memory.
    fn forget(&mut self, spare_name: &mut String) {
        if let Some(name) = self.entity_name.take() {
            *spare_name = name;
        }
        let nothing = Self {
            metatraffic_unicast: core::mem::take(&mut self.metatraffic_unicast).emptied(),
            default_unicast: core::mem::take(&mut self.default_unicast).emptied(),
            default_multicast: core::mem::take(&mut self.default_multicast).emptied(),
            user_data: core::mem::take(&mut self.user_data),
            ..Self::nothing()
        };
        *self = nothing;
        self.user_data.clear();
    }

    fn take_in(
        &mut self,
        parameter: &Parameter<'_>,
        limits: &DiscoveryLimits,
        spare_name: &mut String,
    ) -> Result {
        match parameter.id {
            ParameterId::PROTOCOL_VERSION => {
                let [major, minor] = parameter.bytes()?;
                self.version = ProtocolVersion { major, minor };
            }
            ParameterId::VENDORID => self.vendor = VendorId(parameter.bytes()?),
            ParameterId::PARTICIPANT_GUID => self.prefix = parameter.guid()?.prefix,
            ParameterId::DOMAIN_ID => self.domain_id = Some(parameter.u32()?),
            ParameterId::BUILTIN_ENDPOINT_SET => self.builtin_endpoints = parameter.u32()?,
            ParameterId::PARTICIPANT_LEASE_DURATION => self.lease = duration(parameter)?,
            ParameterId::METATRAFFIC_UNICAST_LOCATOR => self.metatraffic_unicast.add(parameter, limits)?,
            ParameterId::METATRAFFIC_MULTICAST_LOCATOR => {
                let address = parameter.locator()?.to_socket_addr_v4();
                self.metatraffic_multicast = self.metatraffic_multicast.or(address);
            }
            ParameterId::DEFAULT_UNICAST_LOCATOR => self.default_unicast.add(parameter, limits)?,
            ParameterId::DEFAULT_MULTICAST_LOCATOR => self.default_multicast.add_group(parameter, limits)?,
            // A name for people: whatever it is, the participant can be used.
            ParameterId::ENTITY_NAME => {
                let mut name = self.entity_name.take().unwrap_or_else(|| core::mem::take(spare_name));
                if beginning(parameter, limits.name_bytes.min(ENTITY_NAME_MAX), &mut name) {
                    self.entity_name = Some(name);
                } else {
                    *spare_name = name;
                }
            }
            ParameterId::USER_DATA => opaque(parameter, limits, &mut self.user_data),
            ParameterId::WEIR_RECEIVE_BUFFER => self.receive_buffer = parameter.u32().ok(),
            ParameterId::ADLINK_PARTICIPANT_VERSION_INFO => {
                self.delimits_keys = !is_cyclone_without_key_delimiters(parameter.value);
            }
            // An empty tag is the default one.
            ParameterId::DOMAIN_TAG if parameter.string().is_ok_and(str::is_empty) => {}
            id if id.must_understand() => return Err(DiscoveryDataError::NotUnderstood(id)),
            _ => {}
        }
        Ok(())
    }
}

/// Returns whether the version of Cyclone DDS is at most 0.10, in a text `HOST/VERSION/...` after
/// five numbers and its length.
fn is_cyclone_without_key_delimiters(info: &[u8]) -> bool {
    let text = info.get(24..).and_then(|text| text.split(|byte| *byte == 0).next()).unwrap_or_default();
    let version = text.split(|byte| *byte == b'/').nth(1).and_then(|version| str::from_utf8(version).ok());
    let mut numbers = version.unwrap_or_default().split('.').map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(0)), Some(Ok(0..=10))))
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use weir_wire::{Locator, encapsulation};

    use super::*;

    fn example() -> ParticipantData {
        let address = |port| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), port);
        let locators = |port| Locators { addresses: vec![address(port)], skipped: 0 };
        ParticipantData {
            prefix: GuidPrefix([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
            version: ProtocolVersion::V2_5,
            vendor: VendorId::WEIR,
            domain_id: Some(3),
            builtin_endpoints: builtin_endpoints::WEIR,
            lease: Duration::from_millis(20_500),
            metatraffic_unicast: locators(7410),
            metatraffic_multicast: Some(SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400)),
            default_unicast: locators(7411),
            default_multicast: Locators {
                addresses: vec![SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401)],
                skipped: 0,
            },
            entity_name: Some("weir".to_owned()),
            user_data: vec![1, 2, 3],
            receive_buffer: Some(425_984),
            delimits_keys: true,
        }
    }

    #[test]
    fn old_versions_of_cyclone_are_known_by_their_version() {
        for (version, is_old) in [
            ("0.10.2", true),
            ("0.9.1", true),
            ("0.11.0", false),
            ("11.0.1", false),
            ("", false),
            ("0", false),
        ] {
            let info = [&[0; 24][..], format!("host/{version}/Linux/Linux\0").as_bytes()].concat();
            assert_eq!(is_cyclone_without_key_delimiters(&info), is_old, "{version}");
        }
        assert!(!is_cyclone_without_key_delimiters(&[0; 23]));
    }

    fn list(write: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
        let mut payload = Vec::new();
        push_encapsulation(&mut payload);
        let mut list = ParameterListWriter::new(&mut payload);
        write(&mut list);
        list.finish();
        payload
    }

    fn read(payload: &[u8]) -> Result<ParticipantData> {
        decode(payload, None, VendorId::WEIR, &DiscoveryLimits::default())
    }

    fn minimum(list: &mut ParameterListWriter<'_>) {
        list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(GuidPrefix([7; 12]), EntityId::PARTICIPANT));
        list.u32(ParameterId::BUILTIN_ENDPOINT_SET, 0x0c3f);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut payload = Vec::new();
        encode(&example(), &mut payload);
        assert_eq!(read(&payload), Ok(example()));
        assert_eq!(payload.len() % 4, 0);
    }

    #[test]
    fn what_is_written_is_what_the_specification_says() {
        let mut payload = Vec::new();
        encode(&ParticipantData { entity_name: None, domain_id: None, ..example() }, &mut payload);
        let expected: Vec<u8> = [
            &[0, 3, 0, 0][..],
            &[0x15, 0, 4, 0, 2, 5, 0, 0],
            &[0x16, 0, 4, 0, 1, 0xf0, 0, 0],
            &[0x50, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 1, 0xc1],
            &[0x58, 0, 4, 0, 0x3f, 0x0c, 0, 0],
            &[0x02, 0, 8, 0, 20, 0, 0, 0, 0, 0, 0, 0x80],
            &[0x32, 0, 24, 0, 1, 0, 0, 0, 0xf2, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1],
            &[
                0x33, 0, 24, 0, 1, 0, 0, 0, 0xe8, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 239, 255,
                0, 1,
            ],
            &[0x31, 0, 24, 0, 1, 0, 0, 0, 0xf3, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1],
            &[
                0x48, 0, 24, 0, 1, 0, 0, 0, 0xe9, 0x1c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 239, 255,
                0, 1,
            ],
            &[0x2c, 0, 8, 0, 3, 0, 0, 0, 1, 2, 3, 0],
            &[0x01, 0x8f, 4, 0, 0, 0x80, 6, 0],
            &[1, 0, 0, 0],
        ]
        .concat();
        assert_eq!(payload, expected);
    }

    #[test]
    fn the_minimum_of_other_vendors_is_enough_and_absent_means_default() {
        let data = read(&list(minimum)).unwrap();
        assert_eq!((data.lease, data.domain_id, data.entity_name), (DEFAULT_LEASE, None, None));
        assert!(data.metatraffic_unicast.addresses.is_empty());
    }

    #[test]
    fn any_entity_name_will_do() {
        let name_of = |value: &[u8]| {
            let payload = list(|list| {
                minimum(list);
                list.raw(ParameterId::ENTITY_NAME, value);
            });
            read(&payload).unwrap().entity_name
        };
        let text = |text: &[u8]| [&(text.len() as u32 + 1).to_le_bytes()[..], text, &[0]].concat();
        assert_eq!(name_of(&text(&[b'n'; 5000])), Some("n".repeat(256)));
        // The end is not in the middle of a character.
        assert_eq!(name_of(&text("\u{e9}x".repeat(200).as_bytes())), Some("\u{e9}x".repeat(85)));
        assert_eq!(name_of(&text(&[b'G', 0xfc])), Some("G\u{fffd}".to_owned()));
        assert_eq!(name_of(&[9, 0, 0, 0]), None);
    }

    #[test]
    fn big_endian_announcements_are_read() {
        let payload = [
            &encapsulation::PL_CDR_BE[..],
            &[0, 0],
            &[0, 0x50, 0, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0xc1],
            &[0, 0x58, 0, 4, 0, 0, 0x0c, 0x3f],
            &[0, 0x02, 0, 8, 0, 0, 0, 9, 0x40, 0, 0, 0],
            &[0, 0x32, 0, 24, 0, 0, 0, 1, 0, 0, 0x1c, 0xf2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1],
            &[0, 1, 0, 0],
        ]
        .concat();
        let data = read(&payload).unwrap();
        assert_eq!(data.prefix, GuidPrefix([1; 12]));
        assert_eq!(data.builtin_endpoints, 0x0c3f);
        assert_eq!(data.lease, Duration::from_millis(9250));
        assert_eq!(data.metatraffic_unicast.addresses, example().metatraffic_unicast.addresses);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let check = |write: &dyn Fn(&mut ParameterListWriter<'_>), expected: DiscoveryDataError| {
            assert_eq!(read(&list(write)), Err(expected));
        };
        let guid = Guid::new(GuidPrefix([7; 12]), EntityId::PARTICIPANT);
        check(
            &|list| list.u32(ParameterId::BUILTIN_ENDPOINT_SET, 0),
            DiscoveryDataError::Missing(ParameterId::PARTICIPANT_GUID),
        );
        check(
            &|list| list.guid(ParameterId::PARTICIPANT_GUID, guid),
            DiscoveryDataError::Missing(ParameterId::BUILTIN_ENDPOINT_SET),
        );
        check(
            &|list| {
                minimum(list);
                list.string(ParameterId::DOMAIN_TAG, "tag");
            },
            DiscoveryDataError::NotUnderstood(ParameterId::DOMAIN_TAG),
        );
        check(
            &|list| {
                minimum(list);
                list.u32(ParameterId(0x4abc), 0);
            },
            DiscoveryDataError::NotUnderstood(ParameterId(0x4abc)),
        );
        check(
            &|list| {
                minimum(list);
                list.bytes4(ParameterId::PARTICIPANT_LEASE_DURATION, [0; 4]);
            },
            DiscoveryDataError::BadValue(ParameterId::PARTICIPANT_LEASE_DURATION),
        );
        assert_eq!(read(&[0, 1, 0, 0]), Err(DiscoveryDataError::NotAParameterList));
        assert_eq!(read(&[0, 3]), Err(DiscoveryDataError::NotAParameterList));
    }

    #[test]
    fn what_is_unknown_and_need_not_be_understood_is_skipped() {
        let data = read(&list(|list| {
            minimum(list);
            list.string(ParameterId::DOMAIN_TAG, "");
            list.u32(ParameterId(0x8abc), 1);
            list.u32(ParameterId(0x0abc), 1);
        }));
        assert_eq!(data.map(|data| data.prefix), Ok(GuidPrefix([7; 12])));
    }

    #[test]
    fn only_unicast_ipv4_locators_are_kept_and_only_so_many() {
        let data = read(&list(|list| {
            minimum(list);
            for address in
                [[0, 0, 0, 0], [239, 255, 0, 1], [255, 255, 255, 255], [10, 0, 0, 1], [10, 0, 0, 1]]
            {
                let locator = Locator::udp_v4(SocketAddrV4::new(address.into(), 7410));
                list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, locator);
            }
            list.locator(
                ParameterId::METATRAFFIC_UNICAST_LOCATOR,
                Locator { kind: 2, port: 7410, address: [1; 16] },
            );
            for last in 0..20 {
                let locator = Locator::udp_v4(SocketAddrV4::new([10, 0, 1, last].into(), 7411));
                list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, locator);
            }
        }))
        .unwrap();
        assert_eq!(data.metatraffic_unicast.addresses, example().metatraffic_unicast.addresses);
        assert_eq!(data.metatraffic_unicast.skipped, 4);
        assert_eq!((data.default_unicast.addresses.len(), data.default_unicast.skipped), (8, 12));
    }

    #[test]
    fn the_vendor_parameter_of_another_vendor_means_something_else() {
        let mut payload = Vec::new();
        encode(&ParticipantData { vendor: VendorId::CYCLONE, ..example() }, &mut payload);
        assert_eq!(read(&payload).unwrap().receive_buffer, None);
    }

    #[test]
    fn the_guid_may_be_in_the_key_hash_alone() {
        let payload = list(|list| list.u32(ParameterId::BUILTIN_ENDPOINT_SET, 0));
        let guid = Guid::new(GuidPrefix([9; 12]), EntityId::PARTICIPANT);
        let data = decode(&payload, Some(guid.to_bytes()), VendorId::EPROSIMA, &DiscoveryLimits::default());
        assert_eq!(
            data.map(|data| (data.prefix, data.vendor)),
            Ok((GuidPrefix([9; 12]), VendorId::EPROSIMA))
        );
    }
}
