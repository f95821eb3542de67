// What the shims and `src/foreign.rs` share.

#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct header {
  uint8_t key[4];
  int32_t entity_id;
  uint32_t seq_num;
  int32_t timestamp_sec;
  uint32_t timestamp_usec;
  int32_t latency_ping;
};

typedef void (*on_sample_t)(void *context, const struct header *header, const uint8_t *payload, size_t length);

struct options {
  uint32_t domain;
  uint8_t reliable, keyed, keep_all, batching;
  int64_t max_blocking_ns;
  const char *write_topic, *read_topic;
  const char *configuration;
  on_sample_t on_sample;
  void *context;
};

// An endpoint of a participant with several. A writer has no `on_sample`.
struct endpoint_options {
  const char *topic;
  uint8_t reliable, keyed;
  uint32_t depth;  // KEEP_LAST; 0: KEEP_ALL
  uint32_t instances;
  int64_t max_blocking_ns;
  on_sample_t on_sample;
  void *context;
};

enum { TAKEN = 0, TIMED_OUT = 1, FAILED = 2 };

struct node;
struct participant;
struct endpoint;

// The functions of a shim, in the order of `foreign::Shim`.
struct shim {
  struct node *(*open)(const struct options *options, char *error, size_t error_size);
  int32_t (*write)(struct node *node, const struct header *header, const uint8_t *payload, size_t length);
  void (*flush)(struct node *node);
  int32_t (*wait_for_acknowledgments)(struct node *node, int64_t timeout_ns);
  void (*matched)(struct node *node, uint32_t *readers, uint32_t *writers);
  void (*close)(struct node *node);
  const char *(*version)(void);

  // A participant with any number of endpoints. Of the options, domain and configuration apply. Closing it closes its
  // endpoints.
  struct participant *(*open_participant)(const struct options *options, char *error, size_t error_size);
  struct endpoint *(*add_writer)(struct participant *participant, const struct endpoint_options *options, char *error,
                                 size_t error_size);
  struct endpoint *(*add_reader)(struct participant *participant, const struct endpoint_options *options, char *error,
                                 size_t error_size);
  int32_t (*write_endpoint)(struct endpoint *endpoint, const struct header *header, const uint8_t *payload,
                            size_t length);
  uint32_t (*endpoint_matched)(struct endpoint *endpoint);
  void (*close_participant)(struct participant *participant);
};

extern const struct shim weir_cyclonedds, weir_fastdds;

#ifdef __cplusplus
}
#endif
