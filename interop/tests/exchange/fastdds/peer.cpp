// The other side of the interoperability tests, with Fast DDS 2. It runs the commands of `../cyclonedds/peer.c` for the
// types ShapeType and Blob, except `empty`, `write-at` and the liveliness commands. The options of writers and readers
// are those of `policies.h`, `heartbeats` (ten a second), and, as the last one, `filter=EXPRESSION` with %0 = 10.
// The second argument is the lease of the participant in milliseconds.

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include <fastcdr/exceptions/NotEnoughMemoryException.h>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/ContentFilteredTopic.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/types/DynamicTypeBuilderFactory.h>
#include <fastrtps/types/DynamicTypeBuilder.h>
#include <fastrtps/types/DynamicTypePtr.h>
#include <fastrtps/types/TypeObjectFactory.h>
#include <fastrtps/utils/md5.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

static constexpr int LIMIT_S = 120;
static constexpr uint32_t SIZE_MAX_BYTES = 2 << 20;

template <typename... A>
[[noreturn]] static void fail(const char *format, A... arguments) {
  printf("failed: ");
  printf(format, arguments...);
  puts("");
  _Exit(1);
}

static void check(bool is_good, const char *what) {
  if (!is_good) fail("%s", what);
}

// A ShapeType; a Blob has no color, only its number `x` and its bytes.
struct Sample {
  std::string color;
  int32_t x = 0, y = 0, size = 0;
  std::vector<uint8_t> bytes;
  bool operator==(const Sample &o) const {
    return color == o.color && x == o.x && y == o.y && size == o.size && bytes == o.bytes;
  }
};

static bool is_keyed;

static std::string color_of(uint32_t instance) {
  return (instance % 2 == 0 ? "C-" : "THE-COLOR-") + std::to_string(instance);
}

static Sample make(uint32_t number, uint32_t size, uint32_t instances) {
  Sample it;
  it.x = int32_t(number);
  if (is_keyed) it.color = color_of(number % instances), it.y = -it.x, it.size = int32_t(size);
  for (uint32_t i = 0; i < size; i++) it.bytes.push_back(uint8_t(number + i));
  return it;
}

class Type : public TopicDataType {
 public:
  explicit Type(const char *name) {
    setName(name);
    m_typeSize = 65536;  // Reserved memory; grows with larger samples.
    m_isGetKeyDefined = is_keyed;
  }

  bool serialize(void *data, SerializedPayload_t *payload) override {
    auto &it = *static_cast<Sample *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data), payload->max_size);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN, eprosima::fastcdr::Cdr::DDS_CDR);
    payload->encapsulation = CDR_LE;
    cdr.serialize_encapsulation();
    if (is_keyed) cdr << it.color << it.x << it.y << it.size << it.bytes;
    else cdr << it.x << it.bytes;
    payload->length = uint32_t(cdr.getSerializedDataLength());
    return true;
  }

  // Like generated code, fails for a payload that is too short, as of the end of a coherent set.
  bool deserialize(SerializedPayload_t *payload, void *data) override try {
    auto &it = *static_cast<Sample *>(data);
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char *>(payload->data), payload->length);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::DEFAULT_ENDIAN, eprosima::fastcdr::Cdr::DDS_CDR);
    cdr.read_encapsulation();
    if (is_keyed) cdr >> it.color >> it.x >> it.y >> it.size >> it.bytes;
    else cdr >> it.x >> it.bytes;
    return true;
  } catch (const eprosima::fastcdr::exception::NotEnoughMemoryException &) {
    return false;
  }

  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] { return uint32_t(static_cast<Sample *>(data)->bytes.size() + 256); };
  }

  void *createData() override { return new Sample; }
  void deleteData(void *data) override { delete static_cast<Sample *>(data); }

  // The longest key exceeds 16 bytes: always the MD5 of the big-endian key.
  bool getKey(void *data, InstanceHandle_t *handle, bool) override {
    if (!is_keyed) return false;
    auto &it = *static_cast<Sample *>(data);
    char bytes[256];
    eprosima::fastcdr::FastBuffer buffer(bytes, sizeof bytes);
    eprosima::fastcdr::Cdr cdr(buffer, eprosima::fastcdr::Cdr::BIG_ENDIANNESS);
    cdr << it.color;
    MD5 md5;
    md5.init();
    md5.update(bytes, unsigned(cdr.getSerializedDataLength()));
    md5.finalize();
    for (int i = 0; i < 16; i++) handle->value[i] = md5.digest[i];
    return true;
  }
};

// Events wake the waiting thread.
static std::mutex mutex;
static std::condition_variable changed;
static int matched, arrived, incompatible_policy, deadlines_missed;

#include "policies.h"

static void set_matched(int count, int total) {
  std::lock_guard<std::mutex> lock(mutex);
  matched = count, arrived = total;
  changed.notify_all();
}

static void set(int *what, int value) {
  std::lock_guard<std::mutex> lock(mutex);
  *what = value;
  changed.notify_all();
}

struct WriterListener : DataWriterListener {
  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &s) override { set_matched(s.current_count, s.total_count); }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &s) override { set(&incompatible_policy, int(s.last_policy_id)); }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &s) override { set(&deadlines_missed, int(s.total_count)); }
} writer_listener;

struct ReaderListener : DataReaderListener {
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &s) override { set_matched(s.current_count, s.total_count); }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &s) override { set(&incompatible_policy, int(s.last_policy_id)); }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &s) override { set(&deadlines_missed, int(s.total_count)); }
} reader_listener;

static DomainParticipant *participant;
static Publisher *publisher;
static Subscriber *subscriber;
static DataWriter *writer;
static DataReader *reader;
static std::map<std::string, InstanceStateKind> states;
static std::map<InstanceHandle_t, std::string> colors;

static void make_endpoint(bool writes, const char *type_name, const char *topic_name, bool is_reliable, const char *options) {
  static std::map<std::string, Topic *> topics;
  is_keyed = strcmp(type_name, "ShapeType") == 0;
  Topic *&topic = topics[topic_name];
  if (topic == nullptr) {
    TypeSupport type(new Type(type_name));
    // Described for filters only.
    type->auto_fill_type_object(false);
    type->auto_fill_type_information(false);
    type.register_type(participant);
    topic = participant->create_topic(topic_name, type_name, topic_qos(options));
    check(topic != nullptr, "no topic");
  }
  if (writes) {
    DataWriterQos qos;
    set_qos(qos, is_reliable, options);
    qos.publish_mode().kind = ASYNCHRONOUS_PUBLISH_MODE;
    // The default is three seconds, without acknowledgements in between.
    if (has(options, " transient-local") || has(options, " heartbeats")) qos.reliable_writer_qos().times.heartbeatPeriod = Duration_t(0.1);
    qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
    qos.ownership_strength().value = uint32_t(option(options, " exclusive="));
    publisher = participant->create_publisher(group_qos<PublisherQos>(options));
    writer = publisher->create_datawriter(topic, qos, &writer_listener);
    check(writer != nullptr, "no writer");
  } else {
    DataReaderQos qos;
    set_qos(qos, is_reliable, options);
    subscriber = participant->create_subscriber(group_qos<SubscriberQos>(options));
    TopicDescription *described = topic;
    const char *filter = strstr(options, " filter=");
    if (filter != nullptr) {
      described = participant->create_contentfilteredtopic(topic_name + std::string("-filtered"), topic, filter + strlen(" filter="), {"10"});
      check(described != nullptr, "no filter");
    }
    reader = subscriber->create_datareader(described, qos, &reader_listener);
    check(reader != nullptr, "no reader");
  }
}

static void remove_endpoint() {
  if (writer != nullptr) check(publisher->delete_datawriter(writer) == ReturnCode_t::RETCODE_OK, "delete");
  if (reader != nullptr) check(subscriber->delete_datareader(reader) == ReturnCode_t::RETCODE_OK, "delete");
  writer = nullptr, reader = nullptr, matched = arrived = 0;
}

// Waits until this is not zero any more.
static int await_value(const int *which, const char *what) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!changed.wait_for(lock, std::chrono::seconds(LIMIT_S), [=] { return *which != 0; })) fail("%s: nothing happened", what);
  return *which;
}

static void await_matches(int count, const int *which) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!changed.wait_for(lock, std::chrono::seconds(LIMIT_S), [=] { return *which == count; }))
    fail("%d are matched, not %d", *which, count);
}

struct Reading {
  bool is_complete;
  uint32_t size, instances, taken;
  std::map<uint32_t, uint32_t> next;
};

// Waits for a sample and takes it.
static void take(Reading *reading) {
  Sample sample;
  SampleInfo info;
  if (reader->take_next_sample(&sample, &info) != ReturnCode_t::RETCODE_OK) {
    if (!reader->wait_for_unread_message(Duration_t(LIMIT_S, 0))) fail("nothing came after %u samples", reading ? reading->taken : 0);
    return;
  }
  if (info.valid_data && is_keyed) colors[info.instance_handle] = sample.color;
  states[colors[info.instance_handle]] = info.instance_state;
  if (!info.valid_data || reading == nullptr) return;
  const uint32_t number = uint32_t(sample.x), instance = number % reading->instances;
  const uint32_t next = reading->next.count(instance) ? reading->next[instance] : 0;
  if (number < next || (reading->is_complete && number != next)) fail("sample %u came instead of %u", number, next);
  if (!(sample == make(number, reading->size, reading->instances))) fail("sample %u is not as it was written", number);
  reading->next[instance] = number + reading->instances;
  reading->taken++;
}

static void act(const char *line) {
  char word[32] = "", type_name[32], topic[256], mode[16];
  uint32_t first, count, size, instances;
  sscanf(line, "%31s", word);
  const char *rest = line + strlen(word);
  const std::string command = word;
  if (command == "writer" || command == "reader") {
    if (sscanf(rest, "%31s %255s %15s", type_name, topic, mode) != 3) fail("bad command: %s", line);
    make_endpoint(command == "writer", type_name, topic, strcmp(mode, "reliable") == 0, rest);
  } else if (command == "matched" && sscanf(rest, "%u", &count) == 1) {
    await_matches(int(count), &matched);
  } else if (command == "arrived" && sscanf(rest, "%u", &count) == 1) {
    await_matches(int(count), &arrived);
  } else if (command == "incompatible") {
    printf("ok %d\n", await_value(&incompatible_policy, "incompatible QoS"));
    return;
  } else if (command == "deadline-missed") {
    await_value(&deadlines_missed, "missed deadlines");
  } else if (command == "seen") {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, std::chrono::seconds(LIMIT_S), [] { return !discovery.data.empty(); })) fail("nothing was found");
    printf("ok %s\n", discovery.data.c_str());
    return;
  } else if (command == "acknowledged") {
    check(writer->wait_for_acknowledgments(Duration_t(LIMIT_S, 0)) == ReturnCode_t::RETCODE_OK, "acknowledgements");
  } else if (command == "delete") {
    remove_endpoint();
  } else if (command == "dispose" && sscanf(rest, "%u %u", &first, &instances) == 2) {
    Sample it = make(first, 0, instances);
    check(writer->dispose(&it, eprosima::fastrtps::rtps::c_InstanceHandle_Unknown) == ReturnCode_t::RETCODE_OK, "dispose");
  } else if (command == "unregister" && sscanf(rest, "%u %u", &first, &instances) == 2) {
    Sample it = make(first, 0, instances);
    check(writer->unregister_instance(&it, eprosima::fastrtps::rtps::c_InstanceHandle_Unknown) == ReturnCode_t::RETCODE_OK, "unregister");
  } else if (command == "state" && sscanf(rest, "%u %15s", &count, mode) == 2) {
    const InstanceStateKind wanted = strcmp(mode, "alive") == 0      ? ALIVE_INSTANCE_STATE
                                     : strcmp(mode, "disposed") == 0 ? NOT_ALIVE_DISPOSED_INSTANCE_STATE
                                                                     : NOT_ALIVE_NO_WRITERS_INSTANCE_STATE;
    while (states[color_of(count)] != wanted) take(nullptr);
  } else if (sscanf(rest, "%u %u %u %u", &first, &count, &size, &instances) != 4 || size > SIZE_MAX_BYTES || instances == 0) {
    fail("bad command: %s", line);
  } else if (command == "write") {
    for (uint32_t number = first; number < first + count; number++) {
      Sample it = make(number, size, instances);
      check(writer->write(&it), "write");
    }
  } else if (command == "read" || command == "read-some") {
    Reading reading{command == "read", size, instances, 0, {}};
    for (uint32_t i = first; i < first + instances; i++) reading.next[i % instances] = i;
    while (reading.taken < count) take(&reading);
  } else {
    fail("bad command: %s", line);
  }
  puts("ok");
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc != 2 && argc != 3) fail("usage: peer DOMAIN [LEASE]");
  Log::SetVerbosity(Log::Kind::Error);
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  auto transport = std::make_shared<UDPv4TransportDescriptor>();
  transport->interfaceWhiteList.push_back("127.0.0.1");
  transport->sendBufferSize = transport->receiveBufferSize = 4 << 20;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(transport);
  if (argc == 3) {
    auto &discovery = qos.wire_protocol().builtin.discovery_config;
    discovery.leaseDuration = Duration_t(atoi(argv[2]) / 1e3);
    discovery.leaseDuration_announcementperiod = Duration_t(atoi(argv[2]) / 4e3);
  }
  participant = DomainParticipantFactory::get_instance()->create_participant(uint32_t(atoi(argv[1])), qos, &discovery, StatusMask::none());
  check(participant != nullptr, "no participant");
  describe_shapes();
  puts("ok");
  char line[512];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "quit") == 0) break;
    act(line);
  }
  remove_endpoint();
  participant->delete_contained_entities();
  check(DomainParticipantFactory::get_instance()->delete_participant(participant) == ReturnCode_t::RETCODE_OK, "leave");
  puts("ok");
  return 0;
}
