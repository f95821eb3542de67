//! Parameters of content filters (RTPS 2.5, 9.6.4.1, 8.7.3).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::error::{ParseError, Problem};
use crate::parameter_id::ParameterId;
use crate::parameter_list::Parameter;
use crate::parameter_list_writer::{ParameterListWriter, push_padded};

/// The value of CONTENT_FILTER_PROPERTY: the filter that a reader asks its writers to apply.
///
/// ```text
/// +---------------------------------------------------------------+
/// ~ content-filtered topic, related topic, filter class,          ~
/// ~ expression: a string each, padded to a multiple of four       ~
/// +---------------------------------------------------------------+
/// ~ expression parameters: a count, and that many strings         ~
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFilterValue<'a> {
    /// The name of the content-filtered topic.
    pub name: Cow<'a, str>,
    /// The name of the topic that it filters.
    pub related_topic: Cow<'a, str>,
    /// The language of the expression.
    pub class: Cow<'a, str>,
    /// The condition.
    pub expression: Cow<'a, str>,
    /// The parameters of the expression.
    pub parameters: Vec<Cow<'a, str>>,
}

impl<'a> Parameter<'a> {
    /// Decodes a CONTENT_FILTER_PROPERTY with at most `max` parameters.
    ///
    /// # Errors
    /// If a string is malformed, or if there are more parameters.
    pub fn content_filter(&self, max: usize) -> Result<ContentFilterValue<'a>, ParseError> {
        let mut cursor = self.cursor();
        Ok(ContentFilterValue {
            name: self.text_at(&mut cursor)?,
            related_topic: self.text_at(&mut cursor)?,
            class: self.text_at(&mut cursor)?,
            expression: self.text_at(&mut cursor)?,
            parameters: self.strings_at(&mut cursor, max)?,
        })
    }
}

impl Parameter<'_> {
    /// Decodes a CONTENT_FILTER_INFO: whether the writer found that the sample passes the filter with this signature.
    /// `None`: it has not applied that filter, or it is not among the first [`FILTER_RESULTS_MAX`].
    ///
    /// ```text
    /// +---------------------------------------------------------------+
    /// ~ results: a count, and that many words; of each, the most      ~
    /// ~ significant bit is first; 1: the sample passes                ~
    /// +---------------------------------------------------------------+
    /// ~ signatures: a count, and 16 bytes for each filter             ~
    /// +---------------------------------------------------------------+
    /// ```
    ///
    /// # Errors
    /// If the value is cut short, or there are fewer results than signatures.
    pub fn content_filter_result(&self, signature: &[u8; 16]) -> Result<Option<bool>, ParseError> {
        let mut cursor = self.cursor();
        let words = cursor.u32()? as usize;
        let results = cursor.slice(words.saturating_mul(4))?;
        let filters = cursor.u32()? as usize;
        let signatures = cursor.slice(filters.saturating_mul(16))?;
        if filters > results.len() * 8 {
            return cursor.fail(Problem::BadLength);
        }
        let (signatures, _) = signatures.as_chunks::<16>();
        let index = signatures.iter().take(FILTER_RESULTS_MAX).position(|of_filter| of_filter == signature);
        let word_of = |index: usize| results.as_chunks::<4>().0.get(index / 32).copied();
        let result = index.and_then(|index| Some((index, self.endianness.u32(word_of(index)?))));
        Ok(result.map(|(index, word)| word >> (31 - index % 32) & 1 == 1))
    }
}

/// Filters of a CONTENT_FILTER_INFO among which one is searched for.
pub const FILTER_RESULTS_MAX: usize = 64;

impl ParameterListWriter<'_> {
    /// Appends a CONTENT_FILTER_PROPERTY.
    pub fn content_filter(&mut self, value: &ContentFilterValue<'_>) {
        self.value(ParameterId::CONTENT_FILTER_PROPERTY, |out| {
            for text in [&value.name, &value.related_topic, &value.class, &value.expression] {
                push_padded(out, text);
            }
            out.extend_from_slice(&(value.parameters.len() as u32).to_le_bytes());
            value.parameters.iter().for_each(|parameter| push_padded(out, parameter));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endianness;
    use crate::parameter_list::ParameterList;

    fn value<'a>(parameters: &[&'a str]) -> ContentFilterValue<'a> {
        ContentFilterValue {
            name: "Filtered".into(),
            related_topic: "Square".into(),
            class: "DDSSQL".into(),
            expression: "x > %0".into(),
            parameters: parameters.iter().map(|parameter| (*parameter).into()).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for parameters in [&[][..], &["1"], &["1", "'RED'", ""]] {
            let mut bytes = Vec::new();
            let mut list = ParameterListWriter::new(&mut bytes);
            list.content_filter(&value(parameters));
            list.finish();
            let (list, _) = ParameterList::parse(&bytes, Endianness::Little).unwrap();
            let parameter = list.iter().next().unwrap().unwrap();
            assert_eq!(parameter.content_filter(3), Ok(value(parameters)));
            assert_eq!(parameter.content_filter(2).is_ok(), parameters.len() <= 2);
        }
    }

    /// A CONTENT_FILTER_INFO of filters whose signatures are their numbers.
    fn info(results: &[u32], filters: u32, endianness: Endianness) -> Vec<u8> {
        let word = |value: u32| match endianness {
            Endianness::Little => value.to_le_bytes(),
            Endianness::Big => value.to_be_bytes(),
        };
        let mut bytes = word(results.len() as u32).to_vec();
        results.iter().for_each(|result| bytes.extend_from_slice(&word(*result)));
        bytes.extend_from_slice(&word(filters));
        (0..filters).for_each(|filter| bytes.extend_from_slice(&[filter as u8; 16]));
        bytes
    }

    fn result(value: &[u8], endianness: Endianness, filter: u8) -> Result<Option<bool>, Problem> {
        let parameter = Parameter { id: ParameterId::CONTENT_FILTER_INFO, value, endianness };
        parameter.content_filter_result(&[filter; 16]).map_err(|error| error.problem)
    }

    #[test]
    fn the_result_of_a_filter_is_found_by_its_signature() {
        for endianness in [Endianness::Little, Endianness::Big] {
            let bytes = info(&[0x8000_0001, 0x4000_0000], 34, endianness);
            for filter in 0..34 {
                let expected = [0, 31, 33].contains(&filter);
                assert_eq!(result(&bytes, endianness, filter), Ok(Some(expected)), "{filter}");
            }
            assert_eq!(result(&bytes, endianness, 34), Ok(None));
            assert_eq!(result(&info(&[], 0, endianness), endianness, 0), Ok(None));
        }
    }

    #[test]
    fn results_that_are_cut_short_or_contradict_their_counts_are_refused() {
        let bytes = info(&[u32::MAX, u32::MAX], 34, Endianness::Little);
        for len in 0..bytes.len() {
            assert_eq!(result(&bytes[..len], Endianness::Little, 0), Err(Problem::Truncated), "{len} bytes");
        }
        for bytes in [info(&[u32::MAX], 33, Endianness::Little), info(&[], 1, Endianness::Little)] {
            assert_eq!(result(&bytes, Endianness::Little, 0), Err(Problem::BadLength));
        }
        let mut bytes = info(&[0], 1, Endianness::Little);
        for (at, count) in [(0, u32::MAX), (0, u32::MAX / 4 + 1), (8, u32::MAX), (8, 1 << 28)] {
            let before: [u8; 4] = bytes[at..at + 4].try_into().unwrap();
            bytes[at..at + 4].copy_from_slice(&count.to_le_bytes());
            assert_eq!(result(&bytes, Endianness::Little, 0), Err(Problem::Truncated), "{count} at {at}");
            bytes[at..at + 4].copy_from_slice(&before);
        }
    }

    #[test]
    fn only_so_many_filters_are_compared() {
        let bytes = info(&[u32::MAX; 8], 256, Endianness::Little);
        assert_eq!(result(&bytes, Endianness::Little, FILTER_RESULTS_MAX as u8 - 1), Ok(Some(true)));
        assert_eq!(result(&bytes, Endianness::Little, FILTER_RESULTS_MAX as u8), Ok(None));
    }

    #[test]
    fn truncated_values_are_refused() {
        let mut bytes = Vec::new();
        let mut list = ParameterListWriter::new(&mut bytes);
        list.content_filter(&value(&["1", "2"]));
        let value = &bytes[4..];
        for len in 0..value.len() - 2 {
            let id = ParameterId::CONTENT_FILTER_PROPERTY;
            let parameter = Parameter { id, value: &value[..len], endianness: Endianness::Little };
            assert!(parameter.content_filter(100).is_err(), "{len} bytes");
        }
    }
}
