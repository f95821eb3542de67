// The QoS policies of an endpoint, from the options of the commands `writer` and `reader`, and what the other side
// announces. Included by `peer.cpp`.

// Copies the text after an option, up to the next blank; empty if there is none.
static std::string text_option(const char *options, const char *name) {
  const char *found = strstr(options, name);
  if (found == nullptr) return "";
  found += strlen(name);
  return std::string(found, strcspn(found, " "));
}

static int option(const char *options, const char *name) { return atoi(text_option(options, name).c_str()); }

static bool has(const char *options, const char *name) { return strstr(options, name) != nullptr; }

static Duration_t milliseconds(int count) { return Duration_t(count / 1e3); }

// Policies that writers and readers have.
template <typename Q>
static void set_qos(Q &qos, bool is_reliable, const char *options) {
  qos.reliability().kind = is_reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.reliability().max_blocking_time = Duration_t(LIMIT_S, 0);
  qos.durability().kind = has(options, " transient-local") ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
  qos.history().kind = has(options, " keep-last=") ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (has(options, " keep-last=")) qos.history().depth = option(options, " keep-last=");
  qos.resource_limits().max_samples = 20000;
  qos.resource_limits().max_instances = 10;
  qos.resource_limits().max_samples_per_instance = 2000;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (has(options, " exclusive=")) qos.ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
  if (has(options, " deadline=")) qos.deadline().period = milliseconds(option(options, " deadline="));
  if (has(options, " lifespan=")) qos.lifespan().duration = milliseconds(option(options, " lifespan="));
  if (has(options, " manual-by-topic=")) {
    qos.liveliness().kind = MANUAL_BY_TOPIC_LIVELINESS_QOS;
    qos.liveliness().lease_duration = milliseconds(option(options, " manual-by-topic="));
    qos.liveliness().announcement_period = milliseconds(option(options, " manual-by-topic=") / 2);
  }
  const std::string user = text_option(options, " user=");
  if (!user.empty()) qos.user_data().setValue({user.begin(), user.end()});
}

// Policies of a publisher or subscriber.
template <typename Q>
static Q group_qos(const char *options) {
  Q qos;
  std::string names = text_option(options, " partition=");
  for (char *name = strtok(&names[0], ","); name != nullptr; name = strtok(nullptr, ",")) qos.partition().push_back(name);
  const std::string group = text_option(options, " group=");
  if (!group.empty()) qos.group_data().setValue({group.begin(), group.end()});
  return qos;
}

static TopicQos topic_qos(const char *options) {
  TopicQos qos;
  const std::string topic = text_option(options, " topic=");
  if (!topic.empty()) qos.topic_data().setValue({topic.begin(), topic.end()});
  return qos;
}

// Describes ShapeType for filters.
static void describe_shapes() {
  using namespace eprosima::fastrtps::types;
  auto *factory = DynamicTypeBuilderFactory::get_instance();
  DynamicTypeBuilder *shape = factory->create_struct_builder();
  shape->set_name("ShapeType");
  shape->add_member(0, "color", factory->create_string_type(128));
  shape->apply_annotation_to_member(0, "key", "value", "true");
  shape->add_member(1, "x", factory->create_int32_type());
  shape->add_member(2, "y", factory->create_int32_type());
  shape->add_member(3, "shapesize", factory->create_int32_type());
  DynamicType_ptr byte = factory->create_byte_type();
  shape->add_member(4, "additional_payload_size", factory->create_sequence_builder(byte)->build());
  TypeObject object;
  factory->build_type_object(shape->build(), object, true, true);
}

// The data of the user, the topic and the group that the last endpoint announced that was found.
struct Discovery : DomainParticipantListener {
  std::string data;

  template <typename Q>
  void keep(const Q &qos, const std::string &topic) {
    if (topic.rfind("DCPS", 0) == 0) return;
    const auto text = [](const std::vector<uint8_t> &bytes) { return std::string(bytes.begin(), bytes.end()); };
    std::lock_guard<std::mutex> lock(mutex);
    data = text(qos.m_userData.getValue()) + " " + text(qos.m_topicData.getValue()) + " " + text(qos.m_groupData.getValue());
    changed.notify_all();
  }

  void on_publisher_discovery(DomainParticipant *, eprosima::fastrtps::rtps::WriterDiscoveryInfo &&it) override {
    if (it.status == it.DISCOVERED_WRITER) keep(it.info.m_qos, it.info.topicName().to_string());
  }

  void on_subscriber_discovery(DomainParticipant *, eprosima::fastrtps::rtps::ReaderDiscoveryInfo &&it) override {
    if (it.status == it.DISCOVERED_READER) keep(it.info.m_qos, it.info.topicName().to_string());
  }
} discovery;
