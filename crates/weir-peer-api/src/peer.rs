//! An engine, its abilities and its settings.

use crate::node::{Node, NodeOptions, OnSample, PeerError};
use crate::participant::{OpenParticipant, Participant};
use crate::settings::{Setting, effective};

/// Another engine, with one set of settings.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Name on the command line and in results; one of [`KNOWN`](crate::KNOWN).
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Tuning parameters with the values that it is measured with.
    pub settings: &'static [Setting],
    /// What it can do.
    pub abilities: Abilities,
    /// The engine's functions.
    pub calls: Calls,
}

/// What a peer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It is a DDS; other engines are listed apart.
    pub is_dds: bool,
    /// Best effort.
    pub best_effort: bool,
    /// Reliable.
    pub reliable: bool,
    /// Instances.
    pub keyed: bool,
    /// Gathers samples into messages on request.
    pub batching: bool,
    /// Several publishers and subscribers find each other.
    pub many: bool,
    /// Its datagrams fit the packets of Ethernet, so that IP cuts none of them.
    pub fits_packets: bool,
    /// Its receiving thread never sleeps on request; without this ability it always blocks.
    pub spinning: bool,
    /// Largest sample with its header, bytes.
    pub size_bytes_max: usize,
}

impl Abilities {
    /// What most DDS implementations can do.
    pub const DDS: Self = Self {
        is_dds: true,
        best_effort: true,
        reliable: true,
        keyed: true,
        batching: false,
        many: true,
        fits_packets: false,
        spinning: false,
        size_bytes_max: 1 << 30,
    };
}

/// The functions of an engine.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Opens a node; its options name every setting of the engine.
    pub open: Open,
    /// Opens a participant for any number of endpoints; `None`: workloads cannot be measured with it.
    pub participant: Option<OpenParticipant>,
    /// Version of the engine.
    pub version: fn() -> String,
}

/// Opens a node whose samples go to the function.
pub type Open = fn(&NodeOptions, OnSample) -> Result<Box<dyn Node>, PeerError>;

impl Peer {
    /// Opens a node whose samples go to `on_sample` on the engine's thread.
    ///
    /// # Errors
    /// The engine's error.
    pub fn open(&self, options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
        let settings = effective(self.settings, &options.settings);
        (self.calls.open)(&NodeOptions { settings, ..options.clone() }, on_sample)
    }

    /// Opens a participant for any number of endpoints; `None`: the engine has none.
    ///
    /// # Errors
    /// The engine's error.
    pub fn open_participant(&self, options: &NodeOptions) -> Option<Result<Box<dyn Participant>, PeerError>> {
        let open = self.calls.participant?;
        let settings = effective(self.settings, &options.settings);
        Some(open(&NodeOptions { settings, ..options.clone() }))
    }
}
