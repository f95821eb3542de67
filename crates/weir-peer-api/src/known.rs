//! Names of all engines that a build can have, so that a build without an engine can say how to get it.

/// An engine of the workspace `peers/`, with one set of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name on the command line and in results.
    pub name: &'static str,
    /// Cargo feature that builds it in.
    pub feature: &'static str,
}

impl Known {
    /// The commands that build it in.
    #[must_use]
    pub fn advice(&self) -> String {
        format!(
            "build with `cargo xtask peers` or `cargo build --release --manifest-path peers/Cargo.toml --features {}`, \
             and run peers/target/release/weir",
            self.feature
        )
    }
}

/// The engine of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// All engines, in the order in which tables show them.
pub const KNOWN: &[Known] = &[
    Known { name: "cyclonedds", feature: "cyclonedds" },
    Known { name: "cyclonedds-tuned", feature: "cyclonedds" },
    Known { name: "cyclonedds-links", feature: "cyclonedds" },
    Known { name: "fastdds", feature: "fastdds" },
    Known { name: "fastdds-tuned", feature: "fastdds" },
    Known { name: "fastdds-async", feature: "fastdds" },
    Known { name: "fastdds-links", feature: "fastdds" },
    Known { name: "dust_dds", feature: "dust_dds" },
    Known { name: "rustdds", feature: "rustdds" },
    Known { name: "rustdds-tuned", feature: "rustdds" },
    Known { name: "int2dds", feature: "int2dds" },
    Known { name: "int2dds-tuned", feature: "int2dds" },
    Known { name: "zeromq", feature: "zeromq" },
    Known { name: "zenoh-udp", feature: "zenoh" },
    Known { name: "zenoh-tcp", feature: "zenoh" },
    Known { name: "aeron", feature: "aeron" },
    Known { name: "aeron-tuned", feature: "aeron" },
];
