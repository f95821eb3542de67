//! The content filter of RTI Perftest (`-cft`): only some instances of a keyed topic.

use std::ops::RangeInclusive;

/// The instances that a subscriber receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceRange(RangeInclusive<u16>);

/// The highest instance that a filter can name: the one behind it is [`CONTROL_KEY`].
const INSTANCE_MAX: u16 = 65_534;

/// The key of control samples, which pass every filter.
pub(super) const CONTROL_KEY: [u8; 4] = [255, 255, 0, 0];

/// Keys are little-endian numbers of instances.
const EXPRESSION: &str = "(key[3] = 0 AND key[2] = 0 \
    AND (key[1] > %1 OR key[1] = %1 AND key[0] >= %0) \
    AND (key[1] < %3 OR key[1] = %3 AND key[0] <= %2)) \
    OR (key[0] = 255 AND key[1] = 255 AND key[2] = 0 AND key[3] = 0)";

impl InstanceRange {
    /// `None`: the range is empty, or goes beyond instance 65534.
    #[must_use]
    pub fn new(first: u16, last: u16) -> Option<Self> {
        (first <= last && last <= INSTANCE_MAX).then_some(Self(first..=last))
    }

    /// The filter on the key.
    pub(super) fn expression(&self) -> &'static str {
        EXPRESSION
    }

    /// The parameters of the filter.
    pub(super) fn parameters(&self) -> Vec<String> {
        let bytes = self.0.start().to_le_bytes().into_iter().chain(self.0.end().to_le_bytes());
        bytes.map(|byte| byte.to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use weir_bench::payload::SampleHeader;
    use weir_bench::test_data::{Data, KeyedTestData};
    use weir_dds::Query;

    use super::*;

    #[test]
    fn the_instances_of_the_range_and_control_samples_pass() {
        for (first, last) in [(0, 0), (3, 3), (0, 65_534), (250, 260), (255, 256), (300, 1000)] {
            let range = InstanceRange::new(first, last).unwrap();
            let query = Query::<KeyedTestData>::new(range.expression(), &range.parameters()).unwrap();
            let passes = |key: [u8; 4]| {
                let mut sample = KeyedTestData::default();
                sample.set_header(&SampleHeader { key, ..SampleHeader::data(0, 0) });
                query.matches(&sample)
            };
            for instance in
                [0_u32, 1, 2, 3, 4, 249, 250, 255, 256, 260, 261, 299, 300, 512, 1000, 1001, 65_534]
            {
                let expected = (u32::from(first)..=u32::from(last)).contains(&instance);
                assert_eq!(passes(instance.to_le_bytes()), expected, "{instance} in {first}..={last}");
            }
            assert!(passes(CONTROL_KEY));
            assert!(!passes(65_536_u32.to_le_bytes()) && !passes(u32::MAX.to_le_bytes()));
        }
        assert_eq!(InstanceRange::new(2, 1), None);
        assert_eq!(InstanceRange::new(0, 65_535), None);
    }
}
