//! Finds what would spoil a measurement on this host, and the commands that fix it. Changes nothing
//! itself.

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

/// The input of a checkup. It is plain data, so that [`examine`] can be tested without a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// The host, with the interface that will carry the samples.
    pub environment: Environment,
    /// The host's activity while nothing was measured: one row.
    #[serde(skip)]
    pub watched: Telemetry,
    /// Whether `irqbalance` runs, which moves interrupts from processor to processor.
    pub has_irqbalance: bool,
    /// Whether this program was built with optimisation.
    pub is_optimised: bool,
    /// The path to the other host, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFacts>,
}

/// The path to another host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathFacts {
    /// The host as it was named.
    pub peer: String,
    /// Its address.
    pub address: String,
    /// Whether the address is this host's own.
    pub is_same_host: bool,
    /// The source address of packets; `None`: there is no route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_address: Option<String>,
    /// The outgoing interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The largest IP packet that arrives unfragmented, as far as this host knows, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u32>,
    /// Whether the host answered.
    pub answers: bool,
    /// The time until its answer, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_ms: Option<f64>,
}

/// What a measurement is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The time of a sample.
    Latency,
    /// The rate of samples.
    Throughput,
    /// Either.
    Both,
}

/// Something that would spoil a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name.
    pub code: &'static str,
    /// The problem and its effect, one sentence without a full stop.
    pub text: String,
    /// The command that fixes it or shows more, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which measurements it spoils.
    pub spoils: Purpose,
    /// Whether it is only informative: no command fixes it, or it affects few measurements.
    pub is_note: bool,
    /// The change that a script makes; `None`: the command is left to the user.
    #[serde(rename = "is_fixed_by_script", serialize_with = "is_some")]
    tuning: Option<Tuning>,
}

impl Facts {
    /// Collects the facts, watching the host for `watch`. `interface` will carry the samples.
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

/// Returns all findings; within each kind, the most severe first.
#[must_use]
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    processor::check(facts, &mut findings);
    network::check(facts, &mut findings);
    // A stable sort keeps the order within each kind.
    findings.sort_by_key(|finding| finding.is_note);
    findings
}

/// Returns a shell script that fixes the findings for a purpose. A command that fails is reported
/// and does not end it.
///
/// Its commands come from a closed list: none of them can disconnect a host. Findings that need
/// other commands are listed in a comment.
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
        text += "\n# No finding can be fixed by a script.\n";
    }
    let mut by_hand: Vec<&str> =
        left.iter().filter(|one| one.command.is_some()).map(|one| one.code).collect();
    by_hand.dedup();
    if !by_hand.is_empty() {
        text += &format!("\n# To be fixed manually, see `weir doctor`: {}\n", by_hand.join(", "));
    }
    text
}

impl Finding {
    /// Returns whether [`script`] fixes it.
    #[must_use]
    pub fn is_fixed_by_script(&self) -> bool {
        self.tuning.is_some()
    }

    fn new(code: &'static str, spoils: Purpose, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), command: None, spoils, is_note: false, tuning: None }
    }

    /// Sets the change that a script makes.
    fn fixed_by(self, tuning: Tuning) -> Self {
        Self { command: Some(tuning.command()), tuning: Some(tuning), ..self }
    }

    /// Sets a command for the user to consider, never part of a script.
    fn see(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    fn note(self) -> Self {
        Self { is_note: true, ..self }
    }
}

/// Puts the text on one line, whatever names it contains.
fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_some<S: Serializer>(tuning: &Option<Tuning>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(tuning.is_some())
}

/// Returns whether a program of that name runs.
fn runs(name: &str) -> bool {
    let folders = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut names = folders.filter_map(|folder| fs::read_to_string(folder.path().join("comm")).ok());
    names.any(|found| found.trim() == name)
}

#[cfg(test)]
mod tests;
