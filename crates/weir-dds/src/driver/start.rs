//! Starts and stops a participant.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use weir_rtps::ecn::EcnMarks;
use weir_rtps::participant::{ParticipantConfig, ParticipantCore};
use weir_rtps::ports;
use weir_udp::NetworkWatch;
use weir_wire::{GuidPrefix, SequenceNumber};

use super::channel::Channel;
use super::discovery::Discovery;
use super::failure::Ending;
use super::groups::Groups;
use super::interfaces::{Choice, Selected};
use super::listeners::Listeners;
use super::network::Network;
use super::outlet::Outlet;
use super::paths::Paths;
use super::polling::Polling;
use super::routes::Routes;
use super::shared::Driver;
use super::sockets::{self, MetaSockets};
use super::timers::Timers;
use super::{receive_thread, timer_thread};
use crate::clock::{self, WallClock};
use crate::error::{DdsError, Result};
use crate::levels::ParticipantState;
use crate::qos::DomainParticipantQos;
use crate::settings::ParticipantSettings;
use crate::status_mask::StatusMask;

/// Stops the participant when the last handle is dropped.
pub(crate) struct Handle {
    pub(crate) driver: Arc<Driver>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.driver.stop();
    }
}

impl Driver {
    /// Opens the sockets and starts the threads, if it is to have any.
    pub(crate) fn start(
        domain_id: u32,
        settings: &ParticipantSettings,
        qos: DomainParticipantQos,
    ) -> Result<Arc<Self>> {
        if ports::metatraffic_unicast_port(domain_id, 0).is_none() {
            let text = format!("domain id {domain_id} is out of range: use 0 to 232");
            return Err(DdsError::BadParameter(text));
        }
        if let Some(copier) = weir_udp::wide_copy() {
            weir_cdr::copy::use_copier(copier);
        }
        let cpus = weir_udp::affinity::allowed_cpus().map_or(1, |cpus| cpus.len());
        // Before the interfaces are listed. A sandbox may forbid it; then the network must not change.
        let watch = NetworkWatch::new().ok();
        let (choice, selected) = Choice::new(settings)?;
        let (user, meta) = sockets::open(domain_id, settings, &choice, &selected)?;
        let data_multicast = settings.data_multicast.map(|group| group.address(domain_id)).transpose()?;
        let prefix = new_prefix(crate::random::secret()?);
        let mut config = participant_config(prefix, domain_id, settings, &selected, &user, &meta)?;
        config.default_multicast = data_multicast;
        config.user_data.clone_from(&qos.user_data);
        // Not more: a reader of Fast DDS visits all numbers before the first sample, one by one.
        config.first_announcement = SequenceNumber(1 + i64::from(crate::random::secret()? as u32 >> 12));
        if let Some(table) = &settings.limits {
            table.check_settings(settings).map_err(|error| DdsError::BadParameter(error.to_string()))?;
            config = config.with_limits(*table.limits());
        }
        let own_name = settings.name.as_deref();
        let known = settings.static_discovery.as_ref();
        config.static_peers = known.map(|it| it.peers(own_name)).unwrap_or_default();
        let own = known.map(|it| it.own(own_name)).unwrap_or_default();
        let timers = Timers::new().map_err(|error| DdsError::network("cannot create a timer", error))?;
        let polling = (!settings.threads).then(Polling::new).transpose()?;
        let waker = || Arc::clone(&timers.waker);
        let listeners = if settings.threads { Listeners::default() } else { Listeners::polled(waker()) };
        let user = Arc::new(user);
        let channel =
            Channel::new(Arc::clone(&user), Groups::new(selected.places(), settings.receive_buffer));
        let channel = if settings.threads { channel } else { channel.polled(waker()) };
        let driver = Arc::new(Self {
            prefix,
            domain_id,
            wait: settings.wait,
            has_one_cpu: cpus < 2,
            keeps_times: settings.stage_times,
            wall_clock: WallClock::new(),
            outlet: Outlet::new(user, timers, settings.send_buffer),
            channel,
            routes: Routes::default(),
            discovery: Discovery::new(ParticipantCore::new(config, clock::now())),
            listeners,
            level: Arc::default(),
            state: ParticipantState::new(settings.autoenable),
            builtin: Mutex::default(),
            meta,
            network: Network::new(choice, watch, selected),
            paths: Paths::new(settings.rate_max, settings.ecn),
            ecn: EcnMarks::default(),
            dscp: settings.dscp.clone(),
            qos: Mutex::new(qos),
            data_multicast,
            uses_multicast: settings.multicast,
            polling,
            is_stopping: AtomicBool::new(false),
            ending: Ending::default(),
            own,
            limits: settings.limits.clone(),
            threads: Mutex::new(Vec::new()),
        });
        driver.watch_sockets()?;
        driver.join(data_multicast)?;
        if settings.threads {
            driver.spawn("weir-receive", receive_thread::run)?;
            driver.spawn("weir-timers", timer_thread::run)?;
        }
        Ok(driver)
    }

    /// Announces the end of the participant, and ends its threads.
    pub(crate) fn stop(&self) {
        // A participant that has ended did this then.
        if !self.has_ended() {
            self.with_discovery(|core, now| core.close(now));
        }
        self.is_stopping.store(true, Ordering::SeqCst);
        self.outlet.timers.wake();
        self.channel.end_receiving();
        self.listeners.wake();
        if self.polling.is_some() {
            self.listeners.clear();
        }
        // It may hold handles of other participants.
        drop(self.level.set(None, StatusMask::NONE));
        let me = std::thread::current().id();
        for thread in self.threads.lock().drain(..) {
            // The last handle may be dropped in a listener on one of these threads, which then ends
            // by itself.
            if thread.thread().id() != me {
                // Panics do not get here.
                let _ = thread.join();
            }
        }
    }
}

/// Returns a unique prefix: the vendor id (RTPS 2.5, 9.3.1.5), the process id and 48 random bits.
fn new_prefix(random: u64) -> GuidPrefix {
    let mut prefix = [0; 12];
    prefix[..2].copy_from_slice(&weir_wire::VendorId::WEIR.0);
    prefix[2..6].copy_from_slice(&std::process::id().to_be_bytes());
    prefix[6..].copy_from_slice(&random.to_be_bytes()[..6]);
    GuidPrefix(prefix)
}

fn participant_config(
    prefix: GuidPrefix,
    domain_id: u32,
    settings: &ParticipantSettings,
    selected: &Selected,
    user: &weir_udp::UdpSocket,
    meta: &MetaSockets,
) -> Result<ParticipantConfig> {
    let mut config = ParticipantConfig::new(prefix, domain_id);
    let ports = (meta.unicast.local_addr().port(), user.local_addr().port());
    let own = selected.own_addresses(ports.0, ports.1, settings.multicast);
    config.metatraffic_unicast = own.metatraffic_unicast;
    config.default_unicast = own.default_unicast;
    config.interfaces = own.interfaces;
    config.multicast_interfaces = own.multicast_interfaces;
    if !settings.multicast {
        config.metatraffic_multicast = None;
    }
    for peer in &settings.peers {
        config.initial_peers.extend(peer.addresses(domain_id)?);
    }
    config.lease_duration = settings.lease_duration;
    config.announce_period = (settings.lease_duration / 3).min(config.announce_period);
    config.entity_name.clone_from(&settings.name);
    config.receive_buffer = u32::try_from(user.granted_recv_buffer()).unwrap_or(u32::MAX);
    Ok(config)
}
