//! Every tunable of the protocol: its default, its unit and the reason for it.

use core::time::Duration;

/// Size of a block of history, in bytes. A segmented send takes up to 64 KiB from one block and is cut short at
/// its end: with four sends to a block that does not matter, and it still fits the processor's cache.
pub const BLOCK_BYTES: usize = 256 * 1024;
/// What a writer may leave unsent whose samples another thread sends, where no reader's acknowledgements bound it, in bytes
/// as the kernel charges them: a millisecond of the fastest stream of small samples, for a thread that gets its turn late.
pub const UNSENT_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Spare blocks that a writer keeps for reuse: a window's worth, so that a steady flow allocates nothing.
pub const BLOCKS_SPARE_MAX: usize = 32;

/// Largest UDP payload over IPv4, in bytes (RFC 768, RFC 791).
pub const DATAGRAM_MAX_BYTES: usize = 65_507;
/// Smallest datagram that samples are cut down to, in bytes: what every IPv4 host accepts (RFC 791).
pub const DATAGRAM_MIN_BYTES: usize = 548;
/// Most datagrams in one segmented send (Linux `UDP_MAX_SEGMENTS` of kernels before 6.10).
pub const SEGMENTS_MAX: usize = 64;
/// Most bytes in one segmented send.
pub const SEGMENTED_MAX_BYTES: usize = 65_000;

/// A reliable writer's window when its first reader matches, in bytes as the kernel charges them: fits the
/// stock socket buffer of Linux (212 992) with room for another writer.
pub const WINDOW_INITIAL_BYTES: u64 = 128 * 1024;
/// The window is never smaller than this, so that one datagram of the largest size always fits.
pub const WINDOW_MIN_BYTES: u64 = 96 * 1024;
/// Largest window towards readers that do not say what their socket was granted.
pub const WINDOW_UNKNOWN_READER_MAX_BYTES: u64 = 1024 * 1024;
/// Behind a hole, this many windows may be sent before the hole must be filled: at 10 % random loss the last
/// of a window's holes is filled after about four round trips.
pub const UNACKNOWLEDGED_WINDOWS: u64 = 4;
/// The window is reduced when more than one in this many bytes of it had to be sent again.
pub const WINDOW_LOSS_SHARE: u64 = 2;

/// A HEARTBEAT that asks for an answer rides along whenever this share of the window was sent since the last.
pub const HEARTBEAT_WINDOW_SHARE: u64 = 8;
/// First HEARTBEAT after the last write when samples are unacknowledged: the tail of a burst has no later
/// data that would show its loss.
pub const HEARTBEAT_DELAY_MIN: Duration = Duration::from_millis(5);
/// The same when a write waits for room, at the earliest; otherwise two measured round trips.
pub const HEARTBEAT_DELAY_AWAITED_MIN: Duration = Duration::from_micros(250);
/// The same where losses are to be expected, at the earliest; otherwise two measured round trips.
pub const HEARTBEAT_DELAY_PROBE_MIN: Duration = Duration::from_micros(30);
/// For how long losses are to be expected after one that a reader told of.
pub const LOSS_MEMORY: Duration = Duration::from_secs(1);
/// How often a sample is sent again without being asked for: a reader that is slow must not be flooded.
pub const TAIL_PROBES_MAX: u8 = 4;
/// Unacknowledged samples up to so many go alone: each brings a HEARTBEAT where losses are to be expected.
pub const TAIL_SAMPLES_MAX: i64 = 2;
/// Unanswered HEARTBEATs back off to this.
pub const HEARTBEAT_DELAY_MAX: Duration = Duration::from_secs(1);

/// First repetition of an unanswered negative acknowledgement before a round trip was measured.
pub const NACK_RETRY_FIRST: Duration = Duration::from_millis(2);
/// First repetition of an unanswered negative acknowledgement after that, at the earliest; doubled each time.
pub const NACK_RETRY_MIN: Duration = Duration::from_micros(250);
/// Negative acknowledgements are repeated at least this often while samples are missing.
pub const NACK_RETRY_MAX: Duration = Duration::from_millis(500);
/// Negative acknowledgements of new holes are at least this share of the measured round trip apart...
pub const NACK_PACE_SHARE: u64 = 4;
/// ... or this. What is asked for together is repaired by one send; what is asked for alone costs one, and a message
/// each way.
pub const NACK_PACE_MAX: Duration = Duration::from_micros(50);
/// First repetition of the preemptive ACKNACK that asks a new writer for a HEARTBEAT, doubled each time (a
/// fixed period would let a forged announcement make us send forever).
pub const PREEMPTIVE_ACKNACK_DELAY_MIN: Duration = Duration::from_millis(20);
/// HEARTBEATs and ACKNACKs whose count is not higher than the last one's are repetitions, unless nothing was taken for
/// so long: a count that leapt ahead, by mistake or on purpose, must not make a peer deaf for ever.
pub const COUNT_TRUST: Duration = Duration::from_secs(1);
/// Windows of repairs that a reader gets without acknowledging anything new; then it gets one at a time, ...
pub const REPAIR_WINDOWS: u64 = 8;
/// ... first after this delay, doubled each time: so that nobody has us send the same without end.
pub const REPAIR_DELAY_MIN: Duration = Duration::from_millis(5);
/// See [`REPAIR_DELAY_MIN`].
pub const REPAIR_DELAY_MAX: Duration = Duration::from_millis(500);

/// Preemptive ACKNACKs stop after this many; then the builtin endpoints send one for each announcement of the
/// participant.
pub const PREEMPTIVE_ACKNACKS_MAX: u32 = 10;

/// Samples received ahead of a gap that a reader keeps per writer; later ones are dropped and repaired.
pub const REORDER_MAX_SAMPLES: usize = 8192;
/// A reader's lists of missing and early samples share room for so many in all...
pub const REORDER_SHARED_SAMPLES: usize = 128 * 1024;
/// ... and beyond that each writer has room for this many, so that a thousand writers that announce what they never
/// send do not take up a gigabyte.
pub const REORDER_MIN_SAMPLES: usize = 256;
/// Pieces of sample storage may be so many bytes larger than four times what is in them before the samples are laid
/// together: a small one that stays would hold up the memory of everything that came and went around it.
pub const READER_SPARSE_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that the samples which a KEEP_ALL reader keeps for its application take, with what is kept about each,
/// before it stops accepting: a reliable writer is then held up, a best-effort sample is rejected.
pub const READER_CACHE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// The same for a KEEP_LAST reader, whose samples are replaced by later ones: a million small instances.
pub const READER_CACHE_KEEP_LAST_MAX_BYTES: usize = 256 * 1024 * 1024;
/// Readers that do not say how far they have got with a large sample are given this much of it...
pub const FRAGMENT_PACE_BYTES: u64 = 128 * 1024;
/// ... this often: 2 Gbit/s.
pub const FRAGMENT_PACE_INTERVAL: Duration = Duration::from_micros(500);
/// Best-effort readers get of a large sample half of what their socket's buffer holds, then a quarter at a time, each
/// quarter followed by this: 1.7 Gbit/s for the stock buffer of Linux, more where it is larger. The rest of the buffer
/// holds what comes while the reader's thread does not run for a while, and what others send.
pub const BEST_EFFORT_PAUSE: Duration = Duration::from_micros(250);
/// What the socket of a best-effort reader that does not say so is taken to have been granted, in bytes as the kernel
/// charges them: the stock size of Linux (`net.core.rmem_default`).
pub const RECEIVE_BUFFER_UNKNOWN_BYTES: u64 = 212_992;

/// Largest sample, in bytes: 1 GiB and its headers.
pub const SAMPLE_MAX_BYTES: usize = (1 << 30) + 64 * 1024;
/// A sample of more fragments than this...
pub const FRAGMENTS_MAX: usize = 1024;
/// ... must have fragments of this length at least, in bytes: what is to be known about each would take more memory than the
/// sample itself. Fragments are about as long as packets, or longer.
pub const FRAGMENT_MIN_BYTES: usize = 512;
/// Sets of fragments of one sample that a reader asks for at a time: each names 256 at most.
pub const NACK_FRAG_SETS_MAX: usize = 32;
/// Sets of fragments of all samples of a writer that a reader asks for at a time.
pub const NACK_FRAGS_MAX: usize = 1024;
/// Most blocks of a writer that the application has to fill at a time.
pub const LOANS_MAX: usize = 64;
/// Most bytes around a payload in a block that is lent.
pub const LOAN_EXTRA_MAX_BYTES: usize = 64 * 1024;
/// Bytes of the samples that a reader puts together from fragments at a time, and half as many of one writer if it is more
/// than one sample; a single sample beside them may be larger. What finds no room is asked for again later. Of what a window
/// has in flight, every sample may have lost a fragment.
pub const REASSEMBLY_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Of a sample that is put together, memory is reserved for so many bytes at first, and for two to four times as many as
/// have arrived later: as much as may be lost in a row at its beginning without others being sent twice.
pub const REASSEMBLY_REACH_MIN_BYTES: usize = 1024 * 1024;
/// A sample counts for at least so many of these bytes.
pub const ASSEMBLY_MIN_BYTES: usize = 4096;
/// A sample of which no fragment arrived for so long makes room for others.
pub const REASSEMBLY_IDLE: Duration = Duration::from_secs(1);
/// Buffers for large samples that a reader keeps for reuse, and their bytes in all.
pub const LARGE_BUFFERS_MAX: usize = 4;
/// See [`LARGE_BUFFERS_MAX`].
pub const LARGE_BUFFERS_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Memory of a piece of a large sample that is filled while the piece before it is on its way, in bytes: what was filled is
/// still in the processor's nearer caches when it is sent.
pub const PIECE_BYTES: usize = 256 * 1024;

/// Memory of one piece of a reader's sample storage, in bytes.
pub const READER_CHUNK_BYTES: usize = 64 * 1024;
/// Payloads from this length on may stay in the memory that they were received in until they are taken, in bytes:
/// shorter ones are copied sooner than that is arranged.
pub const READER_BORROWED_MIN_BYTES: usize = 2048;
/// Longer payloads get memory of their own, which an application may keep, in bytes.
pub const READER_BORROWED_MAX_BYTES: usize = READER_CHUNK_BYTES / 2;
/// Spare pieces that a reader keeps for reuse.
pub const READER_CHUNKS_SPARE_MAX: usize = 64;
/// Remote endpoints that one local endpoint keeps state for.
pub const PROXIES_MAX: usize = 1024;
/// Of these, endpoints of a single participant: nobody takes all the room.
pub const PROXIES_PER_PARTICIPANT_MAX: usize = PROXIES_MAX / 2;
/// Writers that a reader remembers when they are no longer matched, at 64 bytes each: as many as it can have matched.
pub const DEPARTED_WRITERS_MAX: usize = PROXIES_MAX;
/// Instances that one endpoint keeps state for when its QoS names no limit.
pub const INSTANCES_MAX: usize = 2_000_000;

/// Instances that are both disposed and unregistered of which a TRANSIENT_LOCAL writer keeps the news although all
/// its readers have them: one that lost us and comes back may still take an instance for alive.
pub const ENDED_INSTANCES_KEPT: usize = 256;
/// Announcements of endpoints are written anew when the history of them spans so many more samples than four per
/// endpoint: what was announced long ago would hold up the memory of everything that came and went since.
pub const ANNOUNCEMENTS_SPARE: usize = 1024;

/// Largest announcement of an endpoint that is put together from fragments, in bytes. A parameter holds 64 KiB at most, so
/// this is room for user data, topic data, group data and type information of the greatest length. The participant
/// passes over a longer announcement and counts it.
pub const ANNOUNCEMENT_MAX_BYTES: usize = 256 * 1024;
/// Bytes of the announcements that each of the three builtin readers puts together at a time, and half as many of one
/// participant: four of the largest, or 256 short ones that each lost a fragment. The writer repeats what found no room.
/// A participant that never completes anything holds at most 3 MiB, all of them together 6 MiB.
pub const ANNOUNCEMENT_REASSEMBLY_MAX_BYTES: usize = 2 * 1024 * 1024;

/// Bytes of keys that a reader keeps, so that an instance is known by more than its hash when its writer is lost.
pub const INSTANCE_KEYS_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Two writes closer together than this are a burst, whose samples may leave together (about the time that
/// one send call takes).
pub const COALESCING_GAP: Duration = Duration::from_nanos(1_500);
/// Longest time that automatic coalescing may hold a sample back. Only what ends a long run of writes waits so long.
pub const COALESCING_DELAY_MAX: Duration = Duration::from_millis(1);
/// After this time a timer looks whether what is held back was sent. The timer takes the writer's processor for some
/// microseconds, in most cases for nothing.
pub const COALESCING_DELAY: Duration = Duration::from_micros(200);
/// Or after this share of the time for which writes have come without a pause, if that is longer.
pub const COALESCING_RUN_SHARE: u64 = 16;
/// A pause: longer than what a timer or an interrupt takes from the writer.
pub const COALESCING_PAUSE: Duration = Duration::from_micros(50);
/// The samples of a burst wait for the next write after this many times the duration of a send call, not longer: what
/// is saved by sending them together would otherwise be less than what waiting for them costs.
pub const COALESCING_SENDS: u32 = 3;
/// The same where the application has caught up with its schedule: then it need not be sped up.
pub const COALESCING_SENDS_AT_LEISURE: u32 = 1;
/// An application that lets more than this many times the duration of a write pass from one write to the next has caught
/// up.
pub const COALESCING_LEISURE: u64 = 2;
/// After about so many writes the shortest time between two is forgotten.
pub const COALESCING_WRITES_REMEMBERED: u64 = 256;
/// A send call that took longer was interrupted, and says nothing about the next.
pub const COALESCING_SEND_MAX: Duration = Duration::from_micros(10);
/// Writes in quick succession that leave at once before the rest of the burst is coalesced.
pub const COALESCING_AFTER_WRITES: u32 = 2;

/// Maximum number of unmatched writers whose first sample a reader remembers.
pub const UNMATCHED_WRITERS_MAX: usize = 16;
