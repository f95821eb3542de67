//! The settings of our engine that `--settings` can change.

use weir_dds::PublishMode;
use weir_peer_api::settings::Setting;

use crate::case::CaseSpec;
use crate::endpoint::EndpointError;

/// As users get the engine.
pub(super) const PLAIN: &[Setting] = &[MODE, Setting { value: "", ..PERCENT }];

/// For a link whose rate is known.
pub(super) const LINKS: &[Setting] = &[MODE, PERCENT];

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

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;

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
