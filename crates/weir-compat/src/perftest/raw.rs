//! The procedure without DDS, over plain UDP sockets: `-rawTransport`, the baseline.
//!
//! A subscriber's port follows from the domain and its number, as in RTPS; a publisher has a
//! connected socket for each subscriber. Only the messages that start and end a run are repeated:
//! lost samples stay lost. Both ends report once a second that they are alive. Datagrams hold
//! samples in their usual form, several in a batch.

mod publisher;
mod subscriber;

pub(super) use publisher::publish;
pub(super) use subscriber::subscribe;

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use weir_dds::ParticipantSettings;
use weir_results::WaitStrategy;
use weir_udp::{SocketOptions, UdpSocket};

use super::settings::NodeSettings;
use weir_bench::endpoint::EndpointError;
use weir_bench::host::{self, HostError};
use weir_bench::payload::{self, HEADER_BYTES, ReceivedSample, SampleHeader};

/// The largest sample or batch: it is one datagram.
pub const RAW_BYTES_MAX: usize = weir_baseline::DATAGRAM_BYTES_MAX;

/// How often each end reports that it is alive.
const ALIVE: Duration = Duration::from_secs(1);
/// After this silence, an end counts as gone.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How long an end waits for a datagram between two checks.
const TICK: Duration = Duration::from_millis(50);

/// Sockets by the settings and the environment.
struct Sockets {
    bind: Ipv4Addr,
    receive_buffer: usize,
    send_buffer: usize,
    wait: WaitStrategy,
}

impl Sockets {
    fn new(settings: &NodeSettings) -> Result<Self, EndpointError> {
        let environment = |text: String| EndpointError::Environment(text);
        let from = ParticipantSettings::from_environment().map_err(|error| environment(error.to_string()))?;
        let bind = match &settings.interfaces[..] {
            [] => Ipv4Addr::UNSPECIFIED,
            [name] => match name.parse() {
                Ok(address) => address,
                Err(_) => host::interface_address(name).map_err(|error| environment(no_interface(error)))?,
            },
            _ => return Err(environment("-rawTransport has one interface: give -nic once".to_owned())),
        };
        Ok(Self {
            bind,
            receive_buffer: from.receive_buffer,
            send_buffer: from.send_buffer,
            wait: match from.wait {
                weir_dds::WaitStrategy::Spin => WaitStrategy::Spin,
                weir_dds::WaitStrategy::SpinThenBlock(spin) => WaitStrategy::SpinThenBlock {
                    spin_us: u32::try_from(spin.as_micros()).unwrap_or(u32::MAX),
                },
                _ => WaitStrategy::Block,
            },
        })
    }

    fn open(&self, port: u16) -> Result<UdpSocket, EndpointError> {
        let options = SocketOptions {
            recv_buffer: Some(self.receive_buffer),
            send_buffer: Some(self.send_buffer),
            ..SocketOptions::new(SocketAddrV4::new(self.bind, port))
        };
        UdpSocket::bind(&options).map_err(|error| EndpointError::Environment(error.to_string()))
    }
}

/// Names perftest's option where that of `weir bench` has another name.
fn no_interface(error: HostError) -> String {
    match error {
        HostError::NoInterface { name, known } => {
            format!("`{name}` is no network interface that is up and has an IPv4 address; -nic takes {known}")
        }
        other => other.to_string(),
    }
}

/// The port of a subscriber: that for user data of the participant whose number is twice its own
/// plus one.
fn port(domain: u32, sid: u32) -> Result<u16, EndpointError> {
    let port = sid.checked_mul(4).and_then(|offset| offset.checked_add(7400 + 250 * domain + 13));
    port.and_then(|port| u16::try_from(port).ok()).ok_or_else(|| {
        EndpointError::Environment(format!("there is no port for subscriber {sid} in domain {domain}"))
    })
}

/// The samples in a datagram, up to the first invalid one.
fn samples(mut datagram: &[u8]) -> impl Iterator<Item = ReceivedSample<'_>> {
    std::iter::from_fn(move || {
        let length = *datagram.get(24..HEADER_BYTES)?.first_chunk::<4>()?;
        let length = (u32::from_le_bytes(length) as usize).checked_add(HEADER_BYTES)?;
        let (sample, rest) = datagram.split_at_checked(length)?;
        datagram = rest;
        payload::read(sample)
    })
}

/// A sample of a header and a payload.
fn sample(header: &SampleHeader, payload: &[u8]) -> Vec<u8> {
    let mut sample = vec![0; HEADER_BYTES];
    sample.extend_from_slice(payload);
    payload::write_header(&mut sample, header);
    sample
}

fn failed(what: &str, error: &io::Error) -> EndpointError {
    EndpointError::Engine(format!("{what} failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perftest::settings::tests::node;

    #[test]
    fn samples_of_a_batch_are_told_apart() {
        let mut batch = Vec::new();
        for sequence in 0..3 {
            batch.extend(sample(&SampleHeader::data(sequence, 0), &vec![7; sequence as usize * 10]));
        }
        let lengths: Vec<_> = samples(&batch).map(|sample| sample.payload.len()).collect();
        assert_eq!(lengths, [0, 10, 20]);
        assert_eq!(samples(&batch[..batch.len() - 1]).count(), 2);
        assert_eq!(samples(&[0xff; 40]).count(), 0);
        assert_eq!(samples(&[]).count(), 0);
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_with_the_option() {
        let node = NodeSettings { interfaces: vec!["nope0".to_owned()], ..node() };
        let error = Sockets::new(&node).err().unwrap().to_string();
        assert!(
            error.contains("`nope0`") && error.contains("-nic takes") && !error.contains("--"),
            "{error}"
        );
    }

    #[test]
    fn every_subscriber_has_a_port_of_its_own() {
        assert_eq!((port(0, 0).unwrap(), port(0, 1).unwrap(), port(1, 0).unwrap()), (7413, 7417, 7663));
        assert!(port(232, 100).is_err() && port(0, u32::MAX).is_err());
    }
}
