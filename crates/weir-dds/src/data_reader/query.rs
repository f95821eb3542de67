//! Access to samples that meet a query (DDS 1.4, 2.2.2.5.3.10, 2.2.2.5.3.11).

use weir_cdr::DdsType;
use weir_rtps::reader::{SampleQuery, SampleSelection, States};

use super::DataReader;
use crate::query::Query;
use crate::sample::{Sample, SampleSeq};

impl<T: DdsType> DataReader<T> {
    /// Removes and returns up to `max` values that meet a query and are in these states, in the order of the query.
    ///
    /// Without ORDER BY, the oldest are first. Changes of instances' states meet no query.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// use weir_dds::{Query, States};
    ///
    /// # #[derive(DdsType, Default)]
    /// # #[dds(extensibility = "final")]
    /// # struct Position {
    /// #     speed: f64,
    /// # }
    /// # fn f(reader: &DataReader<Position>) -> weir_dds::Result<()> {
    /// let query = Query::new("speed > %0 ORDER BY speed", &["30.0"])?;
    /// let fast = reader.take_query(&query, 10, States::NOT_READ);
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_query(&self, query: &Query<T>, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect_query(query, max, states, true)
    }

    /// Returns up to `max` values that meet a query and marks them as read.
    ///
    /// Otherwise as [`DataReader::take_query`].
    pub fn read_query(&self, query: &Query<T>, max: usize, states: States) -> Vec<Sample<T>> {
        self.collect_query(query, max, states, false)
    }

    /// Returns whether there is a value that meets a query and is in these states.
    pub fn has_query(&self, query: &Query<T>, states: States) -> bool {
        let filter = query.filter();
        let core = self.inner.endpoint.core.lock();
        core.has_matching(SampleSelection { states, instance: None }, &|payload| filter.passes(payload))
    }

    fn collect_query(&self, query: &Query<T>, max: usize, states: States, remove: bool) -> Vec<Sample<T>> {
        self.inner.driver().flush_queued();
        let filter = query.filter();
        let order = query.order().map(|order| |one: &[u8], other: &[u8]| order.compare(one, other));
        let (mut samples, mut malformed) = (SampleSeq::new(), 0);
        let mut core = self.inner.access_by_policies(self.inner.endpoint.core.lock());
        let selection = SampleSelection { states, instance: None };
        let wanted = SampleQuery {
            matches: &|payload| filter.passes(payload),
            order: order.as_ref().map(|order| order as _),
        };
        core.access_matching(max, selection, remove, wanted, |raw| {
            malformed += u64::from(!samples.add().fill(raw) && !raw.was_read);
            true
        });
        if core.is_request_due() {
            self.inner.driver().request_refused(core);
        } else {
            drop(core);
        }
        if malformed > 0 {
            self.note_malformed(malformed);
        }
        samples.into_vec()
    }
}
