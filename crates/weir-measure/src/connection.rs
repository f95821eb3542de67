//! Lines over TCP, bounded in length and waiting time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The longest line of a connection that sets no other limit, line end included.
pub const LINE_BYTES_MAX: usize = 512;

/// How often a waiting end checks something else than the connection.
const CHECK: Duration = Duration::from_millis(20);

/// Bytes of a read call.
const READ_BYTES: usize = 4096;

/// Something that travels in one line. Types that serde can write and read travel as JSON.
pub trait Message: Sized {
    /// The line, without its end.
    fn line(&self) -> String;

    /// Reads a line; `None` when it is no such message.
    fn parse(line: &str) -> Option<Self>;
}

impl<T: Serialize + DeserializeOwned> Message for T {
    #[expect(clippy::expect_used, reason = "all map keys of messages are text")]
    fn line(&self) -> String {
        serde_json::to_string(self).expect("messages can be written as JSON")
    }

    fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

/// Why the control connection cannot go on.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The peer closed it.
    #[error("the control connection was closed by the peer")]
    Closed,
    /// The peer sent nothing in time.
    #[error("the peer said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// A line is too long.
    #[error("the peer sent a line of more than {0} bytes")]
    TooLong(usize),
    /// A line has no meaning, or none here.
    #[error("the peer sent a line that makes no sense here: `{}`", shown(.0))]
    Nonsense(String),
    /// The connection failed.
    #[error("the control connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Text of a peer for the user's terminal: at most 300 characters, control characters escaped.
#[must_use]
pub fn shown(said: &str) -> String {
    const CHARS_MAX: usize = 300;
    let mut text = String::new();
    for character in said.chars().take(CHARS_MAX) {
        if character.is_control() {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    if said.chars().nth(CHARS_MAX).is_some() {
        text.push_str("...");
    }
    text
}

/// One end of a control connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// The longest accepted line, line end included.
    line_max: usize,
    /// Bytes received beyond the last line, at most one line.
    pending: Vec<u8>,
    /// When everything is to have been received, whatever the patience of single calls.
    deadline: Option<Instant>,
}

impl Connection {
    /// An end that accepts lines of up to `line_max` bytes.
    pub fn new(stream: TcpStream, line_max: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A peer that does not read must not block this end.
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, line_max, pending: Vec::new(), deadline: None })
    }

    /// A second handle, for another thread. Bytes that have arrived stay with the first one.
    pub fn try_clone(&self) -> io::Result<Self> {
        let (stream, line_max) = (self.stream.try_clone()?, self.line_max);
        Ok(Self { stream, line_max, pending: Vec::new(), deadline: None })
    }

    /// Sets when receiving fails, whatever the patience of single calls: a limit for several lines together.
    pub fn receive_by(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns whether the time set by [`Connection::receive_by`] is over.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Changes the length of the longest accepted line, line end included.
    pub fn limit_lines(&mut self, line_max: usize) {
        self.line_max = line_max;
    }

    /// Sets whether receiving waits for the peer. If not, a line that has not arrived is
    /// [`ControlError::Silent`] at once; its beginning is kept.
    pub fn set_waiting(&self, is_waiting: bool) -> io::Result<()> {
        self.stream.set_nonblocking(!is_waiting)
    }

    /// Sends a line.
    pub fn send_line(&mut self, line: &str) -> Result<(), ControlError> {
        Ok(self.stream.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Sends a message.
    pub fn send(&mut self, message: &impl Message) -> Result<(), ControlError> {
        self.send_line(&message.line())
    }

    /// Sends bytes that the last line announced.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Receives a message.
    ///
    /// # Errors
    /// As [`Connection::receive_line`], and [`ControlError::Nonsense`] for a line that is no such message.
    pub fn receive<M: Message>(&mut self, patience: Duration) -> Result<M, ControlError> {
        let line = self.receive_line(patience)?;
        M::parse(&line).ok_or(ControlError::Nonsense(line))
    }

    /// Receives a line, without its end. Lines end up in logs and on terminals: bytes that are not UTF-8 and control
    /// characters become replacement characters.
    ///
    /// # Errors
    /// When no whole line arrived within `patience`, it is too long, or the connection ended or failed.
    pub fn receive_line(&mut self, patience: Duration) -> Result<String, ControlError> {
        let deadline = Instant::now() + patience;
        let mut searched = 0;
        loop {
            let end = self.pending[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| searched + end) {
                let line = String::from_utf8_lossy(&self.pending[..end]);
                let line = line.trim_end_matches('\r').replace(char::is_control, "\u{fffd}");
                self.pending.drain(..=end);
                return Ok(line);
            }
            if self.pending.len() >= self.line_max {
                return Err(ControlError::TooLong(self.line_max));
            }
            searched = self.pending.len();
            let mut bytes = [0; READ_BYTES];
            let room = (self.line_max - self.pending.len()).min(READ_BYTES);
            let count = self.read(&mut bytes[..room], deadline, patience)?;
            self.pending.extend_from_slice(&bytes[..count]);
        }
    }

    /// Receives a line if one arrives soon, so that a waiting end can check something else than the connection.
    pub fn poll_line(&mut self) -> Result<Option<String>, ControlError> {
        match self.receive_line(CHECK) {
            Ok(line) => Ok(Some(line)),
            Err(ControlError::Silent(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Receives a line while `is_wanted`; `None` when it no longer is.
    pub fn receive_line_while(
        &mut self,
        patience: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<String>, ControlError> {
        let deadline = Instant::now() + patience;
        while is_wanted() {
            if let Some(line) = self.poll_line()? {
                return Ok(Some(line));
            }
            if Instant::now() >= deadline {
                return Err(ControlError::Silent(patience));
            }
        }
        Ok(None)
    }

    /// Receives `count` bytes.
    pub fn receive_bytes(&mut self, count: usize, patience: Duration) -> Result<Vec<u8>, ControlError> {
        let deadline = Instant::now() + patience;
        let mut bytes: Vec<u8> = self.pending.drain(..self.pending.len().min(count)).collect();
        let mut part = [0; READ_BYTES];
        while bytes.len() < count {
            let room = part.len().min(count - bytes.len());
            let read = self.read(&mut part[..room], deadline, patience)?;
            bytes.extend_from_slice(&part[..read]);
        }
        Ok(bytes)
    }

    fn read(
        &mut self,
        bytes: &mut [u8],
        deadline: Instant,
        patience: Duration,
    ) -> Result<usize, ControlError> {
        let deadline = self.deadline.map_or(deadline, |limit| limit.min(deadline));
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ControlError::Silent(patience));
        }
        self.stream.set_read_timeout(Some(left))?;
        match self.stream.read(bytes) {
            Ok(0) => Err(ControlError::Closed),
            Ok(count) => Ok(count),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(ControlError::Silent(patience)),
                io::ErrorKind::Interrupted => Ok(0),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Err(ControlError::Closed),
                _ => Err(ControlError::Io(error)),
            },
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn pair() -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (peer, Connection::new(listener.accept().unwrap().0, LINE_BYTES_MAX).unwrap())
    }

    #[test]
    fn a_line_without_end_is_refused_after_its_limit() {
        let (mut peer, mut control) = pair();
        peer.write_all(&[b'a'; 4 * LINE_BYTES_MAX]).unwrap();
        assert!(matches!(control.receive_line(PATIENCE), Err(ControlError::TooLong(_))));
        assert!(control.pending.capacity() <= 2 * LINE_BYTES_MAX);
    }

    #[test]
    fn a_peer_that_goes_in_the_middle_of_a_line_has_gone() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"READY\r\nREA").unwrap();
        drop(peer);
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "READY");
        assert!(matches!(control.receive_line(PATIENCE), Err(ControlError::Closed)));
    }

    #[test]
    fn a_line_brings_nothing_that_a_terminal_obeys() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"a\x1b[2Jb\x07\xff\n").unwrap();
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_limit_for_all_lines_ends_the_patience_for_one() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"READY\nREA").unwrap();
        control.receive_by(Some(Instant::now() + PATIENCE));
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "READY");
        control.receive_by(Some(Instant::now()));
        assert!(matches!(control.receive_line(PATIENCE), Err(ControlError::Silent(_))));
        control.receive_by(None);
        peer.write_all(b"DY\n").unwrap();
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "READY");
    }

    #[test]
    fn an_end_that_does_not_wait_keeps_the_beginning_of_a_line() {
        let (mut peer, mut control) = pair();
        control.set_waiting(false).unwrap();
        assert!(matches!(control.receive_line(PATIENCE), Err(ControlError::Silent(_))));
        peer.write_all(b"REA").unwrap();
        while control.pending != b"REA" {
            assert!(matches!(control.receive_line(PATIENCE), Err(ControlError::Silent(_))));
        }
        peer.write_all(b"DY\n").unwrap();
        control.set_waiting(true).unwrap();
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "READY");
    }

    #[test]
    fn bytes_follow_a_line() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"LOG bytes=5\nab").unwrap();
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "LOG bytes=5");
        peer.write_all(b"c\ndREADY\n").unwrap();
        assert_eq!(control.receive_bytes(5, PATIENCE).unwrap(), b"abc\nd");
        assert_eq!(control.receive_line(PATIENCE).unwrap(), "READY");
    }

    #[test]
    fn a_line_that_is_no_message_is_refused() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"[1,2]\n{}\n").unwrap();
        assert_eq!(control.receive::<Vec<u32>>(PATIENCE).unwrap(), [1, 2]);
        assert!(matches!(control.receive::<Vec<u32>>(PATIENCE), Err(ControlError::Nonsense(_))));
    }

    #[test]
    fn what_a_peer_says_is_shown_in_part_and_cannot_steer_a_terminal() {
        assert_eq!(shown("Grüße `{\"x\"}`"), "Grüße `{\"x\"}`");
        assert_eq!(shown("\u{1b}[2J\u{9b}x\r"), "\\u{1b}[2J\\u{9b}x\\r");
        assert_eq!(shown(&"a".repeat(300)), "a".repeat(300));
        assert_eq!(shown(&"ä".repeat(1 << 20)), "ä".repeat(300) + "...");
        let nonsense = ControlError::Nonsense("b".repeat(1 << 20)).to_string();
        assert!(nonsense.len() < 400, "{}", nonsense.len());
    }
}
