//! The settings of engines: defaults, and the user's choices.
//!
//! In TOML, a table for each engine:
//!
//! ```toml
//! [cyclonedds-tuned]
//! max_message_size = "65500B"
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use thiserror::Error;
use weir_peer_api::settings::{Settings, effective, unknown};

use crate::endpoint::Engine;
use crate::engine;

/// The user's choices by engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineSettings {
    chosen: BTreeMap<String, Settings>,
}

/// Why a file of settings is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// It is not TOML, or not tables of values.
    #[error("{0}")]
    Form(String),
    /// No such engine.
    #[error("`{0}` is not an engine of this program")]
    UnknownEngine(String),
    /// This build lacks the engine.
    #[error("{name} is not built in: {advice}")]
    NotBuilt {
        /// The engine.
        name: &'static str,
        /// The commands that build it in.
        advice: String,
    },
    /// The engine has no such setting.
    #[error("{engine} has no setting `{name}`; it has {known}")]
    UnknownName {
        /// The engine.
        engine: String,
        /// The name in the file.
        name: String,
        /// The settings that it has.
        known: String,
    },
}

impl EngineSettings {
    /// Reads TOML: a table for each engine, with text, numbers or booleans.
    ///
    /// # Errors
    /// When it is something else, or names an unknown engine or setting.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let tables: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            SettingsError::Form(format!("the settings are not TOML: {}", error.message()))
        })?;
        let mut chosen = BTreeMap::new();
        for (name, table) in tables {
            let toml::Value::Table(table) = table else {
                return Err(SettingsError::Form(format!("`{name}` is not a table of settings: [{name}]")));
            };
            let settings =
                table.into_iter().map(|(key, value)| Ok((key.clone(), plain(&name, &key, value)?)));
            let settings = settings.collect::<Result<Settings, SettingsError>>()?;
            check(&name, &settings)?;
            chosen.insert(name, settings);
        }
        Ok(Self { chosen })
    }

    /// Whether the user chose settings of an engine of this name.
    #[must_use]
    pub fn has(&self, engine: &str) -> bool {
        self.chosen.get(engine).is_some_and(|settings| !settings.is_empty())
    }

    /// The values that an engine is measured with.
    #[must_use]
    pub fn effective(&self, engine: &dyn Engine) -> Settings {
        effective(engine.settings(), self.chosen.get(engine.name()).unwrap_or(&Settings::new()))
    }

    /// All settings of all engines in the form that [`EngineSettings::parse`] reads, with descriptions.
    #[must_use]
    pub fn show(&self) -> String {
        let mut text = String::new();
        for engine in engine::registry().iter().filter(|engine| !engine.settings().is_empty()) {
            let between = if text.is_empty() { "" } else { "\n" };
            let version = engine.version().map_or(String::new(), |version| format!(" {version}"));
            let (name, about) = (engine.name(), engine.about().unwrap_or_default());
            let _ = writeln!(text, "{between}# {name}{version}: {about}\n[{name}]");
            let values = self.effective(*engine);
            for setting in engine.settings() {
                let value = values.get(setting.name).map_or("", String::as_str);
                let value = toml::Value::String(value.to_owned());
                let _ = writeln!(text, "# {}\n{} = {value}", setting.about, setting.name);
            }
        }
        text
    }
}

fn plain(engine: &str, key: &str, value: toml::Value) -> Result<String, SettingsError> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(flag) => Ok(flag.to_string()),
        _ => Err(SettingsError::Form(format!("`{key}` of [{engine}] is not one value"))),
    }
}

fn check(name: &str, settings: &Settings) -> Result<(), SettingsError> {
    let engine = engine::find(name).ok_or_else(|| match weir_peer_api::known::find(name) {
        Some(known) => SettingsError::NotBuilt { name: known.name, advice: known.advice() },
        None => SettingsError::UnknownEngine(name.to_owned()),
    })?;
    match unknown(engine.settings(), settings) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = engine.settings().iter().map(|setting| setting.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Err(SettingsError::UnknownName { engine: engine.name().to_owned(), name: name.to_owned(), known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        let settings = EngineSettings::parse("").unwrap();
        let again = EngineSettings::parse(&settings.show()).unwrap();
        for engine in engine::registry() {
            assert_eq!(again.effective(*engine), settings.effective(*engine));
        }
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        let error = |text: &str| EngineSettings::parse(text).unwrap_err().to_string();
        assert_eq!(error("[mind]\nreader = 1"), "`mind` is not an engine of this program");
        assert_eq!(
            error("[weir]\nturbo = true"),
            "weir has no setting `turbo`; it has publish_mode, rate_percent, qos_file, qos_profile, threads, \
             socket_buffer, history"
        );
        assert!(error("[fastdds]\nmax_samples = 77").starts_with("fastdds is not built in: build with"));
        assert!(error("weir = 1").starts_with("`weir` is not a table"));
        assert!(error("[weir]\nturbo = []").starts_with("`turbo` of [weir] is not one value"));
        assert!(error("[weir").starts_with("the settings are not TOML"));
    }
}
