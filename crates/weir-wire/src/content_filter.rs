//! Parameters of content filters (RTPS 2.5, 9.6.4.1).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::error::ParseError;
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
