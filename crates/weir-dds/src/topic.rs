//! What writers and readers have in common (DDS 1.4 §2.2.2.3.2).

use std::marker::PhantomData;
use std::sync::Arc;

use weir_cdr::DdsType;

/// A name, and the type of the samples.
pub struct Topic<T> {
    pub(crate) name: Arc<str>,
    pub(crate) sample: PhantomData<fn() -> T>,
}

impl<T: DdsType> Topic<T> {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the type.
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
