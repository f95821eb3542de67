//! The messages of the control connection: lines of JSON.

use serde::{Deserialize, Serialize};
use weir_results::SocketBuffers;

use super::point::Point;
use super::reports::{HostReport, SendReport, ServerReport};

/// The version of these messages.
pub(super) const VERSION: u32 = 1;

/// The longest line that a server accepts; clients send far shorter ones.
pub(crate) const REQUEST_BYTES_MAX: usize = 4096;

/// The longest line that a client accepts.
pub(super) const RESPONSE_BYTES_MAX: usize = 16 << 20;

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Request {
    /// The first message.
    Hello {
        /// The version of these messages.
        version: u32,
        /// A fresh random number, as text.
        nonce: String,
    },
    /// Proves the secret.
    Proof {
        /// The proof, as text.
        proof: String,
    },
    /// Prepare a measurement.
    Point {
        /// The measurement.
        point: Box<Point>,
    },
    /// The client's sockets are open.
    Connect {
        /// Their ports, by flow.
        ports: Vec<u16>,
    },
    /// Report the time.
    Clock,
    /// Start the receivers.
    Start {
        /// How far the server's clock is ahead, nanoseconds.
        ahead_ns: i64,
    },
    /// Start the senders.
    Go,
    /// The client has sent everything.
    Finish {
        /// Datagrams by flow; zeros if it does not send.
        sent: Vec<u64>,
    },
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Response {
    /// The client must prove the secret.
    Challenge {
        /// A fresh number, as text.
        nonce: String,
    },
    /// The client is welcome.
    Welcome {
        /// The version of these messages.
        version: u32,
        /// The server's own proof, if it has a secret.
        proof: Option<String>,
        /// The server's host.
        host: Box<HostReport>,
    },
    /// The sockets are open.
    Prepared {
        /// Their ports, by flow.
        ports: Vec<u16>,
        /// The mark of flow 0; the following flows have the following numbers.
        mark: u32,
        /// Granted buffers.
        buffers: SocketBuffers,
    },
    /// The sockets are connected.
    Connected,
    /// The time.
    Clock {
        /// When the question arrived, nanoseconds of the server's clock.
        heard_ns: u64,
        /// When this was sent.
        answered_ns: u64,
    },
    /// The receivers run.
    Started,
    /// Everything was sent.
    Sent {
        /// The senders' results.
        report: Box<SendReport>,
    },
    /// The measurement is over.
    Done(Box<ServerReport>),
    /// The request is refused.
    Refused {
        /// A sentence for the user.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::super::point::FLOWS_MAX;
    use weir_measure::Message;
    use weir_results::Telemetry;

    use super::super::point::tests::stream;
    use super::super::reports::ReceiveReport;
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
        let done = Response::Done(Box::new(ServerReport {
            received: Some(ReceiveReport { arrivals: 3, ..ReceiveReport::default() }),
            telemetry: Some(Telemetry::default()),
            ..ServerReport::default()
        }));
        assert_eq!(Response::parse(&done.line()), Some(done));
        for nonsense in ["", "{}", "[]", "{\"message\":\"dance\"}", "GET / HTTP/1.1"] {
            assert_eq!((Request::parse(nonsense), Response::parse(nonsense)), (None, None), "{nonsense}");
        }
    }
}
