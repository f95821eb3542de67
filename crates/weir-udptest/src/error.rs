//! Why a test could not be done, in words for the user.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use weir_udp::UdpError;

use crate::control::{ControlError, shown};

/// Why a test could not be done, or not to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UdptestError {
    /// An option or a combination of options makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The name of the server has no address.
    #[error("cannot find an address of host {host}: {reason}")]
    Host {
        /// As it was given.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// Nobody listens there, or nobody can be reached.
    #[error(
        "cannot reach a {program} at {address}: {source}; is {program} running there, and on this port ({option})?"
    )]
    NoServer {
        /// What should be there.
        program: &'static str,
        /// How the port is given.
        option: &'static str,
        /// Host and port.
        address: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// Whatever listens there is no udpserver of ours.
    #[error("{address} does not answer like a {program} of version {version}: {said}")]
    WrongPeer {
        /// What should be there.
        program: &'static str,
        /// Host and port.
        address: String,
        /// The version of the control connection that we speak.
        version: u64,
        /// What came instead.
        said: String,
    },
    /// The server does not want to.
    #[error("the server refuses: {}", shown(.0))]
    Refused(String),
    /// The server gave up in the middle of a measurement.
    #[error("the server ended the measurement: {}", shown(.0))]
    Ended(String),
    /// The control connection ended or carried nonsense in the middle of a test.
    #[error("lost the server: {0}")]
    Lost(#[from] ControlError),
    /// No datagram of the peer arrived at all.
    #[error(
        "no datagram reached the server, though the control connection works: is UDP to its port {port} filtered on the way?"
    )]
    NothingArrives {
        /// The UDP port of the server.
        port: u16,
    },
    /// A UDP socket could not be made.
    #[error(transparent)]
    Socket(#[from] UdpError),
    /// Sending or receiving failed.
    #[error("the UDP socket failed: {0}")]
    Transfer(io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The console could not be written to.
    #[error("cannot write to standard output: {0}")]
    Console(io::Error),
    /// The server's listening socket could not be made.
    #[error("cannot listen on {address}: {source}; take another address (--bind) or port (-p, 0 for any)")]
    Listen {
        /// Address and port.
        address: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// This process may not run on a processor.
    #[error("cannot run on processor {cpu}: {source}; choose another one (--cpus)")]
    Pin {
        /// The processor.
        cpu: usize,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The shared secret can't be had.
    #[error("{0}")]
    Secret(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}
