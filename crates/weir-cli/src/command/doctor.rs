//! `weir doctor`: what would distort a measurement on this host.

use std::time::Duration;

use weir_bench::doctor::{Facts, Finding, Purpose, default_interface, examine, path_to, script};
use weir_bench::idle_check;

use crate::args::{DoctorArgs, ScriptPurpose};
use crate::exit::{Exit, Failure};
use crate::output;

/// How long the load of the host is observed.
const WATCH: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let path = args.peer.as_deref().map(path_to).transpose().map_err(Failure::environment)?;
    let of_path = path.as_ref().and_then(|path| path.interface.clone());
    let interface = args.interface.clone().or(of_path).or_else(default_interface);
    let mut facts = Facts { path, ..Facts::gather(interface.as_deref().unwrap_or("lo"), WATCH) };
    facts.environment.wake_ups = idle_check::wake_ups();
    let findings = examine(&facts);
    if let Some(purpose) = args.script {
        let purpose = match purpose {
            ScriptPurpose::Latency => Purpose::Latency,
            ScriptPurpose::Throughput => Purpose::Throughput,
        };
        output::data(&script(&findings, purpose))?;
        return Ok(Exit::Success);
    }
    output::data(&if args.json { document(&facts, &findings)? } else { list(&facts, &findings) })?;
    Ok(if findings.iter().any(|finding| !finding.is_note) { Exit::Found } else { Exit::Success })
}

fn document(facts: &Facts, findings: &[Finding]) -> Result<String, Failure> {
    let document = serde_json::json!({ "facts": facts, "findings": findings });
    serde_json::to_string_pretty(&document).map(|text| text + "\n").map_err(Failure::environment)
}

fn list(facts: &Facts, findings: &[Finding]) -> String {
    let host = facts.environment.hostname.as_deref().unwrap_or("this host");
    let interface = facts.environment.interface.as_ref().map_or("none", |interface| &interface.name);
    let mut text = format!("weir doctor: {host}, interface {interface}\n");
    if let Some(path) = &facts.path {
        text += &path_line(path);
    }
    let (notes, problems): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.is_note);
    text += &match problems.len() {
        0 => "\nno problems found\n".to_owned(),
        1 => "\n1 problem:\n".to_owned(),
        count => format!("\n{count} problems:\n"),
    };
    problems.iter().for_each(|finding| text += &entry(finding));
    if !notes.is_empty() {
        text += "\nnotes:\n";
        notes.iter().for_each(|finding| text += &entry(finding));
    }
    if findings.iter().any(Finding::is_fixed_by_script) {
        text += "\n`weir doctor --script latency` (or throughput) prints the safe commands as a script; nothing was changed\n";
    }
    text
}

fn path_line(path: &weir_bench::doctor::PathFacts) -> String {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let answer = match path.answer_ms {
        Some(ms) => format!("answers in {ms} ms"),
        None => "does not answer".to_owned(),
    };
    format!(
        "peer: {} ({}), from {} by {}, path MTU {}, {answer}\n",
        path.peer,
        path.address,
        or_unknown(&path.local_address),
        or_unknown(&path.interface),
        path.path_mtu.map_or_else(|| "unknown".to_owned(), |mtu| mtu.to_string()),
    )
}

/// The finding and its command.
fn entry(finding: &Finding) -> String {
    let spoils = match finding.spoils {
        Purpose::Latency => " (latency)",
        Purpose::Throughput => " (throughput)",
        Purpose::Both => "",
    };
    let mut text = format!("- {}{spoils}: {}\n", finding.code, finding.text);
    if let Some(command) = &finding.command {
        text += &format!("    {command}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_problems_before_notes_each_with_its_command() {
        let mut facts = Facts { is_optimised: true, ..Facts::default() };
        assert!(list(&facts, &examine(&facts)).ends_with("\nno problems found\n"));
        facts.environment.rmem_max = Some(212_992);
        facts.environment.virtualised = Some("KVM".to_owned());
        let text = list(&facts, &examine(&facts));
        let expected = "\n1 problem:\n- receive-buffer-limit (throughput): receive buffers are \
                        limited to 212992 bytes, 4194304 wanted: a burst is lost while the reader is not running\n    sysctl -w net.core.rmem_max=16777216\n\nnotes:\n- virtual-machine: ";
        assert!(text.contains(expected), "{text}");
        assert!(text.ends_with("nothing was changed\n"), "{text}");
    }
}
