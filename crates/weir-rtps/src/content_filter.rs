//! The content filter of a reader as it is announced (RTPS 2.5, 9.6.4.1), and what a writer reports about it with a
//! sample (CONTENT_FILTER_INFO).

use alloc::borrow::{Cow, ToOwned};
use alloc::string::String;
use alloc::vec::Vec;

use weir_cdr::TypeDescription;
use weir_filter::limits;
use weir_filter::{Expression, Filter};
use weir_wire::{ContentFilterValue, Parameter, ParameterId, ParameterList};

/// A content filter (RTPS 2.5, 9.6.4.1, `ContentFilterProperty_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentFilterProperty {
    /// The name of the content-filtered topic.
    pub name: String,
    /// The name of the topic that it filters.
    pub related_topic: String,
    /// The language of the expression: [`SQL`].
    pub class: String,
    /// The condition.
    pub expression: String,
    /// The parameters of the expression.
    pub parameters: Vec<String>,
}

/// The language of DDS 1.4, annex B (RTPS 2.5, 9.6.4.1).
pub const SQL: &str = "DDSSQL";

impl ContentFilterProperty {
    /// A filter in [`SQL`].
    pub fn sql(name: String, related_topic: String, expression: String, parameters: Vec<String>) -> Self {
        Self { name, related_topic, class: SQL.to_owned(), expression, parameters }
    }

    /// Reads a filter that a peer announces. `None`: it is malformed or exceeds a limit.
    pub(crate) fn decode(parameter: &Parameter<'_>) -> Option<Self> {
        let value = parameter.content_filter(limits::PARAMETERS_MAX).ok()?;
        let is_short = |text: &str, max: usize| text.len() <= max;
        let is_within_limits = is_short(&value.name, NAME_MAX_BYTES)
            && is_short(&value.related_topic, NAME_MAX_BYTES)
            && is_short(&value.class, NAME_MAX_BYTES)
            && is_short(&value.expression, limits::EXPRESSION_MAX_BYTES)
            && value.parameters.iter().all(|parameter| is_short(parameter, limits::PARAMETER_MAX_BYTES));
        is_within_limits.then(|| Self {
            name: value.name.into_owned(),
            related_topic: value.related_topic.into_owned(),
            class: value.class.into_owned(),
            expression: value.expression.into_owned(),
            parameters: value.parameters.into_iter().map(Cow::into_owned).collect(),
        })
    }

    /// Returns the signature by which writers name the filter (RTPS 2.5, 9.6.4.1, `FilterSignature_t`): the MD5 of all
    /// texts, each with a terminating zero.
    #[must_use]
    pub fn signature(&self) -> [u8; 16] {
        let mut bytes = Vec::with_capacity(self.texts() + 4 + self.parameters.len());
        let texts = [&self.name, &self.related_topic, &self.class, &self.expression];
        for text in texts.into_iter().chain(&self.parameters) {
            bytes.extend_from_slice(text.as_bytes());
            bytes.push(0);
        }
        weir_cdr::key_hash_md5(&bytes)
    }

    /// The announcement.
    pub(crate) fn value(&self) -> ContentFilterValue<'_> {
        ContentFilterValue {
            name: self.name.as_str().into(),
            related_topic: self.related_topic.as_str().into(),
            class: self.class.as_str().into(),
            expression: self.expression.as_str().into(),
            parameters: self.parameters.iter().map(|parameter| parameter.as_str().into()).collect(),
        }
    }

    /// Memory of the texts in bytes.
    pub(crate) fn texts(&self) -> usize {
        let texts = [&self.name, &self.related_topic, &self.class, &self.expression];
        let of_parameters = self.parameters.iter().map(|parameter| parameter.len() + size_of::<String>());
        texts.map(|text| text.len()).iter().sum::<usize>() + of_parameters.sum::<usize>()
    }

    /// The filter that a writer of this type applies for the reader. `None`: it sends all samples, because the filter
    /// is in another language, or takes too long, or cannot be bound to the type: the reader then filters alone.
    pub fn filter(&self, of: &TypeDescription) -> Option<Filter> {
        if self.class != SQL {
            return None;
        }
        let expression = Expression::filter(&self.expression).ok()?;
        if expression.comparisons() > PEER_COMPARISONS_MAX {
            return None;
        }
        Filter::new(&expression, of, &self.parameters).ok()
    }
}

/// What the writer of a sample says about the filter with this signature: whether the sample passes. `None`: nothing
/// that is valid.
pub(crate) fn reported_result(list: &ParameterList<'_>, signature: &[u8; 16]) -> Option<bool> {
    let mut parameters = list.iter().map_while(Result::ok);
    let info = parameters.find(|parameter| parameter.id == ParameterId::CONTENT_FILTER_INFO)?;
    info.content_filter_result(signature).ok()?
}

/// Length of names that a peer announces.
const NAME_MAX_BYTES: usize = 4096;
/// Comparisons that a writer evaluates for one reader: all of it together takes less time than sending the sample.
const PEER_COMPARISONS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_digest_of_all_texts_with_their_zeros() {
        let property = |parameters: &[&str]| {
            let parameters = parameters.iter().map(|parameter| (*parameter).to_owned()).collect();
            ContentFilterProperty::sql("Filtered".into(), "Square".into(), "x > %0".into(), parameters)
        };
        // As computed by another implementation of MD5.
        assert_eq!(property(&["1"]).signature()[..4], [0x90, 0xd5, 0x1e, 0x3f]);
        assert_ne!(property(&["1"]).signature(), property(&["11"]).signature());
        assert_ne!(property(&["1", "1"]).signature(), property(&["11"]).signature());
    }
}
