//! Readers that do not answer: finds out whether their participants are gone, and continues without them.

use std::sync::Arc;

use weir_rtps::participant::ParticipantCore;
use weir_rtps::time::Time;
use weir_udp::{Refusal, Wait};

use super::endpoints::WriterEndpoint;
use super::events::WriterEvent;
use super::interfaces;
use super::listeners::Call;
use super::shared::Driver;

/// Refusals handled at a time; further ones wait for the next round.
const REFUSALS_MAX: usize = 256;

impl Driver {
    /// Does what is due for a writer, on the timer thread. Returns when something is due next.
    pub(super) fn writer_timeout(&self, writer: &Arc<WriterEndpoint>, now: Time) -> Option<Time> {
        let next = writer.lane.timeout(&self.outlet, now);
        if writer.watches_deadlines() && writer.lane.core().has_deadline_news() {
            self.listeners.call([Call::Writer(Arc::clone(writer), WriterEvent::DeadlineMissed)]);
        }
        let Some(silence) = writer.lane.take_silence() else { return next };
        if silence.has_stalled {
            // Its destinations are the same, but threads that wait for room may find it.
            self.channel.announce_change();
        }
        if !silence.silent.is_empty() {
            self.with_discovery(|core, now| {
                silence.silent.iter().for_each(|reader| core.suspect(now, *reader))
            });
        }
        next
    }

    /// Handles what hosts report about the questions to participants that may be gone.
    pub(super) fn take_refusals(&self) {
        let refusals = std::iter::from_fn(|| self.meta.prober.take_refusal()).take(REFUSALS_MAX);
        let mut refusals = refusals.peekable();
        if refusals.peek().is_some() {
            self.with_discovery(|core, now| refusals.for_each(|it| handle_refusal(core, now, it)));
        }
        // Answers go elsewhere. What arrives here all the same must not keep the socket readable.
        let mut rest = [0];
        let discard = || self.meta.prober.recv(&mut rest, Wait::DontWait);
        std::iter::repeat_with(discard).take(REFUSALS_MAX).take_while(Result::is_ok).for_each(drop);
    }
}

fn handle_refusal(core: &mut ParticipantCore, now: Time, Refusal { to, mtu }: Refusal) {
    match mtu {
        None => core.refused(now, to),
        Some(mtu) => core.path_size_reported(now, *to.ip(), interfaces::datagram_max(mtu as usize)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;
    use crate::qos::DomainParticipantQos;
    use crate::settings::ParticipantSettings;

    #[test]
    fn datagrams_to_the_socket_for_questions_are_discarded() {
        let driver = Driver::start(
            230,
            &ParticipantSettings::default().interface("lo"),
            DomainParticipantQos::default(),
        )
        .unwrap();
        let prober = &driver.meta.prober;
        let mut to = prober.local_addr();
        to.set_ip(Ipv4Addr::LOCALHOST);
        for _ in 0..3 * REFUSALS_MAX {
            driver.channel.socket.send_to(b"hello", to.into()).unwrap();
        }
        // The timer thread does that. Otherwise it would never sleep again.
        while weir_udp::poll(&[prober], None, Some(Duration::ZERO)).unwrap().is_readable(0) {
            std::thread::yield_now();
        }
        driver.stop();
    }
}
