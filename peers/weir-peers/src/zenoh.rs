//! Zenoh, peer to peer over one link, without router and scouting.
//!
//! An end that only reads listens, and an end that only writes connects. If both ends do both, the one with the
//! lower address listens.

use std::fmt::Display;
use std::net::{SocketAddrV4, TcpListener, UdpSocket};
use std::sync::{Arc, OnceLock};

use weir_peer_api::{
    Abilities, Calls, Header, Matches, Node, NodeOptions, OnSample, Peer, PeerError, Setting, Writer, Written,
};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait as _};

pub(crate) const UDP: Peer = Peer {
    name: "zenoh-udp",
    about: "Zenoh, peer to peer over UDP: no DDS, and lost samples are not sent again",
    settings: SETTINGS,
    abilities: Abilities { is_dds: false, reliable: false, many: false, ..Abilities::DDS },
    calls: Calls {
        open: |options, on_sample| open(Link::Udp, options, on_sample),
        participant: None,
        version,
    },
};

pub(crate) const TCP: Peer = Peer {
    name: "zenoh-tcp",
    about: "Zenoh, peer to peer over TCP: no DDS, and not UDP",
    settings: SETTINGS,
    abilities: Abilities { is_dds: false, best_effort: false, many: false, ..Abilities::DDS },
    calls: Calls {
        open: |options, on_sample| open(Link::Tcp, options, on_sample),
        participant: None,
        version,
    },
};

const SETTINGS: &[Setting] = &[
    Setting::new(
        "express",
        "",
        "express of the publisher: messages are sent at once, uncoalesced; empty: true for pings, false for streams",
    ),
    Setting::new(
        "lowlatency",
        "false",
        "transport/unicast/lowlatency: another transport, without batches and fragments",
    ),
];

fn version() -> String {
    "1.10.2".to_owned()
}

#[derive(Clone, Copy, Debug)]
enum Link {
    Udp,
    Tcp,
}

impl Link {
    fn endpoint(self, address: SocketAddrV4) -> String {
        match self {
            Self::Udp => format!("udp/{address}"),
            Self::Tcp => format!("tcp/{address}"),
        }
    }

    /// Finds an address with a free port: Zenoh does not report the port that it chose.
    fn free_address(self, options: &NodeOptions) -> Result<SocketAddrV4, std::io::Error> {
        let any = SocketAddrV4::new(options.address, 0);
        let bound = match self {
            Self::Udp => UdpSocket::bind(any)?.local_addr()?,
            Self::Tcp => TcpListener::bind(any)?.local_addr()?,
        };
        Ok(SocketAddrV4::new(options.address, bound.port()))
    }
}

fn failed(error: impl Display) -> PeerError {
    PeerError::Engine(error.to_string())
}

/// Finds an address only: [`Node::join`] opens the session, when the other end's address is known.
fn open(link: Link, options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    let address = link.free_address(options).map_err(failed)?;
    Ok(Box::new(ZenohNode {
        link,
        address,
        options: options.clone(),
        on_sample: Some(on_sample),
        writer: Arc::default(),
        subscriber: None,
        session: None,
    }))
}

fn config(options: &NodeOptions, listen: &[String], connect: &[String]) -> Result<Config, PeerError> {
    let mut config = Config::default();
    let is_low_latency = options.setting("lowlatency")?.unwrap_or(false);
    let mut set = |key: &str, value: String| config.insert_json5(key, &value).map_err(failed);
    set("mode", "\"peer\"".to_owned())?;
    set("scouting/multicast/enabled", "false".to_owned())?;
    set("scouting/gossip/enabled", "false".to_owned())?;
    set("listen/endpoints", format!("{listen:?}"))?;
    set("connect/endpoints", format!("{connect:?}"))?;
    // Both ends start at once: the listening end may be later.
    set("connect/retry", "{ period_init_ms: 20, period_max_ms: 100, period_increase_factor: 2 }".to_owned())?;
    if is_low_latency {
        set("transport/unicast/qos/enabled", "false".to_owned())?;
        set("transport/unicast/lowlatency", "true".to_owned())?;
    }
    Ok(config)
}

#[derive(Default)]
struct ZenohWriter {
    publisher: OnceLock<Publisher<'static>>,
}

impl Writer for ZenohWriter {
    fn write(&self, header: &Header, payload: &[u8]) -> Result<Written, PeerError> {
        let Some(publisher) = self.publisher.get() else {
            return Err(PeerError::Engine("no publisher".to_owned()));
        };
        // Zenoh keeps the message.
        let message = [&header.to_bytes(payload.len())[..], payload].concat();
        publisher.put(message).wait().map_err(failed)?;
        Ok(Written::Taken)
    }
}

struct ZenohNode {
    link: Link,
    address: SocketAddrV4,
    options: NodeOptions,
    /// `None` once the subscriber has it.
    on_sample: Option<OnSample>,
    writer: Arc<ZenohWriter>,
    subscriber: Option<Subscriber<()>>,
    session: Option<Session>,
}

impl ZenohNode {
    fn subscribe(&mut self, session: &Session) -> Result<(), PeerError> {
        let (Some(topic), Some(on_sample)) = (self.options.read_topic.clone(), self.on_sample.take()) else {
            return Ok(());
        };
        let writer = Arc::clone(&self.writer);
        let pass_on = move |sample: Sample| {
            if let Some((header, payload)) = Header::split(&sample.payload().to_bytes()) {
                on_sample(&*writer, &header, payload);
            }
        };
        self.subscriber = Some(session.declare_subscriber(topic).callback(pass_on).wait().map_err(failed)?);
        Ok(())
    }

    fn publish(&self, session: &Session) -> Result<(), PeerError> {
        let Some(topic) = self.options.write_topic.clone() else { return Ok(()) };
        // A ping must not wait to be sent with others.
        let is_express = self.options.setting("express")?.unwrap_or(!self.options.keeps_all);
        let publisher = session
            .declare_publisher(topic)
            .congestion_control(CongestionControl::Block)
            .express(is_express)
            .wait()
            .map_err(failed)?;
        let _ = self.writer.publisher.set(publisher);
        Ok(())
    }
}

impl Node for ZenohNode {
    fn writer(&self) -> &dyn Writer {
        &*self.writer
    }

    fn address(&self) -> Option<SocketAddrV4> {
        Some(self.address)
    }

    fn join(&mut self, peer: Option<SocketAddrV4>) -> Result<(), PeerError> {
        let peer = peer.ok_or_else(|| PeerError::Engine("the other end has no address".to_owned()))?;
        let listens = match (&self.options.read_topic, &self.options.write_topic) {
            (Some(_), Some(_)) => self.address < peer,
            (reads, _) => reads.is_some(),
        };
        let (own, other) = (vec![self.link.endpoint(self.address)], vec![self.link.endpoint(peer)]);
        let config =
            if listens { config(&self.options, &own, &[])? } else { config(&self.options, &[], &other)? };
        let session = zenoh::open(config).wait().map_err(failed)?;
        self.subscribe(&session)?;
        self.publish(&session)?;
        self.session = Some(session);
        Ok(())
    }

    fn matches(&self) -> Matches {
        let is_matched = |publisher: &Publisher<'_>| {
            publisher.matching_status().wait().is_ok_and(|status| status.matching())
        };
        let is_connected =
            self.session.as_ref().is_some_and(|session| session.info().peers_zid().wait().count() > 0);
        Matches {
            readers: u32::from(self.writer.publisher.get().is_some_and(is_matched)),
            // The session does not report who writes the topic; there is only one other end.
            writers: u32::from(is_connected),
        }
    }

    // TCP loses nothing, and over UDP there are no acknowledgments.
}

impl Drop for ZenohNode {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.close().wait();
        }
    }
}
