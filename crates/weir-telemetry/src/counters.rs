//! Counters that only grow.

/// A group of counters.
pub(crate) trait Counters: Sized {
    /// Returns the difference to `earlier`; a counter that went back counts as nothing.
    fn since(&self, earlier: &Self) -> Self;

    /// Returns the counters by name, in their order.
    fn named(self) -> impl Iterator<Item = (&'static str, u64)>;
}

/// Returns the difference to `earlier`, if there are both.
pub(crate) fn difference<C: Counters>(now: Option<C>, earlier: Option<C>) -> Option<C> {
    Some(now?.since(&earlier?))
}

/// Declares a struct of [`Counters`].
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct $name {
            $($(#[$of_field])* pub(crate) $field: u64,)*
        }

        impl $crate::counters::Counters for $name {
            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }

            fn named(self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }
        }
    };
}

pub(crate) use counters;
