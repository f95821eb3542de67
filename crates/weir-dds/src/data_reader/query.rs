//! Access to samples that meet a query (DDS 1.4, 2.2.2.5.3.10, 2.2.2.5.3.11).

use weir_cdr::DdsType;
use weir_rtps::reader::{RawSample, SampleQuery, States};
use weir_rtps::writer::ChangeKind;

use super::selection::{Instances, What};
use super::{DataReader, Inner};
use crate::instance_handle::InstanceHandle;
use crate::query::Query;
use crate::sample::Sample;

impl<T: DdsType> DataReader<T> {
    /// Removes and returns up to `max` values that meet a query and are in these states, in the order of the query.
    ///
    /// Without ORDER BY, the order is that of [`DataReader::take`]: oldest first, or by PRESENTATION (DDS 1.4,
    /// 2.2.3.6). Changes of instances' states meet no query.
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
        self.select().query(query).states(states).max(max).take()
    }

    /// Returns up to `max` values that meet a query and marks them as read.
    ///
    /// Otherwise as [`DataReader::take_query`].
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType};
    /// # #[derive(DdsType, Default, Debug)]
    /// # #[dds(extensibility = "final")]
    /// # struct Reading {
    /// #     #[dds(key)]
    /// #     sensor: u32,
    /// #     celsius: f64,
    /// # }
    /// # fn f(reader: &DataReader<Reading>) -> weir_dds::Result<()> {
    /// use weir_dds::{Query, States};
    ///
    /// let query = Query::new("celsius > %0 ORDER BY celsius", &["30.0"])?;
    /// let hottest_last = reader.read_query(&query, 100, States::NOT_READ);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_query(&self, query: &Query<T>, max: usize, states: States) -> Vec<Sample<T>> {
        self.select().query(query).states(states).max(max).read()
    }

    /// Returns whether there is a value that meets a query and is in these states.
    ///
    /// ```no_run
    /// # use weir_dds::{DataReader, DdsType, Query, States};
    /// # fn f<T: DdsType>(reader: &DataReader<T>, query: &Query<T>) {
    /// if reader.has_query(query, States::NOT_READ) {
    ///     println!("there is news");
    /// }
    /// # }
    /// ```
    pub fn has_query(&self, query: &Query<T>, states: States) -> bool {
        let filter = query.filter();
        self.inner.any_sample(states, |raw| raw.kind == ChangeKind::Alive && filter.passes(raw.payload))
    }

    /// Accesses values that meet a query of the core. With the next instance: of the next one that has any.
    pub(super) fn access_wanted(
        &self,
        wanted: SampleQuery<'_>,
        mut what: What,
        remove: bool,
        fill: &mut dyn FnMut(RawSample<'_>) -> bool,
    ) {
        self.inner.driver().flush_queued();
        let mut malformed = 0;
        let mut core = self.inner.access_by_policies(self.inner.endpoint.core.lock());
        while let Some(selection) = what.resolve(&mut core) {
            let count = core.access_matching(what.max, selection, remove, wanted, |raw| {
                malformed += u64::from(!fill(raw) && !raw.was_read);
                true
            });
            match (what.instances, selection.instance) {
                (Instances::Next(_), Some(index)) if count == 0 && what.max > 0 => {
                    what.instances = Instances::Next(Some(InstanceHandle(core.instance_hash(index))));
                }
                _ => break,
            }
        }
        if core.has_errand() {
            self.inner.after_access(core);
        } else {
            drop(core);
        }
        if malformed > 0 {
            self.note_malformed(malformed);
        }
    }
}

impl Inner {
    /// Returns whether a sample in these states satisfies `matches`. Marks nothing as read or seen.
    pub(super) fn any_sample(&self, states: States, matches: impl FnMut(&RawSample<'_>) -> bool) -> bool {
        let core = self.endpoint.core.lock();
        let mut core = if core.has_policies() { self.access_by_policies(core) } else { core };
        core.any_sample(states, matches)
    }
}
