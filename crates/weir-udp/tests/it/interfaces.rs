//! The list of interfaces.

use std::net::Ipv4Addr;

use weir_udp::interfaces;

#[test]
fn loopback_is_listed_with_its_facts() {
    let found = interfaces().unwrap();
    let lo = found.iter().find(|interface| interface.address == Ipv4Addr::LOCALHOST).unwrap();
    assert_eq!((lo.name.as_str(), lo.netmask), ("lo", Ipv4Addr::new(255, 0, 0, 0)));
    assert!(lo.index > 0 && lo.mtu >= 1500, "{lo:?}");
    assert!(lo.is_up && lo.is_loopback, "{lo:?}");
}

#[test]
fn facts_agree_with_sysfs() {
    // /sys may belong to another network namespace, without the interface.
    for interface in interfaces().unwrap() {
        let read = |fact| std::fs::read_to_string(format!("/sys/class/net/{}/{fact}", interface.name)).ok();
        if let (Some(index), Some(mtu)) = (read("ifindex"), read("mtu")) {
            assert_eq!(index.trim(), interface.index.to_string(), "{interface:?}");
            assert_eq!(mtu.trim(), interface.mtu.to_string(), "{interface:?}");
        }
    }
}
