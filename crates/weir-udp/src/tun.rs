//! A network device whose packets a program sends and receives (TUN).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::sys;

/// One network device of the kind TUN: it exchanges whole IP packets with the program.
///
/// Without offloads, which is how it is opened, the kernel cuts segmented sends before they reach
/// the program, and computes their checksums. Dropping it removes the device.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Creates the device in the network namespace of the calling thread. It is down, and may be
    /// used from any namespace.
    ///
    /// # Errors
    /// If the name is empty or over 15 bytes, `/dev/net/tun` is missing, or without the right to
    /// administer the network (`CAP_NET_ADMIN`).
    pub fn create(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open("/dev/net/tun")?;
        sys::create_tun(file.as_fd(), name)?;
        Ok(Self { file })
    }

    /// Takes the next packet that the kernel sends through the device; `None` if there is none.
    /// What does not fit into `packet` is cut off.
    ///
    /// # Errors
    /// If the device is down or gone.
    #[inline]
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, packet) {
            Ok(len) => Ok(Some(len)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the kernel a packet as if it had arrived at the device.
    ///
    /// # Errors
    /// If it is no IP packet, or the device is down or gone.
    #[inline]
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.file, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
