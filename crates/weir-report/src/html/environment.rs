//! The host, the program, the commands and the settings of a run.

use std::collections::BTreeMap;

use maud::{Markup, html};
use weir_results::{Environment, HostRecord, Run, WakeUp, format_size};

use crate::group::engine_label;
use crate::html::table::Table;

/// Returns the environment of a run and of its other end, with the command that made it.
pub(crate) fn environment(run: &Run) -> Markup {
    let command = &run.environment.command;
    html! {
        @if !command.is_empty() {
            p { "The command of this run:" }
            pre tabindex="0" { code { (command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")) } }
        }
        @if !run.hosts.is_empty() { (placed(&run.hosts).render()) }
        @for (name, environment) in hosts(run) {
            (host(&name, environment).render())
        }
        details.plain {
            summary { "Kernel settings, offloads, and settings of the cases" }
            @for (name, environment) in hosts(run) {
                (kernel(&format!("Kernel settings and offloads: {name}"), environment).render())
            }
            (settings(run).render())
        }
    }
}

/// The hosts of a run, and what to call them.
fn hosts(run: &Run) -> Vec<(String, &Environment)> {
    if !run.hosts.is_empty() {
        return run.hosts.iter().map(|host| (format!("Host {}", host.name), &host.environment)).collect();
    }
    let peer = run.peer.as_ref().map(|peer| ("The other host".to_owned(), peer));
    [("This host".to_owned(), &run.environment)].into_iter().chain(peer).collect()
}

/// Where the ends ran.
fn placed(hosts: &[HostRecord]) -> Table {
    let headings = ["Host", "Ends", "Interface", "Address", "Name"].map(str::to_owned).to_vec();
    let mut table = Table::new("Where the ends ran", 5, headings);
    for host in hosts {
        let hostname = host.environment.hostname.clone().unwrap_or_default();
        let HostRecord { name, ends, interface, address, .. } = host;
        table.push(vec![name.clone(), ends.join(", "), interface.clone(), address.clone(), hostname]);
    }
    table
}

/// A word of a command line as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=%@+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn host(caption: &str, environment: &Environment) -> Table {
    let text = |value: &Option<String>| value.clone();
    let bytes = |value: Option<u64>| value.map(format_size);
    let yes = |value: Option<bool>| value.map(|it| if it { "yes" } else { "no" }.to_owned());
    let processors = format!("{} of {} may be used", environment.allowed_cpus, environment.logical_cpus);
    let kib = |value: u64| format_size(value.saturating_mul(1024));
    let buffers = |most: Option<u64>, default: Option<u64>| {
        Some(format!(
            "at most {}, default {}",
            bytes(most)?,
            bytes(default).unwrap_or_else(|| "unknown".to_owned())
        ))
    };
    let interface = environment.interface.as_ref();
    let rows = [
        ("Weir", Some(environment.weir_version.clone())),
        ("Date", Some(environment.date.clone())),
        ("Host", text(&environment.hostname)),
        ("Kernel", Some(environment.kernel.clone())),
        ("Virtual machine", text(&environment.virtualised)),
        ("Container", text(&environment.container)),
        ("Processor", text(&environment.cpu_model)),
        ("Frequency", environment.cpu_mhz.map(|mhz| format!("{mhz} MHz"))),
        ("Processors", Some(processors)),
        ("Governor", text(&environment.cpu_governor)),
        ("SMT", yes(environment.smt)),
        ("Turbo", yes(environment.turbo)),
        ("Idle driver", text(&environment.idle_driver)),
        ("Idle governor", text(&environment.idle_governor)),
        ("Idle states", environment.idle_states.as_ref().map(|states| format!("{states} us"))),
        ("Wake-up", Some(WakeUp::describe(&environment.wake_ups))),
        ("Isolated processors", text(&environment.isolated_cpus)),
        ("Quota", environment.cpu_quota_percent.map(|percent| format!("{percent} % of one processor"))),
        ("Clock source", text(&environment.clocksource)),
        ("Memory", Some(kib(environment.memory_kib))),
        ("Swap in use", environment.swap_used_kib.map(kib)),
        ("Receive buffers", buffers(environment.rmem_max, environment.rmem_default)),
        ("Send buffers", buffers(environment.wmem_max, environment.wmem_default)),
        ("Interface", interface.map(|it| it.name.clone())),
        ("MTU", interface.and_then(|it| it.mtu).map(|mtu| mtu.to_string())),
        ("Link speed", interface.and_then(|it| it.speed_mbps).map(|speed| format!("{speed} Mbit/s"))),
        ("Driver", interface.and_then(|it| it.driver.clone())),
        ("Queueing", interface.and_then(|it| it.queueing.clone())),
    ];
    let mut table = Table::new(caption, 2, ["Property", "Value"].map(str::to_owned).to_vec());
    let known =
        rows.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    known.for_each(|(name, value)| table.push(vec![name.to_owned(), value]));
    table
}

fn kernel(caption: &str, environment: &Environment) -> Table {
    let mut table = Table::new(caption, 2, ["Setting", "Value"].map(str::to_owned).to_vec());
    for (name, value) in &environment.sysctls {
        table.push(vec![name.clone(), value.clone()]);
    }
    let interface = environment.interface.as_ref();
    for (name, is_on) in interface.iter().flat_map(|it| &it.offloads) {
        table.push(vec![name.clone(), if *is_on { "on" } else { "off" }.to_owned()]);
    }
    for (name, value) in interface.iter().flat_map(|it| &it.coalescing) {
        table.push(vec![name.clone(), value.clone()]);
    }
    table
}

/// The settings of each engine's cases, each value once with how many cases had it.
fn settings(run: &Run) -> Table {
    let mut found: BTreeMap<(String, &str, &str), usize> = BTreeMap::new();
    for case in &run.cases {
        for (name, value) in &case.conditions.settings {
            *found.entry((engine_label(case), name, value)).or_default() += 1;
        }
    }
    let headings = ["Engine", "Setting", "Value", "Cases"].map(str::to_owned).to_vec();
    let mut table = Table::new("Settings of the cases", 3, headings);
    for ((engine, name, value), cases) in found {
        table.push(vec![engine, name.to_owned(), value.to_owned(), cases.to_string()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_can_be_copied_to_a_shell() {
        assert_eq!(
            ["--rate=10%", "a b", "it's", ""].map(quoted),
            ["--rate=10%", "'a b'", r"'it'\''s'", "''"]
        );
    }
}
