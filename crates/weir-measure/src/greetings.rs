//! Places for connections whose peers have not introduced themselves.
//!
//! Such a connection costs its peer nothing, so it must not keep out a peer that introduces itself. It has a place
//! apart from those of sessions. A host has few of these places, and the oldest connection makes room for a new one.

use std::io;
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of a server whose peers have not introduced themselves.
#[derive(Debug, Default)]
pub(crate) struct Greetings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    waiting: Vec<Waiting>,
    next_number: u64,
    /// [`Greeting`]s that exist, including those that have lost their place.
    guards: usize,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    host: IpAddr,
    peer: SocketAddr,
    stream: TcpStream,
}

/// The place of one connection; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Greeting {
    of: Arc<Greetings>,
    number: u64,
}

/// A connection that began to wait.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) greeting: Greeting,
    /// The peer whose connection was closed to make room.
    pub(crate) closed: Option<SocketAddr>,
}

impl Greetings {
    /// Gives a connection a place. `None`: too many connections were closed and have not ended yet.
    pub(crate) fn begin(self: &Arc<Self>, stream: &TcpStream, peer: SocketAddr) -> io::Result<Option<Begun>> {
        let stream = stream.try_clone()?;
        let mut state = self.lock();
        if state.guards >= 2 * PLACES_MAX {
            return Ok(None);
        }
        let host = host_of(peer.ip());
        let closed = state.oldest_to_close(host).map(|index| state.waiting.remove(index));
        if let Some(closed) = &closed {
            // Its thread reads the end of the connection. It fails only if the peer has closed it.
            let _ = closed.stream.shutdown(Shutdown::Both);
        }
        let number = state.next_number;
        state.next_number += 1;
        state.guards += 1;
        state.waiting.push(Waiting { number, host, peer, stream });
        let greeting = Greeting { of: Arc::clone(self), number };
        Ok(Some(Begun { greeting, closed: closed.map(|closed| closed.peer) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Frees a place. Returns whether it was taken.
    fn remove(&mut self, number: u64) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.number != number);
        self.waiting.len() < before
    }

    /// Returns the connection to close for a new one of `host`: that host's oldest if it has all its places, or else
    /// the oldest of a host with most places.
    fn oldest_to_close(&self, host: IpAddr) -> Option<usize> {
        let places = |host: IpAddr| self.waiting.iter().filter(|waiting| waiting.host == host).count();
        if places(host) >= PLACES_PER_HOST_MAX {
            return self.waiting.iter().position(|waiting| waiting.host == host);
        }
        if self.waiting.len() < PLACES_MAX {
            return None;
        }
        let most = self.waiting.iter().map(|waiting| places(waiting.host)).max()?;
        self.waiting.iter().position(|waiting| places(waiting.host) == most)
    }
}

impl Greeting {
    /// Frees the place: the peer has introduced itself. Returns `false` if its connection was closed before.
    pub(crate) fn end(&self) -> bool {
        self.of.lock().remove(self.number)
    }
}

impl Drop for Greeting {
    fn drop(&mut self) {
        let mut state = self.of.lock();
        state.guards -= 1;
        state.remove(self.number);
    }
}

/// Returns what counts as one host: an address, or a network of IPv6, whose addresses cost its owner nothing.
fn host_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

/// Connections at a time.
const PLACES_MAX: usize = 32;
/// Connections of one host at a time.
const PLACES_PER_HOST_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Makes connections from these addresses wait. Returns the ports of those that were closed, which are numbers
    /// from 0 in order of arrival.
    fn closed(hosts: &[&str]) -> Vec<u16> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let greetings = Arc::<Greetings>::default();
        let begin = |(number, host): (usize, &&str)| {
            let peer = SocketAddr::new(host.parse().unwrap(), number as u16);
            greetings.begin(&stream, peer).unwrap().unwrap()
        };
        let begun: Vec<_> = hosts.iter().enumerate().map(begin).collect();
        assert!(greetings.lock().waiting.len() <= PLACES_MAX);
        let closed = begun.iter().filter_map(|begun| begun.closed.map(|peer| peer.port())).collect();
        let closed_by_us = |begun: &&Begun| begun.closed.is_some();
        assert_eq!(
            begun.iter().filter(closed_by_us).count(),
            begun.iter().filter(|it| !it.greeting.end()).count()
        );
        drop(begun);
        let state = greetings.lock();
        assert!(state.waiting.is_empty() && state.guards == 0);
        closed
    }

    #[test]
    fn the_oldest_connection_of_a_host_goes_when_its_places_are_full() {
        assert!(closed(&["10.0.0.1"; 8]).is_empty());
        let mut hosts = vec!["10.0.0.9"];
        hosts.extend(["10.0.0.1"; 10]);
        assert_eq!(closed(&hosts), [1, 2]);
        // One network of IPv6 is one host.
        let networks =
            ["fe80::1", "fe80::2", "fe80::3", "fe80::4", "fe80::5", "fe80::6", "fe80::7", "fe80::8"];
        assert_eq!(closed(&[&networks[..], &["fe80::9"]].concat()), [0]);
    }

    #[test]
    fn the_host_with_most_connections_makes_room_for_another_one() {
        let others: Vec<String> = (0..26).map(|number| format!("10.0.1.{number}")).collect();
        let mut hosts = vec!["10.0.0.1"];
        hosts.extend(others.iter().map(String::as_str));
        hosts.extend(["10.0.0.2"; 5]);
        hosts.push("10.0.0.3");
        // 32 wait, and the 33rd takes the place of the first of 10.0.0.2.
        assert_eq!(closed(&hosts), [27]);
    }

    #[test]
    fn connections_that_end_slowly_are_bounded_as_well() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let greetings = Arc::<Greetings>::default();
        let peer = listener.local_addr().unwrap();
        let begun: Vec<_> = (0..100).filter_map(|_| greetings.begin(&stream, peer).unwrap()).collect();
        assert_eq!(begun.len(), 2 * PLACES_MAX);
    }
}
