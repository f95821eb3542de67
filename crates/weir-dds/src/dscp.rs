//! From TRANSPORT_PRIORITY to the class in which networks carry packets (DSCP).

use std::fmt;
use std::str::FromStr;

use crate::error::DdsError;

/// How the TRANSPORT_PRIORITY of a writer sets the code point of its datagrams (DSCP, RFC 2474).
///
/// Text form: `priority`, `off`, or steps such as `10=34,20=46`.
///
/// ```
/// use weir_dds::DscpMapping;
///
/// assert_eq!(DscpMapping::default().dscp(46), 46);
/// let steps: DscpMapping = "-1=1,0=0,10=34,20=46".parse()?;
/// assert_eq!([-1, 0, 9, 10, 19, 20, 1000].map(|priority| steps.dscp(priority)), [1, 0, 0, 34, 34, 46, 46]);
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DscpMapping {
    /// The priority is the code point, as in Cyclone DDS and OpenDDS.
    ///
    /// Other priorities than 0 to 63 are sent as 0. So are 1 and 8, which are less than best effort (LE, RFC 8622, and
    /// CS1): a higher priority never gets less than 0 does.
    #[default]
    Priority,
    /// All datagrams have code point 0, as in Fast DDS, and in RTI Connext unless a mapping is configured.
    Off,
    /// From each of these priorities on, this code point. In ascending order; 0 below the first.
    Steps(Vec<(i32, u8)>),
}

impl DscpMapping {
    /// Returns the code point of a priority, 0 to 63.
    ///
    /// ```
    /// use weir_dds::DscpMapping;
    ///
    /// assert_eq!(DscpMapping::Steps(vec![(10, 34)]).dscp(12), 34);
    /// ```
    pub fn dscp(&self, priority: i32) -> u8 {
        match self {
            Self::Off => 0,
            Self::Priority => u8::try_from(priority).ok().filter(|dscp| is_raised(*dscp)).unwrap_or(0),
            Self::Steps(steps) => {
                let reached = steps.iter().take_while(|(from, _)| *from <= priority).last();
                reached.map_or(0, |(_, dscp)| *dscp & DSCP_MAX)
            }
        }
    }
}

/// Returns whether it is a code point that is not meant for less than best effort.
fn is_raised(dscp: u8) -> bool {
    dscp <= DSCP_MAX && dscp != LOWER_EFFORT && dscp != CLASS_SELECTOR_1
}

impl fmt::Display for DscpMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priority => f.write_str("priority"),
            Self::Off => f.write_str("off"),
            Self::Steps(steps) => {
                let steps: Vec<_> = steps.iter().map(|(from, dscp)| format!("{from}={dscp}")).collect();
                f.write_str(&steps.join(","))
            }
        }
    }
}

impl FromStr for DscpMapping {
    type Err = DdsError;

    fn from_str(text: &str) -> Result<Self, DdsError> {
        let bad =
            || DdsError::BadParameter(format!("invalid mapping of priorities {text:?}: use {DSCP_TEXT}"));
        match text.trim() {
            "priority" => return Ok(Self::Priority),
            "off" => return Ok(Self::Off),
            _ => {}
        }
        let step = |word: &str| {
            let (from, dscp) = word.split_once('=')?;
            let dscp = dscp.trim().parse().ok().filter(|dscp| *dscp <= DSCP_MAX)?;
            Some((from.trim().parse().ok()?, dscp))
        };
        let steps: Vec<(i32, u8)> = text.split(',').map(step).collect::<Option<_>>().ok_or_else(bad)?;
        let is_ascending = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        is_ascending.then_some(Self::Steps(steps)).ok_or_else(bad)
    }
}

pub(crate) const DSCP_TEXT: &str = "priority, off, or PRIORITY=DSCP,... with ascending priorities and DSCPs from 0 to 63, such as 10=34,20=46";

const DSCP_MAX: u8 = 63;
const LOWER_EFFORT: u8 = 1;
const CLASS_SELECTOR_1: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_its_code_point_unless_that_is_less_than_none() {
        let dscp = |priority| DscpMapping::Priority.dscp(priority);
        assert_eq!([0, 2, 10, 34, 46, 63].map(dscp), [0, 2, 10, 34, 46, 63]);
        assert_eq!([-1, i32::MIN, 1, 8, 64, 256, 302, i32::MAX].map(dscp), [0; 8]);
        assert_eq!([0, 46, 1000].map(|priority| DscpMapping::Off.dscp(priority)), [0; 3]);
    }

    #[test]
    fn a_mapping_is_read_as_it_is_written() {
        for text in ["priority", "off", "-5=1,0=0,10=34,20=46", "7=8"] {
            let mapping: DscpMapping = text.parse().unwrap();
            assert_eq!(mapping.to_string(), text);
        }
        let steps: DscpMapping = " 1 = 8 , 2 = 10 ".parse().unwrap();
        assert_eq!([0, 1, 2, 99].map(|priority| steps.dscp(priority)), [0, 8, 10, 10]);
        for text in ["", "on", "10", "10=64", "10=-1", "x=1", "2=1,1=2", "1=1,1=2", "1=1,"] {
            let error = text.parse::<DscpMapping>().unwrap_err().to_string();
            assert!(error.contains("such as 10=34,20=46"), "{text}: {error}");
        }
    }
}
