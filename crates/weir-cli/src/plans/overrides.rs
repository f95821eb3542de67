//! Keys that take precedence over those of a plan: `weir run --set` and `--brief`.

use anyhow::anyhow;

use crate::exit::Failure;

/// Returns a last section of a plan with these keys; empty without any. It is kept with the copy of the plan, so that
/// a run goes on only with the same keys.
pub(crate) fn section(set: &[String], is_brief: bool) -> Result<String, Failure> {
    let mut keys: Vec<(String, String)> = Vec::new();
    let brief = BRIEF.iter().filter(|_| is_brief).map(|it| (*it).to_owned());
    for text in brief.chain(set.iter().cloned()) {
        let wrong = || {
            Failure::usage(anyhow!(
                "--set {text}: expected KEY=VALUE, such as duration=10s; see `weir bench --help`"
            ))
        };
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let is_key = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let key = key.trim().trim_start_matches("--").replace('-', "_");
        if key.is_empty() || !key.chars().all(is_key) || value.chars().any(char::is_control) {
            return Err(wrong());
        }
        keys.retain(|(other, _)| *other != key);
        keys.push((key, toml_value(value.trim())));
    }
    if keys.is_empty() {
        return Ok(String::new());
    }
    let lines: Vec<String> = keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    Ok(format!("\n[{SECTION}]\n{}", lines.concat()))
}

/// A value as TOML; an empty one is an empty list.
fn toml_value(value: &str) -> String {
    match value {
        "" => "[]".to_owned(),
        "true" | "false" => value.to_owned(),
        text => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// The name of the section.
pub(super) const SECTION: &str = "overrides";

/// Enough to see whether everything runs. One repeat has no interval to wait for.
const BRIEF: &[&str] = &["duration=100ms", "warmup=20ms", "repeat=1", "until_width="];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_key_holds() {
        let set =
            ["sizes=32,1k", "repeat=3", "link=", "verify=true", "--until-width=\"5\\%"].map(str::to_owned);
        assert_eq!(
            section(&set, true).unwrap(),
            "\n[overrides]\nduration = \"100ms\"\nwarmup = \"20ms\"\nsizes = \"32,1k\"\nrepeat = \"3\"\nlink = []\n\
             verify = true\nuntil_width = \"\\\"5\\\\%\"\n"
        );
        assert_eq!(section(&[], false).unwrap(), "");
        assert!(section(&[], true).unwrap().ends_with("repeat = \"1\"\nuntil_width = []\n"));
    }

    #[test]
    fn other_forms_are_refused() {
        for wrong in ["repeat", "=3", "a b=1", "name]=x", "repeat=1\n[study]"] {
            assert!(section(&[wrong.to_owned()], false).is_err(), "{wrong}");
        }
    }
}
