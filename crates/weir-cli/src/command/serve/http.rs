//! A connection: one bounded request, one response (RFC 9112, without bodies of requests and persistence).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The most bytes of a request line and its headers.
const REQUEST_BYTES_MAX: usize = 8_192;
const HEADERS_MAX: usize = 64;
/// A request has to arrive in this time, and a response to be taken.
const REQUEST_TIME: Duration = Duration::from_secs(5);
const RESPONSE_TIME: Duration = Duration::from_secs(30);

/// A request of a browser or program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path, without the query.
    pub(super) path: String,
    /// What follows the question mark.
    pub(super) query: String,
    pub(super) host: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) cookie: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) body: String,
    /// Further lines of the head, each ending in CR LF.
    pub(super) headers: String,
}

impl Response {
    pub(super) fn html(body: String) -> Self {
        Self { status: "200 OK", content_type: "text/html; charset=utf-8", body, headers: String::new() }
    }

    pub(super) fn plain(status: &'static str, text: &str) -> Self {
        let (content_type, body) = ("text/plain; charset=utf-8", format!("{text}\n"));
        Self { status, content_type, body, headers: String::new() }
    }

    fn head(&self) -> String {
        format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'\r\n{}\r\n",
            self.status,
            self.content_type,
            self.body.len(),
            self.headers
        )
    }
}

/// Reads a request, and writes the answer to it.
pub(super) fn serve(mut stream: TcpStream, respond: impl FnOnce(&Request) -> Response) -> io::Result<()> {
    // Accepted sockets do not inherit this everywhere.
    stream.set_nonblocking(false)?;
    let (response, is_head) = match read(&mut stream)? {
        Ok(request) => (respond(&request), request.method == "HEAD"),
        Err(refused) => (refused, false),
    };
    let deadline = Instant::now() + RESPONSE_TIME;
    write(&mut stream, response.head().as_bytes(), deadline)?;
    if !is_head {
        write(&mut stream, response.body.as_bytes(), deadline)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // What is left unread would make the system reset the connection before the client has read the answer.
    let mut rest = [0; 1024];
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    for _ in 0..16 {
        if stream.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

fn read(stream: &mut TcpStream) -> io::Result<Result<Request, Response>> {
    let deadline = Instant::now() + REQUEST_TIME;
    let mut bytes = Vec::new();
    loop {
        match parse(&bytes) {
            Parsed::Request(request) => return Ok(Ok(request)),
            Parsed::Refused(response) => return Ok(Err(response)),
            Parsed::Incomplete => {}
        }
        stream.set_read_timeout(Some(left(deadline)?))?;
        let mut more = [0; 1024];
        match stream.read(&mut more)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&more[..count]),
        }
    }
}

fn write(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => bytes = &bytes[count..],
        }
    }
    Ok(())
}

/// The time left; none is an error.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Incomplete,
    Request(Request),
    Refused(Response),
}

fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let too_long = || Parsed::Refused(Response::plain("431 Request Header Fields Too Large", "too long"));
    match parsed.parse(bytes) {
        Ok(httparse::Status::Partial) if bytes.len() >= REQUEST_BYTES_MAX => return too_long(),
        Ok(httparse::Status::Partial) => return Parsed::Incomplete,
        Err(httparse::Error::TooManyHeaders) => return too_long(),
        Err(_) => return Parsed::Refused(Response::plain("400 Bad Request", "not a request")),
        Ok(httparse::Status::Complete(_)) => {}
    }
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| {
        let found = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::to_owned)
    };
    Parsed::Request(Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        host: header("host"),
        authorization: header("authorization"),
        cookie: header("cookie"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_in_any_pieces() {
        let text = b"GET /run/3f?token=a HTTP/1.1\r\nHost: localhost:7480\r\nCookie: weir_token=b\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), Parsed::Incomplete, "{end}");
        }
        let Parsed::Request(request) = parse(text) else { panic!() };
        assert_eq!((request.path.as_str(), request.query.as_str()), ("/run/3f", "token=a"));
        assert_eq!(request.host.as_deref(), Some("localhost:7480"));
        assert_eq!((request.cookie.as_deref(), request.authorization), (Some("weir_token=b"), None));
    }

    #[test]
    fn what_is_too_long_or_not_a_request_is_refused() {
        let status = |bytes: &[u8]| match parse(bytes) {
            Parsed::Refused(response) => response.status,
            other => panic!("{other:?}"),
        };
        let long = format!("GET /{} HTTP/1.1\r\n", "a".repeat(REQUEST_BYTES_MAX));
        assert!(status(long.as_bytes()).starts_with("431"));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert!(status(many.as_bytes()).starts_with("431"));
        assert!(status(b"\x16\x03\x01\x02\x00").starts_with("400"));
    }
}
