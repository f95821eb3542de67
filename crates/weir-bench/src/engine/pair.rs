//! Two engines in one case: publishers of one and subscribers of the other, such as `weir:cyclonedds`.

use std::sync::Mutex;

use weir_peer_api::settings::Setting;

use super::Engines;
use crate::case::CaseSpec;
use crate::endpoint::{Capabilities, EndpointError, Engine, Pinger, Ponger, Publisher, Subscriber};

/// An engine that publishes, and one that subscribes. Both speak RTPS.
pub(super) struct Pair {
    name: &'static str,
    publisher: &'static dyn Engine,
    subscriber: &'static dyn Engine,
    settings: &'static [Setting],
}

/// The engines of `PUBLISHER:SUBSCRIBER`; `None`: the name is not of this form.
pub(super) fn parts(name: &str) -> Option<(&str, &str)> {
    name.split_once(SEPARATOR)
}

/// The pair of this name, if `engines` has both, and both speak RTPS.
///
/// Pairs are not in the registry, because there are so many. One that was looked up stays in memory until the process
/// ends, since engines do.
pub(super) fn find(name: &str, engines: Engines) -> Option<&'static dyn Engine> {
    let (publisher, subscriber) = parts(name)?;
    let of = |name: &str| engines.iter().copied().find(|it| it.name() == name && it.speaks_rtps());
    let (publisher, subscriber) = (of(publisher)?, of(subscriber)?);
    let mut pairs = PAIRS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = pairs.iter().copied().find(|pair| pair.name == name);
    let pair = known.unwrap_or_else(|| {
        let pair: &'static Pair = Box::leak(Box::new(Pair::new(name, publisher, subscriber)));
        pairs.push(pair);
        pair
    });
    Some(pair)
}

static PAIRS: Mutex<Vec<&'static Pair>> = Mutex::new(Vec::new());

impl Pair {
    fn new(name: &str, publisher: &'static dyn Engine, subscriber: &'static dyn Engine) -> Self {
        let of = |engine: &'static dyn Engine, prefix: &'static str| {
            let prefixed =
                move |it: &Setting| Setting { name: leaked(format!("{prefix}{}", it.name)), ..*it };
            engine.settings().iter().map(prefixed)
        };
        let settings: Vec<Setting> = of(publisher, PUBLISHER).chain(of(subscriber, SUBSCRIBER)).collect();
        Self { name: leaked(name.to_owned()), publisher, subscriber, settings: Vec::leak(settings) }
    }

    /// The case as the engine of one end knows it: with its name, and its settings without their prefix.
    fn of_end(case: &CaseSpec, engine: &dyn Engine, prefix: &str) -> CaseSpec {
        let of_end =
            |(name, value): (&String, &String)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone()));
        let settings = case.settings.iter().filter_map(of_end).collect();
        CaseSpec { engine: engine.name().to_owned(), settings, ..case.clone() }
    }

    fn of_publisher(&self, case: &CaseSpec) -> CaseSpec {
        Self::of_end(case, self.publisher, PUBLISHER)
    }

    fn of_subscriber(&self, case: &CaseSpec) -> CaseSpec {
        Self::of_end(case, self.subscriber, SUBSCRIBER)
    }
}

impl Engine for Pair {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> Option<&'static str> {
        Some("publishers of one engine, and subscribers of another")
    }

    fn capabilities(&self) -> Capabilities {
        self.publisher.capabilities().and(self.subscriber.capabilities())
    }

    fn speaks_rtps(&self) -> bool {
        true
    }

    fn fits_datagrams_to_packets(&self) -> bool {
        self.publisher.fits_datagrams_to_packets()
    }

    fn version(&self) -> Option<String> {
        let of = |engine: &dyn Engine| Some(format!("{} {}", engine.name(), engine.version()?));
        let versions: Vec<String> = [of(self.publisher), of(self.subscriber)].into_iter().flatten().collect();
        (!versions.is_empty()).then(|| versions.join(", "))
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn open_publisher(&self, case: &CaseSpec) -> Result<Box<dyn Publisher>, EndpointError> {
        self.publisher.open_publisher(&self.of_publisher(case))
    }

    fn open_subscriber(&self, case: &CaseSpec) -> Result<Box<dyn Subscriber>, EndpointError> {
        self.subscriber.open_subscriber(&self.of_subscriber(case))
    }

    fn open_pinger(&self, case: &CaseSpec) -> Result<Box<dyn Pinger>, EndpointError> {
        self.publisher.open_pinger(&self.of_publisher(case))
    }

    fn open_ponger(&self, case: &CaseSpec) -> Result<Box<dyn Ponger>, EndpointError> {
        self.subscriber.open_ponger(&self.of_subscriber(case))
    }
}

/// Text that lasts as long as an engine.
fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Between the names of the two engines.
const SEPARATOR: char = ':';
/// Before the names of their settings.
const PUBLISHER: &str = "publisher.";
const SUBSCRIBER: &str = "subscriber.";

#[cfg(test)]
mod tests {
    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;
    use crate::engine;
    use crate::tuning::EngineSettings;

    #[test]
    fn each_end_has_its_own_settings() {
        let text = "[\"weir:weir-links\"]\n\"publisher.publish_mode\" = \"asynchronous\"\n\
                    \"subscriber.rate_percent\" = 50\n";
        let pair = engine::find("weir:weir-links").unwrap();
        let case = case("weir:weir-links", Test::Throughput)
            .with(|case| case.settings = EngineSettings::parse(text).unwrap().effective(pair));
        let of = |engine: &str, prefix| Pair::of_end(&case, engine::find(engine).unwrap(), prefix);
        let (publisher, subscriber) = (of("weir", PUBLISHER), of("weir-links", SUBSCRIBER));
        assert_eq!((&*publisher.engine, &*subscriber.engine), ("weir", "weir-links"));
        let value = |case: &CaseSpec, name: &str| case.settings.get(name).cloned().unwrap_or_default();
        assert_eq!(value(&publisher, "publish_mode"), "asynchronous");
        assert_eq!(value(&publisher, "rate_percent"), "");
        assert_eq!(
            (value(&subscriber, "publish_mode"), value(&subscriber, "rate_percent")),
            (String::new(), "50".into())
        );
    }

    #[test]
    fn engines_that_do_not_speak_rtps_make_no_pair() {
        assert!(engine::find("weir:weir-small").is_some_and(Engine::speaks_rtps));
        for name in ["udp:weir", "weir:udp", "weir:turbo", "weir:", "weir:weir:weir"] {
            assert!(engine::find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_pair_can_do_what_both_can() {
        let pair = engine::find("weir:weir-small").unwrap();
        let of = |name: &str| engine::find(name).unwrap().capabilities();
        assert_eq!(pair.capabilities(), of("weir").and(of("weir-small")));
        assert_eq!(pair.capabilities().size_bytes_max, of("weir-small").size_bytes_max);
        assert!(std::ptr::eq(pair.name(), engine::find("weir:weir-small").unwrap().name()), "kept once");
    }
}
