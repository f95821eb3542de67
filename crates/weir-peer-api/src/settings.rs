//! Tuning parameters of a peer, by name and as text.

use std::collections::BTreeMap;

/// Values by name.
pub type Settings = BTreeMap<String, String>;

/// A tuning parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// The value that this peer is measured with; empty: the engine's default.
    pub value: &'static str,
    /// What it does, in the engine's own words where there are any.
    pub about: &'static str,
}

impl Setting {
    /// A tuning parameter with its name, value and description.
    #[must_use]
    pub const fn new(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self { name, value, about }
    }
}

/// Tuning parameters of these names and descriptions, each with its value.
#[must_use]
pub const fn settings<const N: usize>(
    known: [(&'static str, &'static str); N],
    values: [&'static str; N],
) -> [Setting; N] {
    let mut settings = [Setting::new("", "", ""); N];
    let mut index = 0;
    while index < N {
        settings[index] = Setting::new(known[index].0, values[index], known[index].1);
        index += 1;
    }
    settings
}

/// The values of `defaults`, overridden by `chosen`.
#[must_use]
pub fn effective(defaults: &[Setting], chosen: &Settings) -> Settings {
    let value = |setting: &Setting| chosen.get(setting.name).map_or(setting.value, String::as_str).to_owned();
    defaults.iter().map(|setting| (setting.name.to_owned(), value(setting))).collect()
}

/// The first name in `chosen` that `defaults` lacks.
#[must_use]
pub fn unknown<'a>(defaults: &[Setting], chosen: &'a Settings) -> Option<&'a str> {
    let is_known = |name: &str| defaults.iter().any(|setting| setting.name == name);
    chosen.keys().map(String::as_str).find(|name| !is_known(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: [Setting; 2] = [
        Setting { name: "fragment_size", value: "1344B", about: "" },
        Setting { name: "whc_high", value: "", about: "" },
    ];

    fn chosen(name: &str) -> Settings {
        Settings::from([(name.to_owned(), "9".to_owned())])
    }

    #[test]
    fn chosen_values_replace_defaults() {
        let effective = effective(&DEFAULTS, &chosen("whc_high"));
        let pairs: Vec<_> = effective.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("fragment_size", "1344B"), ("whc_high", "9")]);
    }

    #[test]
    fn unknown_names_are_found() {
        assert_eq!(unknown(&DEFAULTS, &chosen("fragment_size")), None);
        assert_eq!(unknown(&DEFAULTS, &chosen("fragmentsize")), Some("fragmentsize"));
    }
}
