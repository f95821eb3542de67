//! Engines behind a C interface: one table of functions for each, defined in `native/`.
//!
//! All unsafe code of this crate is here. It relies on the contract of the table, which each shim keeps:
//!
//! - `open` and `open_participant` return a node or participant, or null; `add_writer` and `add_reader` an endpoint or
//!   null.
//! - The other functions take what these returned, and may be called from several threads at once. An endpoint ends
//!   with its participant.
//! - The engine's threads call `on_sample` between `open` or `add_reader` and the end of `close` or
//!   `close_participant`, never after.
//! - A shim keeps no pointer that a call was given.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_peer_api::{
    EndpointOptions, EndpointReader, EndpointWriter, Header, Matches, Node, NodeOptions, OnArrival, OnSample,
    Participant, PeerError, Writer, Written,
};

/// A node of a shim.
#[repr(C)]
pub(crate) struct RawNode {
    _opaque: [u8; 0],
}

/// `struct options` of the shims.
#[repr(C)]
pub(crate) struct RawOptions {
    domain: u32,
    reliable: u8,
    keyed: u8,
    keep_all: u8,
    batching: u8,
    max_blocking_ns: i64,
    write_topic: *const c_char,
    read_topic: *const c_char,
    configuration: *const c_char,
    on_sample: unsafe extern "C" fn(*mut c_void, *const Header, *const u8, usize),
    context: *mut c_void,
}

/// A participant of a shim with any number of endpoints.
#[repr(C)]
pub(crate) struct RawParticipant {
    _opaque: [u8; 0],
}

/// An endpoint of such a participant.
#[repr(C)]
pub(crate) struct RawEndpoint {
    _opaque: [u8; 0],
}

/// `struct endpoint_options` of the shims.
#[repr(C)]
pub(crate) struct RawEndpointOptions {
    topic: *const c_char,
    reliable: u8,
    keyed: u8,
    depth: u32,
    instances: u32,
    max_blocking_ns: i64,
    on_sample: unsafe extern "C" fn(*mut c_void, *const Header, *const u8, usize),
    context: *mut c_void,
}

/// Adds an endpoint to a participant.
type AddEndpoint = unsafe extern "C" fn(
    *mut RawParticipant,
    *const RawEndpointOptions,
    *mut c_char,
    usize,
) -> *mut RawEndpoint;

/// The functions of a shim: `struct shim` of `native/shim.h`.
#[repr(C)]
pub(crate) struct Shim {
    open: unsafe extern "C" fn(*const RawOptions, *mut c_char, usize) -> *mut RawNode,
    write: unsafe extern "C" fn(*mut RawNode, *const Header, *const u8, usize) -> i32,
    flush: unsafe extern "C" fn(*mut RawNode),
    wait_for_acknowledgments: unsafe extern "C" fn(*mut RawNode, i64) -> i32,
    matched: unsafe extern "C" fn(*mut RawNode, *mut u32, *mut u32),
    close: unsafe extern "C" fn(*mut RawNode),
    version: unsafe extern "C" fn() -> *const c_char,
    open_participant: unsafe extern "C" fn(*const RawOptions, *mut c_char, usize) -> *mut RawParticipant,
    add_writer: AddEndpoint,
    add_reader: AddEndpoint,
    write_endpoint: unsafe extern "C" fn(*mut RawEndpoint, *const Header, *const u8, usize) -> i32,
    endpoint_matched: unsafe extern "C" fn(*mut RawEndpoint) -> u32,
    close_participant: unsafe extern "C" fn(*mut RawParticipant),
}

// SAFETY: `native/` defines them with this type, as constants.
unsafe extern "C" {
    #[cfg(feature = "cyclonedds")]
    #[link_name = "weir_cyclonedds"]
    pub(crate) safe static CYCLONEDDS: Shim;

    #[cfg(feature = "fastdds")]
    #[link_name = "weir_fastdds"]
    pub(crate) safe static FASTDDS: Shim;
}

impl Shim {
    /// Version of the engine that the program was compiled for.
    pub(crate) fn version(&self) -> String {
        // SAFETY: the shim returns a constant that ends in NUL.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }

    /// Opens a node. `configuration` is in the engine's own format.
    pub(crate) fn open(
        &'static self,
        options: &NodeOptions,
        configuration: &str,
        on_sample: OnSample,
    ) -> Result<Box<dyn Node>, PeerError> {
        let context = Box::new(Context { shim: self, raw: AtomicPtr::new(ptr::null_mut()), on_sample });
        let topic = |name: &Option<String>| name.as_deref().map(text).transpose();
        let (write_topic, read_topic) = (topic(&options.write_topic)?, topic(&options.read_topic)?);
        let configuration = text(configuration)?;
        let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let raw_options = RawOptions {
            domain: options.domain,
            reliable: options.is_reliable.into(),
            keyed: options.is_keyed.into(),
            keep_all: options.keeps_all.into(),
            batching: options.is_batching.into(),
            max_blocking_ns: nanos(options.max_blocking_time),
            write_topic: pointer(&write_topic),
            read_topic: pointer(&read_topic),
            configuration: configuration.as_ptr(),
            on_sample: pass_on,
            context: ptr::from_ref(&*context).cast_mut().cast(),
        };
        let mut error = [0_u8; ERROR_BYTES];
        // SAFETY: everything that the options point to lives until the call returns; the context lives
        // until `close` has returned (see `Drop`).
        let raw = unsafe { (self.open)(&raw const raw_options, error.as_mut_ptr().cast(), error.len()) };
        let raw = NonNull::new(raw).ok_or_else(|| failed("open", &error))?;
        context.raw.store(raw.as_ptr(), Ordering::Release);
        Ok(Box::new(ForeignNode { context }))
    }
}

fn text(text: &str) -> Result<CString, PeerError> {
    CString::new(text).map_err(|error| PeerError::Engine(error.to_string()))
}

/// Room for the text of an error, with the name of a file.
const ERROR_BYTES: usize = 1024;

/// The error that a shim left as text.
fn failed(what: &str, error: &[u8]) -> PeerError {
    let said = CStr::from_bytes_until_nul(error).map(CStr::to_string_lossy).unwrap_or_default();
    PeerError::Engine(format!("{what} failed: {said}"))
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// What the engine's threads are passed with each sample.
struct Context {
    shim: &'static Shim,
    /// Null until the node is open.
    raw: AtomicPtr<RawNode>,
    on_sample: OnSample,
}

impl Context {
    fn raw(&self) -> *mut RawNode {
        self.raw.load(Ordering::Acquire)
    }
}

impl Shim {
    /// Opens a participant without endpoints. `configuration` is in the engine's own format.
    pub(crate) fn open_participant(
        &'static self,
        options: &NodeOptions,
        configuration: &str,
    ) -> Result<Box<dyn Participant>, PeerError> {
        let configuration = text(configuration)?;
        let raw_options = RawOptions {
            domain: options.domain,
            reliable: 0,
            keyed: 0,
            keep_all: 0,
            batching: 0,
            max_blocking_ns: 0,
            write_topic: ptr::null(),
            read_topic: ptr::null(),
            configuration: configuration.as_ptr(),
            on_sample: ignore,
            context: ptr::null_mut(),
        };
        let mut error = [0_u8; ERROR_BYTES];
        // SAFETY: everything that the options point to lives until the call returns.
        let raw = unsafe {
            (self.open_participant)(&raw const raw_options, error.as_mut_ptr().cast(), error.len())
        };
        let raw = NonNull::new(raw).ok_or_else(|| failed("opening a participant", &error))?;
        let open = OpenParticipant { shim: self, raw, listeners: Mutex::default() };
        Ok(Box::new(ForeignParticipant(Arc::new(open))))
    }
}

/// A participant, which its endpoints share. Dropping the last of them closes it.
#[expect(clippy::vec_box, reason = "the engine keeps the addresses of the listeners")]
struct OpenParticipant {
    shim: &'static Shim,
    raw: NonNull<RawParticipant>,
    /// What the engine's threads call: each lives until the participant is closed.
    listeners: Mutex<Vec<Box<OnArrival>>>,
}

// SAFETY: the functions of a shim may be called from several threads at once, by the contract.
unsafe impl Send for OpenParticipant {}
// SAFETY: the same.
unsafe impl Sync for OpenParticipant {}

impl OpenParticipant {
    /// Adds an endpoint, a reader if there is a listener.
    fn add(
        self: &Arc<Self>,
        options: &EndpointOptions,
        listener: Option<OnArrival>,
    ) -> Result<ForeignEndpoint, PeerError> {
        let (topic, listener) = (text(&options.topic)?, listener.map(Box::new));
        let add = if listener.is_some() { self.shim.add_reader } else { self.shim.add_writer };
        let context = listener.as_deref().map_or(ptr::null(), ptr::from_ref);
        // It lives as long as the participant, whatever the call returns.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).extend(listener);
        let raw_options = RawEndpointOptions {
            topic: topic.as_ptr(),
            reliable: options.is_reliable.into(),
            keyed: options.is_keyed.into(),
            depth: options.keep_last.unwrap_or(0),
            instances: options.instances,
            max_blocking_ns: nanos(options.max_blocking_time),
            on_sample: arrive,
            context: context.cast_mut().cast(),
        };
        let mut error = [0_u8; ERROR_BYTES];
        // SAFETY: the participant is open, and everything that the options point to lives until the call returns; the
        // listener lives until the participant is closed (see `Drop`): a box does not move when the list grows.
        let raw =
            unsafe { add(self.raw.as_ptr(), &raw const raw_options, error.as_mut_ptr().cast(), error.len()) };
        let raw = NonNull::new(raw).ok_or_else(|| failed("creating an endpoint", &error))?;
        Ok(ForeignEndpoint { participant: Arc::clone(self), raw })
    }
}

impl Drop for OpenParticipant {
    fn drop(&mut self) {
        // SAFETY: the participant is open, and this is its last use. Listeners are dropped after the call.
        unsafe { (self.shim.close_participant)(self.raw.as_ptr()) }
    }
}

struct ForeignParticipant(Arc<OpenParticipant>);

impl Participant for ForeignParticipant {
    fn create_writer(&mut self, options: &EndpointOptions) -> Result<Box<dyn EndpointWriter>, PeerError> {
        Ok(Box::new(self.0.add(options, None)?))
    }

    fn create_reader(
        &mut self,
        options: &EndpointOptions,
        on_sample: OnArrival,
    ) -> Result<Box<dyn EndpointReader>, PeerError> {
        Ok(Box::new(self.0.add(options, Some(on_sample))?))
    }
}

struct ForeignEndpoint {
    participant: Arc<OpenParticipant>,
    raw: NonNull<RawEndpoint>,
}

// SAFETY: the functions of a shim may be called from any thread, by the contract.
unsafe impl Send for ForeignEndpoint {}

impl ForeignEndpoint {
    fn count_matches(&self) -> u32 {
        // SAFETY: the participant is open, and with it the endpoint.
        unsafe { (self.participant.shim.endpoint_matched)(self.raw.as_ptr()) }
    }
}

impl EndpointWriter for ForeignEndpoint {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let write = self.participant.shim.write_endpoint;
        // SAFETY: the participant is open, the endpoint is a writer, and header and payload outlive the call.
        written(unsafe { write(self.raw.as_ptr(), header, payload.as_ptr(), payload.len()) })
    }

    fn matched(&self) -> u32 {
        self.count_matches()
    }
}

impl EndpointReader for ForeignEndpoint {
    fn matched(&self) -> u32 {
        self.count_matches()
    }
}

/// Passes on a sample of a reader; called by the engine.
///
/// # Safety
/// `context` is the listener that the reader was created with and lives; `header` points to a header.
unsafe extern "C" fn arrive(context: *mut c_void, header: *const Header, _: *const u8, _: usize) {
    // SAFETY: by the contract. Listeners are shared, and never changed.
    let (listener, header) = unsafe { (&*context.cast::<OnArrival>(), &*header) };
    listener(header);
}

/// Stands for the listener of a participant, which has none.
extern "C" fn ignore(_: *mut c_void, _: *const Header, _: *const u8, _: usize) {}

/// Return values of the shims.
const TAKEN: i32 = 0;
const TIMED_OUT: i32 = 1;

impl Writer for Context {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        // SAFETY: the node is open (`pass_on` withholds the context before), and header and payload outlive
        // the call.
        written(unsafe { (self.shim.write)(self.raw(), header, payload.as_ptr(), payload.len()) })
    }
}

fn written(result: i32) -> Result<Written, PeerError> {
    match result {
        TAKEN => Ok(Written::Taken),
        TIMED_OUT => Ok(Written::TimedOut),
        _ => Err(PeerError::Engine("a write failed".to_owned())),
    }
}

/// Passes on a sample; called by the engine.
///
/// # Safety
/// `context` is the [`Context`] that the node was opened with and lives; `header` points to one, and
/// `payload` to `length` bytes unless that is 0.
unsafe extern "C" fn pass_on(context: *mut c_void, header: *const Header, payload: *const u8, length: usize) {
    // SAFETY: by the contract. Contexts are shared, and changed only through the atomic.
    let (context, header) = unsafe { (&*context.cast::<Context>(), &*header) };
    // SAFETY: by the contract.
    let payload = if length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(payload, length) } };
    // Samples that arrive before the node is open are dropped.
    if !context.raw().is_null() {
        (context.on_sample)(context, header, payload);
    }
}

struct ForeignNode {
    context: Box<Context>,
}

impl Node for ForeignNode {
    fn writer(&self) -> &dyn Writer {
        &*self.context
    }

    fn matches(&self) -> Matches {
        let (context, mut matches) = (&self.context, Matches::default());
        // SAFETY: the node is open.
        unsafe { (context.shim.matched)(context.raw(), &raw mut matches.readers, &raw mut matches.writers) }
        matches
    }

    fn flush(&self) {
        // SAFETY: the node is open.
        unsafe { (self.context.shim.flush)(self.context.raw()) }
    }

    fn wait_for_acknowledgments(&self, timeout: Duration) -> bool {
        // SAFETY: the node is open.
        let result =
            unsafe { (self.context.shim.wait_for_acknowledgments)(self.context.raw(), nanos(timeout)) };
        result == TAKEN
    }
}

impl Drop for ForeignNode {
    fn drop(&mut self) {
        // SAFETY: the node is open, and this is its last use. No sample arrives after the call, so that the
        // context may be dropped.
        unsafe { (self.context.shim.close)(self.context.raw()) }
    }
}
