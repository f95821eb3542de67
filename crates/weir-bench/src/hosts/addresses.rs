//! Chooses the addresses by which hosts reach each other.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::protocol::{HostFacts, HostInterface};
use super::spec::HostSpec;

/// A host, and what it says of itself.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub(super) spec: &'a HostSpec,
    pub(super) facts: &'a HostFacts,
}

impl Candidate<'_> {
    /// Whether both are the same network of the same machine, with the same request.
    fn is(&self, other: &Self) -> bool {
        !self.facts.network.is_empty()
            && self.facts.network == other.facts.network
            && self.spec.interface == other.spec.interface
    }
}

/// Chooses an interface of each host: the requested one, or those in the one network that all hosts share, or those
/// that SSH uses.
///
/// # Errors
/// What is ambiguous or missing, and how to name an interface.
pub(super) fn choose(hosts: &[Candidate<'_>], requested: Option<&str>) -> Result<Vec<HostInterface>, String> {
    // One host may have several names.
    let mut distinct: Vec<Candidate<'_>> = Vec::new();
    let mut numbers = Vec::new();
    for host in hosts {
        let number = distinct.iter().position(|known| known.is(host)).unwrap_or_else(|| {
            distinct.push(*host);
            distinct.len() - 1
        });
        // Only one of the names may be that of an SSH connection.
        if distinct[number].facts.reached.is_none() && host.facts.reached.is_some() {
            distinct[number] = *host;
        }
        numbers.push(number);
    }
    let chosen = choose_distinct(&distinct, requested)?;
    Ok(numbers.into_iter().map(|number| chosen[number].clone()).collect())
}

fn choose_distinct(hosts: &[Candidate<'_>], requested: Option<&str>) -> Result<Vec<HostInterface>, String> {
    let all: Vec<Vec<&HostInterface>> =
        hosts.iter().map(|host| possible(host, requested)).collect::<Result<_, _>>()?;
    // Ends of one host meet on its loopback interface.
    if let [only] = &all[..] {
        let loopback = only.iter().find(|interface| interface.is_loopback).or(only.first());
        return loopback.map(|it| vec![(*it).clone()]).ok_or_else(|| lacks(&hosts[0], "an IPv4 address"));
    }
    let apart: Vec<Vec<&HostInterface>> =
        all.iter().map(|of| of.iter().copied().filter(|it| !it.is_loopback).collect()).collect();
    if let Some(index) = apart.iter().position(Vec::is_empty) {
        return Err(lacks(&hosts[index], "an interface that is up and has an IPv4 address"));
    }
    let shared = shared_networks(&apart);
    let networks: Vec<Vec<&HostInterface>> = match &shared[..] {
        [_] => shared,
        // Of several, that which SSH uses.
        _ => shared.into_iter().filter(|network| is_reached(hosts, network)).collect(),
    };
    if let [network] = &networks[..] {
        return Ok(network.iter().map(|interface| (*interface).clone()).collect());
    }
    routed(hosts, &apart).ok_or_else(|| ambiguous(hosts, &apart))
}

/// The interfaces of a host that may be chosen.
fn possible<'a>(host: &Candidate<'a>, requested: Option<&str>) -> Result<Vec<&'a HostInterface>, String> {
    let Some(name) = host.spec.interface.as_deref().or(requested) else {
        return Ok(host.facts.interfaces.iter().collect());
    };
    let found: Vec<_> = host.facts.interfaces.iter().filter(|interface| interface.name == name).collect();
    if found.is_empty() {
        let known: BTreeSet<&str> = host.facts.interfaces.iter().map(|it| it.name.as_str()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        return Err(format!(
            "{}: `{name}` is no network interface that is up and has an IPv4 address; there are {}",
            host.spec.place,
            known.join(", ")
        ));
    }
    Ok(found)
}

/// The networks in which every host has an address of its own.
fn shared_networks<'a>(hosts: &[Vec<&'a HostInterface>]) -> Vec<Vec<&'a HostInterface>> {
    let Some((first, others)) = hosts.split_first() else { return Vec::new() };
    let in_network = |one: &'a HostInterface| {
        let mut network = vec![one];
        for other in others {
            network.push(other.iter().copied().find(|it| {
                network_of(it) == network_of(one) && network.iter().all(|known| known.address != it.address)
            })?);
        }
        Some(network)
    };
    first.iter().copied().filter_map(in_network).collect()
}

fn network_of(interface: &HostInterface) -> (u32, u32) {
    let mask = u32::MAX.checked_shl(32 - interface.prefix).unwrap_or(0);
    (u32::from(interface.address) & mask, interface.prefix)
}

/// Whether SSH was connected to all addresses of remote hosts among these.
fn is_reached(hosts: &[Candidate<'_>], network: &[&HostInterface]) -> bool {
    let mut of_remote = hosts.iter().zip(network).filter_map(|(host, it)| Some((host.facts.reached?.0, it)));
    let mut has_any = false;
    of_remote.all(|(server, interface)| {
        has_any = true;
        server == interface.address
    }) && has_any
}

/// The addresses between which SSH connects, for hosts in different networks.
fn routed(hosts: &[Candidate<'_>], all: &[Vec<&HostInterface>]) -> Option<Vec<HostInterface>> {
    // This host, as the others see it.
    let seen = hosts.iter().find_map(|host| host.facts.reached).map(|(_, client)| client);
    let of = |host: &Candidate<'_>, interfaces: &Vec<&HostInterface>| {
        let address = host.facts.reached.map(|(server, _)| server).or(seen);
        let found = interfaces.iter().find(|it| Some(it.address) == address);
        let only = (interfaces.len() == 1).then(|| interfaces[0]);
        found.copied().or(only).cloned()
    };
    let chosen: Vec<HostInterface> =
        hosts.iter().zip(all).map(|(host, interfaces)| of(host, interfaces)).collect::<Option<_>>()?;
    let addresses: BTreeSet<Ipv4Addr> = chosen.iter().map(|interface| interface.address).collect();
    (addresses.len() == hosts.len()).then_some(chosen)
}

fn lacks(host: &Candidate<'_>, what: &str) -> String {
    format!("{} has not got {what}: choose another with --hosts END=HOST%INTERFACE", host.spec.place)
}

fn ambiguous(hosts: &[Candidate<'_>], all: &[Vec<&HostInterface>]) -> String {
    let list = |(host, interfaces): (&Candidate<'_>, &Vec<&HostInterface>)| {
        let interfaces = interfaces.iter().map(|it| format!("{} {}/{}", it.name, it.address, it.prefix));
        format!("{} has {}", host.spec.place, interfaces.collect::<Vec<_>>().join(", "))
    };
    let lists: Vec<String> = hosts.iter().zip(all).map(list).collect();
    format!(
        "it is not clear by which addresses the hosts reach each other: name the interfaces, as in --hosts \
         pub=HOST%eth0,sub=HOST%eth0 ({})",
        lists.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NAME ADDRESS/PREFIX` for each interface, then perhaps `reached SERVER CLIENT`.
    fn facts(text: &str) -> HostFacts {
        let mut facts = HostFacts::default();
        for part in text.split(", ") {
            let words: Vec<&str> = part.split(' ').collect();
            if let ["reached", server, client] = words[..] {
                facts.reached = Some((server.parse().unwrap(), client.parse().unwrap()));
            } else if let ["network", name] = words[..] {
                name.clone_into(&mut facts.network);
            } else {
                let (address, prefix) = words[1].split_once('/').unwrap();
                facts.interfaces.push(HostInterface {
                    name: words[0].to_owned(),
                    address: address.parse().unwrap(),
                    prefix: prefix.parse().unwrap(),
                    is_loopback: words[0] == "lo",
                });
            }
        }
        facts
    }

    fn chosen(hosts: &[(&str, &str)], requested: Option<&str>) -> Result<Vec<String>, String> {
        let hosts: Vec<(HostSpec, HostFacts)> =
            hosts.iter().map(|(spec, text)| (spec.parse().unwrap(), facts(text))).collect();
        let candidates: Vec<Candidate<'_>> =
            hosts.iter().map(|(spec, facts)| Candidate { spec, facts }).collect();
        let chosen = choose(&candidates, requested)?;
        Ok(chosen.iter().map(|it| format!("{} {}", it.name, it.address)).collect())
    }

    const LO: &str = "lo 127.0.0.1/8";

    #[track_caller]
    fn check(hosts: [(&str, &str); 2], expected: [&str; 2]) {
        let with_lo = hosts.map(|(spec, text)| (spec, format!("{LO}, {text}")));
        let hosts = [0, 1].map(|index| (with_lo[index].0, with_lo[index].1.as_str()));
        assert_eq!(chosen(&hosts, None).unwrap(), expected);
    }

    #[test]
    fn hosts_meet_in_the_network_that_they_share() {
        let a = "eth0 10.0.0.1/24, docker0 172.17.0.1/16";
        check(
            [("a", a), ("b", "docker0 172.17.0.1/16, ens3 10.0.0.2/24")],
            ["eth0 10.0.0.1", "ens3 10.0.0.2"],
        );
    }

    #[test]
    fn of_several_networks_that_of_ssh_is_chosen_or_the_requested_one() {
        let a = "eth0 10.0.0.1/24, ib0 10.1.0.1/24";
        let b = "eth0 10.0.0.2/24, ib0 10.1.0.2/24, reached 10.0.0.2 10.0.0.1";
        check([("local", a), ("b", b)], ["eth0 10.0.0.1", "eth0 10.0.0.2"]);
        check([("local", a), ("b%ib0", b)], ["ib0 10.1.0.1", "ib0 10.1.0.2"]);
        assert_eq!(chosen(&[("local", a), ("b", b)], Some("ib0")).unwrap(), ["ib0 10.1.0.1", "ib0 10.1.0.2"]);
    }

    #[test]
    fn hosts_in_different_networks_use_the_addresses_of_ssh() {
        let a = "eth0 10.0.0.1/24, eth1 192.0.2.1/24";
        let b = "ens3 10.9.0.2/24, ens4 198.51.100.1/24, reached 10.9.0.2 10.0.0.1";
        check([("local", a), ("b", b)], ["eth0 10.0.0.1", "ens3 10.9.0.2"]);
        let a = "eth0 10.0.0.1/24, eth1 192.0.2.1/24, reached 10.0.0.1 10.5.0.5";
        check([("a", a), ("b", b)], ["eth0 10.0.0.1", "ens3 10.9.0.2"]);
    }

    #[test]
    fn one_host_uses_its_loopback_interface() {
        assert_eq!(chosen(&[("a", "eth0 10.0.0.1/24, lo 127.0.0.1/8")], None).unwrap(), ["lo 127.0.0.1"]);
    }

    #[test]
    fn a_host_of_two_names_is_one() {
        let here = "lo 127.0.0.1/8, eth0 10.0.0.1/24, network 1";
        let there = "eth0 10.0.0.2/24, network 2, reached 10.0.0.2 10.0.0.1";
        let expected = ["eth0 10.0.0.1", "eth0 10.0.0.2", "eth0 10.0.0.1"];
        assert_eq!(chosen(&[("local", here), ("b", there), ("a", here)], None).unwrap(), expected);
        assert_eq!(chosen(&[("local", here), ("a", here)], None).unwrap(), ["lo 127.0.0.1", "lo 127.0.0.1"]);
    }

    #[test]
    fn what_is_not_clear_is_asked_for_with_what_there_is() {
        let a = "eth0 10.0.0.1/24, ib0 10.1.0.1/24";
        let b = "eth0 10.0.0.2/24, ib0 10.1.0.2/24";
        let error = chosen(&[("netns:a", a), ("netns:b", b)], None).unwrap_err();
        assert!(
            error.contains("pub=HOST%eth0") && error.contains("netns:b has eth0 10.0.0.2/24, ib0"),
            "{error}"
        );
        let error = chosen(&[("a", a), ("b%eth7", b)], None).unwrap_err();
        assert!(
            error.contains("b: `eth7` is no network interface") && error.contains("eth0, ib0"),
            "{error}"
        );
        let error = chosen(&[("a", a), ("b", LO)], None).unwrap_err();
        assert!(error.contains("b has not got an interface"), "{error}");
    }
}
