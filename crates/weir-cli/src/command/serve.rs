//! `weir serve`: the runs of a folder in a browser, read-only.

mod http;
mod site;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::args::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use site::Site;

/// Connections served at the same time; further ones are refused.
const CONNECTIONS_MAX: usize = 8;
/// How often Ctrl-C is looked for.
const INTERRUPTED_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

pub(crate) fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    let token = token(args)?;
    if token.is_none() && !args.bind.is_loopback() {
        return Err(Failure::usage(anyhow!(
            "--bind {}: another address than loopback needs --token-file",
            args.bind
        )));
    }
    if !args.folder.is_dir() {
        return Err(Failure::usage(anyhow!(
            "{} is not a folder of results: measure with `weir bench`, or name the folder",
            args.folder.display()
        )));
    }
    let interrupted = signals::watch()?;
    let address = SocketAddr::new(args.bind, args.port);
    let listener = TcpListener::bind(address)
        .with_context(|| format!("cannot listen on {address}: choose another port with --port"))
        .map_err(Failure::environment)?;
    listener.set_nonblocking(true).map_err(Failure::environment)?;
    let address = listener.local_addr().map_err(Failure::environment)?;
    output::data(&format!("http://{address}/\n"))?;
    let site = Arc::new(Site::new(args.folder.clone(), token));
    let connections = Arc::new(AtomicUsize::new(0));
    while !interrupted.load(Ordering::Relaxed) {
        let mut readable = [PollFd::new(&listener, PollFlags::IN)];
        if !matches!(poll(&mut readable, Some(&INTERRUPTED_EVERY)), Ok(1..)) {
            continue;
        }
        match listener.accept() {
            Ok((stream, _)) => serve(stream, &site, &connections),
            // Too many open files, or a connection that is gone: others may still be served.
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(_) => {}
        }
    }
    Ok(Exit::Interrupted)
}

/// Serves a connection in a thread of its own, if there are not too many.
fn serve(stream: TcpStream, site: &Arc<Site>, connections: &Arc<AtomicUsize>) {
    let one = Connection::count(connections);
    if one.0.load(Ordering::Relaxed) > CONNECTIONS_MAX {
        return;
    }
    let site = Arc::clone(site);
    let spawned = std::thread::Builder::new().name("weir-serve".into()).spawn(move || {
        let _one = one;
        // A client that is gone or too slow gets no more.
        _ = http::serve(stream, |request| site.respond(request));
    });
    // Without threads there is no service; the client sees a closed connection.
    drop(spawned);
}

/// Counts a connection while it lives.
struct Connection(Arc<AtomicUsize>);

impl Connection {
    fn count(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(connections))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn token(args: &ServeArgs) -> Result<Option<String>, Failure> {
    let Some(path) = &args.token_file else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read --token-file {}", path.display()))
        .map_err(Failure::usage)?;
    let token = text.trim();
    let is_plain = token.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_.~".contains(&it));
    if token.len() < 16 || !is_plain {
        return Err(Failure::usage(anyhow!(
            "--token-file {}: a token has at least 16 letters, digits, or characters of `-_.~`",
            path.display()
        )));
    }
    Ok(Some(token.to_owned()))
}
