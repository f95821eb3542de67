//! Why a measurement failed, in words for the user.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use weir_udp::UdpError;

use crate::{ControlError, shown};

/// Why a measurement between a client and a server failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// An option or a combination of options makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The host name has no address.
    #[error("cannot find an address of host {host}: {reason}")]
    Host {
        /// The name.
        host: String,
        /// The error of the resolver.
        reason: String,
    },
    /// The server cannot be reached.
    #[error(
        "cannot reach a {program} at {address}: {source}; is {program} running there, and on this port ({option})?"
    )]
    NoServer {
        /// The program that should listen there.
        program: &'static str,
        /// The option that sets the port.
        option: &'static str,
        /// Host and port.
        address: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The program that listens there is not the expected server.
    #[error("{address} does not answer like a {program} of version {version}: {said}")]
    WrongPeer {
        /// The program that should listen there.
        program: &'static str,
        /// Host and port.
        address: String,
        /// The version of the control connection that this client speaks.
        version: u64,
        /// What it answered instead.
        said: String,
    },
    /// The server refuses.
    #[error("the server refuses: {}", shown(.0))]
    Refused(String),
    /// The server ended a running measurement.
    #[error("the server ended the measurement: {}", shown(.0))]
    Ended(String),
    /// The control connection ended, or carried an unexpected line.
    #[error("lost the server: {0}")]
    Lost(#[from] ControlError),
    /// No datagram arrived at the server.
    #[error(
        "no datagram reached the server, though the control connection works: is UDP to its port {port} filtered on the way?"
    )]
    NothingArrives {
        /// The UDP port of the server.
        port: u16,
    },
    /// No trial of round trips has a figure.
    #[error("none of {trials} trials succeeded: in each, a datagram was lost or out of order")]
    AllSpoilt {
        /// How many there were.
        trials: usize,
    },
    /// A UDP socket could not be opened.
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
        /// The error of the kernel.
        source: io::Error,
    },
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Console(io::Error),
    /// The server cannot listen.
    #[error("cannot listen on {address}: {source}; take another address (--bind) or port (-p, 0 for any)")]
    Listen {
        /// Address and port.
        address: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// This process may not run on a processor.
    #[error("cannot run on processor {cpu}: {source}; choose another one (--cpus)")]
    Pin {
        /// The processor.
        cpu: usize,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The shared secret is missing, unreadable or wrong.
    #[error("{0}")]
    Secret(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}
