//! Why the end of another command line was found, and is no match.

use weir_dds::{DataReader, DataWriter, DomainParticipant, FoundTopic, IncompatibleQosStatus};

use crate::test_data::Data;

/// The reason of a writer without its readers; `None` when no such end was found.
pub(super) fn of_writer<T: Data>(participant: &DomainParticipant, writer: &DataWriter<T>) -> Option<String> {
    of_qos(&writer.offered_incompatible_qos_status())
        .or_else(|| of_type::<T>(participant, writer.topic_name()))
}

/// The same of a reader without its writers.
pub(super) fn of_reader<T: Data>(participant: &DomainParticipant, reader: &DataReader<T>) -> Option<String> {
    of_qos(&reader.requested_incompatible_qos_status())
        .or_else(|| of_type::<T>(participant, reader.topic_name()))
}

fn of_qos(status: &IncompatibleQosStatus) -> Option<String> {
    let policy = status.last_policy_id?;
    Some(format!("the other end was found, but its {policy} does not fit"))
}

fn of_type<T: Data>(participant: &DomainParticipant, topic: &str) -> Option<String> {
    let FoundTopic::Topic(topic) = participant.lookup_topicdescription::<T>(topic)? else { return None };
    let other = topic.inconsistent_topic_status().last?;
    Some(format!("the other end was found, but its sample type is {} (--instances)", other.type_name))
}
