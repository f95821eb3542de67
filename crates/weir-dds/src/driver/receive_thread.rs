//! The background thread, which receives while no application thread does.

use weir_rtps::time::Time;
use weir_udp::Wait;

use super::channel::{BACKGROUND_TIMEOUT, Channel, RECEIVE_TIMEOUT, RoleGuard, mark_background};
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
            let Some((mut role, now)) = take_role(channel, now) else { return };
            if driver.wait.spin_time().is_none_or(|time| now.since(role.received_at) < time) {
                driver.receive_spinning(role, now, None);
            } else {
                channel.set_patience(&mut role, BACKGROUND_TIMEOUT);
                driver.receive_batch(role, Wait::Block, None);
            }
        });
    }
}

/// Takes the role. Returns it with the current time, which is `now` unless it had to wait.
fn take_role(channel: &Channel, now: Time) -> Option<(RoleGuard<'_>, Time)> {
    if let Some(role) = channel.try_role() {
        return Some((role, now));
    }
    // A participant that ends takes the role for ever.
    let role = channel.try_role_for(RECEIVE_TIMEOUT)?;
    Some((role, clock::now()))
}
