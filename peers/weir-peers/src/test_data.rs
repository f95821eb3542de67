//! The measured type, for engines that derive its serialization; only their attributes differ.

/// Declares the type `$name` and implements the calling module's `Data` for it.
///
/// The attributes before the name are those of the type, the one after it that of the key. The fields have the
/// order of `TestData_t` in RTI Perftest's `test.idl`.
macro_rules! test_data {
    ($(#[$of_type:meta])* $name:ident $(, #[$key:meta])?) => {
        $(#[$of_type])*
        struct $name {
            $(#[$key])?
            key: [u8; 4],
            entity_id: i32,
            seq_num: u32,
            timestamp_sec: i32,
            timestamp_usec: u32,
            latency_ping: i32,
            bin_data: Vec<u8>,
        }

        impl Data for $name {
            fn new(header: &Header, payload: &[u8]) -> Self {
                let Header { key, entity_id, seq_num, timestamp_sec, timestamp_usec, latency_ping } = *header;
                let bin_data = payload.to_vec();
                Self { key, entity_id, seq_num, timestamp_sec, timestamp_usec, latency_ping, bin_data }
            }

            fn parts(&self) -> (Header, &[u8]) {
                let Self { key, entity_id, seq_num, timestamp_sec, timestamp_usec, latency_ping, .. } = *self;
                let header = Header { key, entity_id, seq_num, timestamp_sec, timestamp_usec, latency_ping };
                (header, &self.bin_data)
            }
        }
    };
}

pub(crate) use test_data;
