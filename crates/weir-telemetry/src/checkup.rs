//! What would spoil a measurement on this host, and the commands that mend it. Nothing is changed here.

mod network;
mod processor;

use std::fs;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use weir_results::{Environment, Telemetry};

use crate::inventory::environment;
use crate::sampler::Recorder;

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
    /// The command that mends it, or that shows more; `None` where no command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Which measurements it spoils.
    pub spoils: Purpose,
    /// Whether it is worth knowing only: no command mends it, or most measurements do not mind.
    pub is_note: bool,
    /// Whether the command belongs into a script: it mends by itself, and can be taken back.
    pub is_mended_by_script: bool,
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

/// The commands that mend the findings for a purpose, as a shell script; commands that fail are told and do not end it.
#[must_use]
pub fn script(findings: &[Finding], purpose: Purpose) -> String {
    let name = match purpose {
        Purpose::Latency => "latency",
        Purpose::Throughput => "throughput",
        Purpose::Both => "any measurement",
    };
    let mut text = format!(
        "#!/bin/sh\n# Prepares this host for {name}: what `weir doctor` found, as root, until the next start of the host.\n"
    );
    let fits = |finding: &&Finding| {
        finding.is_mended_by_script
            && (finding.spoils == purpose || finding.spoils == Purpose::Both || purpose == Purpose::Both)
    };
    let mut is_empty = true;
    for finding in findings.iter().filter(fits) {
        if let Some(command) = &finding.command {
            is_empty = false;
            let code = finding.code;
            text += &format!("\n# {code}: {}\n{command} || echo '{code}: not mended' >&2\n", finding.text);
        }
    }
    if is_empty {
        text += "\n# Nothing was found that a command mends.\n";
    }
    text
}

impl Finding {
    fn new(code: &'static str, spoils: Purpose, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), command: None, spoils, is_note: false, is_mended_by_script: false }
    }

    /// A command that mends it.
    fn mended_by(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), is_mended_by_script: true, ..self }
    }

    /// A command for a person to try.
    fn see(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    fn note(self) -> Self {
        Self { is_note: true, ..self }
    }
}

/// Whether a program of that name runs.
fn runs(name: &str) -> bool {
    let folders = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let mut names = folders.filter_map(|folder| fs::read_to_string(folder.path().join("comm")).ok());
    names.any(|found| found.trim() == name)
}

#[cfg(test)]
mod tests;
