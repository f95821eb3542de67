//! Prints the statuses that listeners receive, in the form that the driver expects.

use weir_dds::{
    DataReader, DataReaderListener, DataWriter, DataWriterListener, DeadlineMissedStatus,
    IncompatibleQosStatus, InconsistentTopicStatus, LivelinessChangedStatus, LivelinessLostStatus, PolicyId,
    PublicationMatchedStatus, SubscriptionMatchedStatus, Topic, TopicListener,
};

use crate::shape::ShapeType;

/// Listener of a writer or a reader of the topic with this name.
pub(crate) struct Endpoint(pub(crate) String);

impl Endpoint {
    fn say(&self, callback: &str, text: &str) {
        println!("{callback}() topic: '{}'  type: 'ShapeType' : {text}", self.0);
    }

    fn say_incompatible(&self, callback: &str, status: &IncompatibleQosStatus) {
        if let Some(policy) = status.last_policy_id {
            self.say(callback, &format!("{} ({})", policy as u32, name_of(policy)));
        }
    }

    fn say_deadline(&self, callback: &str, status: DeadlineMissedStatus) {
        let DeadlineMissedStatus { total_count, total_count_change, .. } = status;
        self.say(callback, &format!("(total = {total_count}, change = {total_count_change})"));
    }
}

impl DataWriterListener<ShapeType> for Endpoint {
    fn on_publication_matched(&self, _: &DataWriter<ShapeType>, status: PublicationMatchedStatus) {
        let PublicationMatchedStatus { current_count, current_count_change, .. } = status;
        let text = format!("matched readers {current_count} (change = {current_count_change})");
        self.say("on_publication_matched", &text);
    }

    fn on_offered_incompatible_qos(&self, _: &DataWriter<ShapeType>, status: IncompatibleQosStatus) {
        self.say_incompatible("on_offered_incompatible_qos", &status);
    }

    fn on_offered_deadline_missed(&self, _: &DataWriter<ShapeType>, status: DeadlineMissedStatus) {
        self.say_deadline("on_offered_deadline_missed", status);
    }

    fn on_liveliness_lost(&self, _: &DataWriter<ShapeType>, status: LivelinessLostStatus) {
        let LivelinessLostStatus { total_count, total_count_change, .. } = status;
        self.say("on_liveliness_lost", &format!("(total = {total_count}, change = {total_count_change})"));
    }
}

impl DataReaderListener<ShapeType> for Endpoint {
    fn on_subscription_matched(&self, _: &DataReader<ShapeType>, status: SubscriptionMatchedStatus) {
        let SubscriptionMatchedStatus { current_count, current_count_change, .. } = status;
        let text = format!("matched writers {current_count} (change = {current_count_change})");
        self.say("on_subscription_matched", &text);
    }

    fn on_requested_incompatible_qos(&self, _: &DataReader<ShapeType>, status: IncompatibleQosStatus) {
        self.say_incompatible("on_requested_incompatible_qos", &status);
    }

    fn on_requested_deadline_missed(&self, _: &DataReader<ShapeType>, status: DeadlineMissedStatus) {
        self.say_deadline("on_requested_deadline_missed", status);
    }

    fn on_liveliness_changed(&self, _: &DataReader<ShapeType>, status: LivelinessChangedStatus) {
        let LivelinessChangedStatus { alive_count, not_alive_count, .. } = status;
        let text = format!("(alive = {alive_count}, not_alive = {not_alive_count})");
        self.say("on_liveliness_changed", &text);
    }
}

/// Listener of topics.
pub(crate) struct Topics;

impl TopicListener<ShapeType> for Topics {
    fn on_inconsistent_topic(&self, topic: &Topic<ShapeType>, _: InconsistentTopicStatus) {
        println!("on_inconsistent_topic() topic: '{}'  type: '{}'", topic.name(), topic.type_name());
    }
}

/// The name of a policy in the output of the suite.
fn name_of(policy: PolicyId) -> &'static str {
    match policy {
        PolicyId::Durability => "DURABILITY",
        PolicyId::Presentation => "PRESENTATION",
        PolicyId::Deadline => "DEADLINE",
        PolicyId::LatencyBudget => "LATENCYBUDGET",
        PolicyId::Ownership => "OWNERSHIP",
        PolicyId::Liveliness => "LIVELINESS",
        PolicyId::Partition => "PARTITION",
        PolicyId::Reliability => "RELIABILITY",
        PolicyId::DestinationOrder => "DESTINATIONORDER",
        _ => "DATAREPRESENTATION",
    }
}
