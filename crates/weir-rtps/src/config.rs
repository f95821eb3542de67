//! Every tunable of the protocol: its default, its unit and the reason for it.

use core::time::Duration;

/// Size of a block of history, in bytes. A segmented send takes up to 64 KiB from one block and is
/// cut short at its end. With four sends per block that does not matter, and the block still fits
/// the processor's cache.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// Maximum unsent data of an asynchronously publishing writer, if no reader's acknowledgements
/// limit it.
///
/// In bytes as accounted by the kernel: a millisecond of the fastest stream of small samples, for a
/// thread that is scheduled late.
pub const UNSENT_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Spare blocks that a writer keeps for reuse: a window's worth, so that a steady flow allocates
/// nothing.
pub const BLOCKS_SPARE_MAX: usize = 32;

/// Largest UDP payload over IPv4, in bytes (RFC 768, RFC 791).
pub const DATAGRAM_MAX_BYTES: usize = 65_507;
/// Minimum size of fragmented datagrams, in bytes: every IPv4 host accepts it (RFC 791).
pub const DATAGRAM_MIN_BYTES: usize = 548;
/// Maximum number of datagrams in one segmented send (Linux `UDP_MAX_SEGMENTS` of kernels before
/// 6.10).
pub const SEGMENTS_MAX: usize = 64;
/// Maximum size of one segmented send, in bytes.
pub const SEGMENTED_MAX_BYTES: usize = 65_000;

/// A reliable writer's window when its first reader matches, in bytes as accounted by the kernel:
/// fits the default socket buffer of Linux (212 992) with room for another writer.
pub const WINDOW_INITIAL_BYTES: u64 = 128 * 1024;
/// Minimum window, so that one datagram of the maximum size always fits.
pub const WINDOW_MIN_BYTES: u64 = 96 * 1024;
/// Maximum window towards readers that do not announce their granted socket buffer.
pub const WINDOW_UNKNOWN_READER_MAX_BYTES: u64 = 1024 * 1024;
/// After a gap, this many windows may be sent before the gap must be filled. At 10 % random loss
/// the last of a window's gaps is filled after about four round trips.
pub const UNACKNOWLEDGED_WINDOWS: u64 = 4;
/// The window is reduced when more than one in this many of its bytes was sent again.
pub const WINDOW_LOSS_SHARE: u64 = 2;

/// UDP and IPv4 headers of a datagram, in bytes (RFC 768, RFC 791).
pub const UDP_IP_HEADER_BYTES: u64 = 28;
/// The queue that a paced path may have, as time; or a quarter of the round trip, if that is longer. A longer one shows
/// a bottleneck.
pub const QUEUE_MAX: Duration = Duration::from_millis(5);
/// The queue that a paced path is to have, as time; or a sixteenth of the round trip, if that is longer. Without any,
/// the bottleneck would sometimes have nothing to send.
pub const QUEUE_TARGET: Duration = Duration::from_micros(700);
/// An open path that loses this share of what is sent has a bottleneck.
pub const PATH_LOSS_SHARE: f64 = 0.1;
/// What is sent on a path of which nothing is known until something has passed, in bytes.
pub const PATH_FIRST_FLIGHT_BYTES: u64 = 16 * 1024;
/// A reader that has never answered is sent no more at a time than this and a first flight: it may not receive
/// anything.
pub const PATH_UNANSWERED_FLIGHT_BYTES: u64 = 240 * 1024;
/// After so many bytes have passed without a sign of a bottleneck, a path limits nothing.
pub const PATH_KNOWN_BYTES: u64 = 16 << 20;
/// What a paced path may have in flight besides what its rate and round trip require, in bytes.
pub const PATH_FLIGHT_MIN_BYTES: u64 = 16 * 1024;
/// Every path is taken to carry as much, in bytes per second: a slow serial line.
pub const PATH_RATE_MIN: f64 = 1000.0;
/// No path is taken to carry more, in bytes per second, whatever its readers say: 100 Gbit/s.
pub const PATH_RATE_MAX: f64 = 12.5e9;
/// No answer is taken to come from another host sooner: readers that answer what they have not received yet would
/// show any rate.
pub const PATH_ROUND_TRIP_MIN: Duration = Duration::from_micros(5);
/// The window of a writer on paced paths, at most, in bytes as accounted by the kernel: 10 Gbit/s over 100 ms. Its
/// readers could make it keep any number of samples otherwise.
pub const WINDOW_PATH_MAX_BYTES: u64 = 128 << 20;
/// The shortest round trip of this time, and of 64 rounds, is that of the path without a queue (as in BBR).
pub const PATH_ROUND_TRIP_MEMORY: Duration = Duration::from_secs(10);
/// The rate of a path that is not measured for this time is forgotten.
pub const PATH_MEMORY: Duration = Duration::from_secs(10);
/// After four round trips and this time without an answer, what is in flight on a path does not hold back more.
pub const PATH_SILENCE: Duration = Duration::from_millis(200);
/// An answer counts as lost after this time at the latest.
pub const PATIENCE_MAX: Duration = Duration::from_secs(4);
/// What is in flight holds back nothing after this time without an answer while no round trip is known (RFC 6298).
pub const PATH_ANSWER_UNKNOWN: Duration = Duration::from_secs(1);
/// Readers of other engines do not show how far they have got while something is missing, nor within a large sample.
/// What they show nothing of may be in flight besides: what a paced path carries in half a round trip and this time, or
/// the time between their answers, ...
pub const PATH_UNREPORTED: Duration = Duration::from_millis(25);
/// ... two large samples, but no more than it carries in this time, ...
pub const PATH_UNREPORTED_LARGE: Duration = Duration::from_secs(1);
/// ... or this, in bytes, on an open path.
pub const PATH_UNREPORTED_BYTES: u64 = 64 * 1024;
/// An ECHO measures a round trip if the reader has waited no longer than this, beside which clocks differ by less than
/// a path's jitter, ...
pub const ECHO_DELAY_MAX: Duration = Duration::from_millis(500);
/// ... and the HEARTBEAT was sent no longer ago than this.
pub const ECHO_AGE_MAX: Duration = Duration::from_secs(4);
/// A path is held at this rate, at least, if its readers acknowledge what they have not received, in bytes per second.
pub const PATH_RATE_UNPROVEN: f64 = 64_000.0;
/// So many held paths are remembered that no writer uses any more.
pub const PATHS_HELD_MAX: usize = 64;
/// No datagram is withheld before so many bytes have passed on a path.
pub const PROOF_AFTER_BYTES: u64 = 64 * 1024;
/// One is withheld when a path carries so many times what was proven, ...
pub const PROOF_GROWTH: f64 = 2.0;
/// ... and so many round trips have passed since the last, ...
pub const PROOF_ROUND_TRIPS: u32 = 16;
/// ... or it carries so many times what was proven, ...
pub const PROOF_GROWTH_SOON: f64 = 8.0;
/// ... when the proof is as old as this, ...
pub const PROOF_MEMORY: Duration = Duration::from_secs(30);
/// ... and at this interval while the path is held.
pub const PROOF_INTERVAL: Duration = Duration::from_millis(200);
/// Samples or fragments sent since the last HEARTBEAT that make a stream, of which one may be withheld.
pub const PROOF_STREAM: u64 = 16;
/// A fragment is withheld among the first of a sample: readers name no more than 256 at a time.
pub const PROOF_FRAGMENTS: u32 = 128;
/// Cyclone DDS keeps so many samples behind a missing one, and names no more in a request, unless it is configured
/// otherwise (`PrimaryReorderMaxSamples`).
pub const CYCLONE_KEEPS_SAMPLES: i64 = 128;
/// Samples, and fragments, that a reader has requested and that were not sent again yet. It requests more again.
pub const REQUESTED_MAX: usize = 8192;
/// A writer remembers no more repairs for a reader than this: what waits to be sent is much less.
pub const REPAIRS_MAX: usize = 3 * REQUESTED_MAX;
/// A writer that sends again what such a reader has discarded does not do so again for this time per sample: ten times
/// what it costs.
pub const GOING_BACK_TIME: Duration = Duration::from_micros(1);
/// For so long a writer sends others no more than such a reader keeps, if that does not answer, and ten times as long
/// if it acknowledges nothing new: it may be stuck, or gone.
pub const DISCARDS_PATIENCE: Duration = Duration::from_secs(1);
/// Answers of such a reader that are further apart show a pause, or losses.
pub const ANSWERS_APART_MAX: Duration = Duration::from_millis(250);
/// After this time without an answer of the late joiner that is sent its history, others at the end of its path are not
/// held up for it.
pub const LATE_JOINER_PATIENCE: Duration = Duration::from_secs(1);
/// Marks (ECN) are counted for so many participants that ask for it.
pub const ECN_SENDERS_MAX: usize = 64;
/// ECN is used with so many participants of one host.
pub const ECN_PEERS_MAX: usize = 16;
/// A participant that has reported no marks for this time, and for eight round trips, no longer counts them.
pub const ECN_SILENCE: Duration = Duration::from_secs(2);
/// For this time, doubled each time, ECN is off after the path or a reader has handled it wrongly.
pub const ECN_OFF: Duration = Duration::from_secs(60);
/// How often a writer checks whether to ask readers for marks.
pub const ECN_CHECK_EVERY: Duration = Duration::from_millis(50);
/// Best-effort readers are asked what has arrived after so many bytes, at least, if nothing waits for their path.
pub const RECEIPT_BYTES: u64 = 8 * 1024;
/// The same where other writers measure the path.
pub const RECEIPT_BYTES_MANY: u64 = 64 * 1024;
/// Where round trips are shorter, longer ones alone do not show a bottleneck to a best-effort writer: only losses do.
pub const QUESTION_ROUND_TRIP_MIN: Duration = Duration::from_micros(250);
/// Questions are no further apart than this on account of missing answers, so that a path that is back is soon
/// measured.
pub const QUESTION_EVERY_MAX: Duration = Duration::from_millis(200);
/// For so long, a best-effort reader is expected to answer the first time...
pub const RECEIPT_WAIT: Duration = Duration::from_secs(1);
/// ... or for so many times as long as its participant took to answer discovery: it is matched before it discovers the
/// writer...
pub const RECEIPT_WAIT_ANSWERS: u32 = 4;
/// ... and for so long at most.
pub const RECEIPT_WAIT_MAX: Duration = Duration::from_secs(6);
/// What a best-effort writer has waiting for a paced path leaves within this time; what is older is not sent.
pub const BEST_EFFORT_WAIT: Duration = Duration::from_millis(100);
/// A path that takes less than others for this time, or a quarter of its round trip, does not hold them up.
pub const APART_AFTER: Duration = Duration::from_millis(5);
/// The most of that quarter: a reader decides how long its round trip is.
pub const APART_AFTER_MAX: Duration = Duration::from_millis(100);
/// It takes less if it carries less than this share of what another carries.
pub const APART_RATE_SHARE: f64 = 0.8;
/// What leaves together on a paced path, as time...
pub const PACING_TRAIN: Duration = Duration::from_micros(500);
/// ... or as this, where much is lost at a short round trip, ...
pub const PACING_TRAIN_SHORT: Duration = Duration::from_micros(250);
/// ... or in bytes: two packets of Ethernet.
pub const PACING_TRAIN_MIN_BYTES: f64 = 3000.0;
/// What a sender that was late may catch up with, as time.
pub const PACING_DEPTH: Duration = Duration::from_millis(2);
/// A writer that has its turn and does not come loses it after this time.
pub const PACING_TURN: Duration = Duration::from_millis(5);
/// A writer that has its turn, has paused, and has at most this much to send, need not wait for the tokens, in bytes.
pub const PACING_SPARSE_BYTES: u64 = 3000;
/// Writers of lower priority that wait for a path are owed this share of what those before them send.
pub const PACING_SHARE_LOWER: f64 = 0.125;
/// A latency budget beyond this is taken for this: a writer that may wait is not to wait for ever.
pub const LATENCY_BUDGET_MAX: Duration = Duration::from_millis(100);
/// A writer that asks for nothing for this time is new when it asks again.
pub const PACING_MEMORY: Duration = Duration::from_secs(1);
/// HEARTBEATs on a path are at most this share of a round trip apart, ...
pub const MARK_SHARE: u64 = 8;
/// ... at least this far, ...
pub const MARK_EVERY_MIN: Duration = Duration::from_millis(1);
/// ... and at most this far.
pub const MARK_EVERY_MAX: Duration = Duration::from_millis(25);
/// Marks that a writer waits for on a path at a time.
pub const MARKS_MAX: usize = 1024;

/// A HEARTBEAT that requests a response is added whenever this share of the window was sent since
/// the last.
pub const HEARTBEAT_WINDOW_SHARE: u64 = 8;
/// First HEARTBEAT after the last write when samples are unacknowledged: no later data would show a
/// loss in the tail of a burst.
pub const HEARTBEAT_DELAY_MIN: Duration = Duration::from_millis(5);
/// The same for samples at regular intervals: after the time of this many samples, ...
pub const REGULAR_SAMPLES: u32 = 8;
/// ... but after this time at the latest: the repair of the last sample of the stream waits as long, if it is lost.
/// Others are requested when the next sample arrives.
pub const HEARTBEAT_DELAY_REGULAR_MAX: Duration = Duration::from_millis(50);
/// Samples are regular if their intervals are in this range, ...
pub const REGULAR_INTERVALS: core::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(20);
/// ... and were similar so many times in a row when the timer was started.
pub const REGULAR_MIN: u8 = 3;
/// The same if a write waits for room, as a minimum; otherwise two measured round trips.
pub const HEARTBEAT_DELAY_AWAITED_MIN: Duration = Duration::from_micros(250);
/// The same if losses are to be expected, as a minimum; otherwise two measured round trips.
pub const HEARTBEAT_DELAY_PROBE_MIN: Duration = Duration::from_micros(30);
/// Time after a reported loss during which more are to be expected.
pub const LOSS_MEMORY: Duration = Duration::from_secs(1);
/// The same on a path to another host: who sends little learns little.
pub const LOSS_MEMORY_PATH: Duration = Duration::from_secs(10);
/// Maximum number of tail loss probes of a sample: a slow reader must not be flooded.
pub const TAIL_PROBES_MAX: u8 = 4;
/// Up to this many unacknowledged samples are sent uncoalesced, each with a HEARTBEAT if losses are
/// to be expected.
pub const TAIL_SAMPLES_MAX: i64 = 2;
/// The same for HEARTBEATs on a path to another host.
pub const TAIL_SAMPLES_MAX_PATH: i64 = 16;
/// A reader that leaves this many HEARTBEATs in a row unanswered may be gone.
pub const UNANSWERED_HEARTBEATS: u8 = 3;
/// So many unanswered HEARTBEATs on a path are repeated at the same interval, before they back off: losses come in
/// bursts.
pub const UNANSWERED_HEARTBEATS_PATH: u8 = 10;
/// Maximum delay between unanswered HEARTBEATs, after backoff.
pub const HEARTBEAT_DELAY_MAX: Duration = Duration::from_secs(1);

/// A repair that was sent to a multicast group is not sent again to one of its readers within this time: their requests
/// for what they have all lost arrive one after the other.
pub const GROUP_REPAIR_TIME: Duration = Duration::from_millis(1);
/// First repetition of an unanswered negative acknowledgement before a round trip was measured.
pub const NACK_RETRY_FIRST: Duration = Duration::from_millis(2);
/// First repetition of an unanswered negative acknowledgement after that, as a minimum; doubled
/// each time.
pub const NACK_RETRY_MIN: Duration = Duration::from_micros(250);
/// Maximum time between negative acknowledgements while samples are missing and HEARTBEATs arrive.
pub const NACK_RETRY_MAX: Duration = Duration::from_millis(500);
/// The same while nothing comes from the writer. When it is back, its HEARTBEATs are answered at once. A false
/// address of a writer is sent little.
pub const NACK_RETRY_SILENT_MAX: Duration = Duration::from_secs(16);
/// If repairs take as long as this, requests are repeated before they can be answered, in case that they are lost.
pub const REQUEST_REPEATED_MIN: Duration = Duration::from_millis(2);
/// Negative acknowledgements of new gaps are at least this share of the measured round trip
/// apart...
pub const NACK_PACE_SHARE: u64 = 4;
/// ... or this. Samples requested together are repaired by one send; a separate request costs a
/// send and a message each way.
pub const NACK_PACE_MAX: Duration = Duration::from_micros(50);
/// First repetition of the preemptive ACKNACK that requests a HEARTBEAT from a new writer; doubled
/// each time. With a fixed period, a forged announcement would cause endless traffic.
pub const PREEMPTIVE_ACKNACK_DELAY_MIN: Duration = Duration::from_millis(20);
/// Time for which one peer among many keeps a participant busy when all appear together. What is asked of many peers
/// is not repeated sooner than after this time for each of them.
pub const ANSWER_TIME: Duration = Duration::from_millis(2);
/// The same for their endpoints: new ones of a participant are announced together if no more time than this for each
/// peer is between them.
pub const ANNOUNCEMENT_GAP: Duration = Duration::from_micros(200);
/// HEARTBEATs and ACKNACKs whose count is not higher than the last one's are repetitions, unless
/// none was accepted for this time. Otherwise a count that jumped ahead, by mistake or on purpose,
/// would block a peer permanently.
pub const COUNT_TRUST: Duration = Duration::from_secs(1);
/// A count that is further behind than this is no repetition. (A second network may deliver copies much later.)
pub const COUNT_WINDOW: i32 = 65_536;
/// Repairs to a host, over all its readers and matches: at most this many times the bytes first sent to it, ...
pub const REPAIR_SHARE: u64 = 2;
/// ... and this many bytes at first, so that a peer cannot make a writer send much to another host, ...
pub const REPAIR_FREE_BYTES: u64 = 64 * 1024;
/// ... and as many again at this interval, so that a reader behind heavy loss goes on.
pub const REPAIR_INTERVAL: Duration = Duration::from_millis(500);
/// Once three eighths of that are spent, the path seems to carry less than what is sent. An answer then holds at most
/// this many bytes of repairs, ...
pub const REPAIR_BURST_BYTES: u64 = 64 * 1024;
/// ... and the next one follows after this time, or after four times as long for each half of the rest that is spent.
/// What is left then suffices to repair everything, unless most of it is lost again.
pub const REPAIR_PACE: Duration = Duration::from_micros(400);
/// Addresses of a host at which samples count as first sent: a domain has well-known ports for about as many
/// participants on a host (RTPS 2.5, 9.6.2.3).
pub const REPAIR_ADDRESSES_MAX: u64 = 128;
/// Hosts without matched readers whose repairs a writer remembers, at 120 bytes each...
pub const REPAIR_HOSTS_MAX: usize = 256;
/// ... and for how long unknown hosts begin with nothing after one was forgotten: they may be the same.
pub const REPAIR_HOST_MEMORY: Duration = Duration::from_secs(3600);

/// Maximum time after an announcement through the multicast group during which the group is trusted to reach its
/// sender: four periods of the participants that announce themselves most rarely.
pub const GROUP_TRUST_MAX: Duration = Duration::from_secs(120);

/// An announcement beside the schedule, to participants that may know us although we do not know them, follows the last
/// one after this time at least. Answers to repeated announcements are half as far apart at least. So a lost answer
/// costs about this time and a round trip.
pub const ANSWER_AGAIN: Duration = Duration::from_millis(40);
/// What the buffers of discovery keep when they are empty, in bytes each.
pub const DISCOVERY_BUFFER_BYTES: usize = 16 * 1024;
/// From so many remote participants on, a domain is large: discovery traffic gathers before it is handled.
pub const LARGE_DOMAIN: usize = 64;
/// It does so for this time for each participant...
pub const GATHERING_TIME: Duration = Duration::from_micros(200);
/// ... and for no more than this.
pub const GATHERING_TIME_MAX: Duration = Duration::from_millis(20);
/// When no participant was discovered or lost for this time, a large domain is at rest.
pub const CALM_AFTER: Duration = Duration::from_secs(5);
/// At rest, announcements to the multicast group gather for this time, which a new participant may wait for its
/// answers. What is sent to a participant itself does not gather...
pub const CALM_PAUSE: Duration = Duration::from_millis(350);
/// ... and they gather for no more than this share of the shortest lease, which begins anew when they are handled.
pub const CALM_SHARE: u32 = 16;
/// Maximum number of preemptive ACKNACKs. After that, the builtin endpoints send one for each
/// announcement of the participant.
pub const PREEMPTIVE_ACKNACKS_MAX: u8 = 10;

/// Most samples of unfinished coherent sets at a reader. A set that exceeds this, or the limits of the reader, is
/// dropped.
pub const COHERENT_SAMPLES_MAX: usize = 64 * 1024;

/// Most sets of a writer that wait at a reader for other writers of their group. If there are more, all are dropped.
pub const COHERENT_SETS_WAITING_MAX: usize = 4096;

/// Samples received ahead of a gap that a reader keeps per writer; later ones are dropped and repaired. At 1 Gbit/s
/// over a round trip of 40 ms, 5000 samples of 1 KiB are in flight, and many more behind what was lost twice.
pub const REORDER_MAX_SAMPLES: usize = 32_768;
/// The same for a reader whose cache could not hold so many.
pub const REORDER_LEAST_SAMPLES: usize = 8192;
/// Samples behind a missing one that GAPs may name until a reader answers its writers. It drops what exceeds this, and
/// the writer repeats it on request.
pub const GAP_VISITS_MAX: usize = 2 * REORDER_MAX_SAMPLES;
/// A reader's lists of missing and early samples share room for this many in total...
pub const REORDER_SHARED_SAMPLES: usize = 128 * 1024;
/// ... and beyond that each writer has room for this many. A thousand writers that announce samples
/// and never send them then take less than a gigabyte.
pub const REORDER_MIN_SAMPLES: usize = 256;
/// Sample storage may exceed four times its content by this many bytes before it is compacted.
/// Otherwise a small sample that stays would keep the memory of all samples around it alive.
pub const READER_SPARSE_BYTES: usize = 4 * 1024 * 1024;
/// Maximum size of the samples that a KEEP_ALL reader keeps for its application, with their
/// metadata, in bytes.
///
/// Beyond it, a reliable writer is blocked, and a best-effort sample is rejected.
pub const READER_CACHE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// The same for a KEEP_LAST reader, whose samples are replaced by later ones: a million small
/// instances.
pub const READER_CACHE_KEEP_LAST_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Readers that do not report their progress with a large sample are sent this much of it...
pub const FRAGMENT_PACE_BYTES: u64 = 128 * 1024;
/// ... at this interval: 2 Gbit/s.
pub const FRAGMENT_PACE_INTERVAL: Duration = Duration::from_micros(500);
/// Pause after each quarter buffer of a large sample for best-effort readers.
///
/// They are sent half of their socket buffer at first, then a quarter at a time: 1.7 Gbit/s for the
/// default buffer of Linux, more for larger ones. The rest of the buffer holds what arrives while
/// the reader's thread does not run, and what others send.
pub const BEST_EFFORT_PAUSE: Duration = Duration::from_micros(250);
/// Assumed socket buffer of a best-effort reader that does not announce it, in bytes as accounted
/// by the kernel: the default of Linux (`net.core.rmem_default`).
pub const RECEIVE_BUFFER_UNKNOWN_BYTES: u64 = 212_992;

/// Maximum size of a sample in bytes: 1 GiB and its headers.
pub const SAMPLE_MAX_BYTES: usize = (1 << 30) + 64 * 1024;
/// A sample of more fragments than this...
pub const FRAGMENTS_MAX: usize = 1024;
/// ... must have fragments of at least this length, in bytes: the metadata of each would take more
/// memory than the sample itself. Fragments are about as long as packets, or longer.
pub const FRAGMENT_MIN_BYTES: usize = 512;
/// Maximum number of fragment sets of one sample that a reader requests at a time; each names at
/// most 256.
pub const NACK_FRAG_SETS_MAX: usize = 32;
/// Maximum number of fragment sets of all samples of a writer that a reader requests at a time.
pub const NACK_FRAGS_MAX: usize = 1024;
/// Maximum number of a writer's blocks on loan to the application.
pub const LOANS_MAX: usize = 64;
/// Maximum number of bytes around a payload in a loaned block.
pub const LOAN_EXTRA_MAX_BYTES: usize = 64 * 1024;
/// Maximum size of the samples that a reader reassembles at a time, in bytes; half of it for one
/// writer with several samples.
///
/// A single sample may be larger. Fragments that exceed it are requested again later. Every sample
/// in flight within a window may have lost a fragment.
pub const REASSEMBLY_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Large samples that a KEEP_LAST writer keeps although others have replaced them, until they have arrived, in
/// bytes: as much as a reader assembles of one writer.
pub const IN_TRANSIT_MAX_BYTES: usize = REASSEMBLY_MAX_BYTES / 2;
/// Memory reserved at first for a sample to be reassembled, in bytes; later two to four times what
/// has arrived. So much may be lost consecutively at its start without other fragments being sent
/// twice.
pub const REASSEMBLY_REACH_MIN_BYTES: usize = 1024 * 1024;
/// A sample counts as at least this many of these bytes.
pub const ASSEMBLY_MIN_BYTES: usize = 4096;
/// A sample without a new fragment for this time makes room for others.
pub const REASSEMBLY_IDLE: Duration = Duration::from_secs(1);
/// Number of buffers for large samples that a reader keeps for reuse.
pub const LARGE_BUFFERS_MAX: usize = 4;
/// Maximum total size of these buffers in bytes; see [`LARGE_BUFFERS_MAX`].
pub const LARGE_BUFFERS_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Size of a piece of a large sample, in bytes. A piece is encoded while the previous one is in
/// flight, and is still in the processor's nearer caches when it is sent.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Size of one chunk of a reader's sample storage, in bytes.
pub const READER_CHUNK_BYTES: usize = 64 * 1024;
/// Payloads from this length on may stay in the receive memory until they are taken, in bytes:
/// copying a shorter one is faster than arranging that.
pub const READER_BORROWED_MIN_BYTES: usize = 2048;
/// Longer payloads get separate memory, which an application may keep, in bytes.
pub const READER_BORROWED_MAX_BYTES: usize = READER_CHUNK_BYTES / 2;
/// Spare chunks that a reader keeps for reuse.
pub const READER_CHUNKS_SPARE_MAX: usize = 64;
/// Shortest liveliness lease of a remote writer. A peer may announce any. Each end of a lease takes work, and the
/// delays of a network are no shorter.
pub const LIVELINESS_LEASE_MIN: Duration = Duration::from_millis(1);
/// Most participants, endpoints and topics that an application ignores.
pub const IGNORED_MAX: usize = 65_536;

/// Remote endpoints for which one local endpoint keeps state.
pub const PROXIES_MAX: usize = 1024;
/// Of these, endpoints of a single participant: no participant takes all the room.
pub const PROXIES_PER_PARTICIPANT_MAX: usize = PROXIES_MAX / 2;
/// Writers that a reader remembers after they are unmatched, at 64 bytes each: as many as it can
/// have matched.
pub const DEPARTED_WRITERS_MAX: usize = PROXIES_MAX;
/// Instances of writers that have left which a reader ends before other threads may access it.
pub const INSTANCES_LEFT_AT_ONCE: usize = 1024;
/// Instances for which one endpoint keeps state if its QoS has no limit.
pub const INSTANCES_MAX: usize = 2_000_000;
/// Instances that a volatile KEEP_LAST writer remembers in any case: of more, it forgets those whose samples are
/// acknowledged.
pub const INSTANCES_REMEMBERED: usize = 1024;

/// Disposed and unregistered instances whose state a TRANSIENT_LOCAL writer keeps although all its
/// readers have received it. A reader that lost us and returns may still consider an instance
/// alive.
pub const ENDED_INSTANCES_KEPT: usize = 256;
/// The announcements of endpoints are rewritten when their history spans this many more samples
/// than four per endpoint: an old announcement would keep the memory of all later ones alive.
pub const ANNOUNCEMENTS_SPARE: usize = 1024;

/// Maximum size of an endpoint's announcement that is reassembled from fragments, in bytes. A
/// parameter holds at most 64 KiB, so there is room for user data, topic data, group data and type
/// information of the maximum length. Longer announcements are skipped and counted.
pub const ANNOUNCEMENT_MAX_BYTES: usize = 256 * 1024;
/// Maximum size of the announcements that each of the three builtin readers reassembles at a time,
/// in bytes; half of it for one participant.
///
/// That is four of the largest, or 256 short ones that each lost a fragment. The writer repeats
/// what exceeds it. A participant that never completes anything holds at most 3 MiB, all of them
/// together 6 MiB.
pub const ANNOUNCEMENT_REASSEMBLY_MAX_BYTES: usize = 2 * 1024 * 1024;

/// Maximum size of the keys that a reader keeps, in bytes, so that an instance is known by more
/// than its hash when its writer is lost.
pub const INSTANCE_KEYS_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Two writes closer together than this are a burst, whose samples may leave together (about the
/// duration of a send call).
pub const COALESCING_GAP: Duration = Duration::from_nanos(1_500);
/// Maximum time that automatic coalescing holds a sample back. Only the end of a long run of writes
/// waits so long.
pub const COALESCING_DELAY_MAX: Duration = Duration::from_millis(1);
/// After this time a timer sends held-back samples that are still unsent. The timer takes the
/// writer's processor for some microseconds, mostly for nothing.
pub const COALESCING_DELAY: Duration = Duration::from_micros(200);
/// Or after this share of the duration of the current run of writes without a pause, if that is
/// longer.
pub const COALESCING_RUN_SHARE: u64 = 16;
/// A pause: longer than an interruption of the writer by a timer or an interrupt.
pub const COALESCING_PAUSE: Duration = Duration::from_micros(50);
/// The samples of a burst wait for the next write for at most this many times the duration of a
/// send call. Beyond that, waiting costs more than coalescing saves.
pub const COALESCING_SENDS: u32 = 3;
/// The same if the application has caught up with its schedule: then there is no need for speed.
pub const COALESCING_SENDS_AT_LEISURE: u32 = 1;
/// An application has caught up if the time between two writes exceeds this many times the duration
/// of a write.
pub const COALESCING_LEISURE: u64 = 2;
/// After about this many writes the shortest time between two is forgotten.
pub const COALESCING_WRITES_REMEMBERED: u64 = 256;
/// A send call that took longer was interrupted, and does not predict the next.
pub const COALESCING_SEND_MAX: Duration = Duration::from_micros(10);
/// Writes in quick succession that leave at once before the rest of the burst is coalesced.
pub const COALESCING_AFTER_WRITES: u32 = 2;

/// Maximum number of unmatched writers whose first sample a reader remembers.
pub const UNMATCHED_WRITERS_MAX: usize = 16;
