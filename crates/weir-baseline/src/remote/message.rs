//! The lines of the control connection: JSON, one message each.

use serde::{Deserialize, Serialize};
use weir_results::SocketBuffers;

use super::point::Point;
use super::reports::{HostReport, ReceiveReport, SendReport};

/// The version of these messages.
pub(super) const VERSION: u32 = 1;

/// The longest line that a server takes. None of a client's comes near it.
pub(crate) const REQUEST_BYTES_MAX: usize = 4096;

/// The longest line that a client takes.
pub(super) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Request {
    /// The first line.
    Hello {
        /// The version of these messages.
        version: u32,
        /// A fresh number, as text.
        nonce: String,
    },
    /// The answer to a server that asks for the secret.
    Proof {
        /// As text.
        proof: String,
    },
    /// Prepare this measurement.
    Point {
        /// It.
        point: Box<Point>,
    },
    /// The client's sockets are open.
    Connect {
        /// Their ports, by flow.
        ports: Vec<u16>,
    },
    /// What time is it?
    Clock,
    /// Receive, where the client sends.
    Start {
        /// How far the server's clock is ahead, nanoseconds.
        ahead_ns: i64,
    },
    /// Send, where the server does.
    Go,
    /// The client has sent everything.
    Finish {
        /// How much, by flow; zeros where it does not send.
        sent: Vec<u64>,
    },
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Response {
    /// The answer to a client of the right version that has to prove something.
    Challenge {
        /// A fresh number, as text.
        nonce: String,
    },
    /// The client may go on.
    Welcome {
        /// The version of these messages.
        version: u32,
        /// The server's own proof, if it has a secret.
        proof: Option<String>,
        /// Who it is.
        host: Box<HostReport>,
    },
    /// The sockets are open.
    Prepared {
        /// Their ports, by flow.
        ports: Vec<u16>,
        /// What the datagrams of flow 0 are marked with; those of the others, with the numbers after it.
        mark: u32,
        /// What the kernel granted.
        buffers: SocketBuffers,
    },
    /// The sockets are connected.
    Connected,
    /// The time.
    Clock {
        /// When the question was there, nanoseconds of the server's clock.
        heard_ns: u64,
        /// When this was said.
        answered_ns: u64,
    },
    /// Whoever receives does.
    Started,
    /// Everything was sent.
    Sent {
        /// What.
        report: Box<SendReport>,
    },
    /// The measurement is over.
    Done {
        /// What was received; `None` where nobody sent.
        received: Option<Box<ReceiveReport>>,
        /// What the process used.
        process: Box<weir_results::ProcessFigures>,
        /// What the server's host dropped meanwhile.
        drops: Box<weir_results::DropCounters>,
        /// What the server's host did meanwhile.
        telemetry: Option<Box<weir_results::Telemetry>>,
    },
    /// No, and why.
    Refused {
        /// A sentence for the user.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::super::point::FLOWS_MAX;
    use weir_measure::Message;

    use super::super::point::tests::stream;
    use super::*;

    #[test]
    fn messages_read_back_and_the_longest_request_fits() {
        let ports = vec![65_535; FLOWS_MAX as usize];
        let sent = vec![u64::MAX; FLOWS_MAX as usize];
        let requests = [
            Request::Hello { version: VERSION, nonce: "0".repeat(32) },
            Request::Proof { proof: "f".repeat(64) },
            Request::Point { point: Box::new(stream()) },
            Request::Connect { ports },
            Request::Clock,
            Request::Start { ahead_ns: i64::MIN },
            Request::Go,
            Request::Finish { sent },
        ];
        for request in requests {
            let line = request.line();
            assert!(line.len() < REQUEST_BYTES_MAX && !line.contains('\n'), "{line}");
            assert_eq!(Request::parse(&line), Some(request));
        }
        let done = Response::Done {
            received: Some(Box::new(ReceiveReport { arrivals: 3, ..ReceiveReport::default() })),
            process: Box::default(),
            drops: Box::default(),
            telemetry: Some(Box::default()),
        };
        assert_eq!(Response::parse(&done.line()), Some(done));
        for nonsense in ["", "{}", "[]", "{\"message\":\"dance\"}", "GET / HTTP/1.1"] {
            assert_eq!((Request::parse(nonsense), Response::parse(nonsense)), (None, None), "{nonsense}");
        }
    }
}
