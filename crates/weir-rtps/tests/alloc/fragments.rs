//! Allocations of a reader for fragments of samples that are never completed.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use weir_rtps::config;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::time::Time;
use weir_wire::{DataFrag, EntityId, Guid, GuidPrefix, SequenceNumber, VendorId};

use crate::allocated;

const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, false));

/// Returns the bytes that a reader allocates for one fragment of 512 bytes of a sample of a
/// gigabyte.
fn allocated_by(reliability: Reliability, fragment_start: u32) -> usize {
    let config = ReaderConfig { history: History::KeepAll, ..ReaderConfig::new(READER, reliability) };
    let mut reader = ReaderCore::new(config);
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let writer = WriterProxyConfig { guid: WRITER, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(Time(0), writer);
    let frag = DataFrag {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(1),
        fragment_start,
        fragments: 1,
        fragment_size: 512,
        sample_size: 1 << 30,
        is_key: false,
        inline_qos: None,
        payload: &[7; 512],
    };
    let before = allocated();
    reader.handle_data_frag(Time(1), WRITER, &frag, None);
    allocated() - before
}

pub(crate) fn one_fragment_of_a_sample_of_a_gigabyte_allocates_about_a_megabyte_at_most() {
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        for fragment_start in [1, 2, 1_000, 2_048, 2_049, 100_000, 1 << 21] {
            let bytes = allocated_by(reliability, fragment_start);
            assert!(
                bytes <= config::REASSEMBLY_REACH_MIN_BYTES + 64 * 1024,
                "fragment {fragment_start}: {bytes} bytes"
            );
        }
    }
}
