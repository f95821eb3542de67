//! The connections of agents that have not introduced themselves.
//!
//! Any program of this host can connect. So no connection is waited for: the first whole message of any of them counts,
//! and each has a time limit and a short line.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use weir_measure::{Connection, ControlError};

use crate::control::{FromAgent, LINE_BYTES_MAX};

/// Accepts connections, and receives the first message of each.
pub(crate) struct Introductions {
    listener: TcpListener,
    /// Oldest first.
    waiting: VecDeque<Connection>,
}

impl Introductions {
    /// Listens on this host.
    pub(crate) fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, waiting: VecDeque::new() })
    }

    /// Returns the address to connect to.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the next first message with its connection; `None` when there is none within `patience`.
    ///
    /// # Errors
    /// When no connection can be accepted.
    pub(crate) fn next(&mut self, patience: Duration) -> io::Result<Option<(FromAgent, Connection)>> {
        self.wait(patience);
        self.accept()?;
        let mut index = 0;
        while let Some(connection) = self.waiting.get_mut(index) {
            match connection.receive(INTRODUCTION_WAIT) {
                // Nothing yet. When its time is over, receiving fails before it looks, so that is checked here.
                Err(ControlError::Silent(_)) if !connection.is_overdue() => index += 1,
                Ok(message) => {
                    let Some(mut connection) = self.waiting.remove(index) else { continue };
                    connection.receive_by(None);
                    connection.limit_lines(LINE_BYTES_MAX);
                    // A connection that fails here is gone, as one that fails later.
                    if connection.set_waiting(true).is_ok() {
                        return Ok(Some((message, connection)));
                    }
                }
                Err(_) => _ = self.waiting.remove(index),
            }
        }
        Ok(None)
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let Ok(mut connection) = Connection::new(stream, INTRODUCTION_BYTES_MAX) else { continue };
            connection.receive_by(Some(Instant::now() + INTRODUCTION_WAIT));
            if connection.set_waiting(false).is_ok() {
                self.waiting.push_back(connection);
            }
            if self.waiting.len() > WAITING_MAX {
                self.waiting.pop_front();
            }
        }
    }

    /// Waits until something arrives.
    fn wait(&self, patience: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
        let mut sources = vec![PollFd::new(&self.listener, PollFlags::IN)];
        sources.extend(self.waiting.iter().map(|connection| PollFd::new(connection, PollFlags::IN)));
        // The caller checks all of them in any case.
        let _ = poll(&mut sources, Some(&timeout));
    }
}

/// How long a connected program may take to introduce itself.
const INTRODUCTION_WAIT: Duration = Duration::from_secs(5);

/// The longest introduction.
const INTRODUCTION_BYTES_MAX: usize = 4096;

/// Connections that may wait at a time; then the oldest is closed.
const WAITING_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use weir_measure::Message;

    use super::*;
    use crate::control::{Role, SCHEMA, VERSION};

    fn hello() -> FromAgent {
        let (schema, version) = (SCHEMA, VERSION.to_owned());
        FromAgent::Hello { schema, version, role: Role::Publisher, index: 0, token: "token".to_owned() }
    }

    /// Waits for an event, however long it takes.
    fn next(introductions: &mut Introductions) -> (FromAgent, Connection) {
        loop {
            if let Some(next) = introductions.next(Duration::from_millis(20)).unwrap() {
                return next;
            }
        }
    }

    #[test]
    fn connections_that_say_nothing_do_not_hold_up_an_agent() {
        let mut introductions = Introductions::listen().unwrap();
        let connect = || TcpStream::connect(introductions.address().unwrap()).unwrap();
        let mut idle: Vec<_> = (0..WAITING_MAX + 20).map(|_| connect()).collect();
        let mut agent = connect();
        // The beginning of an introduction waits for its end.
        let (front, back) = (hello().line(), "\n");
        agent.write_all(front.as_bytes()).unwrap();
        while introductions.waiting.len() < WAITING_MAX {
            assert!(introductions.next(Duration::from_millis(20)).unwrap().is_none());
        }
        agent.write_all(back.as_bytes()).unwrap();
        let (message, mut control) = next(&mut introductions);
        assert_eq!(message, hello());
        // The longest waiting connections were closed, the others wait.
        assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
        assert!(introductions.waiting.len() < WAITING_MAX);
        // The connection now waits for long lines.
        let version = "v".repeat(2 * INTRODUCTION_BYTES_MAX);
        agent.write_all(format!("\"{version}\"\n").as_bytes()).unwrap();
        assert_eq!(control.receive::<String>(Duration::from_secs(20)).unwrap(), version);
        // Nonsense ends only its own connection.
        let last = idle.last_mut().unwrap();
        last.write_all(b"GET / HTTP/1.1\n").unwrap();
        let before = introductions.waiting.len();
        while introductions.waiting.len() == before {
            assert!(introductions.next(Duration::from_millis(20)).unwrap().is_none());
        }
        assert_eq!(last.read(&mut [0]).unwrap(), 0);
    }
}
