//! The closed list of warnings about a result, each with advice.
//!
//! In the results format a warning has its code and figures, plus text and advice for readers of
//! the file: `{"code":"socket-buffer-small","asked":..,"granted":..,"text":..,"advice":..}`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::format_size;

/// A warning about a result. Weir records and advises; it never changes the host itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "code", rename_all = "kebab-case")]
pub enum Warning {
    /// Publisher and subscriber may run on the same processor, so they take turns.
    CoresShared,
    /// The process may use only one processor, which disables spinning.
    OnlyOneCore,
    /// The kernel granted a smaller socket buffer than requested. In bytes.
    SocketBufferSmall {
        /// Bytes requested.
        asked: u64,
        /// Bytes granted.
        granted: u64,
    },
    /// The frequency governor is not `performance`.
    Governor {
        /// The current governor.
        governor: String,
    },
    /// Datagrams exceed the path's packet size, so IP fragments them.
    MtuSmallerThan {
        /// MTU of the interface, bytes.
        mtu: u32,
        /// Size of one datagram with its IP and UDP headers, in bytes.
        needed: u64,
    },
    /// Samples were lost although the case is reliable.
    LostSamples {
        /// How many.
        lost: u64,
        /// Whether best effort or KEEP_LAST permits it. Then it is a warning because less was carried than was due.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        permitted: bool,
    },
    /// No sample arrived.
    NothingReceived,
    /// Samples did not contain what was written.
    CorruptSamples {
        /// How many.
        corrupt: u64,
    },
    /// The publisher fell behind its schedule.
    ScheduleLag {
        /// Target rate in samples per second.
        asked_samples_per_s: f64,
        /// Achieved rate in samples per second.
        reached_samples_per_s: f64,
    },
    /// The link emulator could not take all packets in time.
    LinkOverrun {
        /// Packets dropped for it.
        packets: u64,
    },
    /// One-way latencies were measured between two clocks.
    ClockError {
        /// Maximum error of their offset, in microseconds.
        error_us: f64,
        /// Whether it exceeds the median latency, so that no latency is given.
        exceeds_latency: bool,
    },
    /// An engine seems to be faster than raw UDP, beyond the interval or in every repeat. Derived when results are
    /// reported; not in results files.
    FasterThanBaseline {
        /// The baseline's engine.
        baseline: String,
        /// The engine's median latency as a multiple of the baseline's; of several points the lowest.
        ratio: f64,
        /// The 95 % interval of the ratio; `None`: too few repeats.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interval: Option<[f64; 2]>,
        /// Whether the ends slept while they waited, on processors that could enter idle states.
        idle: bool,
    },
    /// This program was built without optimisation.
    DebugBuild,
    /// A warning of another version of Weir, kept as it was read.
    #[serde(skip)]
    Unknown {
        /// Its code.
        code: String,
        /// Its text.
        text: String,
        /// Its advice.
        advice: String,
    },
}

impl Warning {
    /// Returns the code in the results format.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::CoresShared => "cores-shared",
            Self::OnlyOneCore => "only-one-core",
            Self::SocketBufferSmall { .. } => "socket-buffer-small",
            Self::Governor { .. } => "governor",
            Self::MtuSmallerThan { .. } => "mtu-smaller-than",
            Self::LostSamples { .. } => "lost-samples",
            Self::NothingReceived => "nothing-received",
            Self::CorruptSamples { .. } => "corrupt-samples",
            Self::ScheduleLag { .. } => "schedule-lag",
            Self::LinkOverrun { .. } => "link-overrun",
            Self::ClockError { .. } => "clock-error",
            Self::FasterThanBaseline { .. } => "faster-than-baseline",
            Self::DebugBuild => "debug-build",
            Self::Unknown { code, .. } => code,
        }
    }

    /// Returns the problem, one clause without a full stop.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::CoresShared => {
                "publisher and subscriber share a processor, so each waits for the other".into()
            }
            Self::OnlyOneCore => "only one processor may be used, so waiting always sleeps".into(),
            Self::SocketBufferSmall { asked, granted } => {
                format!("the socket buffer is {}, {} requested", format_size(*granted), format_size(*asked))
            }
            Self::Governor { governor } => format!("the frequency governor is `{governor}`"),
            Self::MtuSmallerThan { mtu, needed } => {
                format!("datagrams need {needed} bytes but the MTU is {mtu}, so IP fragments them")
            }
            Self::LostSamples { lost, permitted: false } => {
                format!("{lost} samples were lost although delivery is reliable")
            }
            Self::LostSamples { lost, permitted: true } => {
                format!(
                    "{lost} samples were lost, as best effort or KEEP_LAST permits, so less was carried than was due"
                )
            }
            Self::NothingReceived => "no sample arrived".into(),
            Self::CorruptSamples { corrupt } => format!("{corrupt} samples did not carry what was written"),
            Self::ScheduleLag { asked_samples_per_s, reached_samples_per_s } => format!(
                "the publisher achieved {reached_samples_per_s:.0} of the {asked_samples_per_s:.0} samples/s requested"
            ),
            Self::LinkOverrun { packets } => {
                format!("the link emulator was too slow for {packets} packets, which were dropped")
            }
            Self::ClockError { error_us, exceeds_latency: false } => format!(
                "one-way latencies are correct within {error_us} us: the clocks of the two hosts differ, and their offset \
                 was measured by round trips"
            ),
            Self::ClockError { error_us, exceeds_latency: true } => format!(
                "no one-way latency is given: the offset of the two hosts' clocks is known within {error_us} us only, \
                 more than the latency"
            ),
            Self::FasterThanBaseline { baseline, ratio, interval, idle } => {
                let interval = interval.map_or_else(
                    || "in every repeat".to_owned(),
                    |[low, high]| format!("95 % interval {low:.2}..{high:.2}"),
                );
                let cause = if *idle {
                    "the baseline's processors slept longer between samples, and took longer to wake up"
                } else {
                    "something slowed the baseline down"
                };
                format!(
                    "the median latency is {ratio:.2} times that of {baseline} ({interval}), which cannot be, since \
                     {baseline} sends the same samples by the same system calls without a protocol: {cause}"
                )
            }
            Self::DebugBuild => "this build of Weir is not optimised".into(),
            Self::Unknown { text, .. } => text.clone(),
        }
    }

    /// Returns the advice, one clause without a full stop.
    #[must_use]
    pub fn advice(&self) -> String {
        match self {
            Self::CoresShared => "pin the two sides to different processors".into(),
            Self::OnlyOneCore => {
                "allow at least two processors, so that the two sides do not take turns".into()
            }
            Self::SocketBufferSmall { asked, .. } => {
                format!("raise the limit: sysctl -w net.core.rmem_max={asked} net.core.wmem_max={asked}")
            }
            Self::Governor { .. } => "set it with: cpupower frequency-set -g performance".into(),
            Self::MtuSmallerThan { .. } => {
                "send smaller samples or batches, or raise the MTU on the whole path".into()
            }
            Self::LostSamples { permitted: false, .. } => {
                "the result is not valid: keep the results file and report it".into()
            }
            Self::LostSamples { permitted: true, .. } => {
                "do not compare its processor time: use lower rates, a longer history or reliable topics".into()
            }
            Self::NothingReceived => {
                "check the addresses, the firewall and that both sides use the same domain".into()
            }
            Self::CorruptSamples { .. } => {
                "the result is not valid: keep the results file and report it".into()
            }
            Self::ScheduleLag { .. } => "use a lower rate, or omit the rate to measure the maximum".into(),
            Self::LinkOverrun { .. } => "send at a lower rate, or use --link veth".into(),
            Self::ClockError { .. } => "measure round trips, without a rate".into(),
            Self::FasterThanBaseline { idle: true, .. } => {
                "do not use this ratio: compare with the processors kept awake (--keep-awake=both), or with --wait spin"
                    .into()
            }
            Self::FasterThanBaseline { idle: false, .. } => {
                "do not use this ratio: end other programs, and measure at least 20 repeats (--repeat 20)".into()
            }
            Self::DebugBuild => "measure with a release build".into(),
            Self::Unknown { advice, .. } => advice.clone(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text(), self.advice())
    }
}

impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Known<'a> {
            #[serde(flatten, serialize_with = "figures")]
            warning: &'a Warning,
            text: String,
            advice: String,
        }
        let (text, advice) = (self.text(), self.advice());
        match self {
            Self::Unknown { code, .. } => Unknown { code: code.clone(), text, advice }.serialize(serializer),
            known => Known { warning: known, text, advice }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Warning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        // A code that this version lacks must not make an old run unreadable.
        if let Ok(known) = Self::deserialize(&value) {
            return Ok(known);
        }
        let Unknown { code, text, advice } = Unknown::deserialize(value).map_err(serde::de::Error::custom)?;
        Ok(Self::Unknown { code, text, advice })
    }
}

/// [`Warning::Unknown`] in the file.
#[derive(Serialize, Deserialize)]
struct Unknown {
    code: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    advice: String,
}

fn figures<S: Serializer>(warning: &&Warning, serializer: S) -> Result<S::Ok, S::Error> {
    Warning::serialize(warning, serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_warning() -> Vec<Warning> {
        vec![
            Warning::CoresShared,
            Warning::OnlyOneCore,
            Warning::SocketBufferSmall { asked: 4_194_304, granted: 425_984 },
            Warning::Governor { governor: "powersave".into() },
            Warning::MtuSmallerThan { mtu: 1500, needed: 8292 },
            Warning::LostSamples { lost: 3, permitted: false },
            Warning::LostSamples { lost: 3, permitted: true },
            Warning::NothingReceived,
            Warning::CorruptSamples { corrupt: 1 },
            Warning::ScheduleLag { asked_samples_per_s: 1000.0, reached_samples_per_s: 900.5 },
            Warning::LinkOverrun { packets: 2 },
            Warning::ClockError { error_us: 12.5, exceeds_latency: false },
            Warning::ClockError { error_us: 250.0, exceeds_latency: true },
            Warning::FasterThanBaseline {
                baseline: "udp".into(),
                ratio: 0.86,
                interval: Some([0.83, 0.89]),
                idle: true,
            },
            Warning::FasterThanBaseline { baseline: "udp".into(), ratio: 0.86, interval: None, idle: false },
            Warning::DebugBuild,
            Warning::Unknown { code: "moon-phase".into(), text: "full moon".into(), advice: "wait".into() },
        ]
    }

    #[test]
    fn each_warning_survives_the_file_with_code_text_and_advice() {
        for warning in every_warning() {
            let json = serde_json::to_value(&warning).unwrap();
            assert_eq!(json["code"], warning.code(), "{json}");
            assert_eq!(json["text"], warning.text());
            assert_eq!(json["advice"], warning.advice());
            assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
        }
    }

    #[test]
    fn figures_stand_beside_the_text() {
        let json = serde_json::to_string(&Warning::SocketBufferSmall { asked: 2_097_152, granted: 425_984 })
            .unwrap();
        assert_eq!(
            json,
            "{\"code\":\"socket-buffer-small\",\"asked\":2097152,\"granted\":425984,\
             \"text\":\"the socket buffer is 416 KiB, 2 MiB requested\",\
             \"advice\":\"raise the limit: sysctl -w net.core.rmem_max=2097152 net.core.wmem_max=2097152\"}"
        );
    }
}
