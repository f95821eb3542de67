//! Interfaces and addresses that change while participants run. The participants follow, and stay
//! matched.

use std::time::Duration;

use weir_dds::{MulticastGroup, ParticipantSettings};
use weir_interop::Requirement;
use weir_interop::netns::Cable;

use crate::pair::{LIMIT, Pair, participant, reader};

/// All interfaces; chosen interfaces; user data by multicast.
fn settings() -> [ParticipantSettings; 3] {
    let all = ParticipantSettings::default();
    let grouped = all.clone().data_multicast(MulticastGroup::default());
    [all.clone(), all.interface(Cable::INTERFACE), grouped]
}

/// A pair that has matched and exchanged a sample.
fn matched<'a>(cable: &'a Cable, settings: &ParticipantSettings) -> Pair<'a> {
    let mut pair = Pair::start(cable, settings);
    pair.wait_for_match();
    pair.exchange("the match");
    pair
}

/// Runs a test with each of the settings, on a cable of its own.
fn with_matched(test: impl Fn(&Cable, &ParticipantSettings, &mut Pair<'_>)) {
    if !Requirement::Netns.is_met() {
        return;
    }
    for settings in settings() {
        let cable = Cable::lay();
        let mut pair = matched(&cable, &settings);
        test(&cable, &settings, &mut pair);
    }
}

#[test]
fn an_address_that_is_replaced_is_followed() {
    with_matched(|cable, _, pair| {
        for (end, before, after) in [(&cable.one, 1, 11), (&cable.other, 2, 12), (&cable.one, 11, 21)] {
            end.ip(&format!("address delete 10.77.0.{before}/24 dev weir0"));
            end.ip(&format!("address add 10.77.0.{after}/24 dev weir0"));
            pair.exchange(&format!("10.77.0.{before} became 10.77.0.{after}"));
        }
        pair.check_match();
    });
}

#[test]
fn an_address_that_comes_back_is_used() {
    with_matched(|cable, _, pair| {
        for (end, host) in [(&cable.one, 1), (&cable.other, 2)] {
            for change in ["delete", "add"] {
                end.ip(&format!("address {change} 10.77.0.{host}/24 dev weir0"));
            }
            pair.exchange("the same address was deleted and added");
            for change in ["down", "up"] {
                end.ip(&format!("link set weir0 {change}"));
            }
            pair.exchange("the link was down and up");
        }
        pair.check_match();
    });
}

#[test]
fn an_interface_that_appears_after_the_start_is_used() {
    if !Requirement::Netns.is_met() {
        return;
    }
    for settings in settings() {
        let cable = Cable::unplugged();
        // A named interface has to exist at the start.
        let is_named = !settings.interfaces.is_empty();
        if is_named {
            cable.plug(0);
        }
        let mut pair = Pair::start(&cable, &settings);
        if is_named {
            cable.unplug(0);
        }
        cable.plug(0);
        pair.wait_for_match();
        pair.exchange("the interface appeared");
    }
}

#[test]
fn groups_are_joined_anew_on_an_interface_that_is_recreated() {
    with_matched(|cable, settings, pair| {
        cable.unplug(0);
        cable.plug(0);
        pair.exchange("the interface was recreated");
        pair.check_match();
        // Nothing but multicast leads the new one to the old ones.
        let second = reader(&cable.other, &participant(&cable.other, settings));
        cable.one.within(|| pair.writer.wait_for_subscriptions(2, LIMIT).unwrap());
        cable.other.within(|| second.wait_for_publications(1, LIMIT).unwrap());
    });
}

#[test]
fn when_one_of_two_links_goes_down_the_other_one_is_used() {
    if !Requirement::Netns.is_met() {
        return;
    }
    let [all, _, grouped] = settings();
    for settings in [all.clone(), all.interface("weir0").interface("weir1"), grouped] {
        let cable = Cable::unplugged();
        cable.plug(0);
        cable.plug(1);
        fail_over(&cable, &settings);
    }
}

#[test]
fn a_link_that_goes_down_at_one_end_only_is_left_by_both() {
    if !Requirement::Netns.is_met() {
        return;
    }
    for settings in settings().into_iter().filter(|settings| settings.interfaces.is_empty()) {
        let mut cable = Cable::unplugged();
        cable.plug_through_switch(0);
        cable.plug_through_switch(1);
        fail_over(&cable, &settings);
    }
}

#[test]
fn samples_that_are_refused_while_there_is_no_route_arrive_later() {
    with_matched(|cable, settings, pair| {
        cable.one.ip("route delete 10.77.0.0/24 dev weir0");
        (0..3).for_each(|_| pair.write());
        let refused = pair.writer.send_counters().refused;
        cable.one.ip("route add 10.77.0.0/24 dev weir0 src 10.77.0.1");
        pair.wait_for_all("the route was back");
        if settings.data_multicast.is_none() {
            assert!(refused >= 3, "{refused}");
        }
        pair.exchange("the route was back");
        pair.check_match();
    });
}

#[test]
fn a_link_that_dies_unnoticed_is_left_when_announcements_arrive_over_the_other_one_only() {
    if !Requirement::Netns.is_met() {
        return;
    }
    let cable = Cable::unplugged();
    cable.plug(0);
    cable.plug(1);
    // Announced every second.
    let settings = ParticipantSettings::default().lease_duration(Duration::from_secs(3));
    let mut pair = matched(&cable, &settings);
    cable.lose(100);
    pair.exchange("one of two links lost everything");
    pair.check_match();
}

/// Takes down one of two links, at either end.
fn fail_over(cable: &Cable, settings: &ParticipantSettings) {
    let mut pair = matched(cable, settings);
    for end in [&cable.one, &cable.other] {
        for number in [0, 1] {
            end.ip(&format!("link set weir{number} down"));
            pair.exchange("one of two links went down");
            end.ip(&format!("link set weir{number} up"));
            pair.exchange("that link came up");
        }
    }
    pair.check_match();
}
