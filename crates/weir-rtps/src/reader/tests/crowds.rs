//! Many writers of one reader.

use super::*;

#[test]
fn requests_for_the_first_heartbeats_of_many_writers_are_repeated_together() {
    let repeated_at = |writers: u8| {
        let mut reader = ReaderCore::new(ReaderConfig::new(READER, Reliability::Reliable));
        for number in 0..writers {
            let now = Time(u64::from(number) * 50_000);
            let guid = Guid::new(GuidPrefix([number + 1; 12]), WRITER.entity);
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
            let writer = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            reader.match_writer(now, writer);
            assert_eq!(answers(&mut reader, now).len(), 1);
        }
        let mut at = Vec::new();
        for proxy in &reader.writers.list {
            at.push(proxy.next_timeout().unwrap());
        }
        at.sort_unstable();
        at.dedup();
        at
    };
    assert_eq!(repeated_at(10).len(), 10, "each after its time");
    // The first ten do not know yet that there will be many.
    assert!(repeated_at(100).len() < 25);
}
