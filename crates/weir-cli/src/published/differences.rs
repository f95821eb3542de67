//! Differences between the published setup and this one.

use weir_bench::path::PathSpec;
use weir_results::{Environment, Test};

use super::run::Plan;
use super::tables::Table;

/// One aspect in which the setups differ, or may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The aspect.
    pub(crate) what: &'static str,
    /// Its value in the published setup.
    pub(crate) published: String,
    /// Its value on this host.
    pub(crate) here: String,
}

/// All differences; `environment` describes this host and the interface that carries the samples.
pub(crate) fn differences(table: &Table, plan: &Plan, environment: &Environment) -> Vec<Difference> {
    let source = table.source;
    let difference =
        |what, published: &str, here: String| Difference { what, published: published.to_owned(), here };
    let link = plan.link(table);
    let mtu = match &link {
        Some(link) => Some(link.mtu()),
        None => environment.interface.as_ref().and_then(|interface| interface.mtu),
    };
    let path = match &link {
        Some(link) if link.rate_bps().is_some() => {
            format!("{link}: a virtual link of that rate, no switch, no hardware")
        }
        Some(link) => format!("{link}: a virtual link as fast as the processor, no switch, no hardware"),
        None if plan.link.to_string() == "lo" => "the loopback interface".to_owned(),
        None => format!("the interface {}, from this host to itself", plan.link),
    };
    let mut all = vec![
        difference("hosts", source.hosts, host(environment)),
        difference("path", source.path, path),
        difference("MTU", source.mtu, mtu.map_or_else(|| "unknown".to_owned(), |mtu| mtu.to_string())),
        difference(
            "processors",
            source.processors,
            plan.cpus.map_or_else(
                || "placed by the kernel".to_owned(),
                |cpus| format!("publisher {}, subscriber {}", cpus.publisher, cpus.subscriber),
            ),
        ),
        difference("program", source.program, format!("Weir perftest {}", env!("CARGO_PKG_VERSION"))),
        difference("each row", source.run, format!("{} s", plan.seconds(table))),
        difference("waiting", "not stated", format!("WEIR_WAIT={}", plan.wait)),
    ];
    if plan.is_small {
        let here = "small: no threads, small socket buffers and histories".to_owned();
        all.push(difference("profile", "not stated", here));
    }
    if let Some(time) = link.filter(|_| table.test == Test::Latency).and_then(time_on_the_wire) {
        all.push(difference("wire time", "contained in every latency", time));
    }
    if table.keyed && table.name.starts_with("micro") {
        all.push(difference("instances", "not stated", "100000".to_owned()));
    }
    all
}

/// How a link of this rate delays a single sample, unlike a wire; `None` without a rate.
fn time_on_the_wire(link: PathSpec) -> Option<String> {
    // An emulated link delays as a wire does.
    let PathSpec::Veth(link) = link else { return None };
    let rate_bps = link.rate_bps?;
    let burst =
        link.burst_bytes.map_or_else(|| "4 ms of the rate".to_owned(), |bytes| format!("{bytes} bytes"));
    let wire_us = 1e6 * 8.0 * 8192.0 / rate_bps as f64;
    Some(format!(
        "{burst} pass at once after a pause (a wire takes {wire_us:.1} us for 8192 bytes); the rest waits for a kernel timer"
    ))
}

fn host(environment: &Environment) -> String {
    let processor = environment.cpu_model.as_deref().unwrap_or("an unknown processor");
    let virtualised = environment
        .virtualised
        .as_ref()
        .map_or_else(String::new, |name| format!(", a virtual machine ({name})"));
    format!(
        "both ends on one host, {processor}, {} processors, Linux {}{virtualised}",
        environment.logical_cpus, environment.kernel
    )
}

#[cfg(test)]
mod tests {
    use weir_results::{Interface, WaitStrategy};

    use super::*;
    use crate::published::find;

    #[test]
    fn host_path_and_mtu_are_stated() {
        let environment = Environment {
            cpu_model: Some("Abacus".to_owned()),
            interface: Some(Interface { mtu: Some(65_536), ..Interface::default() }),
            ..Environment::default()
        };
        let here = |path: &str, what: &str| {
            let plan = Plan {
                link: path.parse().unwrap(),
                exec: Some(1),
                sizes: Vec::new(),
                cpus: None,
                wait: WaitStrategy::Block,
                is_small: false,
                domain: 1,
            };
            let all = differences(&find("pro-latency-1g-unkeyed-reliable")[0], &plan, &environment);
            all.into_iter().find(|difference| difference.what == what).unwrap().here
        };
        assert!(here("lo", "hosts").contains("Abacus"));
        assert_eq!((here("lo", "MTU"), here("veth", "MTU")), ("65536".to_owned(), "9000".to_owned()));
        assert!(here("veth", "path").starts_with("veth,mtu=9000,rate=1G"));
        assert!(
            here("veth", "wire time")
                .starts_with("9100 bytes pass at once after a pause (a wire takes 65.5 us")
        );
        assert!(here("veth,rate=1G", "wire time").starts_with("4 ms of the rate"));
        assert!(here("eth7", "path").contains("eth7"));
        assert_eq!(here("lo", "each row"), "1 s");
    }
}
