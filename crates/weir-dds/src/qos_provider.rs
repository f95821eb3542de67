//! QoS profiles in XML files (OMG DDS-XML 1.0, building block QoS).
//!
//! | file | content |
//! |---|---|
//! | `error` | mistakes in a file, with their place |
//! | `document` | libraries, profiles and their elements; inheritance and topic filters |
//! | `policies` | the elements of policies |
//! | `values` | durations, limits, numbers and bytes |

mod document;
mod error;
mod policies;
mod values;

use std::path::{Path, PathBuf};

use self::document::Document;
pub use self::error::QosProfileError;
use self::policies::Entity;
use crate::group_qos::{PublisherQos, SubscriberQos};
use crate::qos::{DataReaderQos, DataWriterQos, DomainParticipantQos, TopicQos};

/// The variable that names the files of [`QosProvider::from_environment`].
const VARIABLE: &str = "WEIR_QOS_FILES";
/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// QoS from profiles in XML files (OMG DDS-XML 1.0, building block QoS).
///
/// A profile is named `LIBRARY::PROFILE`. It inherits from the profile named in `base_name`. Of its elements for a kind
/// of entity, the first one counts whose `topic_filter`, a pattern as in `fnmatch(3)`, is that of the topic; one
/// without a filter fits all topics.
///
/// Elements that are specific to other engines are skipped: see [`QosProvider::warnings`]. Everything else that is
/// unknown is an error with its line.
///
/// ```
/// use weir_dds::{History, QosProvider};
///
/// let provider = QosProvider::from_text(
///     "robot.xml",
///     r#"<dds>
///          <qos_library name="Robot">
///            <qos_profile name="State">
///              <datawriter_qos>
///                <history><kind>KEEP_LAST_HISTORY_QOS</kind><depth>1</depth></history>
///              </datawriter_qos>
///              <datawriter_qos topic_filter="Log*">
///                <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
///              </datawriter_qos>
///            </qos_profile>
///            <qos_profile name="Logs" base_name="State">
///              <datawriter_qos topic_filter="Log*">
///                <history><kind>KEEP_ALL_HISTORY_QOS</kind></history>
///              </datawriter_qos>
///            </qos_profile>
///          </qos_library>
///        </dds>"#,
/// )?;
/// assert_eq!(provider.datawriter_qos("Robot::Logs", Some("LogLines"))?.history, History::KeepAll);
/// assert_eq!(provider.datawriter_qos("Robot::Logs", Some("Pose"))?.history, History::KeepLast(1));
/// # Ok::<(), weir_dds::QosProfileError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct QosProvider {
    document: Document,
}

impl QosProvider {
    /// Reads a file.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// let provider = QosProvider::from_file("robot.xml")?;
    /// for warning in provider.warnings() {
    ///     eprintln!("{warning}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The file cannot be read, is longer than 1 MiB, or has a mistake.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, QosProfileError> {
        Self::from_files([path])
    }

    /// Reads several files. Profiles may inherit from those of earlier files.
    ///
    /// ```no_run
    /// use weir_dds::QosProvider;
    ///
    /// let provider = QosProvider::from_files(["common.xml", "robot.xml"])?;
    /// # Ok::<(), weir_dds::QosProfileError>(())
    /// ```
    ///
    /// # Errors
    /// As [`QosProvider::from_file`].
    pub fn from_files(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, QosProfileError> {
        let mut provider = Self::default();
        for path in paths {
            let path = path.as_ref();
            provider.document.add(&path.display().to_string(), &read(path)?)?;
        }
        provider.document.check()?;
        Ok(provider)
    }

    /// Reads the text of a file. `name` is the name of the file in errors.
    ///
    /// ```
    /// use weir_dds::QosProvider;
    ///
    /// let text = r#"<dds><qos_library name="L"><qos_profile name="P"/></qos_library></dds>"#;
    /// let provider = QosProvider::from_text("robot.xml", text)?;
    /// assert_eq!(provider.profiles().collect::<Vec<_>>(), ["L::P"]);
    /// # Ok::<(), weir_dds::QosProfileError>(())
    /// ```
    ///
    /// # Errors
    /// The text has a mistake.
    pub fn from_text(name: &str, text: &str) -> Result<Self, QosProfileError> {
        let mut provider = Self::default();
        provider.document.add(name, text)?;
        provider.document.check()?;
        Ok(provider)
    }

    /// Reads the files named in the environment variable `WEIR_QOS_FILES`, separated by `:`. Without the variable,
    /// there are no profiles.
    ///
    /// ```
    /// use weir_dds::QosProvider;
    ///
    /// let provider = QosProvider::from_environment()?;
    /// for profile in provider.profiles() {
    ///     println!("{profile}");
    /// }
    /// # Ok::<(), weir_dds::QosProfileError>(())
    /// ```
    ///
    /// # Errors
    /// As [`QosProvider::from_file`].
    pub fn from_environment() -> Result<Self, QosProfileError> {
        let paths = std::env::var_os(VARIABLE).unwrap_or_default();
        Self::from_files(std::env::split_paths(&paths).filter(|path| *path != PathBuf::new()))
    }

    /// Returns the names of all profiles, `LIBRARY::PROFILE`, in the order of the files.
    ///
    /// ```no_run
    /// use weir_dds::QosProvider;
    ///
    /// QosProvider::from_file("robot.xml")?.profiles().for_each(|profile| println!("{profile}"));
    /// # Ok::<(), weir_dds::QosProfileError>(())
    /// ```
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.document.profiles()
    }

    /// Returns what was skipped, each with file and line: elements that are specific to other engines.
    ///
    /// ```no_run
    /// use weir_dds::QosProvider;
    ///
    /// QosProvider::from_file("robot.xml")?.warnings().iter().for_each(|skipped| eprintln!("{skipped}"));
    /// # Ok::<(), weir_dds::QosProfileError>(())
    /// ```
    pub fn warnings(&self) -> &[String] {
        self.document.warnings()
    }

    /// Returns the QoS of a writer. `topic`: the name that filters are compared with; without one, only elements
    /// without a filter count.
    ///
    /// It starts from the defaults of DDS. The partitions are those of the profile's `publisher_qos`, so that they
    /// apply to writers of any publisher. [`QosProvider::publisher_qos`] has its other policies.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// let publisher = participant.create_publisher()?;
    /// publisher.set_default_datawriter_qos(provider.datawriter_qos("Robot::State", Some("Pose"))?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn datawriter_qos(
        &self,
        profile: &str,
        topic: Option<&str>,
    ) -> Result<DataWriterQos, QosProfileError> {
        let group = self.document.resolve(profile, Entity::Publisher, topic)?;
        let mut draft = self.document.resolve(profile, Entity::DataWriter, topic)?;
        draft.qos.partition = group.qos.partition;
        Ok(DataWriterQos::from(draft))
    }

    /// Returns the QoS of a reader. `topic` is as for [`QosProvider::datawriter_qos`].
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// let subscriber = participant.create_subscriber()?;
    /// subscriber.set_default_datareader_qos(provider.datareader_qos("Robot::State", Some("Pose"))?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn datareader_qos(
        &self,
        profile: &str,
        topic: Option<&str>,
    ) -> Result<DataReaderQos, QosProfileError> {
        let group = self.document.resolve(profile, Entity::Subscriber, topic)?;
        let mut draft = self.document.resolve(profile, Entity::DataReader, topic)?;
        draft.qos.partition = group.qos.partition;
        Ok(DataReaderQos::from(draft))
    }

    /// Returns the QoS of a topic. `topic` is as for [`QosProvider::datawriter_qos`].
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// participant.set_default_topic_qos(provider.topic_qos("Robot::State", None)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn topic_qos(&self, profile: &str, topic: Option<&str>) -> Result<TopicQos, QosProfileError> {
        self.document.resolve(profile, Entity::Topic, topic).map(TopicQos::from)
    }

    /// Returns the QoS of a participant.
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// participant.set_qos(provider.participant_qos("Robot::State")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn participant_qos(&self, profile: &str) -> Result<DomainParticipantQos, QosProfileError> {
        let draft = self.document.resolve(profile, Entity::Participant, None)?;
        let qos = DomainParticipantQos::default().user_data(draft.qos.user_data);
        Ok(qos.autoenable_created_entities(draft.autoenable))
    }

    /// Returns the QoS of a publisher. `topic` is as for [`QosProvider::datawriter_qos`].
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(participant: &DomainParticipant, provider: &QosProvider) -> Result<(), Box<dyn std::error::Error>> {
    /// let publisher = participant.create_publisher_with_qos(provider.publisher_qos("Robot::State", None)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn publisher_qos(&self, profile: &str, topic: Option<&str>) -> Result<PublisherQos, QosProfileError> {
        let draft = self.document.resolve(profile, Entity::Publisher, topic)?;
        let qos = PublisherQos::default().presentation(draft.qos.presentation).partition(draft.qos.partition);
        Ok(qos.group_data(draft.qos.group_data).autoenable_created_entities(draft.autoenable))
    }

    /// Returns the QoS of a subscriber. `topic` is as for [`QosProvider::datawriter_qos`].
    ///
    /// ```no_run
    /// # use weir_dds::{DomainParticipant, QosProvider};
    /// # fn f(provider: &QosProvider, participant: &DomainParticipant) -> Result<(), Box<dyn std::error::Error>> {
    /// participant.set_default_subscriber_qos(provider.subscriber_qos("Robot::State", None)?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such profile.
    pub fn subscriber_qos(
        &self,
        profile: &str,
        topic: Option<&str>,
    ) -> Result<SubscriberQos, QosProfileError> {
        let draft = self.document.resolve(profile, Entity::Subscriber, topic)?;
        let qos =
            SubscriberQos::default().presentation(draft.qos.presentation).partition(draft.qos.partition);
        Ok(qos.group_data(draft.qos.group_data).autoenable_created_entities(draft.autoenable))
    }
}

fn read(path: &Path) -> Result<String, QosProfileError> {
    let name = path.display();
    let failed = |error: std::io::Error| QosProfileError::of_file(format!("{name}: cannot be read: {error}"));
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > FILE_BYTES_MAX {
        let text = format!("{name}: has {len} bytes: QoS profiles have at most {FILE_BYTES_MAX}");
        return Err(QosProfileError::of_file(text));
    }
    std::fs::read_to_string(path).map_err(failed)
}
