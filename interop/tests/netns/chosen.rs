//! Traffic is kept to the interfaces that the settings name.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_dds::{ParticipantSettings, Peer};
use weir_interop::Requirement;
use weir_interop::netns::Cable;
use weir_rtps::ports;

use crate::pair::{DOMAIN, LIMIT, participant, reader, writer};

fn interfaces(names: &[&str]) -> ParticipantSettings {
    names.iter().fold(ParticipantSettings::default(), |settings, name| settings.interface(*name))
}

#[test]
fn what_is_sent_to_another_interface_is_not_accepted() {
    if !Requirement::Netns.is_met() {
        return;
    }
    for names in [&["lo"][..], &["weir1"], &["lo", "weir1"], &["127.0.0.1"], &["10.77.1.1"]] {
        let cable = Cable::unplugged();
        cable.plug(0);
        cable.plug(1);
        let (one, other) = (&cable.one, &cable.other);
        // Ids 0 and 1 of this host.
        let careful = participant(one, &interfaces(names));
        let careful_reader = reader(one, &careful);
        // Unicast to the port of the group reaches the newest socket there: that is the careful one's.
        let witness = interfaces(&["weir0"]).without_multicast();
        let witness = participant(one, &witness);
        let witness_reader = reader(one, &witness);
        // Announces itself to every port of theirs on weir0, to the witness last.
        let unicast = |id| ports::metatraffic_unicast_port(DOMAIN, id);
        let group = ports::metatraffic_multicast(DOMAIN).as_ref().map(SocketAddrV4::port);
        let mut outsider = ParticipantSettings::default().without_multicast();
        for port in [group, unicast(0), unicast(1)].into_iter().flatten() {
            outsider = outsider.peer(Peer::new(Ipv4Addr::new(10, 77, 0, 1).into()).port(port));
        }
        let _outsider_writer = writer(other, &participant(other, &outsider));
        one.within(|| witness_reader.wait_for_publications(1, LIMIT).unwrap());
        assert_eq!(witness.discovered_participants().len(), 1, "{names:?}");
        // What this one sends arrives after what the outsider has sent.
        let friend = participant(one, &interfaces(names));
        let _friend_writer = writer(one, &friend);
        one.within(|| careful_reader.wait_for_publications(1, LIMIT).unwrap());
        assert_eq!(careful.discovered_participants().len(), 1, "{names:?}");
    }
}
