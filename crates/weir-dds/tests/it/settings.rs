//! Invalid settings, and their errors.

use weir_dds::{DdsError, DomainParticipant, ParticipantSettings};

use crate::support::{Numbered, World, settings};

fn error(domain_id: u32, settings: ParticipantSettings) -> DdsError {
    DomainParticipant::new(domain_id, settings).unwrap_err()
}

#[test]
fn an_unknown_interface_is_named_with_those_that_are_there() {
    let error = error(1, ParticipantSettings::default().interface("nowhere0"));
    assert!(matches!(error, DdsError::BadParameter(_)));
    let text = error.to_string();
    assert!(text.contains("nowhere0") && text.contains("lo (127.0.0.1)"), "{text}");
}

#[test]
fn one_unknown_interface_among_others_is_an_error_too() {
    assert!(error(1, settings().interface("nowhere0")).to_string().contains("nowhere0"));
}

#[test]
fn an_interface_may_be_named_by_its_address() {
    let world = World::new();
    let participant = world.participant_with(ParticipantSettings::default().interface("127.0.0.1"));
    assert!(participant.user_address().ip().is_loopback());
}

#[test]
fn a_domain_id_over_232_is_refused_with_the_range() {
    for domain_id in [233, 1_000, u32::MAX] {
        let error = error(domain_id, settings());
        assert!(matches!(error, DdsError::BadParameter(_)));
        let text = error.to_string();
        assert!(text.contains(&domain_id.to_string()) && text.contains("232"), "{text}");
    }
}

#[test]
fn a_topic_needs_a_name_that_fits() {
    let participant = World::new().participant();
    for name in ["", "with\0zero", &"x".repeat(257)] {
        let error = participant.create_topic::<Numbered>(name).unwrap_err();
        assert!(matches!(&error, DdsError::BadParameter(_)));
        assert!(error.to_string().contains("topic name"), "{error}");
    }
    let topic = participant.create_topic::<Numbered>(&"x".repeat(256)).unwrap();
    assert_eq!((topic.name().len(), topic.type_name()), (256, "Numbered"));
}

#[test]
fn buffers_are_as_large_as_they_were_asked_for_at_least_or_say_so() {
    let world = World::new();
    let mut small = settings();
    small.receive_buffer = 64 * 1024;
    let mut large = settings();
    large.receive_buffer = 1 << 40;
    let (small, large) = (world.participant_with(small), world.participant_with(large));
    assert!(small.granted_receive_buffer() >= 64 * 1024);
    assert!(large.granted_receive_buffer() >= small.granted_receive_buffer());
}
