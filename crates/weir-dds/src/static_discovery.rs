//! Static endpoint discovery: peers whose endpoints are known beforehand, from a file.
//!
//! | file | content |
//! |---|---|
//! | `error` | mistakes in a file, with their place |
//! | `file` | the tables of a file, and the values of keys |
//! | `policies` | the keys of policies |
//! | `own` | the entity ids of our own endpoints |

mod error;
pub(crate) mod file;
mod own;
mod policies;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use weir_rtps::limits::Limits;
use weir_rtps::static_peers::{StaticEndpoint, StaticPeer, StaticPeers};

pub use error::StaticDiscoveryError;
pub(crate) use own::{Claim, Own};

/// Is called with a limit, its value, how much is needed, and why.
pub(crate) type Needs<'a> = dyn FnMut(&'static str, usize, usize, &str) + 'a;

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
    /// ```no_run
    /// use weir_dds::StaticDiscovery;
    ///
    /// let system = StaticDiscovery::from_file("system.toml")?;
    /// # Ok::<(), weir_dds::StaticDiscoveryError>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is longer than 1 MiB, or has a mistake.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, StaticDiscoveryError> {
        let (name, text) = read(path.as_ref())?;
        Self::from_text(&name, &text)
    }

    /// Reads the text of a file. `name` is the name of the file in errors.
    ///
    /// ```
    /// use weir_dds::StaticDiscovery;
    ///
    /// let system = StaticDiscovery::from_text("system.toml", "[[participant]]\nname = \"controller\"")?;
    /// # let _ = system;
    /// # Ok::<(), weir_dds::StaticDiscoveryError>(())
    /// ```
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

    /// Checks that a limits table has room for the system. `own`: the name of the participant; `None`: for each.
    pub(crate) fn check(&self, own: Option<&str>, limits: &Limits, need: &mut Needs<'_>) {
        for us in self.participants.iter().filter(|it| own.is_none_or(|own| own == it.name)) {
            let name = &us.name;
            let (writers, readers): (Vec<_>, Vec<_>) =
                us.endpoints.iter().partition(|it| it.known.entity.is_writer());
            need(
                "writers",
                limits.writers,
                writers.len(),
                &format!("{name:?} has {} of them", writers.len()),
            );
            need(
                "readers",
                limits.readers,
                readers.len(),
                &format!("{name:?} has {} of them", readers.len()),
            );
            self.check_peers(Some(name), limits, need);
            for endpoint in &us.endpoints {
                let (topic, is_writer) = (&endpoint.known.topic, endpoint.known.entity.is_writer());
                let is_match =
                    |it: &&Endpoint| it.known.topic == *topic && it.known.entity.is_writer() != is_writer;
                let of_each = self.participants.iter().map(|it| it.endpoints.iter().filter(is_match).count());
                let (count, most) = (of_each.clone().sum(), of_each.max().unwrap_or(0));
                let why = format!("an endpoint of {name:?} of the topic {topic:?} has {count} of them");
                need("matches", limits.endpoint.matches, count, &why);
                // Of one participant, there may be fewer.
                let needed = if most > 1 { most + 1 } else { most };
                let why =
                    format!("an endpoint of {name:?} of the topic {topic:?} has {most} with one participant");
                need("matches", limits.endpoint.matches, needed, &why);
            }
        }
    }

    /// Checks that a limits table has room for all participants but the one named `own`.
    pub(crate) fn check_peers(&self, own: Option<&str>, limits: &Limits, need: &mut Needs<'_>) {
        let others = || self.participants.iter().filter(|it| own != Some(&*it.name));
        let count = others().count();
        let why = match own {
            Some(own) => format!("{count} are beside {own:?}"),
            None => format!("{count} are in the file"),
        };
        need("participants", limits.participants, count, &why);
        for other in others() {
            let (theirs, count) = (&other.name, other.endpoints.len());
            let why = format!("{theirs:?} has {count} of them");
            need("endpoints_per_participant", limits.endpoints_per_participant, count, &why);
            for endpoint in &other.endpoints {
                let topic = &endpoint.known.topic;
                let why =
                    format!("so long are the names of an endpoint of {theirs:?} of the topic {topic:?}");
                need("text_bytes", limits.text_bytes, endpoint.known.texts(), &why);
            }
        }
    }

    /// Returns the name of the file in errors.
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Returns whether there is a participant of a name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.participants.iter().any(|it| it.name == name)
    }

    /// Returns the endpoints of the participant with a name.
    pub(crate) fn own(&self, name: Option<&str>) -> Own {
        let own = self.participants.iter().find(|participant| Some(&*participant.name) == name);
        Own::new(&self.file, own.map_or(&[][..], |participant| &participant.endpoints))
    }
}

/// Returns the name and the text of a file.
pub(crate) fn read(path: &Path) -> Result<(String, String), StaticDiscoveryError> {
    let name = path.display().to_string();
    let failed =
        |error: std::io::Error| StaticDiscoveryError::of_file(&name, format!("cannot be read: {error}"));
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > FILE_BYTES_MAX {
        let text = format!("has {len} bytes: use at most {FILE_BYTES_MAX}");
        return Err(StaticDiscoveryError::of_file(&name, text));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    Ok((name, text))
}
