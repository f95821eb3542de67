// The QoS policies of an endpoint, from the options of the commands `writer` and `reader` of `peer.c`, which includes
// this file.

// The number after an option, or `otherwise`.
static int32_t option(const char *options, const char *name, int32_t otherwise) {
  const char *found = strstr(options, name);
  return found == NULL ? otherwise : atoi(found + strlen(name));
}

static void set_history(dds_qos_t *qos, const char *options) {
  const int32_t depth = option(options, " keep-last=", 0);
  const dds_history_kind_t kind = depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
  dds_qset_history(qos, kind, depth);
  if (strstr(options, " transient-local") == NULL) return;
  dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
  // The samples kept for late-joining readers.
  dds_qset_durability_service(qos, 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
}

static void set_liveliness(dds_qos_t *qos, const char *options) {
  static const char *const NAMES[] = {" automatic=", " manual-by-participant=", " manual-by-topic="};
  static const dds_liveliness_kind_t KINDS[] = {DDS_LIVELINESS_AUTOMATIC, DDS_LIVELINESS_MANUAL_BY_PARTICIPANT,
                                                DDS_LIVELINESS_MANUAL_BY_TOPIC};
  for (size_t i = 0; i < 3; i++) {
    const int32_t lease = option(options, NAMES[i], 0);
    if (lease > 0) dds_qset_liveliness(qos, KINDS[i], DDS_MSECS(lease));
  }
}

// Policies that make the announcement of an endpoint long.
static void set_announced(dds_qos_t *qos, const char *options) {
  enum { PARTITIONS_MAX = 64 };
  static char names[PARTITIONS_MAX][80];
  static const char *partitions[PARTITIONS_MAX];
  const int32_t bytes = option(options, " user-data=", 0), count = option(options, " partitions=", 0);
  if (bytes > 0) dds_qset_userdata(qos, make_bytes(0, (uint32_t)bytes)._buffer, (size_t)bytes);
  if (count > PARTITIONS_MAX) fail("at most %d partitions", PARTITIONS_MAX);
  for (int32_t i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "a partition whose name makes announcements longer %02d", i);
    partitions[i] = names[i];
  }
  if (count > 0) dds_qset_partition(qos, (uint32_t)count, partitions);
}

// Copies the text after an option, up to the next blank; returns whether the option is there.
static int text_option(char text[128], const char *options, const char *name) {
  const char *found = strstr(options, name);
  return found != NULL && sscanf(found + strlen(name), "%127[^ ]", text) == 1;
}

// Names separated by commas.
static void set_partition(dds_qos_t *qos, const char *options) {
  enum { NAMES_MAX = 8 };
  char text[128];
  const char *names[NAMES_MAX];
  uint32_t count = 0;
  if (!text_option(text, options, " partition=")) return;
  for (char *name = strtok(text, ","); name != NULL && count < NAMES_MAX; name = strtok(NULL, ",")) names[count++] = name;
  dds_qset_partition(qos, count, names);
}

static void set_presentation(dds_qos_t *qos, const char *options) {
  char scope[128];
  if (!text_option(scope, options, " presentation=")) return;
  dds_qset_presentation(qos,
                        strcmp(scope, "group") == 0   ? DDS_PRESENTATION_GROUP
                        : strcmp(scope, "topic") == 0 ? DDS_PRESENTATION_TOPIC
                                                      : DDS_PRESENTATION_INSTANCE,
                        strstr(options, " coherent") != NULL, strstr(options, " ordered") != NULL);
}

// Data of the user, the topic and the publisher or subscriber.
static void set_data(dds_qos_t *qos, const char *options) {
  char text[128];
  if (text_option(text, options, " user=")) dds_qset_userdata(qos, text, strlen(text));
  if (text_option(text, options, " topic=")) dds_qset_topicdata(qos, text, strlen(text));
  if (text_option(text, options, " group=")) dds_qset_groupdata(qos, text, strlen(text));
}

static void set_policies(dds_qos_t *qos, const char *options) {
  const int32_t strength = option(options, " exclusive=", -1), deadline = option(options, " deadline=", 0),
                lifespan = option(options, " lifespan=", 0);
  set_history(qos, options);
  set_liveliness(qos, options);
  set_announced(qos, options);
  set_partition(qos, options);
  set_presentation(qos, options);
  set_data(qos, options);
  if (strength >= 0) {
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
    dds_qset_ownership_strength(qos, strength);
  }
  if (deadline > 0) dds_qset_deadline(qos, DDS_MSECS(deadline));
  if (lifespan > 0) dds_qset_lifespan(qos, DDS_MSECS(lifespan));
  if (strstr(options, " by-source-timestamp") != NULL)
    dds_qset_destination_order(qos, DDS_DESTINATIONORDER_BY_SOURCE_TIMESTAMP);
}
