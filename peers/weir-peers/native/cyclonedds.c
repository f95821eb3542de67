// Cyclone DDS behind the interface of `src/foreign.rs`: a participant with a writer, a reader with a listener, or both;
// and participants with any number of them.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dds/dds.h"
#include "dds/ddsrt/log.h"
#include "dds/version.h"
#include "shim.h"
#include "test_data.h"

// Both types have the same members: only what the library knows of their keys differs.
typedef TestData_t sample_t;

enum { TAKE_MAX = 64 };

// What a reader's listener needs.
struct receiver {
  on_sample_t on_sample;
  void *context;
  // Samples are taken into these again and again, as in the library's own ddsperf: its listener is called for every
  // sample that arrives, by one thread at a time. Returning a loan instead frees the payload, and clears room for
  // TAKE_MAX samples however few were taken, under a lock: a fifth of the rate of small samples.
  sample_t received[TAKE_MAX];
  void *received_at[TAKE_MAX];
};

struct node {
  dds_entity_t domain, participant, writer, reader;
  struct receiver receiver;
};

static void prepare_receiver(struct receiver *receiver, on_sample_t on_sample, void *context) {
  receiver->on_sample = on_sample;
  receiver->context = context;
  for (int i = 0; i < TAKE_MAX; i++) receiver->received_at[i] = &receiver->received[i];
}

static void free_receiver(struct receiver *receiver) {
  for (int i = 0; i < TAKE_MAX; i++) dds_sample_free(&receiver->received[i], &TestData_t_desc, DDS_FREE_CONTENTS);
}

static void on_data_available(dds_entity_t reader, void *argument) {
  struct receiver *receiver = argument;
  dds_sample_info_t info[TAKE_MAX];
  for (;;) {
    const dds_return_t count = dds_take(reader, receiver->received_at, info, TAKE_MAX, TAKE_MAX);
    if (count <= 0) return;
    for (dds_return_t i = 0; i < count; i++) {
      if (!info[i].valid_data) continue;
      const sample_t *it = &receiver->received[i];
      struct header header = {.entity_id = it->entity_id, .seq_num = it->seq_num, .timestamp_sec = it->timestamp_sec,
                              .timestamp_usec = it->timestamp_usec, .latency_ping = it->latency_ping};
      memcpy(header.key, it->key, sizeof header.key);
      receiver->on_sample(receiver->context, &header, it->bin_data._buffer, it->bin_data._length);
    }
    if (count < TAKE_MAX) return;
  }
}

static dds_entity_t make_topic(const struct node *node, const struct options *options, const char *name) {
  const dds_topic_descriptor_t *type = options->keyed ? &TestDataKeyed_t_desc : &TestData_t_desc;
  return dds_create_topic(node->participant, type, name, NULL, NULL);
}

static void set_reliability(dds_qos_t *qos, int is_reliable, int64_t max_blocking_ns) {
  const dds_reliability_kind_t kind = is_reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT;
  dds_qset_reliability(qos, kind, max_blocking_ns);
}

// The first error that the library reported, in the words of its log.
static char first_error[512];

static void keep_first_error(void *unused, const dds_log_data_t *data) {
  (void)unused;
  if (first_error[0] != 0 || !(data->priority & (DDS_LC_ERROR | DDS_LC_CONFIG))) return;
  snprintf(first_error, sizeof first_error, "%s", data->message);
  first_error[strcspn(first_error, "\r\n")] = 0;
}

static dds_entity_t create_domain(const struct options *options) {
  dds_set_log_sink(keep_first_error, NULL);
  const dds_entity_t domain = dds_create_domain(options->domain, options->configuration);
  dds_set_log_sink(NULL, NULL);
  return domain;
}

static void explain(dds_return_t result, char *error, size_t error_size) {
  const char *more = first_error[0] != 0 ? ": " : "";
  snprintf(error, error_size, "%s%s%s", dds_strretcode(result), more, first_error);
}

static dds_return_t make_entities(struct node *node, const struct options *options) {
  node->domain = create_domain(options);
  if (node->domain < 0) return node->domain;
  node->participant = dds_create_participant(options->domain, NULL, NULL);
  if (node->participant < 0) return node->participant;
  // Before the first participant it has no effect.
  dds_write_set_batch(options->batching);
  dds_qos_t *qos = dds_create_qos();
  set_reliability(qos, options->reliable, options->max_blocking_ns);
  dds_qset_history(qos, options->keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST, 1);
  dds_return_t result = DDS_RETCODE_OK;
  if (options->write_topic != NULL) {
    const dds_entity_t topic = make_topic(node, options, options->write_topic);
    node->writer = topic < 0 ? topic : dds_create_writer(node->participant, topic, qos, NULL);
    if (node->writer < 0) result = node->writer;
  }
  if (result == DDS_RETCODE_OK && options->read_topic != NULL) {
    dds_listener_t *listener = dds_create_listener(&node->receiver);
    dds_lset_data_available(listener, on_data_available);
    const dds_entity_t topic = make_topic(node, options, options->read_topic);
    node->reader = topic < 0 ? topic : dds_create_reader(node->participant, topic, qos, listener);
    if (node->reader < 0) result = node->reader;
    dds_delete_listener(listener);
  }
  dds_delete_qos(qos);
  return result;
}

static void close_node(struct node *node) {
  if (node->reader > 0) dds_set_listener(node->reader, NULL);
  if (node->participant > 0) dds_delete(node->participant);
  if (node->domain > 0) dds_delete(node->domain);
  free_receiver(&node->receiver);
  free(node);
}

static struct node *open_node(const struct options *options, char *error, size_t error_size) {
  struct node *node = calloc(1, sizeof *node);
  if (node == NULL) return NULL;
  prepare_receiver(&node->receiver, options->on_sample, options->context);
  const dds_return_t result = make_entities(node, options);
  if (result >= 0) return node;
  explain(result, error, error_size);
  close_node(node);
  return NULL;
}

static int32_t write_to(dds_entity_t writer, const struct header *header, const uint8_t *payload, size_t length) {
  sample_t it = {.entity_id = header->entity_id, .seq_num = header->seq_num, .timestamp_sec = header->timestamp_sec,
                 .timestamp_usec = header->timestamp_usec, .latency_ping = header->latency_ping};
  memcpy(it.key, header->key, sizeof it.key);
  it.bin_data._maximum = it.bin_data._length = (uint32_t)length;
  it.bin_data._buffer = (uint8_t *)payload;
  const dds_return_t result = dds_write(writer, &it);
  return result == DDS_RETCODE_OK ? TAKEN : result == DDS_RETCODE_TIMEOUT ? TIMED_OUT : FAILED;
}

static int32_t write_sample(struct node *node, const struct header *header, const uint8_t *payload, size_t length) {
  return write_to(node->writer, header, payload, length);
}

static void flush_samples(struct node *node) { dds_write_flush(node->writer); }

static int32_t wait_for_acknowledgments(struct node *node, int64_t timeout_ns) {
  return dds_wait_for_acks(node->writer, timeout_ns) == DDS_RETCODE_OK ? TAKEN : TIMED_OUT;
}

static void matched(struct node *node, uint32_t *readers, uint32_t *writers) {
  dds_publication_matched_status_t publication = {0};
  dds_subscription_matched_status_t subscription = {0};
  if (node->writer > 0) dds_get_publication_matched_status(node->writer, &publication);
  if (node->reader > 0) dds_get_subscription_matched_status(node->reader, &subscription);
  *readers = publication.current_count;
  *writers = subscription.current_count;
}

static const char *version(void) { return DDS_VERSION; }

struct participant {
  dds_entity_t entity;
  struct endpoint *endpoints;
};

struct endpoint {
  struct endpoint *next;
  dds_entity_t entity;
  int is_reader;
  struct receiver receiver;
};

// Participants of a process share the domain, which has the configuration. It stays until the process ends.
static pthread_mutex_t domain_lock = PTHREAD_MUTEX_INITIALIZER;
static dds_entity_t shared_domain = 0;

static dds_return_t share_domain(const struct options *options) {
  pthread_mutex_lock(&domain_lock);
  if (shared_domain <= 0) shared_domain = create_domain(options);
  const dds_return_t result = shared_domain;
  pthread_mutex_unlock(&domain_lock);
  return result;
}

static struct participant *open_participant(const struct options *options, char *error, size_t error_size) {
  struct participant *it = calloc(1, sizeof *it);
  if (it == NULL) return NULL;
  it->entity = share_domain(options);
  if (it->entity >= 0) it->entity = dds_create_participant(options->domain, NULL, NULL);
  if (it->entity >= 0) return it;
  explain(it->entity, error, error_size);
  free(it);
  return NULL;
}

static struct endpoint *add_endpoint(struct participant *participant, const struct endpoint_options *options,
                                     int is_reader, char *error, size_t error_size) {
  struct endpoint *it = calloc(1, sizeof *it);
  if (it == NULL) return NULL;
  it->is_reader = is_reader;
  prepare_receiver(&it->receiver, options->on_sample, options->context);
  dds_qos_t *qos = dds_create_qos();
  set_reliability(qos, options->reliable, options->max_blocking_ns);
  if (options->depth > 0)
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, (int32_t)options->depth);
  else
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 1);
  const dds_topic_descriptor_t *type = options->keyed ? &TestDataKeyed_t_desc : &TestData_t_desc;
  const dds_entity_t topic = dds_create_topic(participant->entity, type, options->topic, NULL, NULL);
  if (topic < 0) {
    it->entity = topic;
  } else if (is_reader) {
    dds_listener_t *listener = dds_create_listener(&it->receiver);
    dds_lset_data_available(listener, on_data_available);
    it->entity = dds_create_reader(participant->entity, topic, qos, listener);
    dds_delete_listener(listener);
  } else {
    it->entity = dds_create_writer(participant->entity, topic, qos, NULL);
  }
  dds_delete_qos(qos);
  if (it->entity < 0) {
    snprintf(error, error_size, "%s", dds_strretcode(it->entity));
    free_receiver(&it->receiver);
    free(it);
    return NULL;
  }
  it->next = participant->endpoints;
  participant->endpoints = it;
  return it;
}

static struct endpoint *add_writer(struct participant *participant, const struct endpoint_options *options, char *error,
                                   size_t error_size) {
  return add_endpoint(participant, options, 0, error, error_size);
}

static struct endpoint *add_reader(struct participant *participant, const struct endpoint_options *options, char *error,
                                   size_t error_size) {
  return add_endpoint(participant, options, 1, error, error_size);
}

static int32_t write_endpoint(struct endpoint *it, const struct header *header, const uint8_t *payload, size_t length) {
  return write_to(it->entity, header, payload, length);
}

static uint32_t endpoint_matched(struct endpoint *it) {
  if (it->is_reader) {
    dds_subscription_matched_status_t status = {0};
    dds_get_subscription_matched_status(it->entity, &status);
    return status.current_count;
  }
  dds_publication_matched_status_t status = {0};
  dds_get_publication_matched_status(it->entity, &status);
  return status.current_count;
}

static void close_participant(struct participant *participant) {
  for (struct endpoint *it = participant->endpoints; it != NULL; it = it->next)
    if (it->is_reader) dds_set_listener(it->entity, NULL);
  dds_delete(participant->entity);
  while (participant->endpoints != NULL) {
    struct endpoint *it = participant->endpoints;
    participant->endpoints = it->next;
    free_receiver(&it->receiver);
    free(it);
  }
  free(participant);
}

const struct shim weir_cyclonedds = {open_node,        write_sample, flush_samples, wait_for_acknowledgments,
                                     matched,          close_node,   version,       open_participant,
                                     add_writer,       add_reader,   write_endpoint, endpoint_matched,
                                     close_participant};
