//! The settings of our engine that `--settings` can change.

use weir_dds::{
    DataReaderQos, DataWriterQos, DomainParticipantQos, PublishMode, PublisherQos, QosProfileError,
    QosProvider, SubscriberQos,
};
use weir_peer_api::settings::Setting;

use super::small::{self, BUFFER, LIMIT, THREADS};
use crate::case::CaseSpec;
use crate::endpoint::EndpointError;

/// As users get the engine.
pub(super) const PLAIN: &[Setting] =
    &[MODE, Setting { value: "", ..PERCENT }, FILE, PROFILE, THREADS, BUFFER, LIMIT];

/// For a link whose rate is known.
pub(super) const LINKS: &[Setting] = &[MODE, PERCENT, FILE, PROFILE, THREADS, BUFFER, LIMIT];

/// For a system with little memory.
pub(super) const SMALL: &[Setting] = &[
    MODE,
    Setting { value: "", ..PERCENT },
    FILE,
    PROFILE,
    small::SMALL[0],
    small::SMALL[1],
    small::SMALL[2],
];

const MODE: Setting = Setting {
    name: PUBLISH_MODE,
    value: "",
    about: "PublishMode of the writers: synchronous, as by itself, or asynchronous, by a thread of theirs",
};

const PERCENT: Setting = Setting {
    name: RATE_PERCENT,
    value: "97",
    about: "ParticipantSettings::rate_max: percent of the rate of a known link; empty: none",
};

const FILE: Setting = Setting {
    name: QOS_FILE,
    value: "",
    about: "QosProvider::from_file: a file with QoS profiles; options of the command go before it; empty: none",
};

const PROFILE: Setting = Setting {
    name: QOS_PROFILE,
    value: "",
    about: "QosProvider::datawriter_qos: the profile for all entities, LIBRARY::PROFILE",
};

/// The file of QoS profiles.
pub const QOS_FILE: &str = "qos_file";
/// The profile in it.
pub const QOS_PROFILE: &str = "qos_profile";
const PUBLISH_MODE: &str = "publish_mode";
const RATE_PERCENT: &str = "rate_percent";

/// The thread that sends.
///
/// # Errors
/// When the setting is none, or does not fit the case.
pub(super) fn publish_mode(case: &CaseSpec) -> Result<PublishMode, EndpointError> {
    match case.settings.get(PUBLISH_MODE).map_or("", String::as_str) {
        "" | "synchronous" => Ok(PublishMode::Synchronous),
        "asynchronous" if case.method.breakdown => Err(EndpointError::Environment(format!(
            "--breakdown follows the thread that writes, and with {PUBLISH_MODE} asynchronous another one sends"
        ))),
        "asynchronous" => Ok(PublishMode::Asynchronous),
        other => Err(EndpointError::Environment(format!(
            "the setting {PUBLISH_MODE} of weir is `{other}`: it should be synchronous or asynchronous"
        ))),
    }
}

/// The rate to the other host, bits per second; `None`: what the path carries.
///
/// # Errors
/// When the setting is no percentage.
pub(super) fn rate_max(case: &CaseSpec) -> Result<Option<u64>, EndpointError> {
    let text = case.settings.get(RATE_PERCENT).map_or("", String::as_str);
    let percent = match text {
        "" => return Ok(None),
        text => text.parse::<u32>().ok().filter(|percent| (1..=100).contains(percent)),
    };
    let Some(percent) = percent else {
        return Err(EndpointError::Environment(format!(
            "the setting {RATE_PERCENT} of weir is `{text}`: it should be a number from 1 to 100, or empty"
        )));
    };
    Ok(case.link().map(|link| link.rate_bps / 100 * u64::from(percent)))
}

/// The QoS profile of a case, or the defaults of the measurement.
pub(super) struct Profile(Option<(QosProvider, String)>);

impl Profile {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// A sentence with file, line and cause; or the profile is missing.
    pub(super) fn read(case: &CaseSpec) -> Result<Self, EndpointError> {
        let setting = |name| case.settings.get(name).map_or("", String::as_str);
        let (file, profile) = (setting(QOS_FILE), setting(QOS_PROFILE));
        if file.is_empty() {
            return Ok(Self(None));
        }
        let of_file = |error: QosProfileError| EndpointError::Environment(error.to_string());
        let provider = QosProvider::from_file(file).map_err(of_file)?;
        if let Err(error) = provider.participant_qos(profile) {
            let known = provider.profiles().collect::<Vec<_>>().join(", ");
            return Err(EndpointError::Environment(format!("{file}: {error}: use one of {known}")));
        }
        Ok(Self(Some((provider, profile.to_owned()))))
    }

    /// Entities are enabled at once: the measurement has no step for that.
    pub(super) fn participant(&self) -> DomainParticipantQos {
        let qos = self.of(|provider, profile| provider.participant_qos(profile));
        qos.unwrap_or_default().autoenable_created_entities(true)
    }

    pub(super) fn publisher(&self, topic: &str) -> PublisherQos {
        let qos = self.of(|provider, profile| provider.publisher_qos(profile, Some(topic)));
        qos.unwrap_or_default().autoenable_created_entities(true)
    }

    pub(super) fn subscriber(&self, topic: &str) -> SubscriberQos {
        let qos = self.of(|provider, profile| provider.subscriber_qos(profile, Some(topic)));
        qos.unwrap_or_default().autoenable_created_entities(true)
    }

    pub(super) fn writer(&self, topic: &str) -> DataWriterQos {
        let qos = self.of(|provider, profile| provider.datawriter_qos(profile, Some(topic)));
        qos.unwrap_or_else(|| DataWriterQos::default().keep_all())
    }

    pub(super) fn reader(&self, topic: &str) -> DataReaderQos {
        let qos = self.of(|provider, profile| provider.datareader_qos(profile, Some(topic)));
        qos.unwrap_or_else(|| DataReaderQos::default().keep_all())
    }

    fn of<Q>(&self, qos: impl Fn(&QosProvider, &str) -> Result<Q, QosProfileError>) -> Option<Q> {
        // The profile exists.
        self.0.as_ref().and_then(|(provider, profile)| qos(provider, profile).ok())
    }
}

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;

    #[test]
    fn a_profile_is_read_from_a_file_and_applies_to_all_entities() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("qos.xml");
        let text = "<dds><qos_library name=\"L\"><qos_profile name=\"P\">\n\
                    <participant_qos><entity_factory><autoenable_created_entities>false\
                    </autoenable_created_entities></entity_factory></participant_qos>\
                    <publisher_qos><partition><name><element>a</element></name></partition></publisher_qos>\n\
                    <datawriter_qos><transport_priority><value>7</value></transport_priority></datawriter_qos>\n\
                    </qos_profile></qos_library></dds>";
        std::fs::write(&file, text).unwrap();
        let of = |file: &str, profile: &str| {
            let case = case("weir", Test::Throughput).with(|case| {
                case.settings.insert(QOS_FILE.to_owned(), file.to_owned());
                case.settings.insert(QOS_PROFILE.to_owned(), profile.to_owned());
            });
            Profile::read(&case).map_err(|error| error.to_string())
        };
        let file = file.display().to_string();
        let profile = of(&file, "L::P").unwrap();
        assert_eq!(profile.writer("t").transport_priority, 7);
        assert_eq!(profile.publisher("t").partition, ["a"]);
        assert!(profile.participant().entity_factory.autoenable_created_entities);
        let check = |file: &str, profile: &str, expected: &str| {
            let error = of(file, profile).err().unwrap();
            assert!(error.contains(expected), "{error}");
        };
        check(&file, "L::Q", "use one of L::P");
        check("/nowhere.xml", "L::P", "/nowhere.xml: cannot be read");
        let none = of("", "").unwrap();
        assert_eq!(none.writer("t"), DataWriterQos::default().keep_all());
        assert_eq!(none.reader("t"), DataReaderQos::default().keep_all());
    }

    #[test]
    fn the_rate_follows_a_known_link() {
        let of = |percent: &str, path: Option<&str>| {
            let case = case("weir-links", Test::Throughput).with(|case| {
                case.settings.insert(RATE_PERCENT.to_owned(), percent.to_owned());
                case.method.path = path.map(str::to_owned);
            });
            rate_max(&case).map_err(|error| error.to_string())
        };
        assert_eq!(of("97", Some("lan100")), Ok(Some(97_000_000)));
        assert_eq!((of("97", None), of("", Some("lan100"))), (Ok(None), Ok(None)));
        for bad in ["0", "101", "-1", "much"] {
            assert!(of(bad, Some("lan100")).unwrap_err().contains("from 1 to 100"));
        }
    }
}
