//! Policies that act on each sample: what they cost is the difference to the case without them.

use std::sync::Arc;
use std::time::Duration;

use weir_cdr::CdrValue;
use weir_filter::{Expression, Filter};
use weir_rtps::qos::{INFINITE, Ownership};
use weir_rtps::reader::{ReaderConfig, WriterPolicies};
use weir_rtps::writer::WriterConfig;

use crate::codec::TestData;
use crate::cores::{self, Pace};
use crate::sink::{Sink, take_by_policies};

/// The policy of a writer and its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    None,
    /// DEADLINE of both. No sample is late.
    Deadline,
    /// LIFESPAN of the writer. What is recorded of samples ends while others are received: they were taken before.
    Lifespan,
    /// OWNERSHIP: one writer, with a strength, owns all instances.
    Ownership,
    /// A content filter that compares a number. All samples pass.
    Filter,
}

impl Policy {
    pub(crate) fn of_writer(self, config: WriterConfig) -> WriterConfig {
        match self {
            Self::Deadline => WriterConfig { deadline: PERIOD, ..config },
            Self::Lifespan => WriterConfig { lifespan: WRITER_LIFESPAN, ..config },
            Self::None | Self::Ownership | Self::Filter => config,
        }
    }

    pub(crate) fn of_reader(self, config: ReaderConfig) -> ReaderConfig {
        match self {
            Self::Deadline => ReaderConfig { deadline: PERIOD, ..config },
            Self::Ownership => ReaderConfig { ownership: Ownership::Exclusive, ..config },
            Self::Filter => ReaderConfig { content_filter: Some(filter()), ..config },
            Self::None | Self::Lifespan => config,
        }
    }

    /// What the reader knows of the writer.
    pub(crate) fn announced(self) -> WriterPolicies {
        let lifespan = if self == Self::Lifespan { LIFESPAN } else { INFINITE };
        WriterPolicies { lifespan, strength: i32::from(self == Self::Ownership) }
    }
}

/// [`cores::receive`] with a policy.
pub(crate) fn receive(policy: Policy) -> u32 {
    cores::receive_with(32, Pace::Alone, policy, take_by_policies)
}

/// [`cores::receive_instances`] with few instances, and with or without a policy.
pub(crate) fn receive_instances(instances: u32, policy: Policy) -> u32 {
    match policy {
        Policy::None => cores::receive_instances_with(instances, policy, Sink::take),
        _ => cores::receive_instances_with(instances, policy, take_by_policies),
    }
}

fn filter() -> Arc<Filter> {
    let expression = Expression::filter("seq_num < 1000000").unwrap();
    Arc::new(Filter::new::<&str>(&expression, &TestData::DESCRIPTION, &[]).unwrap())
}

/// Longer than the case runs, in its time.
const PERIOD: Duration = Duration::from_secs(3600);
/// A thousand samples at the reader, which receives one per microsecond.
const LIFESPAN: Duration = Duration::from_millis(1);
/// A thousand samples at the writer: they are acknowledged before they expire.
const WRITER_LIFESPAN: Duration = Duration::from_secs(1);
