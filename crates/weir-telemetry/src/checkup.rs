//! What would spoil a measurement on this host, and the commands that fix it. Nothing is changed here.

mod network;
mod processor;
mod tuning;

use std::fs;
use std::thread;
use std::time::Duration;

use serde::{Serialize, Serializer};
use weir_results::{Environment, Telemetry};

use crate::inventory::environment;
use crate::sampler::Recorder;

use self::tuning::Tuning;

/// What a checkup is made from. All of it is facts, so that [`examine`] can be tested without a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// What the host is, with the interface that will carry the samples.
    pub environment: Environment,
    /// What the host did while nothing was measured: one row.
    #[serde(skip)]
    pub watched: Telemetry,
    /// Whether `irqbalance` runs, which moves interrupts from processor to processor.
    pub has_irqbalance: bool,
    /// Whether this program was built with optimisation.
    pub is_optimised: bool,
    /// The way to the other host, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFacts>,
}

/// What is known about the way to another host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathFacts {
    /// The host as it was named.
    pub peer: String,
    /// Its address.
    pub address: String,
    /// Whether the address is this host's own.
    pub is_same_host: bool,
    /// The address that packets leave with; `None` = there is no route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_address: Option<String>,
    /// The interface that they leave by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The largest IP packet that arrives in one piece, as far as this host knows, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u32>,
    /// Whether the host answered.
    pub answers: bool,
    /// How long its answer took, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ms: Option<f64>,
}

/// What a measurement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The time of one sample.
    Latency,
    /// The rate of many.
    Throughput,
    /// Either.
    Both,
}

/// Something that would spoil a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its name, which stays the same.
    pub code: &'static str,
    /// What spoils it and how, one sentence without a full stop.
    pub text: String,
    /// The command that fixes it, or that shows more; `None` where no command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which measurements it spoils.
    pub spoils: Purpose,
    /// Whether it is for information only: no command fixes it, or it affects few measurements.
    pub is_note: bool,
    /// What a script does about it; `None`: nothing, the command is left to a person.
    #[serde(rename = "is_fixed_by_script", serialize_with = "is_some")]
    tuning: Option<Tuning>,
}

impl Facts {
    /// Looks at this host for as long as `watch`. `interface` will carry the samples.
    #[must_use]
    pub fn gather(interface: &str, watch: Duration) -> Self {
        let mut recorder = Recorder::new(Duration::ZERO);
        thread::sleep(watch);
        recorder.look();
        Self {
            environment: environment(Some(interface)),
            watched: recorder.telemetry(),
            has_irqbalance: runs("irqbalance"),
            is_optimised: !cfg!(debug_assertions),
            path: None,
        }
    }
}

/// All findings, the ones that spoil most first within their kind.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = processor::findings(facts);
    findings.extend(network::findings(facts));
    // Stable: the order of each kind stays.
    findings.sort_by_key(|finding| finding.is_note);
    findings
}

/// A shell script that fixes the findings for a purpose. A command that fails is reported and does not end it.
///
/// Its commands come from a closed list of fixed ones: none of them can disconnect a host. Findings that need other
/// commands are named in a comment.
#[must_use]
pub fn script(findings: &[Finding], purpose: Purpose) -> String {
    let name = match purpose {
        Purpose::Latency => "latency",
        Purpose::Throughput => "throughput",
        Purpose::Both => "any measurement",
    };
    let mut text = format!(
        "#!/bin/sh\n# Prepares this host for {name}. Written by `weir doctor`: review it, then run it as root.\n\
         # A reboot undoes it. Values that are higher already are kept; network interfaces are not touched.\n"
    );
    let fits = |finding: &&Finding| {
        finding.spoils == purpose || finding.spoils == Purpose::Both || purpose == Purpose::Both
    };
    let (fixed, left): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().filter(fits).partition(|finding| finding.is_fixed_by_script());
    for (finding, tuning) in fixed.iter().filter_map(|finding| Some((finding, finding.tuning?))) {
        let code = finding.code;
        text += &format!("\n# {code}: {}\n", comment(&finding.text));
        for line in tuning.script_lines() {
            text += &format!("{line} || echo '{code}: not fixed' >&2\n");
        }
    }
    if fixed.is_empty() {
        text += "\n# Nothing was found that a script may fix.\n";
    }
    let mut by_hand: Vec<&str> =
        left.iter().filter(|one| one.command.is_some()).map(|one| one.code).collect();
    by_hand.dedup();
    if !by_hand.is_empty() {
        text += &format!("\n# Left to you, see `weir doctor`: {}\n", by_hand.join(", "));
    }
    text
}

impl Finding {
    /// Whether [`script`] fixes it.
    #[must_use]
    pub fn is_fixed_by_script(&self) -> bool {
        self.tuning.is_some()
    }

    fn new(code: &'static str, spoils: Purpose, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), command: None, spoils, is_note: false, tuning: None }
    }

    /// A change that a script may make.
    fn fixed_by(self, tuning: Tuning) -> Self {
        Self { command: Some(tuning.command()), tuning: Some(tuning), ..self }
    }

    /// Advice: a command for a person to consider, never part of a script.
    fn see(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    fn note(self) -> Self {
        Self { is_note: true, ..self }
    }
}

/// The text on one line, whatever names in it contain.
fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_some<S: Serializer>(tuning: &Option<Tuning>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(tuning.is_some())
}

/// Whether a program of that name runs.
fn runs(name: &str) -> bool {
    let folders = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut names = folders.filter_map(|folder| fs::read_to_string(folder.path().join("comm")).ok());
    names.any(|found| found.trim() == name)
}

#[cfg(test)]
mod tests;
