//! Why the topics of two waiting ends do not match.
//!
//! The engine reports incompatible policies, but not types, and an end with matching topics never
//! learns what the other one waits for. So each announces itself on a topic that always matches,
//! until the run starts.

use weir_dds::{DataReader, DataReaderQos, DataWriter, DataWriterQos, Durability, Sample};

use super::node::{Node, failed};
use super::settings::NodeSettings;
use weir_bench::endpoint::EndpointError;
use weir_bench::payload::SampleHeader;
use weir_bench::test_data::{Data, TestData};

/// The topic.
pub(super) const ENDS: &str = "PerftestEnds";

/// Which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Publisher,
    Subscriber,
}

impl Role {
    /// Its name, and the option that sets its number.
    pub(super) fn named(self) -> (&'static str, &'static str) {
        match self {
            Self::Publisher => ("publisher", "-pidMultiPubTest"),
            Self::Subscriber => ("subscriber", "-sidMultiSubTest"),
        }
    }

    pub(super) fn other(self) -> Self {
        if self == Self::Publisher { Self::Subscriber } else { Self::Publisher }
    }
}

/// What an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EndKind {
    role: Role,
    keyed: bool,
    reliable: bool,
    durability: Durability,
}

/// Announces this end, and receives announcements of others.
pub(super) struct Probe {
    ours: EndKind,
    _writer: DataWriter<TestData>,
    reader: DataReader<TestData>,
    told: Vec<String>,
}

impl Probe {
    pub(super) fn open(node: &Node, role: Role) -> Result<Self, EndpointError> {
        let NodeSettings { keyed, reliable, durability, .. } = node.settings;
        let ours = EndKind { role, keyed, reliable, durability };
        let topic = node.participant.create_topic(ENDS).map_err(failed)?;
        let qos = DataReaderQos::default().reliable().keep_all().transient_local();
        let subscriber = node.participant.create_subscriber().map_err(failed)?;
        let reader = subscriber.create_datareader(&topic, qos).map_err(failed)?;
        let qos = DataWriterQos::default().reliable().keep_last(1).transient_local();
        let publisher = node.participant.create_publisher().map_err(failed)?;
        let writer = publisher.create_datawriter(&topic, qos).map_err(failed)?;
        let mut sample = TestData::default();
        sample.set_header(&ours.header());
        writer.write(&sample).map_err(failed)?;
        writer.flush();
        Ok(Self { ours, _writer: writer, reader, told: Vec::new() })
    }

    /// Why an end that was found cannot be matched, each reason once.
    pub(super) fn mismatches(&mut self) -> Vec<String> {
        let mut new = Vec::new();
        for data in self.reader.take(64).iter().filter_map(Sample::data) {
            let reason = self.ours.mismatch(EndKind::of(&data.header()));
            new.extend(reason.filter(|reason| !self.told.contains(reason)));
        }
        new.dedup();
        self.told.extend(new.iter().cloned());
        new
    }
}

impl EndKind {
    fn header(self) -> SampleHeader {
        let key = [u8::from(self.keyed), u8::from(self.reliable), self.durability as u8, 0];
        SampleHeader { key, ..SampleHeader::data(0, 0).by(u32::from(self.role == Role::Subscriber)) }
    }

    fn of(header: &SampleHeader) -> Self {
        let [keyed, reliable, durability, _] = header.key;
        let durability = DURABILITIES[usize::from(durability).min(DURABILITIES.len() - 1)];
        let role = if header.entity_id == 0 { Role::Publisher } else { Role::Subscriber };
        Self { role, keyed: keyed != 0, reliable: reliable != 0, durability }
    }

    /// What speaks against a match with `other`, if it is of the other role.
    fn mismatch(self, other: Self) -> Option<String> {
        if self.role == other.role {
            return None;
        }
        let (writer, reader) = if self.role == Role::Publisher { (self, other) } else { (other, self) };
        let (policy, how, advice) = if other.keyed != self.keyed {
            let type_of = |kind: Self| if kind.keyed { "TestDataKeyed_t" } else { "TestData_t" };
            let how = format!("it has {}, we have {}", type_of(other), type_of(self));
            ("TYPE", how, "both ends -keyed or none")
        } else if other.reliable != self.reliable {
            let is = |kind: Self| if kind.reliable { "RELIABLE" } else { "BEST_EFFORT" };
            let how = format!("it has {}, we have {}", is(other), is(self));
            ("RELIABILITY", how, "both ends -bestEffort or none")
        } else if reader.durability > writer.durability {
            let name = |kind: Self| DURABILITY_NAMES[kind.durability as usize];
            let how = format!("the publisher has {}, the subscriber asks for {}", name(writer), name(reader));
            ("DURABILITY", how, "both ends the same -durability")
        } else {
            return None;
        };
        let (who, _) = other.role.named();
        Some(format!("a {who} was found whose {policy} does not match: {how}; give {advice}"))
    }
}

/// By the number of `-durability`.
const DURABILITIES: [Durability; 4] =
    [Durability::Volatile, Durability::TransientLocal, Durability::Transient, Durability::Persistent];
const DURABILITY_NAMES: [&str; 4] = ["VOLATILE", "TRANSIENT_LOCAL", "TRANSIENT", "PERSISTENT"];

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: EndKind =
        EndKind { role: Role::Publisher, keyed: false, reliable: true, durability: Durability::Volatile };
    const THEIRS: EndKind = EndKind { role: Role::Subscriber, ..OURS };

    #[test]
    fn an_end_survives_its_sample() {
        for bits in 0..32_u8 {
            let is = |bit: u8| bits & bit != 0;
            let role = if is(16) { Role::Publisher } else { Role::Subscriber };
            let durability = DURABILITIES[usize::from(bits >> 2 & 3)];
            let kind = EndKind { role, keyed: is(1), reliable: is(2), durability };
            assert_eq!(EndKind::of(&kind.header()), kind);
        }
        // Another version may have more.
        let header = SampleHeader { key: [0, 1, 9, 9], ..THEIRS.header() };
        assert_eq!(EndKind::of(&header).durability, Durability::Persistent);
    }

    #[test]
    fn the_policy_that_does_not_match_is_named_at_both_ends() {
        let check = |theirs: EndKind, expected: &str| {
            for reason in [OURS.mismatch(theirs), theirs.mismatch(OURS)] {
                let reason = reason.unwrap();
                assert!(reason.contains(expected), "{reason}");
            }
        };
        check(EndKind { keyed: true, ..THEIRS }, "TYPE");
        check(EndKind { reliable: false, ..THEIRS }, "RELIABILITY");
        let late = Durability::TransientLocal;
        check(
            EndKind { durability: late, ..THEIRS },
            "has VOLATILE, the subscriber asks for TRANSIENT_LOCAL",
        );
        assert_eq!(OURS.mismatch(THEIRS), None);
        assert_eq!(THEIRS.mismatch(EndKind { durability: Durability::Persistent, ..OURS }), None);
        assert_eq!(OURS.mismatch(EndKind { keyed: true, ..OURS }), None);
    }
}
