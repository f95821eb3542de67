//! The lines of the control connection.
//!
//! A line is a word and numbers by name, e.g. `TRIAL message=1048576 size=1460 time=5000000000`; times
//! are nanoseconds, sizes octets. Whoever reads a line takes at most [`LINE_BYTES_MAX`] of it and waits
//! for a bounded time, whatever the peer does.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use thiserror::Error;

/// The version of these lines.
pub(crate) const VERSION: u64 = 1;

/// The longest line, its end included.
pub const LINE_BYTES_MAX: usize = 512;

/// The longest system log that a client takes.
pub(crate) const LOG_BYTES_MAX: u64 = 16 << 20;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first line: which version of these lines it speaks.
    Hello {
        /// The version.
        version: u64,
        /// A fresh number, as text, for who has a secret.
        nonce: Option<String>,
    },
    /// The answer to a server that asks for the secret.
    Proof {
        /// As text.
        proof: String,
    },
    /// Asks for a UDP socket that talks to the client's.
    Setup {
        /// The client's UDP port; the address is that of the control connection.
        port: u16,
        /// Octets of a datagram at most.
        datagram: u64,
        /// Octets of buffers to ask for; 0 is the system's default.
        buffer: u64,
        /// The octet of the type of service.
        tos: u8,
    },
    /// Receive a stream, and send one too if told so.
    Trial {
        /// Number of the trial in the session.
        trial: u32,
        /// Octets of each write of the server.
        size: u64,
        /// Whether the server sends, too: 1 or 0.
        both: u8,
        /// How long each side sends at least, in nanoseconds.
        time_ns: u64,
        /// Octets that each side sends at least.
        message: u64,
        /// Bits per second that each side sends at most; 0 is without limit.
        rate: u64,
    },
    /// Send each datagram back, until [`Request::Sent`].
    Echo,
    /// All was sent.
    Sent,
    /// Look at the counters of the host for the system log.
    Watch,
    /// Send the system log.
    Log,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The client has to prove that it knows the secret.
    Challenge {
        /// A fresh number, as text.
        nonce: String,
    },
    /// The answer to a client of the right version.
    Hello {
        /// The version.
        version: u64,
        /// The server's own proof, if it has a secret.
        proof: Option<String>,
    },
    /// The UDP socket.
    Setup {
        /// Its port.
        port: u16,
        /// Octets of the send buffer, as the kernel reports it.
        send_buffer: u64,
        /// Octets of the receive buffer, as the kernel reports it.
        recv_buffer: u64,
        /// What marks of this session carry.
        token: u64,
    },
    /// Go on.
    Ready,
    /// What came of a trial.
    Counted(Counted),
    /// So many octets of system log follow.
    Log {
        /// How many.
        bytes: u64,
    },
    /// No, and why.
    Refused {
        /// A sentence for the user.
        reason: String,
    },
}

/// What an end counted in a trial: marks as hpcbench counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams received.
    pub recv_packets: u64,
    /// Octets received.
    pub recv_bytes: u64,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Octets sent.
    pub sent_bytes: u64,
    /// Nanoseconds of this end's clock.
    pub elapsed_ns: u64,
    /// Nanoseconds of processor time in user mode.
    pub user_ns: u64,
    /// Nanoseconds of processor time in the kernel.
    pub system_ns: u64,
}

/// What a peer said, for the user's eyes: no more than a few lines of it, and nothing that a terminal would obey.
pub(crate) fn shown(said: &str) -> String {
    const CHARS_MAX: usize = 300;
    let mut text: String = said.chars().take(CHARS_MAX).flat_map(visible).collect();
    if said.chars().nth(CHARS_MAX).is_some() {
        text.push_str("...");
    }
    text
}

fn visible(character: char) -> impl Iterator<Item = char> {
    let is_plain = !character.is_control();
    is_plain
        .then_some(character)
        .into_iter()
        .chain((!is_plain).then(|| character.escape_default()).into_iter().flatten())
}

/// Why the control connection can't go on.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The peer has gone.
    #[error("the control connection was closed by the peer")]
    Closed,
    /// The peer says nothing.
    #[error("the peer said nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// A line without end.
    #[error("the peer sent a line of more than {0} bytes")]
    TooLong(usize),
    /// A line that means nothing, or nothing here.
    #[error("the peer sent a line that makes no sense here: `{}`", shown(.0))]
    Nonsense(String),
    /// The connection broke.
    #[error("the control connection failed: {0}")]
    Io(#[from] io::Error),
}

impl Request {
    /// The line for this request, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Hello { version, nonce } => {
                with_text(format!("WEIR-UDPTEST version={version}"), "nonce", nonce)
            }
            Self::Proof { proof } => format!("PROOF mac={proof}"),
            Self::Setup { port, datagram, buffer, tos } => {
                format!("SETUP port={port} datagram={datagram} buffer={buffer} tos={tos}")
            }
            Self::Trial { trial, size, both, time_ns, message, rate } => format!(
                "TRIAL trial={trial} size={size} both={both} time={time_ns} message={message} rate={rate}"
            ),
            Self::Echo => "ECHO".to_owned(),
            Self::Sent => "SENT".to_owned(),
            Self::Watch => "WATCH".to_owned(),
            Self::Log => "LOG".to_owned(),
        }
    }

    /// The request in a line; `None` when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let fields = Fields::of(line)?;
        Some(match fields.word {
            "WEIR-UDPTEST" => Self::Hello { version: fields.number("version")?, nonce: fields.text("nonce") },
            "PROOF" => Self::Proof { proof: fields.text("mac")? },
            "SETUP" => Self::Setup {
                port: fields.number("port")?,
                datagram: fields.number("datagram")?,
                buffer: fields.number("buffer")?,
                tos: fields.number("tos")?,
            },
            "TRIAL" => Self::Trial {
                trial: fields.number("trial")?,
                size: fields.number("size")?,
                both: fields.number("both")?,
                time_ns: fields.number("time")?,
                message: fields.number("message")?,
                rate: fields.number("rate")?,
            },
            "ECHO" => Self::Echo,
            "SENT" => Self::Sent,
            "WATCH" => Self::Watch,
            "LOG" => Self::Log,
            _ => return None,
        })
    }
}

impl Response {
    /// The line for this response, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Challenge { nonce } => format!("CHALLENGE nonce={nonce}"),
            Self::Hello { version, proof } => {
                with_text(format!("WEIR-UDPSERVER version={version}"), "proof", proof)
            }
            Self::Setup { port, send_buffer, recv_buffer, token } => {
                format!("UDPPORT port={port} sndbuf={send_buffer} rcvbuf={recv_buffer} token={token}")
            }
            Self::Ready => "READY".to_owned(),
            Self::Counted(counted) => format!(
                "RESULT rp={} rb={} sp={} sb={} real={} user={} sys={}",
                counted.recv_packets,
                counted.recv_bytes,
                counted.sent_packets,
                counted.sent_bytes,
                counted.elapsed_ns,
                counted.user_ns,
                counted.system_ns
            ),
            Self::Log { bytes } => format!("LOG bytes={bytes}"),
            Self::Refused { reason } => format!("REFUSED {reason}"),
        }
    }

    /// The response in a line; `None` when it is none.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        if let Some(reason) = line.strip_prefix("REFUSED ") {
            return Some(Self::Refused { reason: reason.to_owned() });
        }
        let fields = Fields::of(line)?;
        Some(match fields.word {
            "CHALLENGE" => Self::Challenge { nonce: fields.text("nonce")? },
            "WEIR-UDPSERVER" => {
                Self::Hello { version: fields.number("version")?, proof: fields.text("proof") }
            }
            "UDPPORT" => Self::Setup {
                port: fields.number("port")?,
                send_buffer: fields.number("sndbuf")?,
                recv_buffer: fields.number("rcvbuf")?,
                token: fields.number("token")?,
            },
            "READY" => Self::Ready,
            "RESULT" => Self::Counted(Counted {
                recv_packets: fields.number("rp")?,
                recv_bytes: fields.number("rb")?,
                sent_packets: fields.number("sp")?,
                sent_bytes: fields.number("sb")?,
                elapsed_ns: fields.number("real")?,
                user_ns: fields.number("user")?,
                system_ns: fields.number("sys")?,
            }),
            "LOG" => Self::Log { bytes: fields.number("bytes")? },
            _ => return None,
        })
    }
}

/// A word, and what follows it.
struct Fields<'a> {
    word: &'a str,
    rest: &'a str,
}

impl<'a> Fields<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim_end();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        (!word.is_empty()).then_some(Self { word, rest })
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.value(name)?.parse().ok()
    }

    /// Letters and digits.
    fn text(&self, name: &str) -> Option<String> {
        let is_plain =
            |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        self.value(name).filter(is_plain).map(str::to_owned)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.rest.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    }
}

/// A line with one more field, if there is one.
fn with_text(line: String, name: &str, value: &Option<String>) -> String {
    value.as_ref().map_or_else(|| line.clone(), |value| format!("{line} {name}={value}"))
}

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Control {
    stream: TcpStream,
    /// The longest line that it takes, its end included.
    line_max: usize,
    /// What arrived beyond the last line, at most one line's worth.
    pending: Vec<u8>,
}

impl Control {
    /// How often a waiting end looks at something else than the connection.
    const LOOK: Duration = Duration::from_millis(20);

    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        Self::with_lines_of(stream, LINE_BYTES_MAX)
    }

    /// An end that takes lines of up to so many octets.
    pub(crate) fn with_lines_of(stream: TcpStream, line_max: usize) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // A peer that does not read must not hold us up.
        stream.set_write_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, line_max, pending: Vec::new() })
    }

    /// Says a line.
    pub(crate) fn say(&mut self, line: &str) -> Result<(), ControlError> {
        Ok(self.stream.write_all(format!("{line}\n").as_bytes())?)
    }

    /// Sends octets as they are, after a line that announced them.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), ControlError> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// The next line without its end. Octets that are no UTF-8 and control characters become replacement characters: a line
    /// that makes no sense ends up in logs, on terminals.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<String, ControlError> {
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
            let mut bytes = [0; LINE_BYTES_MAX];
            let room = (self.line_max - self.pending.len()).min(LINE_BYTES_MAX);
            let count = self.read(&mut bytes[..room], deadline, patience)?;
            self.pending.extend_from_slice(&bytes[..count]);
        }
    }

    /// Watches the connection for as long as something else runs, during which the peer has nothing to
    /// say.
    pub(crate) fn watch_while(&mut self, is_running: impl Fn() -> bool) -> Result<(), ControlError> {
        while is_running() {
            match self.hear(Self::LOOK) {
                Ok(line) => return Err(ControlError::Nonsense(line)),
                Err(ControlError::Silent(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The next line, for which `is_wanted` is asked now and then; `None` when it is not any longer.
    pub(crate) fn hear_while(
        &mut self,
        patience: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Option<String>, ControlError> {
        let deadline = Instant::now() + patience;
        while is_wanted() {
            match self.hear(Self::LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(ControlError::Silent(_)) if Instant::now() < deadline => {}
                Err(ControlError::Silent(_)) => return Err(ControlError::Silent(patience)),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// So many octets.
    pub(crate) fn hear_bytes(&mut self, count: usize, patience: Duration) -> Result<Vec<u8>, ControlError> {
        let deadline = Instant::now() + patience;
        let mut bytes: Vec<u8> = self.pending.drain(..self.pending.len().min(count)).collect();
        let mut part = [0; 4096];
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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn pair() -> (TcpStream, Control) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (peer, Control::new(listener.accept().unwrap().0).unwrap())
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        let requests = [
            Request::Hello { version: 1, nonce: None },
            Request::Hello { version: 1, nonce: Some("0a".repeat(16)) },
            Request::Proof { proof: "f".repeat(64) },
            Request::Setup { port: 65535, datagram: 65000, buffer: u64::MAX, tos: 255 },
            Request::Trial { trial: u32::MAX, size: 1, both: 1, time_ns: u64::MAX, message: 0, rate: 3 },
            Request::Echo,
            Request::Sent,
            Request::Watch,
            Request::Log,
        ];
        for request in requests {
            assert!(request.line().len() < LINE_BYTES_MAX);
            assert_eq!(Request::parse(&request.line()), Some(request));
        }
        let most = u64::MAX;
        let counted = Counted {
            recv_packets: most,
            recv_bytes: most,
            sent_packets: most,
            sent_bytes: most,
            elapsed_ns: most,
            user_ns: most,
            system_ns: most,
        };
        let responses = [
            Response::Hello { version: 1, proof: None },
            Response::Hello { version: 1, proof: Some("f".repeat(64)) },
            Response::Challenge { nonce: "0a".repeat(16) },
            Response::Setup { port: 1, send_buffer: most, recv_buffer: most, token: most },
            Response::Ready,
            Response::Counted(counted),
            Response::Log { bytes: 7 },
            Response::Refused { reason: "too many sessions".to_owned() },
        ];
        for response in responses {
            assert!(response.line().len() < LINE_BYTES_MAX);
            assert_eq!(Response::parse(&response.line()), Some(response));
        }
    }

    #[test]
    fn a_line_without_end_is_refused_after_its_limit() {
        let (mut peer, mut control) = pair();
        peer.write_all(&[b'a'; 4 * LINE_BYTES_MAX]).unwrap();
        assert!(matches!(control.hear(PATIENCE), Err(ControlError::TooLong(_))));
        assert!(control.pending.capacity() <= 2 * LINE_BYTES_MAX);
    }

    #[test]
    fn a_peer_that_goes_in_the_middle_of_a_line_has_gone() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"READY\r\nREA").unwrap();
        drop(peer);
        assert_eq!(control.hear(PATIENCE).unwrap(), "READY");
        assert!(matches!(control.hear(PATIENCE), Err(ControlError::Closed)));
    }

    #[test]
    fn a_line_brings_nothing_that_a_terminal_obeys() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"a\x1b[2Jb\x07\xff\n").unwrap();
        assert_eq!(control.hear(PATIENCE).unwrap(), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
    }

    #[test]
    fn octets_follow_a_line() {
        let (mut peer, mut control) = pair();
        peer.write_all(b"LOG bytes=5\nab").unwrap();
        assert_eq!(control.hear(PATIENCE).unwrap(), "LOG bytes=5");
        peer.write_all(b"c\ndREADY\n").unwrap();
        assert_eq!(control.hear_bytes(5, PATIENCE).unwrap(), b"abc\nd");
        assert_eq!(control.hear(PATIENCE).unwrap(), "READY");
    }

    proptest! {
        #[test]
        fn any_line_is_a_request_or_none(line in ".{0,80}") {
            if let Some(request) = Request::parse(&line) {
                prop_assert_eq!(Request::parse(&request.line()), Some(request));
            }
            let _ = Response::parse(&line);
        }

        #[test]
        fn plausible_lines_do_not_panic(
            word in "(SETUP|TRIAL|WEIR-UDPTEST|UDPPORT|RESULT|LOG|PROOF|CHALLENGE)",
            fields in "( (port|size|both|time|rate|bytes|version|trial|message|tos|buffer|datagram|nonce|mac)=-?[0-9a-z]{0,24}){0,8}",
        ) {
            let line = format!("{word}{fields}");
            if let Some(request) = Request::parse(&line) {
                prop_assert_eq!(Request::parse(&request.line()), Some(request));
            }
            let _ = Response::parse(&line);
        }
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
