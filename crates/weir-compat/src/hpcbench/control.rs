//! The messages of the control connection.
//!
//! A line is a word and numbers by name, e.g. `TRIAL message=1048576 size=1460 time=5000000000`. Times are nanoseconds,
//! sizes bytes.

use weir_measure::Message;

/// The version of these messages.
pub(crate) const VERSION: u64 = 1;

/// The longest system log that a client accepts.
pub(crate) const LOG_BYTES_MAX: u64 = 16 << 20;

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The first message.
    Hello {
        /// The version.
        version: u64,
        /// A fresh random number, as text, for the proof of a secret.
        nonce: Option<String>,
    },
    /// Proves the secret.
    Proof {
        /// The proof, as text.
        proof: String,
    },
    /// Open a UDP socket and connect it to the client's.
    Setup {
        /// The client's UDP port; the address is that of the control connection.
        port: u16,
        /// The most bytes of a datagram.
        datagram: u64,
        /// Bytes of socket buffers; 0: the system's default.
        buffer: u64,
        /// The type of service.
        tos: u8,
    },
    /// Receive a stream, and send one if both sides send.
    Trial {
        /// Number of the trial in the session.
        trial: u32,
        /// Bytes of each write of the server.
        size: u64,
        /// Whether both sides send: 1 or 0.
        both: u8,
        /// The least time that each side sends, nanoseconds.
        time_ns: u64,
        /// The least bytes that each side sends.
        message: u64,
        /// The rate limit of each side, bits per second; 0: none.
        rate: u64,
    },
    /// Send each datagram back, until [`Request::Sent`].
    Echo,
    /// The client has sent everything.
    Sent,
    /// Read the host's counters for the system log.
    Watch,
    /// Send the system log.
    Log,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The client must prove the secret.
    Challenge {
        /// A fresh random number, as text.
        nonce: String,
    },
    /// The client is welcome.
    Hello {
        /// The version.
        version: u64,
        /// The server's own proof, if it has a secret.
        proof: Option<String>,
    },
    /// The UDP socket is open.
    Setup {
        /// Its port.
        port: u16,
        /// Bytes of the send buffer, as the kernel reports it.
        send_buffer: u64,
        /// Bytes of the receive buffer, as the kernel reports it.
        recv_buffer: u64,
        /// The token in the marks of this session.
        token: u64,
    },
    /// The request is done, or the trial begins.
    Ready,
    /// The counts of a trial.
    Counted(Counted),
    /// The system log follows.
    Log {
        /// Its length.
        bytes: u64,
    },
    /// The request is refused.
    Refused {
        /// A sentence for the user.
        reason: String,
    },
}

/// The counts of an end in a trial, with marks counted as hpcbench does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Datagrams received.
    pub recv_packets: u64,
    /// Bytes received.
    pub recv_bytes: u64,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Nanoseconds of this end's clock.
    pub elapsed_ns: u64,
    /// Nanoseconds of processor time in user mode.
    pub user_ns: u64,
    /// Nanoseconds of processor time in the kernel.
    pub system_ns: u64,
}

impl Message for Request {
    fn line(&self) -> String {
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

    fn parse(line: &str) -> Option<Self> {
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

impl Message for Response {
    fn line(&self) -> String {
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

    fn parse(line: &str) -> Option<Self> {
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

/// A word, and the fields behind it.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_measure::LINE_BYTES_MAX;

    use super::*;

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
}
