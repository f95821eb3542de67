//! The engines of this build.

use weir_peer_api::Peer;

/// The engines whose features are on, in the order of [`KNOWN`](weir_peer_api::KNOWN).
pub static PEERS: &[Peer] = &[
    #[cfg(feature = "cyclonedds")]
    crate::cyclonedds::DEFAULT,
    #[cfg(feature = "cyclonedds")]
    crate::cyclonedds::TUNED,
    #[cfg(feature = "cyclonedds")]
    crate::cyclonedds::LINKS,
    #[cfg(feature = "fastdds")]
    crate::fastdds::DEFAULT,
    #[cfg(feature = "fastdds")]
    crate::fastdds::TUNED,
    #[cfg(feature = "fastdds")]
    crate::fastdds::ASYNC,
    #[cfg(feature = "fastdds")]
    crate::fastdds::LINKS,
    #[cfg(feature = "dust_dds")]
    crate::dust_dds::PEER,
    #[cfg(feature = "rustdds")]
    crate::rustdds::DEFAULT,
    #[cfg(feature = "rustdds")]
    crate::rustdds::TUNED,
    #[cfg(feature = "int2dds")]
    crate::int2dds::DEFAULT,
    #[cfg(feature = "int2dds")]
    crate::int2dds::TUNED,
    #[cfg(feature = "zeromq")]
    crate::zeromq::PEER,
    #[cfg(feature = "zenoh")]
    crate::zenoh::UDP,
    #[cfg(feature = "zenoh")]
    crate::zenoh::TCP,
    #[cfg(feature = "aeron")]
    crate::aeron::DEFAULT,
    #[cfg(feature = "aeron")]
    crate::aeron::TUNED,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use weir_peer_api::KNOWN;

    use super::*;

    const FEATURES: &[(&str, bool)] = &[
        ("aeron", cfg!(feature = "aeron")),
        ("cyclonedds", cfg!(feature = "cyclonedds")),
        ("dust_dds", cfg!(feature = "dust_dds")),
        ("fastdds", cfg!(feature = "fastdds")),
        ("int2dds", cfg!(feature = "int2dds")),
        ("rustdds", cfg!(feature = "rustdds")),
        ("zenoh", cfg!(feature = "zenoh")),
        ("zeromq", cfg!(feature = "zeromq")),
    ];

    #[test]
    fn the_engines_are_those_known_by_their_features() {
        let is_on = |name: &str| FEATURES.iter().find(|(feature, _)| *feature == name).unwrap().1;
        let known: Vec<&str> =
            KNOWN.iter().filter(|known| is_on(known.feature)).map(|known| known.name).collect();
        let built: Vec<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(built, known);
    }

    #[test]
    fn names_and_settings_are_distinct() {
        let names: BTreeSet<_> = KNOWN.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), KNOWN.len());
        for peer in PEERS {
            let settings: BTreeSet<_> = peer.settings.iter().map(|setting| setting.name).collect();
            assert_eq!(settings.len(), peer.settings.len(), "{}", peer.name);
            assert!(!(peer.calls.version)().is_empty() && !peer.about.is_empty(), "{}", peer.name);
        }
    }

    #[test]
    fn only_aeron_spins() {
        for peer in PEERS {
            assert_eq!(peer.abilities.spinning, peer.name.starts_with("aeron"), "{}", peer.name);
        }
    }
}
