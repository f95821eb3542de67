//! The way into a domain (DDS 1.4 §2.2.2.2.1).

use std::marker::PhantomData;
use std::net::SocketAddrV4;
use std::sync::Arc;

use weir_cdr::DdsType;
use weir_wire::{Guid, GuidPrefix};

use crate::driver::receive_counters::ReceiveCounters;
use crate::driver::shared::Driver;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::publisher::Publisher;
use crate::settings::ParticipantSettings;
use crate::subscriber::Subscriber;
use crate::topic::Topic;

/// Longest topic name, in bytes.
const TOPIC_NAME_MAX: usize = 256;

/// A member of a domain: it is found by the others and finds them, and its writers and readers with them.
///
/// A handle: clones mean the same participant. It leaves the domain when the last handle to it or to one of its
/// entities is dropped.
///
/// ```no_run
/// use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
///
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "final")]
/// struct Greeting {
///     text: String,
/// }
///
/// let settings = ParticipantSettings::from_environment()?.interface("lo");
/// let participant = DomainParticipant::new(0, settings)?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// let writer = participant.create_publisher().create_datawriter(&topic, Default::default())?;
/// writer.write(&Greeting { text: "hello".into() })?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Clone)]
pub struct DomainParticipant {
    handle: Arc<Handle>,
}

impl DomainParticipant {
    /// Joins a domain.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`] for a domain id over 232 or an interface that is not there,
    /// [`DdsError::OutOfResources`] when all participant ids of the host are taken, [`DdsError::Network`] when
    /// sockets or threads cannot be made.
    pub fn new(domain_id: u32, settings: ParticipantSettings) -> Result<Self> {
        let driver = Driver::start(domain_id, &settings)?;
        Ok(Self { handle: Arc::new(Handle { driver }) })
    }

    /// A topic: a name, and the type of its samples.
    ///
    /// # Errors
    /// [`DdsError::BadParameter`] for a name that is empty or longer than 256 bytes.
    pub fn create_topic<T: DdsType>(&self, name: &str) -> Result<Topic<T>> {
        if name.is_empty() || name.len() > TOPIC_NAME_MAX || name.contains('\0') {
            let text = format!("{name:?} is no topic name: it should have 1 to {TOPIC_NAME_MAX} bytes");
            return Err(DdsError::BadParameter(text));
        }
        Ok(Topic { name: Arc::from(name), sample: PhantomData })
    }

    /// Makes writers.
    pub fn create_publisher(&self) -> Publisher {
        Publisher { handle: Arc::clone(&self.handle) }
    }

    /// Makes readers.
    pub fn create_subscriber(&self) -> Subscriber {
        Subscriber { handle: Arc::clone(&self.handle) }
    }

    /// Says that the application is alive, and with it all MANUAL_BY_PARTICIPANT writers of the participant.
    pub fn assert_liveliness(&self) {
        self.handle.driver.with_discovery(|core, now| core.assert_liveliness(now));
    }

    /// The domain.
    pub fn domain_id(&self) -> u32 {
        self.handle.driver.domain_id
    }

    /// What identifies the participant.
    pub fn guid_prefix(&self) -> GuidPrefix {
        self.handle.driver.prefix
    }

    /// Bytes that the socket for user data was granted for receiving, as the kernel charges them; it may be
    /// less than was asked for (`sysctl net.core.rmem_max`).
    pub fn granted_receive_buffer(&self) -> usize {
        self.handle.driver.channel.socket.granted_recv_buffer()
    }

    /// Bytes that the socket for user data was granted for sending.
    pub fn granted_send_buffer(&self) -> usize {
        self.handle.driver.channel.socket.granted_send_buffer()
    }

    /// Where user data is received.
    pub fn user_address(&self) -> SocketAddrV4 {
        self.handle.driver.channel.socket.local_addr()
    }

    /// Datagrams for this participant that the kernel dropped because the socket buffer was full.
    pub fn receive_drops(&self) -> u32 {
        let channel = &self.handle.driver.channel;
        let of = |socket: &weir_udp::UdpSocket| socket.kernel_drops().unwrap_or(0);
        let by_multicast = channel.groups.sockets().iter().map(|socket| of(socket)).sum::<u32>();
        of(&channel.socket).wrapping_add(by_multicast)
    }

    /// What was counted about received user traffic.
    pub fn receive_counters(&self) -> ReceiveCounters {
        self.handle.driver.channel.counters()
    }
}

impl std::fmt::Debug for DomainParticipant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let guid = Guid::new(self.guid_prefix(), weir_wire::EntityId::PARTICIPANT);
        write!(f, "DomainParticipant({guid} in domain {})", self.domain_id())
    }
}
