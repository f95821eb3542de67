//! `-rawTransport` and the other options.

use weir_compat::perftest::{RAW_BYTES_MAX, RawPeer};

use super::{Batching, TWO_DO_NOT_FIT, Typed, numbers};

/// Options that raw UDP does not support, each with the reason.
const REFUSED: &[(&str, &str)] = &[
    ("keyed", "datagrams have no key"),
    ("asynchronous", "the writing thread always sends"),
    ("durability", "raw UDP keeps no samples for late subscribers"),
    ("qosFile", "raw UDP has no QoS"),
    ("qosLibrary", "raw UDP has no QoS"),
    ("multicast", "raw UDP sends to each subscriber separately"),
    ("multicastAddr", "raw UDP sends to each subscriber separately"),
    ("sendQueueSize", "the only queue is the socket buffer: set WEIR_SEND_BUFFER"),
    ("receiveQueueSize", "the only queue is the socket buffer: set WEIR_RECEIVE_BUFFER"),
    ("profile", "it is a setting of the DDS engine"),
    ("noBlockingSockets", "a full socket buffer blocks the sender"),
    ("waitsetDelayUsec", "there is no waitset"),
    ("waitsetEventCount", "there is no waitset"),
];

/// More subscribers than a host has ports for.
const SIDS_MAX: usize = 1 << 14;

/// The addresses of a publisher's subscribers; `None` without `-rawTransport`.
///
/// # Errors
/// A sentence that says which options do not fit.
pub(super) fn peers(typed: &Typed) -> Result<Option<Vec<RawPeer>>, String> {
    if !typed.has("rawTransport") {
        return Ok(None);
    }
    if let Some((name, why)) = REFUSED.iter().find(|(name, _)| typed.has(name)) {
        return Err(format!("-{name} is not supported with -rawTransport: {why}; leave one of them out"));
    }
    if !typed.has("pub") {
        return Ok(Some(Vec::new()));
    }
    let peers = typed.all("peer");
    if peers.is_empty() {
        return Err(
            "-rawTransport needs -peer ADDRESS[:SID] at the publisher: there is no discovery".to_owned()
        );
    }
    let peers = peers.iter().map(|peer| parse(peer)).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(peers.into_iter().flatten().collect()))
}

/// The subscribers of `ADDRESS`, `ADDRESS:SID` or `ADDRESS:FIRST-LAST`.
fn parse(text: &str) -> Result<Vec<RawPeer>, String> {
    let (address, sid) = match text.split_once(':') {
        Some((address, sid)) => (address, Some(sid)),
        None => (text, None),
    };
    let bad = || {
        format!(
            "-peer takes ADDRESS or, with -rawTransport, ADDRESS:SID such as 10.0.0.2:1 or 10.0.0.2:0-3, not '{text}'"
        )
    };
    let address = address.parse().map_err(|_| bad())?;
    let Some(sids) = sid else { return Ok(vec![RawPeer { address, sid: None }]) };
    let sids = numbers(sids, SIDS_MAX).ok_or_else(bad)?;
    Ok(sids.into_iter().map(|sid| RawPeer { address, sid: u32::try_from(sid).ok() }).collect())
}

/// Raw UDP batches only with `-batchSize`, as in RTI Perftest.
///
/// # Errors
/// A sentence that says what does not fit.
pub(super) fn batching(typed: &Typed, data_len: u64, given: Option<u64>) -> Result<Batching, String> {
    if data_len > RAW_BYTES_MAX as u64 {
        return Err(format!(
            "samples of {data_len} bytes (-dataLen) are too large for -rawTransport: a sample is one datagram of \
             at most {RAW_BYTES_MAX} bytes"
        ));
    }
    let reason = match given {
        None | Some(0) => return Ok(Batching::Off),
        Some(_) if typed.has("latencyTest") => "a latency test sends one sample at a time",
        Some(_) if ["pubRate", "pubRatebps", "sleep"].into_iter().any(|name| typed.has(name)) => {
            "-rawTransport sends a batch when it is full, which would delay samples at this rate"
        }
        Some(bytes) if bytes < 2 * data_len => return Ok(Batching::Unsuitable(TWO_DO_NOT_FIT)),
        Some(bytes) => return Ok(Batching::On(usize::try_from(bytes).unwrap_or(usize::MAX))),
    };
    if typed.has("scan") {
        return Ok(Batching::Unsuitable(reason));
    }
    Err(format!("-batchSize {} is not possible: {reason}; use -batchSize 0", given.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn typed(line: &str) -> Typed {
        Typed::parse(line.split_whitespace().map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_publisher_names_its_subscribers() {
        assert_eq!(peers(&typed("-pub")), Ok(None));
        assert_eq!(peers(&typed("-sub -raw")), Ok(Some(Vec::new())));
        assert!(peers(&typed("-pub -raw")).unwrap_err().contains("needs -peer"));
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let found = peers(&typed("-pub -raw -peer 10.0.0.1 -peer 10.0.0.1:0")).unwrap().unwrap();
        assert_eq!(found, [RawPeer { address, sid: None }, RawPeer { address, sid: Some(0) }]);
        let sids = |line: &str| -> Vec<Option<u32>> {
            let found = peers(&typed(&format!("-pub -raw -peer {line}"))).unwrap().unwrap();
            assert!(found.iter().all(|peer| peer.address == address));
            found.iter().map(|peer| peer.sid).collect()
        };
        assert_eq!(sids("10.0.0.1:0-3"), [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(sids("10.0.0.1:5,7-8"), [Some(5), Some(7), Some(8)]);
        for line in [
            "-peer 10.0.0.1:3-0",
            "-peer 10.0.0.1:0-",
            "-peer x",
            "-peer 10.0.0.1:x",
            "-peer 10.0.0.1 -keyed",
            "-peer 10.0.0.1 -multicast",
        ] {
            assert!(peers(&typed(&format!("-pub -raw {line}"))).is_err(), "{line}");
        }
    }

    #[test]
    fn raw_udp_batches_only_on_request() {
        let batching = |line: &str, data_len| {
            let typed = typed(&format!("-pub -raw {line}"));
            batching(&typed, data_len, typed.number("batchSize"))
        };
        assert_eq!(batching("", 32), Ok(Batching::Off));
        assert_eq!(batching("-batchSize 8192", 32), Ok(Batching::On(8192)));
        for (line, data_len) in
            [("-batchSize 800 -pubRate 5", 32), ("-batchSize 99 -latencyTest", 32), ("", 65_508)]
        {
            assert!(batching(line, data_len).is_err(), "{line}");
        }
        for line in ["-scan -batchSize 800", "-batchSize 999"] {
            assert_eq!(batching(line, 500), Ok(Batching::Unsuitable(TWO_DO_NOT_FIT)), "{line}");
        }
    }
}
