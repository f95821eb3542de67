//! The code point of a writer's datagrams (DSCP), as a socket in the multicast group of its readers receives it.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_dds::{Coalescing, DataWriter, DscpMapping, MulticastGroup, ParticipantSettings};
use weir_udp::{RecvBatch, SocketOptions, UdpSocket, Wait};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, settings};

struct Scene {
    writer: DataWriter<Numbered>,
    listener: UdpSocket,
    written: u64,
}

impl Scene {
    /// Calls `check` with a writer of this priority, two readers in a group, and a socket that receives what is sent
    /// there.
    fn with(settings: ParticipantSettings, priority: i32, port: u16, check: impl FnOnce(Self)) {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 77, 21), port);
        let options = SocketOptions { reuse_address: true, ..SocketOptions::new(group) };
        let listener = UdpSocket::bind(&options).unwrap();
        listener.join_multicast(*group.ip(), Ipv4Addr::LOCALHOST).unwrap();
        listener.report_type_of_service().unwrap();
        let world = World::new();
        let qos = lossless_writer().coalescing(Coalescing::Off).transport_priority(priority);
        let writer = world.writer(&world.participant_with(settings), qos);
        let group = MulticastGroup::new((*group.ip()).into()).port(port);
        let participants = [(); 2].map(|()| world.participant());
        let readers = participants
            .each_ref()
            .map(|it| world.reader::<Numbered>(it, lossless_reader().multicast(group)));
        matched(&[&writer], &readers.iter().collect::<Vec<_>>());
        check(Self { writer, listener, written: 0 });
    }

    /// Writes a sample; returns the type of service of its datagram.
    fn type_of_service(&mut self) -> u8 {
        self.writer.write(&Numbered::new(0, self.written)).unwrap();
        self.written += 1;
        self.writer.wait_for_acknowledgments(DEADLINE).unwrap();
        let mut batch = RecvBatch::new(1);
        let mut last = None;
        while self.listener.recv_batch(&mut batch, 1, Wait::DontWait).unwrap() > 0 {
            last = batch.get(0).map(|message| message.type_of_service);
        }
        last.expect("the group has received the sample before its readers have acknowledged it")
    }
}

#[test]
fn the_priority_of_a_writer_is_the_code_point_of_its_datagrams_and_may_change() {
    Scene::with(settings(), 46, 17_421, |mut scene| {
        assert_eq!(scene.type_of_service(), 46 << 2);
        for (priority, dscp) in [(10, 10), (0, 0), (34, 34), (-1, 0)] {
            scene.writer.set_transport_priority(priority).unwrap();
            assert_eq!(scene.type_of_service(), dscp << 2, "{priority}");
        }
    });
}

#[test]
fn a_setting_maps_priorities_to_code_points() {
    let settings = settings().dscp("10=18,20=46".parse().unwrap());
    Scene::with(settings, 15, 17_422, |mut scene| {
        assert_eq!(scene.type_of_service(), 18 << 2);
        scene.writer.set_transport_priority(1000).unwrap();
        assert_eq!(scene.type_of_service(), 46 << 2);
    });
}

#[test]
fn without_the_mapping_priorities_stay_within_the_host() {
    let settings = settings().dscp(DscpMapping::Off);
    Scene::with(settings, 46, 17_423, |mut scene| assert_eq!(scene.type_of_service(), 0));
}
