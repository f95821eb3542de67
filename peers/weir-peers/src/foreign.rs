//! Engines behind a C interface: one table of functions for each, defined in `native/`.
//!
//! All unsafe code of this crate is here. It relies on the contract of the table, which each shim keeps:
//!
//! - `open` returns a node or null.
//! - The other functions take a node that `open` returned, and may be called from several threads at once.
//! - The engine's threads call `on_sample` between `open` and the end of `close`, never after.
//! - A shim keeps no pointer that a call was given.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use weir_peer_api::{Header, Matches, Node, NodeOptions, OnSample, PeerError, Writer, Written};

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
        let text = |text: &str| CString::new(text).map_err(|error| PeerError::Engine(error.to_string()));
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
        let mut error = [0_u8; 256];
        // SAFETY: everything that the options point to lives until the call returns; the context lives
        // until `close` has returned (see `Drop`).
        let raw = unsafe { (self.open)(&raw const raw_options, error.as_mut_ptr().cast(), error.len()) };
        let Some(raw) = NonNull::new(raw) else {
            let said = CStr::from_bytes_until_nul(&error).map(CStr::to_string_lossy).unwrap_or_default();
            return Err(PeerError::Engine(format!("open failed: {said}")));
        };
        context.raw.store(raw.as_ptr(), Ordering::Release);
        Ok(Box::new(ForeignNode { context }))
    }
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

/// Return values of the shims.
const TAKEN: i32 = 0;
const TIMED_OUT: i32 = 1;

impl Writer for Context {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        // SAFETY: the node is open (`pass_on` withholds the context before), and header and payload outlive
        // the call.
        match unsafe { (self.shim.write)(self.raw(), header, payload.as_ptr(), payload.len()) } {
            TAKEN => Ok(Written::Taken),
            TIMED_OUT => Ok(Written::TimedOut),
            _ => Err(PeerError::Engine("a write failed".to_owned())),
        }
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
