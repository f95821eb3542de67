//! Limits tables in files, with the lines of their keys, so that errors name the line to change.

use std::collections::BTreeMap;
use std::path::Path;

use toml::de::DeTable;
use weir_rtps::budget::Budget;
use weir_rtps::limits::Limits;
use weir_rtps::qos::History;

use crate::error::{DdsError, Result};
use crate::qos::ResourceLimits;
use crate::settings::ParticipantSettings;
use crate::static_discovery::file::{Source, Table};
use crate::static_discovery::{self, Needs, StaticDiscovery, StaticDiscoveryError};

/// What a participant may hold, from a file: everything is sized before the participant starts.
///
/// ```
/// use weir_dds::{LimitsTable, ParticipantSettings};
///
/// let limits = LimitsTable::from_text(
///     "limits.toml",
///     r#"
///     participants = 4                # remote ones
///     writers = 2
///     readers = 2
///
///     [endpoint]                      # of each writer and each reader
///     samples = 16
///     sample_bytes = 512
///     "#,
/// )?;
/// println!("{} bytes at most", limits.budget().total());
/// let settings = ParticipantSettings::default().limits(limits);
/// # let _ = settings;
/// # Ok::<(), weir_dds::LimitsError>(())
/// ```
///
/// | key | what it limits | default |
/// |---|---|---|
/// | `participants` | remote participants | 8 |
/// | `endpoints_per_participant` | endpoints of one remote participant | 16 |
/// | `text_bytes` | names, partitions, user data of a remote endpoint, in bytes | 512 |
/// | `addresses` | addresses of one kind of a remote endpoint | 4 |
/// | `writers`, `readers` | endpoints of the participant | 4 |
/// | `endpoint.matches` | endpoints matched with one of the participant; with one peer, one less | 8 |
/// | `endpoint.samples` | samples of a writer or a reader | 32 |
/// | `endpoint.instances` | instances of a writer or a reader | 8 |
/// | `endpoint.sample_bytes` | length of a serialized sample, in bytes | 1024 |
/// | `endpoint.early_samples` | samples of a reader behind missing ones, of all matches | 32 |
/// | `endpoint.reassemblies` | samples in fragments that are incomplete, for a reader | 2 |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsTable {
    /// The name of the file in errors.
    file: String,
    limits: Limits,
    /// The lines of the keys in the file.
    lines: BTreeMap<&'static str, usize>,
}

/// A mistake in a limits table, or a limit that is too small.
///
/// The text has the form `FILE:LINE: CAUSE`.
///
/// ```
/// use weir_dds::LimitsTable;
///
/// let error = LimitsTable::from_text("limits.toml", "writers = many").unwrap_err();
/// assert!(error.to_string().starts_with("limits.toml:1: "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LimitsError {
    text: String,
    line: Option<usize>,
}

impl LimitsError {
    /// Returns the line to change, counted from 1; `None` if it is not in the file.
    ///
    /// ```
    /// use weir_dds::LimitsTable;
    ///
    /// let error = LimitsTable::from_text("limits.toml", "\nwriters = \"many\"").unwrap_err();
    /// assert_eq!(error.line(), Some(2));
    /// ```
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl From<StaticDiscoveryError> for LimitsError {
    fn from(error: StaticDiscoveryError) -> Self {
        let (text, line) = error.into_parts();
        Self { text, line }
    }
}

impl From<Limits> for LimitsTable {
    fn from(limits: Limits) -> Self {
        Self { file: "limits".to_owned(), limits, lines: BTreeMap::new() }
    }
}

impl LimitsTable {
    /// Reads a file.
    ///
    /// ```no_run
    /// use weir_dds::LimitsTable;
    ///
    /// let limits = LimitsTable::from_file("limits.toml")?;
    /// # Ok::<(), weir_dds::LimitsError>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is longer than 1 MiB, or has a mistake.
    pub fn from_file(path: impl AsRef<Path>) -> std::result::Result<Self, LimitsError> {
        let (name, text) = static_discovery::read(path.as_ref())?;
        Self::from_text(&name, &text)
    }

    /// Reads the text of a file. `name` is the name of the file in errors. Keys that are absent have the defaults.
    ///
    /// ```
    /// use weir_dds::LimitsTable;
    ///
    /// assert_eq!(LimitsTable::from_text("limits.toml", "writers = 2")?.limits().writers, 2);
    /// # Ok::<(), weir_dds::LimitsError>(())
    /// ```
    ///
    /// # Errors
    /// The text has a mistake.
    pub fn from_text(name: &str, text: &str) -> std::result::Result<Self, LimitsError> {
        let source = Source { name, text };
        let document = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            source.error(at, error.message())
        })?;
        let mut table = Self { file: name.to_owned(), limits: Limits::SMALL, lines: BTreeMap::new() };
        let mut root = Table::new(source, 0, "limits table", document.get_ref());
        let Self { limits, lines, .. } = &mut table;
        OF_PARTICIPANT.iter().try_for_each(|key| key.take(&mut root, lines, limits))?;
        if let Some(item) = root.take("endpoint") {
            let mut table = item.table("table [endpoint]")?;
            OF_ENDPOINT.iter().try_for_each(|key| key.take(&mut table, lines, limits))?;
            table.finish()?;
        }
        root.finish()?;
        Ok(table)
    }

    /// Returns the limits.
    ///
    /// ```
    /// use weir_dds::{Limits, LimitsTable};
    ///
    /// assert_eq!(LimitsTable::from(Limits::SMALL).limits(), &Limits::SMALL);
    /// ```
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the most memory that a participant takes within these limits.
    ///
    /// ```
    /// use weir_dds::{Limits, LimitsTable};
    ///
    /// println!("{} bytes at most", LimitsTable::from(Limits::SMALL).budget().total());
    /// ```
    pub fn budget(&self) -> Budget {
        Budget::new(&self.limits)
    }

    /// Checks that there is room for a participant of a system that is known beforehand. `name`: its name in the file;
    /// `None`: there is room for each of them.
    ///
    /// ```no_run
    /// use weir_dds::{LimitsTable, StaticDiscovery};
    ///
    /// let (limits, system) = (LimitsTable::from_file("limits.toml")?, StaticDiscovery::from_file("system.toml")?);
    /// limits.check_system(&system, Some("controller"))?;
    /// # Ok::<(), weir_dds::LimitsError>(())
    /// ```
    ///
    /// # Errors
    /// The first limit that is too small, with the line to change, or no participant has the name.
    pub fn check_system(
        &self,
        system: &StaticDiscovery,
        name: Option<&str>,
    ) -> std::result::Result<(), LimitsError> {
        if let Some(name) = name.filter(|name| !system.has(name)) {
            let text = format!("{}: there is no participant {name:?}: use a name of the file", system.file());
            return Err(LimitsError { text, line: None });
        }
        self.first_too_small(system, |need| system.check(name, &self.limits, need))
    }

    /// Returns the first limit that is too small for what a check of the system needs.
    fn first_too_small(
        &self,
        system: &StaticDiscovery,
        check: impl FnOnce(&mut Needs<'_>),
    ) -> std::result::Result<(), LimitsError> {
        let mut first = None;
        check(&mut |key, limit, needed, why| {
            if needed > limit && first.is_none() {
                first = Some(self.too_small(key, (limit, needed), &format!("{why} ({})", system.file())));
            }
        });
        first.map_or(Ok(()), Err)
    }

    /// Checks that there is room for what the settings of a participant name.
    pub(crate) fn check_settings(
        &self,
        settings: &ParticipantSettings,
    ) -> std::result::Result<(), LimitsError> {
        self.check_values()?;
        let Some(system) = &settings.static_discovery else { return Ok(()) };
        match settings.name.as_deref().filter(|name| system.has(name)) {
            Some(name) => self.check_system(system, Some(name)),
            // One that is not in the file has only the peers.
            None => self.first_too_small(system, |need| system.check_peers(None, &self.limits, need)),
        }
    }

    /// Checks that limits that were not read from a file are such as a file may have.
    fn check_values(&self) -> std::result::Result<(), LimitsError> {
        let mut limits = self.limits;
        for Key { name, least, most, of } in OF_PARTICIPANT.iter().chain(&OF_ENDPOINT) {
            let value = *of(&mut limits);
            if !(*least as usize..=*most as usize).contains(&value) {
                let text = format!("{}: `{name}` is {value}: use a number from {least} to {most}", self.file);
                return Err(LimitsError { text, line: None });
            }
        }
        Ok(())
    }

    /// Checks that there is room for one more writer or reader. `count`: how many there are.
    pub(crate) fn check_count(&self, key: &'static str, count: usize) -> Result<()> {
        let limit = if key == "writers" { self.limits.writers } else { self.limits.readers };
        if count < limit {
            return Ok(());
        }
        let error = self.too_small(key, (limit, count + 1), "one more is created");
        Err(DdsError::OutOfResources(error.to_string()))
    }

    /// Checks that there is room for what the policies of an endpoint keep.
    pub(crate) fn check_endpoint(
        &self,
        topic: &str,
        (history, resources): (History, ResourceLimits),
        is_keyed: bool,
    ) -> Result<()> {
        let maxima = (resources.max_samples, resources.max_instances);
        self.limits.endpoint.check(history, maxima, is_keyed).map_err(|it| {
            let why = format!("{} {} on the topic {topic:?}", it.why, it.needed);
            DdsError::OutOfResources(self.too_small(it.key, (it.limit, it.needed), &why).to_string())
        })
    }

    fn too_small(&self, key: &'static str, (limit, needed): (usize, usize), why: &str) -> LimitsError {
        let line = self.lines.get(key).copied();
        let file = &self.file;
        let text = match line {
            Some(line) => format!("{file}:{line}: `{key}` is {limit}, too few: {why}: use at least {needed}"),
            None => {
                let is_of_endpoint = OF_ENDPOINT.iter().any(|it| it.name == key);
                let place = if is_of_endpoint { "below [endpoint]" } else { "at the beginning" };
                format!("{file}: `{key}` is {limit}, too few: {why}: add a line `{key} = {needed}` {place}")
            }
        };
        LimitsError { text, line }
    }
}

/// A key of a limits table.
struct Key {
    name: &'static str,
    least: u32,
    most: u32,
    of: fn(&mut Limits) -> &mut usize,
}

impl Key {
    const fn new(name: &'static str, least: u32, most: u32, of: fn(&mut Limits) -> &mut usize) -> Self {
        Self { name, least, most, of }
    }

    /// Reads the value from a file, if it is there.
    fn take(
        &self,
        table: &mut Table<'_>,
        lines: &mut BTreeMap<&'static str, usize>,
        limits: &mut Limits,
    ) -> std::result::Result<(), StaticDiscoveryError> {
        if let Some(item) = table.take(self.name) {
            *(self.of)(limits) = item.integer(self.least, self.most)? as usize;
            lines.insert(self.name, item.line());
        }
        Ok(())
    }
}

/// The keys of the table itself, and their values.
const OF_PARTICIPANT: [Key; 6] = [
    Key::new("participants", 1, 512, |it| &mut it.participants),
    Key::new("endpoints_per_participant", 1, 4096, |it| &mut it.endpoints_per_participant),
    Key::new("text_bytes", 32, 65_536, |it| &mut it.text_bytes),
    Key::new("addresses", 1, 64, |it| &mut it.addresses),
    Key::new("writers", 0, 4096, |it| &mut it.writers),
    Key::new("readers", 0, 4096, |it| &mut it.readers),
];
/// Those of the table `[endpoint]`.
const OF_ENDPOINT: [Key; 6] = [
    Key::new("matches", 1, 1024, |it| &mut it.endpoint.matches),
    Key::new("samples", 1, 1_000_000, |it| &mut it.endpoint.samples),
    Key::new("instances", 1, 1_000_000, |it| &mut it.endpoint.instances),
    Key::new("sample_bytes", 8, 1 << 30, |it| &mut it.endpoint.sample_bytes),
    Key::new("early_samples", 1, 8192, |it| &mut it.endpoint.early_samples),
    Key::new("reassemblies", 1, REASSEMBLIES_MAX, |it| &mut it.endpoint.reassemblies),
];
/// Most incomplete samples in fragments: a reader keeps them in one node of a map, which it reserves.
const REASSEMBLIES_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use weir_rtps::limits::EndpointLimits;

    use super::*;

    fn error(text: &str) -> String {
        LimitsTable::from_text("limits.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn keys_that_are_absent_have_the_defaults() {
        assert_eq!(*LimitsTable::from_text("limits.toml", "").unwrap().limits(), Limits::SMALL);
        let table = LimitsTable::from_text("limits.toml", "writers = 1\n[endpoint]\nsamples = 7\n").unwrap();
        let endpoint = EndpointLimits { samples: 7, ..EndpointLimits::SMALL };
        assert_eq!(*table.limits(), Limits { writers: 1, endpoint, ..Limits::SMALL });
    }

    #[test]
    fn a_mistake_is_reported_with_its_line() {
        assert_eq!(
            error("writers = 1\n\nreaders = -1\n"),
            "limits.toml:3: `readers`: use a number from 0 to 4096"
        );
        assert!(
            error("[endpoint]\nsample = 1\n")
                .starts_with("limits.toml:2: unknown key `sample`: a table [endpoint]")
        );
        assert!(error("endpoint = 1").starts_with("limits.toml:1: `endpoint`: use a table [endpoint]"));
        assert!(error("writers = ").starts_with("limits.toml:1: "));
        assert!(error("[endpoint]\nreassemblies = 9").contains("a number from 1 to 8"));
    }

    const SYSTEM: &str = r#"
        [[participant]]
        name = "arm"
        [[participant.writer]]
        entity_key = 1
        topic = "Joints"
        type = "Joints"
        [[participant.writer]]
        entity_key = 2
        topic = "Forces"
        type = "Forces"
        [[participant]]
        name = "controller"
        [[participant.reader]]
        entity_key = 1
        topic = "Joints"
        type = "Joints"
        partition = ["a partition with a name of more than forty bytes"]
        "#;

    fn check(limits: &str, name: Option<&str>) -> std::result::Result<(), LimitsError> {
        check_in(SYSTEM, limits, name)
    }

    fn check_in(system: &str, limits: &str, name: Option<&str>) -> std::result::Result<(), LimitsError> {
        let system = StaticDiscovery::from_text("system.toml", system).unwrap();
        LimitsTable::from_text("limits.toml", limits).unwrap().check_system(&system, name)
    }

    #[test]
    fn a_limit_that_is_too_small_for_the_system_is_an_error_with_the_line_to_change() {
        assert_eq!(check("", None), Ok(()));
        let error = check("\nwriters = 1", None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "limits.toml:2: `writers` is 1, too few: \"arm\" has 2 of them (system.toml): use at least 2"
        );
        assert_eq!(error.line(), Some(2));
        assert_eq!(check("writers = 1", Some("controller")), Ok(()));
        let error = check("endpoints_per_participant = 1", Some("controller")).unwrap_err();
        assert!(error.to_string().contains("\"arm\" has 2 of them"), "{error}");
        let error = check("text_bytes = 60", Some("arm")).unwrap_err();
        assert!(error.to_string().ends_with("use at least 84"), "{error}");
        assert!(
            check("", Some("leg"))
                .unwrap_err()
                .to_string()
                .starts_with("system.toml: there is no participant")
        );
    }

    #[test]
    fn several_matches_with_one_participant_leave_room_for_another() {
        let second = "[[participant.reader]]\nentity_key = 2\ntopic = \"Joints\"\ntype = \"Joints\"\n";
        let system = format!("{SYSTEM}\n{second}");
        let check = |matches| {
            let limits = format!("text_bytes = 512\n[endpoint]\nmatches = {matches}\n");
            check_in(&system, &limits, Some("arm"))
        };
        let error = check(2).unwrap_err().to_string();
        assert!(error.ends_with("has 2 with one participant (system.toml): use at least 3"), "{error}");
        assert_eq!(check(3), Ok(()));
    }

    #[test]
    fn policies_that_keep_more_than_the_table_allows_are_an_error() {
        let table =
            LimitsTable::from_text("limits.toml", "[endpoint]\nsamples = 8\ninstances = 4\n").unwrap();
        let endless = ResourceLimits::default();
        let text = |result: Result<()>| result.map_err(|error| error.to_string());
        assert_eq!(text(table.check_endpoint("t", (History::KeepLast(2), endless), true)), Ok(()));
        assert_eq!(
            text(table.check_endpoint("t", (History::KeepLast(3), endless), true)),
            Err("limits.toml:2: `samples` is 8, too few: KEEP_LAST keeps 12 on the topic \"t\": \
                 use at least 12"
                .to_owned())
        );
        let few = endless.max_instances(2);
        assert_eq!(text(table.check_endpoint("t", (History::KeepLast(3), few), true)), Ok(()));
        let many = endless.max_samples(9);
        assert!(table.check_endpoint("t", (History::KeepAll, many), false).is_err());
        let from_code = LimitsTable::from(Limits { writers: 1, ..Limits::SMALL });
        assert_eq!(
            text(from_code.check_count("writers", 1)),
            Err("limits: `writers` is 1, too few: one more is created: add a line `writers = 2` at \
                 the beginning"
                .to_owned())
        );
        let error = from_code.check_endpoint("t", (History::KeepLast(5), endless), true).unwrap_err();
        assert!(error.to_string().ends_with("add a line `samples = 40` below [endpoint]"), "{error}");
    }

    #[test]
    fn a_participant_that_is_not_in_the_file_needs_room_for_its_peers() {
        let system = StaticDiscovery::from_text("system.toml", SYSTEM).unwrap();
        let check = |text: &str, name: &str| {
            let settings = ParticipantSettings::default().name(name).static_discovery(system.clone());
            LimitsTable::from_text("limits.toml", text).unwrap().check_settings(&settings)
        };
        assert_eq!(check("", "visitor"), Ok(()));
        assert_eq!(
            check("participants = 1", "visitor").unwrap_err().to_string(),
            "limits.toml:1: `participants` is 1, too few: 2 are in the file (system.toml): use at least 2"
        );
        assert_eq!(check("participants = 1", "arm"), Ok(()));
        let error = check("endpoints_per_participant = 1", "visitor").unwrap_err().to_string();
        assert!(error.contains("\"arm\" has 2 of them"), "{error}");
        assert!(check("text_bytes = 60", "visitor").is_err());
    }

    #[test]
    fn limits_of_a_program_are_checked_as_those_of_a_file() {
        let check =
            |limits: Limits| LimitsTable::from(limits).check_settings(&ParticipantSettings::default());
        assert_eq!(check(Limits::SMALL), Ok(()));
        let of_endpoint = |endpoint| Limits { endpoint, ..Limits::SMALL };
        for (limits, text) in [
            (
                Limits { participants: 0, ..Limits::SMALL },
                "limits: `participants` is 0: use a number from 1 to 512",
            ),
            (
                of_endpoint(EndpointLimits { reassemblies: 9, ..EndpointLimits::SMALL }),
                "limits: `reassemblies` is 9: use a number from 1 to 8",
            ),
            (
                of_endpoint(EndpointLimits { samples: 1_000_001, ..EndpointLimits::SMALL }),
                "limits: `samples` is 1000001: use a number from 1 to 1000000",
            ),
        ] {
            assert_eq!(check(limits).unwrap_err().to_string(), text);
        }
        assert!(check(of_endpoint(EndpointLimits { matches: usize::MAX, ..EndpointLimits::SMALL })).is_err());
    }
}
