//! Content-filtered topics (DDS 1.4, 2.2.2.3.3).

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_filter::{Expression, Filter};
use weir_rtps::content_filter::ContentFilterProperty;

use crate::driver::endpoints::ReaderEndpoint;
use crate::driver::start::Handle;
use crate::error::{DdsError, Result};
use crate::topic::{Topic, TopicState};

/// What a reader is created with: a [`Topic`], or a [`ContentFilteredTopic`] (DDS 1.4, 2.2.2.3.1).
///
/// ```no_run
/// use weir_dds::{DataReader, DdsType, Subscriber, TopicDescription};
///
/// fn reader<T: DdsType>(of: &impl TopicDescription<T>, by: &Subscriber) -> weir_dds::Result<DataReader<T>> {
///     by.create_datareader(of, by.default_datareader_qos())
/// }
/// ```
pub trait TopicDescription<T>: sealed::Filtered<T> {
    /// Returns the name.
    fn name(&self) -> &str;

    /// Returns the name of the type.
    fn type_name(&self) -> &'static str;

    /// Returns the topic: itself, or the one that a content-filtered topic selects from.
    fn related_topic(&self) -> &Topic<T> {
        self.topic()
    }
}

/// A topic of which readers receive only the samples that meet a condition.
///
/// The condition is the SQL subset of DDS 1.4, annex B, such as `color = 'RED' AND x BETWEEN %0 AND %1`; `%0` to `%99`
/// stand for parameters, which can be changed. Members of members are written `a.b`, elements of arrays and sequences
/// `a[0]`. See `docs/reference/filters.md` for all rules and limits.
///
/// Values that do not pass take no room in the reader, replace nothing and count in no status, only in
/// [`ReaderCounters::samples_content_filtered`](crate::ReaderCounters::samples_content_filtered). The end of an
/// instance is reported if a value of it has passed. Writers of Weir and others that filter leave out what does not
/// pass before they send it.
///
/// A handle: clones refer to the same filter.
///
/// ```no_run
/// # use weir_dds::{DataReaderQos, DdsType, DomainParticipant, ParticipantSettings};
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "appendable")]
/// struct Position {
///     #[dds(key)]
///     vehicle: u32,
///     speed: f64,
/// }
///
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let topic = participant.create_topic::<Position>("Positions")?;
/// let fast = participant.create_contentfilteredtopic("FastPositions", &topic, "speed > %0", &["30.0"])?;
/// let reader = participant.create_subscriber()?.create_datareader(&fast, DataReaderQos::default())?;
/// fast.set_expression_parameters(&["50.0"])?;
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct ContentFilteredTopic<T> {
    topic: Topic<T>,
    state: Arc<FilterState>,
}

/// A content-filtered topic without its type, as its readers know it.
pub(crate) struct FilterState {
    name: String,
    pub(crate) topic: Arc<TopicState>,
    expression: Expression,
    handle: Weak<Handle>,
    bound: Mutex<Bound>,
}

/// The current parameters.
struct Bound {
    parameters: Vec<String>,
    /// Counts changes.
    version: u64,
    filter: Arc<Filter>,
    readers: Vec<Weak<ReaderEndpoint>>,
}

impl<T: DdsType> ContentFilteredTopic<T> {
    pub(crate) fn new<S: AsRef<str>>(
        handle: &Arc<Handle>,
        name: &str,
        topic: &Topic<T>,
        expression: &str,
        parameters: &[S],
    ) -> Result<Self> {
        topic.state.check()?;
        let expression = Expression::filter(expression).map_err(|error| unusable(name, &error))?;
        let filter =
            Filter::new(&expression, &T::DESCRIPTION, parameters).map_err(|error| unusable(name, &error))?;
        let bound = Bound {
            parameters: owned(parameters),
            version: 0,
            filter: Arc::new(filter),
            readers: Vec::new(),
        };
        let state = Arc::new(FilterState {
            name: name.to_owned(),
            topic: Arc::clone(&topic.state),
            expression,
            handle: Arc::downgrade(handle),
            bound: Mutex::new(bound),
        });
        handle.driver.state.contained.add_filtered(&state);
        Ok(Self { topic: topic.clone(), state })
    }

    /// Changes the parameters, `%0` first. They apply to samples received from then on.
    ///
    /// ```no_run
    /// # use weir_dds::{ContentFilteredTopic, DdsType};
    /// # fn f<T: DdsType>(hot: &ContentFilteredTopic<T>) -> weir_dds::Result<()> {
    /// hot.set_expression_parameters(&["60.0"])?;
    /// assert_eq!(hot.expression_parameters(), ["60.0"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`DdsError::BadParameter`]: a parameter is missing, too long, or not of the member's type. Nothing has changed
    /// then.
    pub fn set_expression_parameters<S: AsRef<str>>(&self, parameters: &[S]) -> Result<()> {
        let state = &self.state;
        let filter = Filter::new(&state.expression, &T::DESCRIPTION, parameters);
        let filter = Arc::new(filter.map_err(|error| unusable(&state.name, &error))?);
        {
            let mut bound = state.bound.lock();
            bound.parameters = owned(parameters);
            bound.version += 1;
            let signature = Some(state.property(&bound).signature());
            for reader in bound.readers.iter().filter_map(Weak::upgrade) {
                reader.core.lock().set_content_filter(Some(Arc::clone(&filter)), signature);
            }
            bound.filter = filter;
        }
        state.announce();
        Ok(())
    }
}

impl<T> ContentFilteredTopic<T> {
    pub(crate) fn of(state: Arc<FilterState>) -> Self {
        Self { topic: Topic::of(Arc::clone(&state.topic)), state }
    }

    /// Returns the topic whose samples are filtered.
    ///
    /// ```no_run
    /// # use weir_dds::{ContentFilteredTopic, DdsType};
    /// # fn f<T: DdsType>(filtered: &ContentFilteredTopic<T>) {
    /// println!("samples of {}", filtered.related_topic().name());
    /// # }
    /// ```
    pub fn related_topic(&self) -> &Topic<T> {
        &self.topic
    }

    /// Returns the expression.
    ///
    /// ```no_run
    /// # use weir_dds::{ContentFilteredTopic, DdsType};
    /// # fn f<T: DdsType>(filtered: &ContentFilteredTopic<T>) {
    /// println!("that meet {}", filtered.filter_expression());
    /// # }
    /// ```
    pub fn filter_expression(&self) -> &str {
        self.state.expression.text()
    }

    /// Returns the parameters, `%0` first.
    ///
    /// ```no_run
    /// # use weir_dds::{ContentFilteredTopic, DdsType};
    /// # fn f<T: DdsType>(filtered: &ContentFilteredTopic<T>) {
    /// println!("with {:?}", filtered.expression_parameters());
    /// # }
    /// ```
    pub fn expression_parameters(&self) -> Vec<String> {
        self.state.bound.lock().parameters.clone()
    }
}

impl FilterState {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Adds a reader before it is announced. Returns how it is announced, and the version of the parameters.
    pub(crate) fn add_reader(&self, reader: &Arc<ReaderEndpoint>) -> (ContentFilterProperty, u64) {
        let mut bound = self.bound.lock();
        bound.readers.retain(|reader| reader.strong_count() > 0);
        bound.readers.push(Arc::downgrade(reader));
        let property = self.property(&bound);
        let signature = Some(property.signature());
        reader.core.lock().set_content_filter(Some(Arc::clone(&bound.filter)), signature);
        (property, bound.version)
    }

    /// Announces the parameters if they have changed since a reader was added, which was not announced then.
    pub(crate) fn announced(&self, version: u64) {
        if self.bound.lock().version != version {
            self.announce();
        }
    }

    /// Announces the current parameters with all readers.
    fn announce(&self) {
        let Some(handle) = self.handle.upgrade() else { return };
        loop {
            let (version, property, readers) = {
                let mut bound = self.bound.lock();
                bound.readers.retain(|reader| reader.strong_count() > 0);
                let readers: Vec<_> = bound.readers.iter().filter_map(Weak::upgrade).collect();
                (bound.version, self.property(&bound), readers)
            };
            // Without the lock: listeners may be called.
            for reader in readers {
                let property = property.clone();
                handle.driver.with_discovery(|core, now| {
                    core.change_content_filter(now, reader.entity, property);
                });
            }
            // Another thread may have announced later parameters in between, before these.
            if self.bound.lock().version == version {
                return;
            }
        }
    }

    fn property(&self, bound: &Bound) -> ContentFilterProperty {
        ContentFilterProperty::sql(
            self.name.clone(),
            self.topic.name().to_owned(),
            self.expression.text().to_owned(),
            bound.parameters.clone(),
        )
    }
}

impl<T: DdsType> TopicDescription<T> for Topic<T> {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T: DdsType> TopicDescription<T> for ContentFilteredTopic<T> {
    fn name(&self) -> &str {
        &self.state.name
    }

    fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T> Clone for ContentFilteredTopic<T> {
    fn clone(&self) -> Self {
        Self { topic: self.topic.clone(), state: Arc::clone(&self.state) }
    }
}

impl<T> std::fmt::Debug for ContentFilteredTopic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FilterState { name, topic, expression, .. } = &*self.state;
        write!(f, "ContentFilteredTopic({name:?}: {:?} where {})", topic.name(), expression.text())
    }
}

pub(crate) mod sealed {
    use std::sync::Arc;

    use super::{ContentFilteredTopic, FilterState};
    use crate::topic::Topic;

    /// The two kinds of what a reader is created with.
    pub trait Filtered<T> {
        #[doc(hidden)]
        fn topic(&self) -> &Topic<T>;

        #[doc(hidden)]
        #[expect(private_interfaces, reason = "the trait cannot be named outside of this crate")]
        fn filter(&self) -> Option<&Arc<FilterState>>;
    }

    impl<T> Filtered<T> for Topic<T> {
        fn topic(&self) -> &Self {
            self
        }

        #[expect(private_interfaces, reason = "the trait cannot be named outside of this crate")]
        fn filter(&self) -> Option<&Arc<FilterState>> {
            None
        }
    }

    impl<T> Filtered<T> for ContentFilteredTopic<T> {
        fn topic(&self) -> &Topic<T> {
            &self.topic
        }

        #[expect(private_interfaces, reason = "the trait cannot be named outside of this crate")]
        fn filter(&self) -> Option<&Arc<FilterState>> {
            Some(&self.state)
        }
    }
}

fn owned<S: AsRef<str>>(parameters: &[S]) -> Vec<String> {
    parameters.iter().map(|parameter| parameter.as_ref().to_owned()).collect()
}

fn unusable(name: &str, error: &weir_filter::FilterError) -> DdsError {
    DdsError::BadParameter(format!("content-filtered topic {name:?}: {error}"))
}
