//! Datagrams of an attacker, made before the start.

use core::net::SocketAddrV4;

use weir_rtps::driver::Port;
use weir_wire::{EntityId, Guid, GuidPrefix, ParameterId};

use crate::forge::{self, Forged};
use crate::wire::address;

/// Returns datagrams, and the port for each: announcements of more participants and endpoints than there is room for,
/// samples in the name of a known writer and of unknown ones, and submessages that are malformed. `host`: the attacker.
/// `writers`: known ones, and a number that they will soon have reached.
pub(crate) fn datagrams(host: usize, writers: impl Iterator<Item = (Guid, i64)>) -> Vec<(Port, Forged)> {
    let answers = address(host, Port::Metatraffic);
    let mut all = Vec::new();
    for index in 0..6 {
        all.extend(participant(stranger(index), answers).map(|it| (Port::Metatraffic, it)));
    }
    for (writer, number) in writers {
        all.extend(samples(writer, number).map(|it| (Port::User, it)));
    }
    all.extend(
        samples(Guid::new(stranger(1), EntityId::user_writer(77, false)), 1).map(|it| (Port::User, it)),
    );
    for port in [Port::Metatraffic, Port::User] {
        let by = || Forged::by(stranger(2));
        all.push((port, by().raw(0x15, 0, 2_000, &[0; 40])));
        all.push((port, by().raw(0x7f, 0, 4, &[1, 2, 3, 4])));
        all.push((port, by().raw(0x06, 0, 24, &[0xff; 24])));
        all.push((port, Forged(b"RTPSX".to_vec())));
        all.push((port, Forged(vec![0; 300])));
    }
    all
}

/// A participant that exists only in announcements.
fn stranger(index: u8) -> GuidPrefix {
    GuidPrefix([0xe0, index, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
}

/// A participant that announces itself and endpoints, with texts of different lengths.
fn participant(prefix: GuidPrefix, answers: SocketAddrV4) -> [Forged; 4] {
    let by = || Forged::by(prefix);
    let endpoint = |number, topic: &str| {
        forge::endpoint(Guid::new(prefix, EntityId::user_writer(number, false)), topic, |_| {})
    };
    let publications = EntityId::SEDP_PUBLICATIONS_WRITER;
    [
        by().data(EntityId::SPDP_WRITER, 1, &forge::participant(prefix, answers)),
        by().data(
            EntityId::SPDP_WRITER,
            2,
            &forge::participant_with(prefix, answers, |list| {
                list.string(ParameterId::ENTITY_NAME, "a name");
                list.byte_sequence(ParameterId::USER_DATA, &[7; 100]);
            }),
        ),
        by().data(publications, 1, &endpoint(1, "Stream")),
        by().data(publications, 2, &endpoint(2, &"d".repeat(300))).heartbeat(publications, 1, 9, 1),
    ]
}

/// Samples of a writer: alone, behind missing ones, in fragments, and said to be gone.
fn samples(Guid { prefix, entity: writer }: Guid, number: i64) -> [Forged; 5] {
    let (by, count) = (|| Forged::by(prefix), number as u32);
    [
        by().data(writer, number, &forge::sample(count, 1, 200)),
        by().heartbeat(writer, 1, number, count + 1_000).gap(writer, number + 2, number + 5, &[number + 9]),
        by().frag(writer, number + 7, (2, 1_000, 5_000), &[7; 1_000]),
        by().frag(writer, number + 8, (1, 1_000, 200_000), &[7; 1_000]),
        by().heartbeat_frag(writer, number + 7, 4, count + 1).nack_frag(
            (EntityId::user_reader(2, false), writer),
            number,
            &[1, 2],
            9,
        ),
    ]
}
