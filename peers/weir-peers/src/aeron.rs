//! Aeron over UDP, with an embedded media driver.
//!
//! The driver has no threads of its own. A thread of this module runs it and polls the subscription. A writing
//! thread also runs it, every `duty_cycle_offers` samples and when it has to wait.
//!
//! No discovery: a subscription is bound to a port that the system chooses, and the other end publishes to it.

use std::ffi::CString;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::{
    Aeron, AeronAsyncAddPublication, AeronAsyncAddSubscription, AeronAvailableImageLogger, AeronCError,
    AeronContext, AeronDriver, AeronDriverContext, AeronFragmentClosureAssembler, AeronHeader,
    AeronOfferError, AeronPublication, AeronSubscription, AeronUnavailableImageLogger, Handler,
};
use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Writer, Written,
    settings,
};

use crate::worker::Worker;

pub(crate) const DEFAULT: Peer = Peer {
    name: "aeron",
    about: "Aeron over UDP, default configuration, media driver embedded: no DDS; never sleeps with --wait spin",
    settings: &settings(SETTINGS, ["", "", "", "", "16777216", "", "256"]),
    ..BASE
};

pub(crate) const TUNED: Peer = Peer {
    name: "aeron-tuned",
    about: "Aeron with datagrams of 64 kB, a larger window and large socket buffers",
    settings: &settings(SETTINGS, ["65472", "2097152", "4194304", "4194304", "16777216", "", "256"]),
    ..BASE
};

const BASE: Peer = Peer {
    name: "",
    about: "",
    settings: &[],
    // A message is at most an eighth of a term buffer.
    abilities: Abilities {
        is_dds: false,
        best_effort: false,
        many: false,
        spinning: true,
        size_bytes_max: 2 << 20,
        ..Abilities::DDS
    },
    calls: Calls { open, participant: None, version },
};

const SETTINGS: [(&str, &str); 7] = [
    (
        "mtu_length",
        "aeron.mtu.length, bytes: the largest datagram; messages are gathered into it. Empty: 1408",
    ),
    ("rcv_initial_window_length", "aeron.rcv.initial.window.length, bytes; empty: 128 KiB"),
    ("socket_receive_buffer", "aeron.socket.so_rcvbuf, bytes; empty: 128 KiB"),
    ("socket_send_buffer", "aeron.socket.so_sndbuf, bytes; empty: the system's"),
    ("term_buffer_length", "aeron.term.buffer.length, bytes"),
    (
        "idle_strategy",
        "what driver and poller do without work: spin, yield or backoff; empty: spin with --wait spin, else backoff",
    ),
    ("duty_cycle_offers", "a writer runs the driver itself after so many samples"),
];

fn version() -> String {
    Aeron::version_full().to_owned()
}

fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    let engine = Arc::new(Engine::start(options)?);
    let duty_offers = options.setting("duty_cycle_offers")?.unwrap_or(1_u32).max(1);
    let writer = Arc::new(AeronWriter {
        engine: Arc::clone(&engine),
        publication: OnceLock::new(),
        patience: options.max_blocking_time,
        duty_offers,
    });
    let images = Arc::new(AtomicI32::new(0));
    let (mut address, mut subscription) = (None, None);
    if options.read_topic.is_some() {
        let bound = engine.subscribe(options)?;
        address = Some(engine.endpoint_of(&bound)?);
        subscription = Some(bound);
    }
    let turns = Turns {
        writer: Arc::clone(&writer),
        subscription,
        images: Arc::clone(&images),
        on_sample,
        idle: Idle::of(options)?,
    };
    let worker = Worker::start("aeron", move |is_over| turns.take(is_over))?;
    let writes = options.write_topic.is_some();
    Ok(Box::new(AeronNode { _worker: worker, writer, writes, address, images }))
}

fn failed(error: AeronCError) -> PeerError {
    PeerError::Engine(format!("{error} {}", Aeron::errmsg()))
}

/// Timeout for creating a publication or subscription.
const MAKE_WAIT: Duration = Duration::from_secs(20);

const STREAM: i32 = 1001;

/// The media driver and its client.
struct Engine {
    // Fields are dropped in this order: the client goes before the driver.
    client: Aeron,
    /// Locked by the thread that runs the agents of both.
    agents: Mutex<Agents>,
}

struct Agents {
    client: Aeron,
    driver: AeronDriver,
}

impl Agents {
    /// Runs one duty cycle and returns the amount of work done.
    fn work(&self) -> Result<i32, AeronCError> {
        Ok(self.driver.main_do_work()? + self.client.main_do_work()?)
    }
}

impl Engine {
    fn start(options: &NodeOptions) -> Result<Self, PeerError> {
        let folder = folder()?;
        let context = AeronDriverContext::new().map_err(failed)?;
        configure(&context, options)?;
        Self::start_in(&folder, &context).map_err(failed)
    }

    fn start_in(folder: &CString, context: &AeronDriverContext) -> Result<Self, AeronCError> {
        context.set_dir(folder)?;
        context.set_dir_delete_on_start(true)?;
        context.set_dir_delete_on_shutdown(true)?;
        context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_INVOKER)?;
        let driver = AeronDriver::new(context)?;
        driver.start(true)?;
        let context = AeronContext::new()?;
        context.set_dir(folder)?;
        context.set_use_conductor_agent_invoker(true)?;
        let client = Aeron::new(&context)?;
        client.start()?;
        Ok(Self { agents: Mutex::new(Agents { client: client.clone(), driver }), client })
    }

    /// Runs the agents, unless another thread does.
    fn work(&self) -> Result<i32, AeronCError> {
        match self.agents.try_lock() {
            Ok(agents) => agents.work(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().work(),
            Err(TryLockError::WouldBlock) => {
                thread::yield_now();
                Ok(0)
            }
        }
    }

    /// Runs the agents until `poll` returns something.
    fn make<T>(&self, mut poll: impl FnMut() -> Result<Option<T>, AeronCError>) -> Result<T, PeerError> {
        let deadline = Instant::now() + MAKE_WAIT;
        loop {
            self.work().map_err(failed)?;
            match poll().map_err(failed)? {
                Some(made) => return Ok(made),
                None if Instant::now() >= deadline => {
                    return Err(PeerError::Engine("the media driver does not answer".to_owned()));
                }
                None => {}
            }
        }
    }

    fn subscribe(&self, options: &NodeOptions) -> Result<AeronSubscription, PeerError> {
        let channel = channel(SocketAddrV4::new(options.address, 0));
        let (available, unavailable) = NO_IMAGES;
        let adding = AeronAsyncAddSubscription::new(&self.client, &channel, STREAM, available, unavailable)
            .map_err(failed)?;
        self.make(|| adding.poll())
    }

    fn publish(&self, to: SocketAddrV4) -> Result<AeronPublication, PeerError> {
        let adding = AeronAsyncAddPublication::new(&self.client, &channel(to), STREAM).map_err(failed)?;
        self.make(|| adding.poll())
    }

    /// The address that the subscription was bound to.
    fn endpoint_of(&self, subscription: &AeronSubscription) -> Result<SocketAddrV4, PeerError> {
        self.make(|| Ok(subscription.resolved_endpoint_as_string(ENDPOINT_BYTES_MAX)?.parse().ok()))
    }
}

/// Applies the settings of the driver.
fn configure(context: &AeronDriverContext, options: &NodeOptions) -> Result<(), PeerError> {
    if let Some(bytes) = options.setting("mtu_length")? {
        context.set_mtu_length(bytes).map_err(failed)?;
    }
    if let Some(bytes) = options.setting("term_buffer_length")? {
        context.set_term_buffer_length(bytes).map_err(failed)?;
    }
    if let Some(bytes) = options.setting("rcv_initial_window_length")? {
        context.set_rcv_initial_window_length(bytes).map_err(failed)?;
    }
    if let Some(bytes) = options.setting("socket_receive_buffer")? {
        context.set_socket_so_rcvbuf(bytes).map_err(failed)?;
    }
    if let Some(bytes) = options.setting("socket_send_buffer")? {
        context.set_socket_so_sndbuf(bytes).map_err(failed)?;
    }
    Ok(())
}

/// Room for an IPv4 address and a port.
const ENDPOINT_BYTES_MAX: usize = 64;

/// No callbacks for new and lost images.
type NoImages<'a> =
    (Option<&'a Handler<AeronAvailableImageLogger>>, Option<&'a Handler<AeronUnavailableImageLogger>>);
const NO_IMAGES: NoImages<'static> = (None, None);

fn channel(endpoint: SocketAddrV4) -> CString {
    CString::new(format!("aeron:udp?endpoint={endpoint}")).unwrap_or_default()
}

const FOLDER_PREFIX: &str = "weir-aeron-";

/// Makes a folder for this process, in memory where possible. Removes the folders of killed processes first:
/// each is as large as the buffers in it.
fn folder() -> Result<CString, PeerError> {
    let memory = Path::new("/dev/shm");
    let base: PathBuf = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(FOLDER_PREFIX));
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    let folder = base.join(format!("{FOLDER_PREFIX}{}", std::process::id()));
    CString::new(folder.display().to_string()).map_err(|error| PeerError::Engine(error.to_string()))
}

/// What the thread does without work.
#[derive(Clone, Copy, Debug)]
enum Idle {
    /// Polls again at once.
    Spin,
    /// Yields the processor.
    Yield,
    /// Aeron's own: spins, then yields, then sleeps for increasing times.
    Backoff {
        /// Consecutive turns without work.
        turns: u32,
    },
}

impl Idle {
    fn of(options: &NodeOptions) -> Result<Self, PeerError> {
        Ok(match options.setting("idle_strategy")? {
            Some(chosen) => chosen,
            // A thread that spins beside a writing thread takes half of the processor from it.
            None if options.is_spinning && options.read_topic.is_some() => Self::Spin,
            None if options.is_spinning => Self::Yield,
            None => Self::Backoff { turns: 0 },
        })
    }

    fn idle(&mut self, has_worked: bool) {
        match self {
            Self::Backoff { turns } if has_worked => *turns = 0,
            _ if has_worked => {}
            Self::Spin => std::hint::spin_loop(),
            Self::Yield => thread::yield_now(),
            Self::Backoff { turns } => {
                *turns = turns.saturating_add(1);
                match *turns {
                    0..=10 => std::hint::spin_loop(),
                    11..=30 => thread::yield_now(),
                    // 1 us, doubled up to 1 ms.
                    31.. => thread::sleep(Duration::from_micros(1 << (*turns - 31).min(10))),
                }
            }
        }
    }
}

impl FromStr for Idle {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "spin" => Ok(Self::Spin),
            "yield" => Ok(Self::Yield),
            "backoff" => Ok(Self::Backoff { turns: 0 }),
            _ => Err(()),
        }
    }
}

/// State of the thread.
struct Turns {
    writer: Arc<AeronWriter>,
    subscription: Option<AeronSubscription>,
    /// Publications that are connected now.
    images: Arc<AtomicI32>,
    on_sample: OnSample,
    idle: Idle,
}

/// Most fragments of one poll.
const FRAGMENTS_MAX: usize = 256;

impl Turns {
    /// An error of the engine ends it; the harness reports that nothing arrives any more.
    fn take(mut self, is_over: &AtomicBool) {
        let Ok(mut assembler) = AeronFragmentClosureAssembler::new() else { return };
        while !is_over.load(Ordering::Relaxed) {
            let Ok(mut work) = self.writer.engine.work() else { return };
            if let Some(subscription) = &self.subscription {
                let mut context = (&*self.writer, &self.on_sample);
                let taken = assembler.poll(subscription, &mut context, pass_on, FRAGMENTS_MAX);
                work += taken.unwrap_or(0);
                self.images.store(subscription.image_count().unwrap_or(0), Ordering::Relaxed);
            }
            self.idle.idle(work > 0);
        }
    }
}

fn pass_on((writer, on_sample): &mut (&AeronWriter, &OnSample), message: &[u8], _: AeronHeader) {
    if let Some((header, payload)) = Header::split(message) {
        on_sample(*writer, &header, payload);
    }
}

struct AeronWriter {
    engine: Arc<Engine>,
    publication: OnceLock<AeronPublication>,
    patience: Duration,
    /// The writer runs the agents every so many samples.
    duty_offers: u32,
}

impl Writer for AeronWriter {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(publication) = self.publication.get() else {
            return Err(PeerError::Engine("no publication".to_owned()));
        };
        let head = header.to_bytes(payload.len());
        let mut deadline = None;
        loop {
            match publication.offer_parts(&[&head, payload]) {
                Ok(_) => break,
                Err(error) if error.is_retryable() => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.patience);
                    if Instant::now() >= deadline {
                        return Ok(Written::TimedOut);
                    }
                    self.engine.work().map_err(failed)?;
                }
                Err(AeronOfferError::Error(error)) => return Err(failed(error)),
                Err(error) => return Err(PeerError::Engine(error.to_string())),
            }
        }
        if header.seq_num % self.duty_offers == self.duty_offers - 1 {
            self.engine.work().map_err(failed)?;
        }
        Ok(Written::Taken)
    }
}

struct AeronNode {
    /// Dropped first.
    _worker: Worker,
    writer: Arc<AeronWriter>,
    writes: bool,
    address: Option<SocketAddrV4>,
    images: Arc<AtomicI32>,
}

impl Node for AeronNode {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

    fn address(&self) -> Option<SocketAddrV4> {
        self.address
    }

    fn join(&mut self, peer: Option<SocketAddrV4>) -> Result<(), PeerError> {
        if let Some(peer) = peer.filter(|_| self.writes) {
            let publication = self.writer.engine.publish(peer)?;
            let _ = self.writer.publication.set(publication);
        }
        Ok(())
    }

    fn matches(&self) -> Matches {
        let is_connected = self.writer.publication.get().is_some_and(AeronPublication::is_connected);
        let writers = u32::try_from(self.images.load(Ordering::Relaxed)).unwrap_or(0);
        Matches { readers: u32::from(is_connected), writers }
    }

    // Written samples are sent and repaired as long as the node lives: there is nothing to wait for.
}
