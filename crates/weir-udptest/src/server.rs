//! The side that answers: listens, and serves several clients at a time.
//!
//! Whoever can reach the port can start sessions, so everything is bounded: sessions, lines, waiting,
//! the time of a trial. UDP goes to the address of the control connection and nowhere else.

mod session;

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::address::{canonical, listen};
use crate::error::UdptestError;
use crate::floor::{self, FLOOR_PORT};
use crate::secret::Secret;

pub(crate) use session::SessionError;

/// How a server is to work.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Whom it answers.
    pub kind: ServerKind,
    /// The address to listen on; `None` is all of them, of IPv4 and IPv6.
    pub bind: Option<IpAddr>,
    /// The port to listen on; 0 lets the kernel choose.
    pub port: u16,
    /// How many sessions at a time.
    pub sessions_max: usize,
    /// How long a trial may be asked to last.
    pub trial_max: Duration,
    /// What a client has to know.
    pub secret: Option<Secret>,
    /// Whether clients may have it join multicast groups.
    pub allow_multicast: bool,
}

/// Whom a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// `udptest`.
    Udptest,
    /// `weir udp`.
    Floor,
}

impl ServerSettings {
    /// The defaults of a kind.
    #[must_use]
    pub fn new(kind: ServerKind) -> Self {
        Self {
            kind,
            bind: None,
            port: match kind {
                ServerKind::Udptest => 5678,
                ServerKind::Floor => FLOOR_PORT,
            },
            sessions_max: 8,
            trial_max: Duration::from_secs(3600),
            secret: None,
            allow_multicast: false,
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
        let listener = listen(settings.bind, settings.port)?;
        Ok(Self { listener, settings })
    }

    /// The address that it listens on.
    ///
    /// # Errors
    /// [`UdptestError::Listen`] when the kernel does not say.
    pub fn address(&self) -> Result<SocketAddr, UdptestError> {
        let unknown =
            |source| UdptestError::Listen { address: format!("port {}", self.settings.port), source };
        self.listener.local_addr().map_err(unknown)
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
                Ok((stream, peer)) => self.start(stream, canonical(peer), &active, &log),
                Err(error) => {
                    log(&format!("cannot accept a connection: {error}"));
                    // Mostly out of file descriptors: trying at once again would only burn a processor.
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }

    /// Waits for one connection and serves it on this thread.
    ///
    /// # Errors
    /// When nobody can be accepted; what becomes of the session is told to `log`.
    pub fn serve_one(&self, log: &dyn Fn(&str)) -> std::io::Result<()> {
        let (stream, peer) = self.listener.accept()?;
        let peer = canonical(peer);
        let ended = match self.settings.kind {
            ServerKind::Udptest => session::serve(stream, peer, &self.settings, log),
            ServerKind::Floor => floor::session::serve(stream, peer, &self.settings, log),
        };
        log(&format!(
            "{peer}: session ended{}",
            ended.err().map_or_else(String::new, |error| format!(": {error}"))
        ));
        Ok(())
    }

    fn start(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
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
            let ended = match (settings.kind, place.number > max) {
                (ServerKind::Udptest, true) => session::refuse(stream, max),
                (ServerKind::Udptest, false) => session::serve(stream, peer, &settings, &*session_log),
                (ServerKind::Floor, true) => floor::session::refuse(stream, max),
                (ServerKind::Floor, false) => floor::session::serve(stream, peer, &settings, &*session_log),
            };
            // Before anybody hears that it is free.
            drop(place);
            match ended {
                Ok(()) => session_log(&format!("{peer}: session ended")),
                Err(error) => session_log(&format!("{peer}: session ended: {error}")),
            }
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

#[cfg(test)]
mod tests;
