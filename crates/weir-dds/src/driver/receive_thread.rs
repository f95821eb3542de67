//! The background thread, which receives while no application thread does.

use weir_udp::Wait;

use super::channel::{RECEIVE_TIMEOUT, mark_background};
use super::shared::Driver;
use crate::clock;

pub(super) fn run(driver: &Driver) {
    mark_background();
    let channel = &driver.channel;
    while driver.is_running() {
        let now = clock::now();
        if channel.park_background(now) {
            continue;
        }
        channel.receive_in_background(|| {
            // A participant that fails takes the role for ever.
            let Some(mut role) = channel.role.try_lock_for(RECEIVE_TIMEOUT) else { return };
            if driver.wait.spin_time().is_none_or(|time| now.since(role.received_at) < time) {
                driver.receive_spinning(role, now, None);
            } else {
                channel.set_patience(&mut role, RECEIVE_TIMEOUT);
                driver.receive_batch(role, Wait::Block, None);
            }
        });
    }
}
