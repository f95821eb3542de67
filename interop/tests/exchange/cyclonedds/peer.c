// The other side of the interoperability tests: runs commands from standard input with Cyclone DDS, one
// per line. It answers each with a line that starts with "ok" or "failed", and ends after the latter.
// Commands are about the writer or reader created last.
//
//   writer|reader TYPE TOPIC reliable|best-effort [OPTION...]
//     options: batch, xcdr2, transient-local, keep-last=DEPTH, autodispose,
//     automatic=MS, manual-by-participant=MS, manual-by-topic=MS (a lease), user-data=BYTES, partitions=COUNT,
//     partition=NAME,..., presentation=instance|topic|group, coherent, ordered, exclusive=STRENGTH, deadline=MS,
//     lifespan=MS, by-source-timestamp, user=TEXT, topic=TEXT, group=TEXT
//   matched COUNT               waits until COUNT readers or writers are matched
//   arrived COUNT               waits until COUNT were ever matched
//   incompatible                waits for one with incompatible QoS; answers with the policy's number
//   write FIRST COUNT SIZE INSTANCES
//   write-at SECONDS NUMBER SIZE INSTANCES   writes one sample with this source timestamp
//   deadline-missed             waits until a deadline was missed
//   empty                       waits until the reader holds no samples, without taking any
//   seen                        answers with the user, topic and group data of the matched endpoint
//   acknowledged                waits until everything written is acknowledged
//   dispose|unregister NUMBER INSTANCES   of this sample's instance
//   read FIRST COUNT SIZE INSTANCES    reads COUNT samples, all from the first on, in order
//   read-some FIRST COUNT SIZE INSTANCES   reads COUNT samples, in order
//   state INSTANCE alive|disposed|no-writers   reads until the instance is in this state
//   liveliness ALIVE NOT_ALIVE  waits for these numbers of writers
//   liveliness-lost COUNT       waits until the writer's lease has expired COUNT times
//   assert                      asserts the application's liveliness
//   delete                      deletes the writer or reader
//   quit
//
// The functions make_*, here and in `src/types.rs`, define the content of sample NUMBER.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "types.h"

#define LIMIT DDS_SECS(120)
#define INSTANCES_MAX 64
#define SIZE_MAX_BYTES (16 << 20)
#define TEXT_MAX 4096

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("failed: ");
  vprintf(format, arguments);
  puts("");
  va_end(arguments);
  exit(1);
}

static dds_return_t check(dds_return_t result, const char *what) {
  if (result < 0) fail("%s: %s", what, dds_strretcode(result));
  return result;
}

// Bytes of sample `number`; valid until the next call.
static dds_sequence_octet make_bytes(uint32_t number, uint32_t size) {
  static uint8_t bytes[SIZE_MAX_BYTES];
  for (uint32_t i = 0; i < size; i++) bytes[i] = (uint8_t)(number + i);
  return (dds_sequence_octet){._maximum = size, ._length = size, ._buffer = bytes, ._release = false};
}

static int same_bytes(const dds_sequence_octet *a, const dds_sequence_octet *b) {
  return a->_length == b->_length && (a->_length == 0 || memcmp(a->_buffer, b->_buffer, a->_length) == 0);
}

// ---- ShapeType

static void *make_shape(uint32_t number, uint32_t size, uint32_t instances) {
  static char color[129];
  static ShapeType shape;
  const uint32_t instance = number % instances;
  snprintf(color, sizeof color, instance % 2 == 0 ? "C-%u" : "THE-COLOR-%u", instance);
  memcpy(shape.color, color, sizeof color);
  shape.x = (int32_t)number;
  shape.y = -(int32_t)number;
  shape.shapesize = (int32_t)size;
  shape.additional_payload_size = make_bytes(number, size);
  return &shape;
}

static uint32_t shape_number(const void *sample) { return (uint32_t)((const ShapeType *)sample)->x; }

static uint32_t shape_instance(const void *sample) {
  const char *number = strrchr(((const ShapeType *)sample)->color, '-');
  return number != NULL ? (uint32_t)atoi(number + 1) : INSTANCES_MAX;
}

static int shape_same(const void *left, const void *right) {
  const ShapeType *a = left, *b = right;
  return strcmp(a->color, b->color) == 0 && a->x == b->x && a->y == b->y && a->shapesize == b->shapesize &&
         same_bytes(&a->additional_payload_size, &b->additional_payload_size);
}

// ---- Everything

static Inner make_inner(uint32_t number, uint32_t which) {
  static char labels[16][32];
  char *label = labels[which];
  snprintf(label, sizeof labels[which], which == number % 7 ? "" : "label %u.%u", number, which);
  return (Inner){.level = (uint8_t)(number + which), .weight = number * 1.5 - which, .label = label};
}

static void *make_everything(uint32_t number, uint32_t size, uint32_t instances) {
  static char name[32], texts[4][32];
  static char *names[4];
  static double doubles[5];
  static Inner nests[3];
  static Everything it;
  (void)size, (void)instances;
  it.number = number;
  it.flag = number % 2 == 1;
  it.bits = (uint8_t)number;
  it.tiny = (int8_t)number;
  it.small = (int16_t)(-3 * (int32_t)number);
  it.unsigned_small = (uint16_t)(7 * number);
  it.medium = -1001 * (int32_t)number;
  it.unsigned_medium = number * UINT32_C(2654435761);
  it.large = 7 - INT64_C(1000000000000) * (int64_t)number;
  it.unsigned_large = number * UINT64_C(0x9e3779b97f4a7c15);
  it.single_precision = (float)number * 0.5f;
  it.double_precision = (double)number / 3.0;
  snprintf(name, sizeof name, "name %u", number);
  it.name = name;
  snprintf(it.short_name, sizeof it.short_name, "s%u", number);
  for (uint32_t i = 0; i < 6; i++) it.mac[i] = (uint8_t)(number + i);
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t k = 0; k < 2; k++) it.grid[i][k] = (int32_t)(number + 10 * i + k);
  it.nested = make_inner(number, 0);
  for (uint32_t i = 0; i < 2; i++) it.pair[i] = make_inner(number, 1 + i);
  dds_sequence_octet few = make_bytes(number, number % 9);
  it.few._maximum = it.few._length = few._length;
  it.few._buffer = few._buffer;
  it.doubles._maximum = it.doubles._length = number % 5;
  it.doubles._buffer = doubles;
  for (uint32_t i = 0; i < 5; i++) doubles[i] = number * 0.25 + i;
  it.names._maximum = it.names._length = number % 4;
  it.names._buffer = names;
  for (uint32_t i = 0; i < 4; i++) {
    snprintf(texts[i], sizeof texts[i], "%u.%u", number, i);
    names[i] = texts[i];
  }
  it.nests._maximum = it.nests._length = number % 3;
  it.nests._buffer = nests;
  for (uint32_t i = 0; i < 3; i++) nests[i] = make_inner(number, 3 + i);
  return &it;
}

static char *put_inner(char *out, const Inner *it) { return out + sprintf(out, "(%u %a '%s')", it->level, it->weight, it->label); }

// Every member as text: comparing texts compares members, and shows differences.
static void describe(char *out, const Everything *it) {
  out += sprintf(out, "%u %d %u %d %d %u %d %u %" PRId64 " %" PRIu64, it->number, it->flag, it->bits, it->tiny, it->small,
                 it->unsigned_small, it->medium, it->unsigned_medium, it->large, it->unsigned_large);
  out += sprintf(out, " %a %a '%s' '%s' ", (double)it->single_precision, it->double_precision, it->name, it->short_name);
  for (uint32_t i = 0; i < 6; i++) out += sprintf(out, "%02x", it->mac[i]);
  for (uint32_t i = 0; i < 6; i++) out += sprintf(out, " %d", it->grid[i / 2][i % 2]);
  out = put_inner(put_inner(put_inner(out, &it->nested), &it->pair[0]), &it->pair[1]);
  out += sprintf(out, " few %u:", it->few._length);
  for (uint32_t i = 0; i < it->few._length; i++) out += sprintf(out, " %u", it->few._buffer[i]);
  out += sprintf(out, " doubles %u:", it->doubles._length);
  for (uint32_t i = 0; i < it->doubles._length && i < 8; i++) out += sprintf(out, " %a", it->doubles._buffer[i]);
  out += sprintf(out, " names %u:", it->names._length);
  for (uint32_t i = 0; i < it->names._length && i < 8; i++) out += sprintf(out, " '%s'", it->names._buffer[i]);
  out += sprintf(out, " nests %u:", it->nests._length);
  for (uint32_t i = 0; i < it->nests._length && i < 8; i++) out = put_inner(out, &it->nests._buffer[i]);
}

static uint32_t everything_number(const void *sample) { return ((const Everything *)sample)->number; }

static int everything_same(const void *left, const void *right) {
  static char a[TEXT_MAX], b[TEXT_MAX];
  describe(a, left);
  describe(b, right);
  if (strcmp(a, b) == 0) return 1;
  printf("# got      %s\n# expected %s\n", a, b);
  return 0;
}

// ---- Blob

static void *make_blob(uint32_t number, uint32_t size, uint32_t instances) {
  static Blob blob;
  (void)instances;
  blob.number = number;
  blob.data = make_bytes(number, size);
  return &blob;
}

static uint32_t blob_number(const void *sample) { return ((const Blob *)sample)->number; }

static int blob_same(const void *left, const void *right) {
  const Blob *a = left, *b = right;
  return a->number == b->number && same_bytes(&a->data, &b->data);
}

static uint32_t only_instance(const void *sample) {
  (void)sample;
  return 0;
}

// ---- Kinds

static void *make_kinds(uint32_t number, uint32_t size, uint32_t instances) {
  static char name[32], text[32];
  static int32_t maybe;
  static Paint colors[3];
  static Kinds it;
  (void)size;
  const uint32_t instance = number % instances;
  it.number = number;
  it.color = (Paint)(instance % 3);
  it.wide = (UINT64_C(1) << 40) + instance;
  snprintf(name, sizeof name, "place %u", number);
  it.place = (Spot){.name = name, .room = (int32_t)instance};
  maybe = -(int32_t)number;
  it.maybe = number % 2 == 1 ? &maybe : NULL;
  snprintf(text, sizeof text, "text %u", number);
  it.text = number % 3 == 1 ? text : NULL;
  it.reading._d = number % 5 == 0 ? -2 : 1;
  if (number % 5 == 0)
    it.reading._u.text = text;
  else
    it.reading._u.celsius = number * 0.5;
  it.colors._maximum = it.colors._length = number % 4;
  it.colors._buffer = colors;
  for (uint32_t i = 0; i < 3; i++) colors[i] = (Paint)((number + i) % 3);
  it.places[0] = it.place;
  it.places[1] = (Spot){.name = "", .room = 7};
  return &it;
}

static void describe_kinds(char *out, const Kinds *it) {
  out += sprintf(out, "%u %d %" PRIu64 " (%d '%s')", it->number, (int)it->color, it->wide, it->place.room, it->place.name);
  if (it->maybe != NULL) out += sprintf(out, " maybe %d", *it->maybe);
  if (it->text != NULL) out += sprintf(out, " text '%s'", it->text);
  if (it->reading._d == 1)
    out += sprintf(out, " %a", it->reading._u.celsius);
  else
    out += sprintf(out, " %d '%s'", it->reading._d, it->reading._u.text);
  for (uint32_t i = 0; i < it->colors._length && i < 4; i++) out += sprintf(out, " %d", (int)it->colors._buffer[i]);
  for (uint32_t i = 0; i < 2; i++) out += sprintf(out, " (%d '%s')", it->places[i].room, it->places[i].name);
}

static uint32_t kinds_number(const void *sample) { return ((const Kinds *)sample)->number; }

static uint32_t kinds_instance(const void *sample) { return (uint32_t)((const Kinds *)sample)->place.room; }

static int kinds_same(const void *left, const void *right) {
  static char a[TEXT_MAX], b[TEXT_MAX];
  describe_kinds(a, left);
  describe_kinds(b, right);
  if (strcmp(a, b) == 0) return 1;
  printf("# got      %s\n# expected %s\n", a, b);
  return 0;
}

// ---- Numbers

static void *make_numbers(uint32_t number, uint32_t size, uint32_t instances) {
  static Numbers it;
  (void)size;
  it = (Numbers){.instance = (int32_t)(number % instances), .number = number};
  return &it;
}

static uint32_t numbers_number(const void *sample) { return ((const Numbers *)sample)->number; }

static uint32_t numbers_instance(const void *sample) { return (uint32_t)((const Numbers *)sample)->instance; }

static int numbers_same(const void *left, const void *right) { return memcmp(left, right, sizeof(Numbers)) == 0; }

// ---- Peer

typedef struct {
  const char *name;
  const dds_topic_descriptor_t *descriptor;
  void *(*make)(uint32_t number, uint32_t size, uint32_t instances);
  uint32_t (*number)(const void *sample);
  uint32_t (*instance)(const void *sample);
  int (*same)(const void *left, const void *right);
} type_t;

static const type_t TYPES[] = {
    {"ShapeType", &ShapeType_desc, make_shape, shape_number, shape_instance, shape_same},
    {"Everything", &Everything_desc, make_everything, everything_number, only_instance, everything_same},
    {"Blob", &Blob_desc, make_blob, blob_number, only_instance, blob_same},
    // The same members in the same order: the same struct in C.
    {"AppendableShape", &AppendableShape_desc, make_shape, shape_number, shape_instance, shape_same},
    {"Kinds", &Kinds_desc, make_kinds, kinds_number, kinds_instance, kinds_same},
    {"Numbers", &Numbers_desc, make_numbers, numbers_number, numbers_instance, numbers_same},
};

static dds_entity_t participant;
static dds_entity_t endpoint;
static dds_entity_t waitset;
static const type_t *type;
static int is_writer, is_batching, is_xcdr2;
static dds_instance_state_t states[INSTANCES_MAX + 1];

#include "policies.h"

// The statuses that are waited for.
#define WRITER_NEWS (DDS_PUBLICATION_MATCHED_STATUS | DDS_OFFERED_INCOMPATIBLE_QOS_STATUS | DDS_LIVELINESS_LOST_STATUS | \
                     DDS_OFFERED_DEADLINE_MISSED_STATUS)
#define READER_NEWS (DDS_SUBSCRIPTION_MATCHED_STATUS | DDS_REQUESTED_INCOMPATIBLE_QOS_STATUS | DDS_LIVELINESS_CHANGED_STATUS | \
                     DDS_REQUESTED_DEADLINE_MISSED_STATUS | DDS_DATA_AVAILABLE_STATUS)

static void make_endpoint(int writes, const char *type_name, const char *topic_name, int is_reliable, const char *options) {
  type = NULL;
  for (size_t i = 0; i < sizeof TYPES / sizeof TYPES[0]; i++)
    if (strcmp(TYPES[i].name, type_name) == 0) type = &TYPES[i];
  if (type == NULL) fail("no type %s", type_name);
  dds_qos_t *qos = dds_create_qos(), *topic_qos = dds_create_qos();
  set_data(topic_qos, options);
  dds_entity_t topic = check(dds_create_topic(participant, type->descriptor, topic_name, topic_qos, NULL), "topic");
  dds_delete_qos(topic_qos);
  dds_data_representation_id_t representation = is_xcdr2 ? DDS_DATA_REPRESENTATION_XCDR2 : DDS_DATA_REPRESENTATION_XCDR1;
  dds_qset_reliability(qos, is_reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, LIMIT);
  set_policies(qos, options);
  dds_qset_data_representation(qos, 1, &representation);
  // Distinguishes unregistered instances from disposed ones.
  dds_qset_writer_data_lifecycle(qos, strstr(options, " autodispose") != NULL);
  is_writer = writes;
  endpoint = check(writes ? dds_create_writer(participant, topic, qos, NULL) : dds_create_reader(participant, topic, qos, NULL),
                   writes ? "writer" : "reader");
  dds_delete_qos(qos);
  waitset = check(dds_create_waitset(participant), "waitset");
  check(dds_set_status_mask(endpoint, writes ? WRITER_NEWS : READER_NEWS), "status mask");
  check(dds_waitset_attach(waitset, endpoint, 0), "attach");
}

static void wait_for_news(const char *what) {
  if (check(dds_waitset_wait(waitset, NULL, 0, LIMIT), "wait") == 0) fail("%s: nothing happened any more", what);
}

// Statuses wake the waitset until they are read: only enable those that are waited for.
static void clear_other_news(uint32_t waited_for) {
  uint32_t ignored;
  check(dds_take_status(endpoint, &ignored, (is_writer ? WRITER_NEWS : READER_NEWS) & ~waited_for), "statuses");
}

static void await_matches(uint32_t count, int is_total) {
  for (;;) {
    dds_publication_matched_status_t publication = {0};
    dds_subscription_matched_status_t subscription = {0};
    check(is_writer ? dds_get_publication_matched_status(endpoint, &publication)
                    : dds_get_subscription_matched_status(endpoint, &subscription), "matched status");
    const uint32_t current = is_writer ? publication.current_count : subscription.current_count;
    const uint32_t now = is_total ? publication.total_count + subscription.total_count : current;
    if (now == count) return;
    clear_other_news(DDS_PUBLICATION_MATCHED_STATUS | DDS_SUBSCRIPTION_MATCHED_STATUS);
    wait_for_news("matches");
  }
}

static void await_liveliness(uint32_t alive, uint32_t not_alive) {
  for (;;) {
    dds_liveliness_changed_status_t status;
    check(dds_get_liveliness_changed_status(endpoint, &status), "liveliness status");
    if (status.alive_count == alive && status.not_alive_count == not_alive) return;
    clear_other_news(DDS_LIVELINESS_CHANGED_STATUS);
    wait_for_news("liveliness");
  }
}

static void await_liveliness_lost(uint32_t count) {
  for (;;) {
    dds_liveliness_lost_status_t status;
    check(dds_get_liveliness_lost_status(endpoint, &status), "liveliness lost status");
    if (status.total_count == count) return;
    clear_other_news(DDS_LIVELINESS_LOST_STATUS);
    wait_for_news("liveliness lost");
  }
}

static uint32_t await_incompatibility(void) {
  for (;;) {
    dds_offered_incompatible_qos_status_t offered = {0};
    dds_requested_incompatible_qos_status_t requested = {0};
    check(is_writer ? dds_get_offered_incompatible_qos_status(endpoint, &offered)
                    : dds_get_requested_incompatible_qos_status(endpoint, &requested), "incompatible status");
    if (offered.total_count > 0) return offered.last_policy_id;
    if (requested.total_count > 0) return requested.last_policy_id;
    clear_other_news(DDS_OFFERED_INCOMPATIBLE_QOS_STATUS | DDS_REQUESTED_INCOMPATIBLE_QOS_STATUS);
    wait_for_news("incompatible QoS");
  }
}

static void await_missed_deadline(void) {
  for (;;) {
    dds_offered_deadline_missed_status_t offered = {0};
    dds_requested_deadline_missed_status_t requested = {0};
    check(is_writer ? dds_get_offered_deadline_missed_status(endpoint, &offered)
                    : dds_get_requested_deadline_missed_status(endpoint, &requested), "deadline status");
    if (offered.total_count + requested.total_count > 0) return;
    clear_other_news(DDS_OFFERED_DEADLINE_MISSED_STATUS | DDS_REQUESTED_DEADLINE_MISSED_STATUS);
    wait_for_news("missed deadlines");
  }
}

// Waits until the reader holds no samples although none are taken.
static void await_emptiness(void) {
  for (const dds_time_t start = dds_time(); dds_time() < start + LIMIT; dds_sleepfor(DDS_MSECS(5))) {
    void *sample[1] = {NULL};
    dds_sample_info_t info;
    const int count = check(dds_read(endpoint, sample, &info, 1, 1), "read");
    if (count == 0) return;
    check(dds_return_loan(endpoint, sample, count), "loan");
  }
  fail("the samples have not expired");
}

// Prints the data of the user, the topic and the group of the first matched endpoint.
static void print_data(void) {
  dds_instance_handle_t other;
  const int count = is_writer ? dds_get_matched_subscriptions(endpoint, &other, 1) : dds_get_matched_publications(endpoint, &other, 1);
  if (count < 1) fail("nothing is matched");
  dds_builtintopic_endpoint_t *found =
      is_writer ? dds_get_matched_subscription_data(endpoint, other) : dds_get_matched_publication_data(endpoint, other);
  if (found == NULL) fail("nothing is known about it");
  void *user, *topic, *group;
  size_t users, topics, groups;
  if (!dds_qget_userdata(found->qos, &user, &users) || !dds_qget_topicdata(found->qos, &topic, &topics) ||
      !dds_qget_groupdata(found->qos, &group, &groups))
    fail("no data");
  printf("ok %.*s %.*s %.*s\n", (int)users, (char *)user, (int)topics, (char *)topic, (int)groups, (char *)group);
  dds_free(user);
  dds_free(topic);
  dds_free(group);
  dds_builtintopic_free_endpoint(found);
}

static void write_samples(uint32_t first, uint32_t count, uint32_t size, uint32_t instances) {
  for (uint32_t number = first; number < first + count; number++)
    check(dds_write(endpoint, type->make(number, size, instances)), "write");
  if (is_batching) dds_write_flush(endpoint);
}

// The next number of each instance, if all of them are expected.
static uint32_t next_number(uint32_t from, uint32_t instance, uint32_t instances) {
  const uint32_t ahead = (instance + instances - from % instances) % instances;
  return from + ahead;
}

typedef struct {
  uint32_t size, instances, taken;
  int is_complete;
  uint32_t next[INSTANCES_MAX];
} reading_t;

static void look_at(const void *sample, const dds_sample_info_t *info, reading_t *reading) {
  const uint32_t instance = type->instance(sample);
  if (instance >= INSTANCES_MAX) fail("a sample has a strange key");
  states[instance] = info->instance_state;
  if (!info->valid_data || reading == NULL) return;
  const uint32_t number = type->number(sample);
  const uint32_t next = reading->next[instance];
  if (instance >= reading->instances || number % reading->instances != instance) fail("sample %u has instance %u", number, instance);
  if (number < next || (reading->is_complete && number != next)) fail("sample %u came instead of %u", number, next);
  if (!type->same(sample, type->make(number, reading->size, reading->instances))) fail("sample %u is not as it was written", number);
  reading->next[instance] = number + reading->instances;
  reading->taken++;
}

// Takes at most `max` samples; returns 0 if there are none.
static int take(uint32_t max, reading_t *reading) {
  enum { BATCH = 32 };
  void *samples[BATCH] = {NULL};
  dds_sample_info_t info[BATCH];
  const uint32_t limit = max < BATCH ? max : BATCH;
  const int count = check(dds_take(endpoint, samples, info, limit, limit), "take");
  for (int i = 0; i < count; i++) look_at(samples[i], &info[i], reading);
  if (count > 0) check(dds_return_loan(endpoint, samples, count), "loan");
  return count;
}

static void read_samples(int is_complete, uint32_t first, uint32_t count, uint32_t size, uint32_t instances) {
  reading_t reading = {.size = size, .instances = instances, .is_complete = is_complete};
  for (uint32_t i = 0; i < instances; i++) reading.next[i] = next_number(first, i, instances);
  while (reading.taken < count)
    if (take(count - reading.taken, &reading) == 0) {
      clear_other_news(DDS_DATA_AVAILABLE_STATUS);
      if (check(dds_waitset_wait(waitset, NULL, 0, LIMIT), "wait") == 0) fail("only %u of %u samples came", reading.taken, count);
    }
}

static void await_state(uint32_t instance, dds_instance_state_t state) {
  if (instance >= INSTANCES_MAX) fail("no instance %u", instance);
  while (states[instance] != state)
    if (take(1, NULL) == 0) {
      clear_other_news(DDS_DATA_AVAILABLE_STATUS);
      wait_for_news("instance state");
    }
}

static void act(char *line) {
  char word[32] = "", type_name[32], topic[256], mode[16];
  uint32_t first, count, size, instances;
  sscanf(line, "%31s", word);
  const char *rest = line + strlen(word);
  if (strcmp(word, "writer") == 0 || strcmp(word, "reader") == 0) {
    if (sscanf(rest, "%31s %255s %15s", type_name, topic, mode) < 3) fail("bad command: %s", line);
    is_batching = strstr(rest, " batch") != NULL;
    is_xcdr2 = strstr(rest, " xcdr2") != NULL;
    dds_write_set_batch(is_batching);
    make_endpoint(strcmp(word, "writer") == 0, type_name, topic, strcmp(mode, "reliable") == 0, rest);
  } else if (strcmp(word, "matched") == 0 && sscanf(rest, "%u", &count) == 1) {
    await_matches(count, 0);
  } else if (strcmp(word, "arrived") == 0 && sscanf(rest, "%u", &count) == 1) {
    await_matches(count, 1);
  } else if (strcmp(word, "incompatible") == 0) {
    printf("ok %u\n", await_incompatibility());
    return;
  } else if (strcmp(word, "deadline-missed") == 0) {
    await_missed_deadline();
  } else if (strcmp(word, "empty") == 0) {
    await_emptiness();
  } else if (strcmp(word, "seen") == 0) {
    print_data();
    return;
  } else if (strcmp(word, "write-at") == 0 && sscanf(rest, "%u %u %u %u", &first, &count, &size, &instances) == 4) {
    check(dds_write_ts(endpoint, type->make(count, size, instances), DDS_SECS(first)), "write");
  } else if (strcmp(word, "acknowledged") == 0) {
    check(dds_wait_for_acks(endpoint, LIMIT), "acknowledgements");
  } else if (strcmp(word, "liveliness") == 0 && sscanf(rest, "%u %u", &first, &count) == 2) {
    await_liveliness(first, count);
  } else if (strcmp(word, "liveliness-lost") == 0 && sscanf(rest, "%u", &count) == 1) {
    await_liveliness_lost(count);
  } else if (strcmp(word, "assert") == 0) {
    check(dds_assert_liveliness(endpoint), "assert");
  } else if (strcmp(word, "delete") == 0) {
    check(dds_delete(waitset), "delete");
    check(dds_delete(endpoint), "delete");
  } else if (strcmp(word, "dispose") == 0 && sscanf(rest, "%u %u", &first, &instances) == 2) {
    check(dds_dispose(endpoint, type->make(first, 0, instances)), "dispose");
  } else if (strcmp(word, "unregister") == 0 && sscanf(rest, "%u %u", &first, &instances) == 2) {
    check(dds_unregister_instance(endpoint, type->make(first, 0, instances)), "unregister");
  } else if (strcmp(word, "state") == 0 && sscanf(rest, "%u %15s", &count, mode) == 2) {
    await_state(count, strcmp(mode, "alive") == 0      ? DDS_IST_ALIVE
                       : strcmp(mode, "disposed") == 0 ? DDS_IST_NOT_ALIVE_DISPOSED
                                                       : DDS_IST_NOT_ALIVE_NO_WRITERS);
  } else if (sscanf(rest, "%u %u %u %u", &first, &count, &size, &instances) != 4 || size > SIZE_MAX_BYTES ||
             instances == 0 || instances > INSTANCES_MAX) {
    fail("bad command: %s", line);
  } else if (strcmp(word, "write") == 0) {
    write_samples(first, count, size, instances);
  } else if (strcmp(word, "read") == 0) {
    read_samples(1, first, count, size, instances);
  } else if (strcmp(word, "read-some") == 0) {
    read_samples(0, first, count, size, instances);
  } else {
    fail("bad command: %s", line);
  }
  puts("ok");
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc != 2) fail("usage: peer DOMAIN");
  participant = check(dds_create_participant((dds_domainid_t)atoi(argv[1]), NULL, NULL), "participant");
  puts("ok");
  char line[512];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (strcmp(line, "quit") == 0) break;
    act(line);
  }
  check(dds_delete(participant), "leave");
  puts("ok");
  return 0;
}
