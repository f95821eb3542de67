//! Exchanges over a cable between two namespaces that loses packets one by one.

use std::process::Command;

use weir_interop::Requirement;
use weir_interop::netns::Cable;
use weir_interop::peer::{Exchange, Peer, Role};
use weir_interop::shape::{check_all, check_some};

fn weir() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shape_weir"));
    command.env("WEIR_INTERFACES", Cable::INTERFACE);
    command
}

/// Lets one process write to another one over a lossy cable; returns the other one's output.
/// Discovery precedes the losses: its time under loss varies too much.
fn exchange(is_reliable: bool, count: u32, loss_percent: u32) -> Vec<String> {
    let cable = Cable::lay();
    let exchange = Exchange { domain: 7, topic: "cable".into(), is_reliable };
    let mut subscriber = Peer::start(&weir(), Some(&cable.one), Role::Subscribe, &exchange);
    let mut publisher = Peer::start(&weir(), Some(&cable.other), Role::Publish(count), &exchange);
    publisher.wait_for_match();
    subscriber.wait_for_match();
    if loss_percent > 0 {
        cable.lose(loss_percent);
    }
    publisher.begin();
    let received = subscriber.finish();
    let _ = publisher.finish();
    if loss_percent > 0 {
        // Half of the expected number: the loss is random, and samples may share packets.
        assert!(
            cable.lost() > u64::from(count * loss_percent / 200),
            "only {} packets were lost",
            cable.lost()
        );
    }
    received
}

#[test]
fn everything_arrives_over_a_cable_that_loses_a_tenth() {
    if Requirement::Netns.is_met() {
        check_all(&exchange(true, 50_000, 10), 50_000);
    }
}

#[test]
fn best_effort_arrives_over_a_cable() {
    if Requirement::Netns.is_met() {
        check_some(&exchange(false, 200, 0));
    }
}
