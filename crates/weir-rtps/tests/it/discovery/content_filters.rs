//! Filters of readers, as their writers learn of them.

use weir_filter::limits;
use weir_rtps::content_filter::ContentFilterProperty;

use super::*;

fn property(parameter: &str) -> ContentFilterProperty {
    let (name, topic, expression) = ("filtered", "Square", "x < %0");
    ContentFilterProperty::sql(name.into(), topic.into(), expression.into(), vec![parameter.into()])
}

fn filter_of(event: &DiscoveryEvent) -> Option<ContentFilterProperty> {
    match event {
        DiscoveryEvent::ReaderMatched { reader, .. } | DiscoveryEvent::ReaderChanged { reader, .. } => {
            reader.content_filter.as_deref().cloned()
        }
        _ => None,
    }
}

/// A writer on node 0, and a reader on node 1 with this filter.
fn announced(filter: ContentFilterProperty) -> (World, EntityId) {
    let mut world = World::new();
    world.start();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    let entity = EntityId::user_reader(1, false);
    world.nodes[1].core.prepare_content_filter(entity, filter);
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    (world, entity)
}

#[test]
fn a_writer_learns_the_filter_with_the_reader_and_each_change_of_it() {
    let (mut world, entity) = announced(property("10"));
    assert_eq!(world.events(0).iter().find_map(filter_of), Some(property("10")));
    let now = world.now;
    world.nodes[1].core.change_content_filter(now, entity, property("20"));
    world.run_for(ms(50));
    assert_eq!(world.events(0).iter().find_map(filter_of), Some(property("20")));
    // The same once more is no news, and the filter stays when policies change.
    let now = world.now;
    world.nodes[1].core.change_content_filter(now, entity, property("20"));
    world.run_for(ms(50));
    assert_eq!(world.events(0).len(), 0);
    let qos = Qos { user_data: vec![1], ..Qos::for_reader() };
    world.add_reader(1, 1, "Square", qos);
    world.run_for(ms(50));
    assert_eq!(world.events(0).iter().find_map(filter_of), Some(property("20")));
    // The next reader with this id begins without one.
    let now = world.now;
    world.nodes[1].core.remove_reader(now, entity);
    world.add_reader(1, 1, "Square", Qos::for_reader());
    world.run_for(ms(50));
    let events = world.events(0);
    assert!(events.iter().any(|event| matched(event).is_some()), "{events:?}");
    assert_eq!(events.iter().find_map(filter_of), None);
}

#[test]
fn a_filter_over_a_limit_is_left_out_and_the_reader_still_matches() {
    for over in [
        ContentFilterProperty { expression: "x".repeat(limits::EXPRESSION_MAX_BYTES + 1), ..property("1") },
        property(&"1".repeat(limits::PARAMETER_MAX_BYTES + 1)),
        ContentFilterProperty {
            parameters: vec![String::new(); limits::PARAMETERS_MAX + 1],
            ..property("1")
        },
        ContentFilterProperty { class: "c".repeat(4097), ..property("1") },
    ] {
        let (mut world, _) = announced(over);
        let events = world.events(0);
        assert!(events.iter().any(|event| matched(event).is_some()), "{events:?}");
        assert_eq!(events.iter().find_map(filter_of), None);
    }
}
