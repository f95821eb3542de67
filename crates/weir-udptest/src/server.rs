//! The side that answers: listens, and serves several clients at a time.
//!
//! Whoever can reach the port can start sessions, so everything is bounded: sessions, lines, waiting,
//! the time of a trial. UDP goes to the address of the control connection and nowhere else.

mod session;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error::UdptestError;

/// How a server is to work.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address to listen on; the unspecified one is all of them.
    pub bind: Ipv4Addr,
    /// The port to listen on; 0 lets the kernel choose.
    pub port: u16,
    /// How many sessions at a time.
    pub sessions_max: usize,
    /// How long a trial may be asked to last.
    pub trial_max: Duration,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            bind: Ipv4Addr::UNSPECIFIED,
            port: 5678,
            sessions_max: 8,
            trial_max: Duration::from_secs(3600),
        }
    }
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    settings: ServerSettings,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// [`UdptestError::Listen`] when the address or the port can't be had.
    pub fn bind(settings: ServerSettings) -> Result<Self, UdptestError> {
        let address = SocketAddrV4::new(settings.bind, settings.port);
        let listener = TcpListener::bind(address)
            .map_err(|source| UdptestError::Listen { address: address.to_string(), source })?;
        Ok(Self { listener, settings })
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().map_or(self.settings.port, |address| address.port())
    }

    /// Serves for ever, each session in a thread of its own. `log` is told what happens.
    pub fn run(self, log: impl Fn(&str) + Send + Sync + 'static) -> ! {
        let active = Arc::new(AtomicUsize::new(0));
        let log: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(log);
        loop {
            match self.listener.accept() {
                Ok((stream, SocketAddr::V4(peer))) => self.start(stream, peer, &active, &log),
                Ok((_, SocketAddr::V6(_))) => {}
                Err(error) => {
                    log(&format!("cannot accept a connection: {error}"));
                    // Mostly out of file descriptors: trying at once again would only burn a processor.
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    fn start(
        &self,
        stream: TcpStream,
        peer: SocketAddrV4,
        active: &Arc<AtomicUsize>,
        log: &Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        let place = Place::take(active);
        let max = self.settings.sessions_max;
        // Those beyond the limit are told so, which takes a thread, too: beyond twice the limit not
        // even that.
        if place.number > max.saturating_mul(2) {
            log(&format!("{peer}: dropped, far too many sessions"));
            return;
        }
        let (settings, session_log) = (self.settings.clone(), Arc::clone(log));
        let spawned = std::thread::Builder::new().name(format!("session {peer}")).spawn(move || {
            let ended = if place.number > max {
                session::refuse(stream, max)
            } else {
                session::serve(stream, peer, &settings, &*session_log)
            };
            match ended {
                Ok(()) => session_log(&format!("{peer}: session ended")),
                Err(error) => session_log(&format!("{peer}: session ended: {error}")),
            }
            drop(place);
        });
        if let Err(error) = spawned {
            // Its place is free again: it went with the closure.
            log(&format!("{peer}: no thread for a session: {error}"));
        }
    }
}

/// One of the places for sessions, free again when dropped.
struct Place {
    active: Arc<AtomicUsize>,
    /// How many are taken, this one included.
    number: usize,
}

impl Place {
    fn take(active: &Arc<AtomicUsize>) -> Self {
        let number = active.fetch_add(1, Ordering::Relaxed) + 1;
        Self { active: Arc::clone(active), number }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.active.fetch_sub(1, Ordering::Relaxed);
    }
}
