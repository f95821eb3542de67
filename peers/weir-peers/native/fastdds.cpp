// Fast DDS 2 behind the interface of `src/foreign.rs`: a participant with a writer, a reader with a listener, or both;
// and participants with any number of them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/flowcontrol/FlowControllerDescriptor.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/config.h>

#include "shim.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::FlowControllerDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::PREALLOCATED_MEMORY_MODE;
using eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
using eprosima::fastrtps::rtps::SerializedPayload_t;

static constexpr size_t ENCAPSULATION_BYTES = 4, FIXED_BYTES = sizeof(header) + 4;

// A sample to write points to the caller's payload; one that was read has its own.
struct Sample {
  struct header header;
  const uint8_t *payload = nullptr;
  uint32_t length = 0;
  std::vector<uint8_t> own;
};

// The serialized form by hand, as a generated type does it on a little-endian machine: members of four bytes, then
// the payload.
class Type : public TopicDataType {
 public:
  Type(bool is_keyed, uint32_t payload_bytes_max) {
    setName(is_keyed ? "TestDataKeyed_t" : "TestData_t");
    m_typeSize = uint32_t(ENCAPSULATION_BYTES + FIXED_BYTES + payload_bytes_max);
    m_isGetKeyDefined = is_keyed;
  }

  bool serialize(void *data, SerializedPayload_t *payload) override {
    const auto &it = *static_cast<const Sample *>(data);
    const size_t length = ENCAPSULATION_BYTES + FIXED_BYTES + it.length;
    if (length > payload->max_size) return false;
    static const uint8_t CDR_LE_HEADER[] = {0, 1, 0, 0};
    uint8_t *out = payload->data;
    memcpy(out, CDR_LE_HEADER, sizeof CDR_LE_HEADER);
    memcpy(out + ENCAPSULATION_BYTES, &it.header, sizeof it.header);
    memcpy(out + ENCAPSULATION_BYTES + sizeof it.header, &it.length, 4);
    if (it.length > 0) memcpy(out + ENCAPSULATION_BYTES + FIXED_BYTES, it.payload, it.length);
    payload->encapsulation = CDR_LE;
    payload->length = uint32_t(length);
    return true;
  }

  bool deserialize(SerializedPayload_t *payload, void *data) override {
    auto &it = *static_cast<Sample *>(data);
    if (payload->length < ENCAPSULATION_BYTES + FIXED_BYTES) return false;
    const uint8_t *in = payload->data + ENCAPSULATION_BYTES;
    memcpy(&it.header, in, sizeof it.header);
    memcpy(&it.length, in + sizeof it.header, 4);
    if (it.length > payload->length - ENCAPSULATION_BYTES - FIXED_BYTES) return false;
    it.own.assign(in + FIXED_BYTES, in + FIXED_BYTES + it.length);
    it.payload = it.own.data();
    return true;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] { return uint32_t(ENCAPSULATION_BYTES + FIXED_BYTES + static_cast<Sample *>(data)->length); };
  }

  void *createData() override { return new Sample; }
  void deleteData(void *data) override { delete static_cast<Sample *>(data); }

  // Four bytes are their own key hash.
  bool getKey(void *data, InstanceHandle_t *handle, bool) override {
    if (!m_isGetKeyDefined) return false;
    for (int i = 0; i < 16; i++) handle->value[i] = i < 4 ? static_cast<Sample *>(data)->header.key[i] : 0;
    return true;
  }
};

// Lines of NAME=VALUE.
class Settings {
 public:
  explicit Settings(const char *text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const size_t at = line.find('=');
      if (at != std::string::npos) values_[line.substr(0, at)] = line.substr(at + 1);
    }
  }
  const std::string &text(const char *name) const {
    static const std::string nothing;
    const auto found = values_.find(name);
    return found == values_.end() ? nothing : found->second;
  }
  bool has(const char *name) const { return !text(name).empty(); }
  int64_t number(const char *name, int64_t otherwise) const { return has(name) ? std::stoll(text(name)) : otherwise; }

 private:
  std::map<std::string, std::string> values_;
};

static Duration_t nanos(int64_t ns) { return Duration_t(int32_t(ns / 1000000000), uint32_t(ns % 1000000000)); }

// Sets a duration if there is a setting in microseconds.
static void set_micros(Duration_t &duration, const Settings &settings, const char *name) {
  if (settings.has(name)) duration = nanos(settings.number(name, 0) * 1000);
}

// What passes the samples of a reader on, and counts the writers that it is matched with.
struct Receiver : DataReaderListener {
  std::atomic<uint32_t> writers{0};
  on_sample_t on_sample = nullptr;
  void *context = nullptr;
  Sample received;

  void on_data_available(DataReader *from) override {
    SampleInfo info;
    while (from->take_next_sample(&received, &info) == ReturnCode_t::RETCODE_OK)
      if (info.valid_data) on_sample(context, &received.header, received.payload, received.length);
  }

  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override {
    writers = uint32_t(status.current_count);
  }
};

// A participant of its own with a writer, a reader, or both.
struct node {
  DomainParticipant *participant = nullptr;
  Publisher *publisher = nullptr;
  Subscriber *subscriber = nullptr;
  DataWriter *writer = nullptr;
  DataReader *reader = nullptr;
  Receiver receiver;

  void make(const options &options);
  void leave();
};

// A writer or a reader of a participant with several.
struct endpoint {
  DataWriter *writer = nullptr;
  DataReader *reader = nullptr;
  Receiver receiver;
};

struct participant {
  explicit participant(const char *configuration) : settings(configuration) {}
  Settings settings;
  DomainParticipant *entity = nullptr;
  Publisher *publisher = nullptr;
  Subscriber *subscriber = nullptr;
  std::map<std::string, Topic *> topics;
  std::vector<std::unique_ptr<endpoint>> endpoints;
};

static const char *const FLOW_CONTROLLER = "link", *const PROFILES = "profiles_file";

static void check(bool is_good, const std::string &what) {
  if (!is_good) throw std::runtime_error(what);
}

// Keeps the first error that is logged.
struct FirstError : LogConsumer {
  explicit FirstError(std::string *text) : text(text) {}
  void Consume(const Log::Entry &entry) override {
    if (text->empty() && entry.kind == Log::Kind::Error) *text = entry.message;
  }
  std::string *text;
};

// Loads the user's XML profiles, once for the process.
static void load_profiles(const std::string &file) {
  static std::string loaded;
  if (loaded == file) return;
  std::string error;
  Log::Flush();
  Log::RegisterConsumer(std::unique_ptr<LogConsumer>(new FirstError(&error)));
  const ReturnCode_t result = DomainParticipantFactory::get_instance()->load_XML_profiles_file(file);
  Log::Flush();
  Log::ClearConsumers();
  Log::RegisterConsumer(std::unique_ptr<LogConsumer>(new StdoutErrConsumer));
  check(result == ReturnCode_t::RETCODE_OK && error.empty(), file + ": " + error);
  loaded = file;
}

template <typename Q>
static void set_qos(Q &qos, const options &options, const Settings &settings) {
  qos.reliability().kind = options.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.reliability().max_blocking_time = nanos(options.max_blocking_ns);
  qos.durability().kind = VOLATILE_DURABILITY_QOS;
  qos.history().kind = options.keep_all ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 1;
  if (settings.has("max_samples")) qos.resource_limits().max_samples = int32_t(settings.number("max_samples", 0));
  if (options.keyed) {
    qos.resource_limits().max_instances = int32_t(settings.number("max_instances", 10));
    qos.resource_limits().max_samples_per_instance = int32_t(settings.number("max_samples_per_instance", 400));
  }
  // Samples may be of any size.
  auto &memory = qos.endpoint().history_memory_policy;
  if (memory == PREALLOCATED_MEMORY_MODE) memory = PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();
}

// UDP on one interface, by the profiles' own transport if they have one.
static void set_transports(DomainParticipantQos &qos, const Settings &settings) {
  auto &transports = qos.transport().user_transports;
  qos.transport().use_builtin_transports = false;
  if (transports.empty()) transports.push_back(std::make_shared<UDPv4TransportDescriptor>());
  for (auto &it : transports) {
    const auto transport = std::dynamic_pointer_cast<UDPv4TransportDescriptor>(it);
    check(transport != nullptr, settings.text(PROFILES) + ": engines are measured over UDPv4: name no other transport");
    transport->interfaceWhiteList = {settings.text("address")};
    transport->receiveBufferSize = uint32_t(settings.number("socket_receive_buffer", transport->receiveBufferSize));
    transport->sendBufferSize = uint32_t(settings.number("socket_send_buffer", transport->sendBufferSize));
    transport->maxMessageSize = uint32_t(settings.number("max_message_size", transport->maxMessageSize));
  }
}

// Those of a participant with several endpoints are made by the same settings.
static DomainParticipant *create_participant(uint32_t domain, const Settings &settings) {
  Log::SetVerbosity(Log::Kind::Error);
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  if (settings.has(PROFILES)) {
    load_profiles(settings.text(PROFILES));
    qos = DomainParticipantFactory::get_instance()->get_default_participant_qos();
  }
  set_transports(qos, settings);
  const int64_t flow_bytes = settings.number("flow_bytes_per_period", 0);
  if (flow_bytes > 0) {
    auto flow = std::make_shared<FlowControllerDescriptor>();
    flow->name = FLOW_CONTROLLER;
    flow->max_bytes_per_period = int32_t(flow_bytes);
    flow->period_ms = uint64_t(settings.number("flow_period_ms", 100));
    qos.flow_controllers().push_back(flow);
  }
  DomainParticipant *participant = DomainParticipantFactory::get_instance()->create_participant(domain, qos);
  check(participant != nullptr, "no participant");
  return participant;
}

// What a writer or reader starts from: Fast DDS's defaults, or the default profile of the user's file.
static DataWriterQos writer_qos_of(const Publisher *publisher, const Settings &settings) {
  return settings.has(PROFILES) ? publisher->get_default_datawriter_qos() : DATAWRITER_QOS_DEFAULT;
}

static DataReaderQos reader_qos_of(const Subscriber *subscriber, const Settings &settings) {
  DataReaderQos qos = settings.has(PROFILES) ? subscriber->get_default_datareader_qos() : DATAREADER_QOS_DEFAULT;
  set_micros(qos.reliable_reader_qos().times.heartbeatResponseDelay, settings, "heartbeat_response_delay_us");
  return qos;
}

static void set_writer_qos(DataWriterQos &writer_qos, const Settings &settings) {
  if (settings.has("publish_mode"))
    writer_qos.publish_mode().kind =
        settings.text("publish_mode") == "asynchronous" ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
  auto &times = writer_qos.reliable_writer_qos().times;
  set_micros(times.heartbeatPeriod, settings, "heartbeat_period_us");
  set_micros(times.nackResponseDelay, settings, "nack_response_delay_us");
  set_micros(times.nackSupressionDuration, settings, "nack_suppression_us");
  const int64_t samples = settings.number("writer_max_samples", 0);
  if (samples > 0) writer_qos.resource_limits().max_samples = int32_t(samples);
  if (settings.number("flow_bytes_per_period", 0) > 0) writer_qos.publish_mode().flow_controller_name = FLOW_CONTROLLER;
}

void node::make(const options &options) {
  const Settings settings(options.configuration);
  participant = create_participant(options.domain, settings);
  TypeSupport type(new Type(options.keyed, uint32_t(settings.number("payload_bytes", 0))));
  type.register_type(participant);
  if (options.write_topic != nullptr) {
    Topic *topic = participant->create_topic(options.write_topic, type.get_type_name(), TOPIC_QOS_DEFAULT);
    publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
    check(topic != nullptr && publisher != nullptr, "no topic to write");
    DataWriterQos writer_qos = writer_qos_of(publisher, settings);
    set_qos(writer_qos, options, settings);
    set_writer_qos(writer_qos, settings);
    writer = publisher->create_datawriter(topic, writer_qos);
    check(writer != nullptr, "no writer");
  }
  if (options.read_topic != nullptr) {
    Topic *topic = participant->create_topic(options.read_topic, type.get_type_name(), TOPIC_QOS_DEFAULT);
    subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    check(topic != nullptr && subscriber != nullptr, "no topic to read");
    DataReaderQos reader_qos = reader_qos_of(subscriber, settings);
    set_qos(reader_qos, options, settings);
    reader = subscriber->create_datareader(topic, reader_qos, &receiver);
    check(reader != nullptr, "no reader");
  }
}

void node::leave() {
  if (reader != nullptr) reader->set_listener(nullptr);
  if (participant == nullptr) return;
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}

static void close_node(node *it) {
  it->leave();
  delete it;
}

static node *open_node(const options *options, char *error, size_t error_size) {
  node *it = new node;
  it->receiver.on_sample = options->on_sample;
  it->receiver.context = options->context;
  try {
    it->make(*options);
    return it;
  } catch (const std::exception &thrown) {
    snprintf(error, error_size, "%s", thrown.what());
    close_node(it);
    return nullptr;
  }
}

static int32_t write_to(DataWriter *writer, const header *header, const uint8_t *payload, size_t length) {
  Sample sample;
  sample.header = *header;
  sample.payload = payload;
  sample.length = uint32_t(length);
  InstanceHandle_t handle;
  const ReturnCode_t result = writer->write(&sample, handle);
  return result == ReturnCode_t::RETCODE_OK ? TAKEN : result == ReturnCode_t::RETCODE_TIMEOUT ? TIMED_OUT : FAILED;
}

static int32_t write_sample(node *it, const header *header, const uint8_t *payload, size_t length) {
  return write_to(it->writer, header, payload, length);
}

static void flush_samples(node *) {}

static int32_t wait_for_acknowledgments(node *it, int64_t timeout_ns) {
  return it->writer->wait_for_acknowledgments(nanos(timeout_ns)) == ReturnCode_t::RETCODE_OK ? TAKEN : TIMED_OUT;
}

static void matched(node *it, uint32_t *readers, uint32_t *writers) {
  PublicationMatchedStatus status;
  *readers = 0;
  if (it->writer != nullptr && it->writer->get_publication_matched_status(status) == ReturnCode_t::RETCODE_OK)
    *readers = uint32_t(status.current_count);
  *writers = it->receiver.writers;
}

static const char *version(void) { return FASTRTPS_VERSION_STR; }

static participant *open_participant(const options *options, char *error, size_t error_size) {
  auto it = std::unique_ptr<participant>(new participant(options->configuration));
  try {
    it->entity = create_participant(options->domain, it->settings);
    it->publisher = it->entity->create_publisher(PUBLISHER_QOS_DEFAULT);
    it->subscriber = it->entity->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    check(it->publisher != nullptr && it->subscriber != nullptr, "no publisher or subscriber");
    return it.release();
  } catch (const std::exception &thrown) {
    snprintf(error, error_size, "%s", thrown.what());
    return nullptr;
  }
}

static Topic *topic_of(participant *it, const endpoint_options *options) {
  Topic *&topic = it->topics[options->topic];
  if (topic == nullptr) {
    // Samples of any size: memory grows to what arrives.
    TypeSupport type(new Type(options->keyed, 0));
    type.register_type(it->entity);
    topic = it->entity->create_topic(options->topic, type.get_type_name(), TOPIC_QOS_DEFAULT);
    check(topic != nullptr, "no topic");
  }
  return topic;
}

template <typename Q>
static void set_endpoint_qos(Q &qos, const endpoint_options &of, const Settings &settings) {
  options options{};
  options.reliable = of.reliable;
  options.keyed = of.keyed;
  options.keep_all = of.depth == 0;
  options.max_blocking_ns = of.max_blocking_ns;
  set_qos(qos, options, settings);
  if (of.depth > 0) qos.history().depth = int32_t(of.depth);
  if (of.keyed) {
    // Each instance has room for its share of the samples, or for its history.
    auto &limits = qos.resource_limits();
    limits.max_instances = int32_t(of.instances);
    const int32_t share = limits.max_samples / limits.max_instances;
    limits.max_samples_per_instance = std::max({share, qos.history().depth, 1});
    limits.max_samples = std::max(limits.max_samples, limits.max_instances * limits.max_samples_per_instance);
  } else {
    qos.resource_limits().max_samples_per_instance = qos.resource_limits().max_samples;
    qos.resource_limits().max_instances = 1;
  }
}

static endpoint *add_writer(participant *participant, const endpoint_options *options, char *error, size_t error_size) {
  try {
    auto it = std::unique_ptr<endpoint>(new endpoint);
    DataWriterQos qos = writer_qos_of(participant->publisher, participant->settings);
    set_endpoint_qos(qos, *options, participant->settings);
    set_writer_qos(qos, participant->settings);
    it->writer = participant->publisher->create_datawriter(topic_of(participant, options), qos);
    check(it->writer != nullptr, "no writer");
    participant->endpoints.push_back(std::move(it));
    return participant->endpoints.back().get();
  } catch (const std::exception &thrown) {
    snprintf(error, error_size, "%s", thrown.what());
    return nullptr;
  }
}

static endpoint *add_reader(participant *participant, const endpoint_options *options, char *error, size_t error_size) {
  try {
    auto it = std::unique_ptr<endpoint>(new endpoint);
    it->receiver.on_sample = options->on_sample;
    it->receiver.context = options->context;
    DataReaderQos qos = reader_qos_of(participant->subscriber, participant->settings);
    set_endpoint_qos(qos, *options, participant->settings);
    // It may receive at once, so it is kept before.
    participant->endpoints.push_back(std::move(it));
    endpoint *kept = participant->endpoints.back().get();
    Topic *topic = topic_of(participant, options);
    kept->reader = participant->subscriber->create_datareader(topic, qos, &kept->receiver);
    check(kept->reader != nullptr, "no reader");
    return kept;
  } catch (const std::exception &thrown) {
    snprintf(error, error_size, "%s", thrown.what());
    return nullptr;
  }
}

static int32_t write_endpoint(endpoint *it, const header *header, const uint8_t *payload, size_t length) {
  return write_to(it->writer, header, payload, length);
}

static uint32_t endpoint_matched(endpoint *it) {
  if (it->writer == nullptr) return it->receiver.writers;
  PublicationMatchedStatus status;
  if (it->writer->get_publication_matched_status(status) != ReturnCode_t::RETCODE_OK) return 0;
  return uint32_t(status.current_count);
}

static void close_participant(participant *it) {
  for (auto &endpoint : it->endpoints)
    if (endpoint->reader != nullptr) endpoint->reader->set_listener(nullptr);
  it->entity->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(it->entity);
  delete it;
}

const shim weir_fastdds = {open_node,        write_sample, flush_samples,  wait_for_acknowledgments,
                           matched,          close_node,   version,        open_participant,
                           add_writer,       add_reader,   write_endpoint, endpoint_matched,
                           close_participant};
