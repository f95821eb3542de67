//! Static endpoint discovery: peers whose endpoints are known beforehand, from a file.
//!
//! | file | content |
//! |---|---|
//! | `error` | mistakes in a file, with their place |
//! | `file` | the tables of a file, and the values of keys |
//! | `policies` | the keys of policies |
//! | `own` | the entity ids of our own endpoints |

mod error;
mod file;
mod own;
mod policies;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use weir_rtps::static_peers::{StaticEndpoint, StaticPeer, StaticPeers};

pub use error::StaticDiscoveryError;
pub(crate) use own::{Claim, Own};

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The participants of a system and their endpoints, known beforehand from a file (static endpoint discovery).
///
/// Participants find each other as always (SPDP). The endpoints of one whose name
/// ([`ParticipantSettings::name`](crate::ParticipantSettings::name)) is in the file match at once, without waiting for
/// their announcements (SEDP). Participants that are not in the file are discovered dynamically, and our own endpoints
/// are announced to all peers that ask.
///
/// One file can serve all participants: the endpoints of the participant that reads it get the entity ids that the file
/// gives them, and creating one that differs from the file is an error.
///
/// If a peer announces an endpoint differently, its announcement counts:
/// [`DomainParticipant::static_differences`](crate::DomainParticipant::static_differences).
///
/// ```
/// use weir_dds::{ParticipantSettings, StaticDiscovery};
///
/// let system = StaticDiscovery::from_text(
///     "system.toml",
///     r#"
///     [[participant]]
///     name = "arm"
///
///     [[participant.writer]]
///     entity_key = 1
///     topic = "Joints"
///     type = "robot::Joints"
///     keyed = true
///     deadline = "100ms"
///
///     [[participant]]
///     name = "controller"
///
///     [[participant.reader]]
///     entity_key = 1
///     topic = "Joints"
///     type = "robot::Joints"
///     keyed = true
///     reliability = "reliable"
///     "#,
/// )?;
/// let settings = ParticipantSettings::default().name("controller").static_discovery(system);
/// # let _ = settings;
/// # Ok::<(), weir_dds::StaticDiscoveryError>(())
/// ```
///
/// A participant has the keys `name`, `hosts`, `writer` and `reader`. A peer without SEDP cannot show that it receives
/// what is sent to it; it is believed only if all its addresses are in `hosts` or on this host.
///
/// An endpoint has the keys `entity_key` (1 to 0xffffff), `topic`, `type`, `keyed`, and its policies. Those that are
/// absent have the defaults of the specification. Periods are texts such as `"100ms"`, or `"infinite"`.
///
/// | key | values |
/// |---|---|
/// | `reliability` | `best_effort`, `reliable` |
/// | `durability` | `volatile`, `transient_local`, `transient`, `persistent` |
/// | `deadline`, `latency_budget`, `liveliness_lease` | periods |
/// | `liveliness` | `automatic`, `manual_by_participant`, `manual_by_topic` |
/// | `ownership` | `shared`, `exclusive` |
/// | `ownership_strength` | a number; only of writers |
/// | `destination_order` | `by_reception_timestamp`, `by_source_timestamp` |
/// | `access_scope` | `instance`, `topic`, `group` |
/// | `coherent_access`, `ordered_access` | `true`, `false` |
/// | `partition` | a list of names |
/// | `representation` | a list of `xcdr1`, `xcdr2`; not compared if absent |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticDiscovery {
    /// The name of the file in errors.
    file: String,
    participants: Vec<Participant>,
}

/// A participant in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Participant {
    name: String,
    hosts: Vec<Ipv4Addr>,
    endpoints: Vec<Endpoint>,
}

/// An endpoint in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Endpoint {
    /// Where it is, from 1.
    line: usize,
    known: StaticEndpoint,
}

impl StaticDiscovery {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, is longer than 1 MiB, or has a mistake.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, StaticDiscoveryError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let failed =
            |error: std::io::Error| StaticDiscoveryError::of_file(&name, format!("cannot be read: {error}"));
        let len = std::fs::metadata(path).map_err(failed)?.len();
        if len > FILE_BYTES_MAX {
            let text = format!("has {len} bytes: use at most {FILE_BYTES_MAX}");
            return Err(StaticDiscoveryError::of_file(&name, text));
        }
        Self::from_text(&name, &std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Reads the text of a file. `name` is the name of the file in errors.
    ///
    /// # Errors
    /// The text has a mistake.
    pub fn from_text(name: &str, text: &str) -> Result<Self, StaticDiscoveryError> {
        Ok(Self { file: name.to_owned(), participants: file::read(name, text)? })
    }

    /// Returns all participants but the one named `own`.
    pub(crate) fn peers(&self, own: Option<&str>) -> StaticPeers {
        let others = self.participants.iter().filter(|participant| Some(&*participant.name) != own);
        let peer = |it: &Participant| StaticPeer {
            hosts: it.hosts.clone(),
            endpoints: it.endpoints.iter().map(|endpoint| endpoint.known.clone()).collect(),
        };
        Arc::new(others.map(|it| (it.name.clone(), peer(it))).collect::<BTreeMap<_, _>>())
    }

    /// Returns the endpoints of the participant with a name.
    pub(crate) fn own(&self, name: Option<&str>) -> Own {
        let own = self.participants.iter().find(|participant| Some(&*participant.name) == name);
        Own::new(&self.file, own.map_or(&[][..], |participant| &participant.endpoints))
    }
}
