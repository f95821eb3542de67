//! Topics, which connect writers and readers (DDS 1.4, 2.2.2.3.2).

use std::marker::PhantomData;
use std::sync::Arc;

use weir_cdr::DdsType;

/// A name and the type of the samples.
///
/// ```no_run
/// # use weir_dds::{DdsType, DomainParticipant, ParticipantSettings};
/// # #[derive(DdsType, Default)]
/// # #[dds(extensibility = "final")]
/// # struct Greeting {
/// #     text: String,
/// # }
/// # let participant = DomainParticipant::new(0, ParticipantSettings::default())?;
/// let topic = participant.create_topic::<Greeting>("Greetings")?;
/// assert_eq!((topic.name(), topic.type_name()), ("Greetings", "Greeting"));
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct Topic<T> {
    pub(crate) name: Arc<str>,
    pub(crate) sample: PhantomData<fn() -> T>,
}

impl<T: DdsType> Topic<T> {
    /// Returns the topic's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of the type.
    pub fn type_name(&self) -> &'static str {
        T::TYPE_NAME
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), sample: PhantomData }
    }
}

impl<T> std::fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Topic").field(&self.name).finish()
    }
}
