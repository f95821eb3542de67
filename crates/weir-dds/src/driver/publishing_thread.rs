//! The thread of a writer that publishes asynchronously: sends what other threads write.
//!
//! The thread runs no application code. It never receives, so it calls no listener, and listeners
//! may write and wait as usual.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::endpoints::WriterEndpoint;
use super::shared::Driver;
use crate::error::Result;

impl Driver {
    /// Starts the publishing thread. Returns `None` if the writer does not publish asynchronously, or if the
    /// application polls.
    pub(crate) fn start_publishing(
        self: &Arc<Self>,
        writer: &Arc<WriterEndpoint>,
    ) -> Result<Option<JoinHandle<()>>> {
        let Some(publishing) = &writer.lane.publishing else { return Ok(None) };
        if self.polling.is_some() {
            publishing.begin_polled(Arc::clone(&self.outlet.timers.waker));
            return Ok(None);
        }
        let writer = Arc::clone(writer);
        self.thread("weir-publish", move |driver| run(driver, &writer)).map(Some)
    }
}

fn run(driver: &Driver, writer: &WriterEndpoint) {
    let lane = &writer.lane;
    let Some(publishing) = &lane.publishing else { return };
    publishing.begin();
    // The default timer slack of 50 µs would lengthen the pauses within large samples.
    let _ = weir_udp::affinity::set_timer_slack_ns(1_000);
    while publishing.begin_round() {
        let sent = lane.publish(&driver.outlet);
        let (is_room_awaited, is_end_awaited) = publishing.waiting();
        if sent.makes_room && is_room_awaited || !sent.is_amid_sample && is_end_awaited {
            driver.channel.announce_change_for_sure();
        }
        publishing.wait(driver.wait, driver.has_one_cpu, sent.paused_until);
    }
}
