//! For how long discovery traffic of a large domain is left to gather.

use super::*;
use weir_rtps::config;
use weir_rtps::participant::Gathering;

#[test]
fn discovery_of_a_large_domain_gathers_and_at_rest_only_that_of_the_group() {
    let mut world = World::new();
    for _ in 0..config::LARGE_DOMAIN {
        world.start();
    }
    world.run_for(Duration::from_secs(2));
    let gathering = |world: &World| world.nodes[0].core.gathering(world.now);
    assert_eq!(gathering(&world), Gathering::default(), "one participant less");

    let last = world.start();
    world.run_for(ms(100));
    let each = config::GATHERING_TIME * config::LARGE_DOMAIN as u32;
    assert_eq!(gathering(&world), Gathering { all: each, group: each });
    world.run_for(config::CALM_AFTER);
    assert_eq!(gathering(&world), Gathering { all: Duration::ZERO, group: config::CALM_PAUSE });

    let other = world.start();
    world.run_for(ms(100));
    assert!(!gathering(&world).all.is_zero(), "a participant has appeared");
    world.run_for(config::CALM_AFTER);
    assert!(gathering(&world).all.is_zero());
    for node in [last, other] {
        world.nodes[node].core.close(world.now);
    }
    world.run_for(ms(100));
    assert_eq!(gathering(&world), Gathering::default());
}
