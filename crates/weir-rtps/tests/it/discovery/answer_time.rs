//! How long a participant took to answer when it was discovered.

use core::time::Duration;

use weir_netsim::Link;
use weir_rtps::qos::Qos;

use super::world::{World, matched};

#[test]
fn a_matched_endpoint_says_how_long_its_participant_took_to_answer() {
    for one_way in [Duration::from_micros(100), Duration::from_millis(300)] {
        let mut world = World::new();
        let nodes = [world.start(), world.start()];
        let hosts = nodes.map(|node| *world.nodes[node].address.ip());
        for (from, to) in [(0, 1), (1, 0)] {
            world.network.set_link(hosts[from], hosts[to], Link::new().delay(one_way));
        }
        world.add_writer(nodes[0], 1, "Square", Qos::for_writer());
        world.add_reader(nodes[1], 1, "Square", Qos::for_reader());
        world.run_for(Duration::from_secs(10));
        for node in nodes {
            let remote = world.nodes[node].events.iter().find_map(|(_, event)| matched(event));
            let took = remote.expect("it is matched").answer_time;
            assert!((one_way * 2..one_way * 5).contains(&took), "{took:?} of {one_way:?} one way");
        }
    }
}
