//! Queries: which samples of a reader an access returns, and in which order (DDS 1.4, 2.2.2.5.9, annex B).

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::sync::Arc;

use parking_lot::Mutex;
use weir_cdr::DdsType;
use weir_filter::{Expression, Filter, Order};

use crate::error::{DdsError, Result};

/// A query on samples of one type: a condition, ORDER BY with members, or both.
///
/// The syntax is that of [`ContentFilteredTopic`](crate::ContentFilteredTopic), followed by `ORDER BY` and the names of
/// members, if the samples are to be in their order, ascending.
///
/// Only values meet a condition; changes of an instance's state do not.
///
/// A handle: clones refer to the same query and parameters.
///
/// ```
/// use weir_dds::{DdsType, Query};
///
/// #[derive(DdsType, Default)]
/// #[dds(extensibility = "appendable")]
/// struct Position {
///     #[dds(key)]
///     vehicle: u32,
///     speed: f64,
/// }
///
/// let query = Query::<Position>::new("speed > %0 ORDER BY speed, vehicle", &["30.0"])?;
/// assert!(query.matches(&Position { vehicle: 1, speed: 31.0 }));
/// query.set_parameters(&["50.0"])?;
/// assert!(!query.matches(&Position { vehicle: 1, speed: 31.0 }));
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
pub struct Query<T> {
    state: Arc<QueryState>,
    sample: PhantomData<fn() -> T>,
}

struct QueryState {
    expression: Expression,
    order: Option<Order>,
    bound: Mutex<Bound>,
}

struct Bound {
    parameters: Vec<String>,
    filter: Arc<Filter>,
}

impl<T: DdsType> Query<T> {
    /// Creates a query. `parameters`: what `%0`, `%1`, ... stand for.
    ///
    /// ```
    /// # use weir_dds::{DdsType, Query};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// let hot = Query::<Reading>::new("celsius > %0", &["30.0"])?;
    /// assert!(Query::<Reading>::new("kelvin > 300", &[] as &[&str]).is_err());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// [`DdsError::BadParameter`], with the place in the expression: it is malformed, a member is unknown, a value is
    /// not of the member's type, or a parameter is missing.
    pub fn new<S: AsRef<str>>(expression: &str, parameters: &[S]) -> Result<Self> {
        let expression = Expression::query(expression).map_err(unusable)?;
        let filter = Filter::new(&expression, &T::DESCRIPTION, parameters).map_err(unusable)?;
        let order = Order::new(&expression, &T::DESCRIPTION).map_err(unusable)?;
        let bound = Bound { parameters: owned(parameters), filter: Arc::new(filter) };
        let state = QueryState { expression, order, bound: Mutex::new(bound) };
        Ok(Self { state: Arc::new(state), sample: PhantomData })
    }

    /// Changes the parameters.
    ///
    /// ```
    /// # use weir_dds::{DdsType, Query};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// let hot = Query::<Reading>::new("celsius > %0", &["30.0"])?;
    /// hot.set_parameters(&["40.0"])?;
    /// assert_eq!(hot.parameters(), ["40.0"]);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Query::new`]. Nothing has changed then.
    pub fn set_parameters<S: AsRef<str>>(&self, parameters: &[S]) -> Result<()> {
        let filter = Filter::new(&self.state.expression, &T::DESCRIPTION, parameters).map_err(unusable)?;
        *self.state.bound.lock() = Bound { parameters: owned(parameters), filter: Arc::new(filter) };
        Ok(())
    }

    /// Returns whether a value meets the condition.
    ///
    /// It is encoded first. Accesses of a reader evaluate samples as they were received, which takes less time.
    ///
    /// ```
    /// # use weir_dds::{DdsType, Query};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// let of_seven = Query::<Reading>::new("sensor = 7", &[] as &[&str])?;
    /// assert!(of_seven.matches(&Reading { sensor: 7, celsius: 21.5 }));
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn matches(&self, sample: &T) -> bool {
        let mut payload = Vec::new();
        let is_encoded = weir_cdr::to_payload(sample, &mut payload).is_ok();
        is_encoded && self.matches_payload(&payload)
    }

    /// Compares two values as ORDER BY says; equal without ORDER BY.
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// # use weir_dds::{DdsType, Query};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    ///
    /// let by_sensor = Query::<Reading>::new("ORDER BY sensor", &[] as &[&str])?;
    /// let of = |sensor| Reading { sensor, celsius: 21.5 };
    /// assert_eq!(by_sensor.compare(&of(1), &of(2)), Ordering::Less);
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn compare(&self, one: &T, other: &T) -> Ordering {
        let Some(order) = &self.state.order else { return Ordering::Equal };
        let (mut first, mut second) = (Vec::new(), Vec::new());
        // A value that cannot be encoded leaves its payload empty, and comes first.
        let _ = weir_cdr::to_payload(one, &mut first);
        let _ = weir_cdr::to_payload(other, &mut second);
        order.compare(&first, &second)
    }
}

impl<T> Query<T> {
    /// Returns the expression.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Query};
    /// # fn f<T: DdsType>(query: &Query<T>, payload: &[u8]) {
    /// println!("{}", query.expression());
    /// # }
    /// ```
    pub fn expression(&self) -> &str {
        self.state.expression.text()
    }

    /// Returns the parameters, `%0` first.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Query};
    /// # fn f<T: DdsType>(query: &Query<T>, payload: &[u8]) {
    /// println!("{:?}", query.parameters());
    /// # }
    /// ```
    pub fn parameters(&self) -> Vec<String> {
        self.state.bound.lock().parameters.clone()
    }

    /// Returns whether the samples are to be ordered.
    ///
    /// ```
    /// # use weir_dds::{DdsType, Query};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// let query = Query::<Reading>::new("ORDER BY celsius", &[] as &[&str])?;
    /// assert!(query.is_ordered());
    /// # Ok::<(), weir_dds::DdsError>(())
    /// ```
    pub fn is_ordered(&self) -> bool {
        self.state.order.is_some()
    }

    /// Returns whether a serialized value, with its encapsulation header, meets the condition.
    ///
    /// ```no_run
    /// # use weir_dds::{DdsType, Query};
    /// # fn f<T: DdsType>(query: &Query<T>, payload: &[u8]) {
    /// if query.matches_payload(payload) {
    ///     println!("it meets the query");
    /// }
    /// # }
    /// ```
    pub fn matches_payload(&self, payload: &[u8]) -> bool {
        let filter = self.filter();
        filter.passes(payload)
    }

    /// The condition with the current parameters.
    pub(crate) fn filter(&self) -> Arc<Filter> {
        Arc::clone(&self.state.bound.lock().filter)
    }

    /// The order, if there is one.
    pub(crate) fn order(&self) -> Option<&Order> {
        self.state.order.as_ref()
    }
}

impl<T> Clone for Query<T> {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), sample: PhantomData }
    }
}

impl<T> std::fmt::Debug for Query<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Query").field(&self.expression()).finish()
    }
}

fn owned<S: AsRef<str>>(parameters: &[S]) -> Vec<String> {
    parameters.iter().map(|parameter| parameter.as_ref().to_owned()).collect()
}

fn unusable(error: weir_filter::FilterError) -> DdsError {
    DdsError::BadParameter(format!("query: {error}"))
}
