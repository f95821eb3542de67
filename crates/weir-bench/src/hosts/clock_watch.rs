//! The clocks of the hosts of a case, compared before and after it.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use weir_baseline::{ClockOffset, clock_relation};
use weir_measure::clock;
use weir_results::ClockRelation;

use super::clocks::{self, ClockServer};
use super::protocol::{FromHost, ToHost};
use super::{ANSWER_WAIT, Hosts};
use crate::case::{CaseError, Ends};
use crate::control::Role;
use crate::processes::EndId;

/// The clocks of the hosts of a case, each compared with that of the first publisher's host.
pub(crate) struct ClockWatch<'a> {
    hosts: &'a Hosts,
    /// The first publisher's host.
    base: usize,
    /// Those with another clock: where they answer, and how far they are ahead.
    others: BTreeMap<usize, (SocketAddrV4, ClockOffset)>,
    /// Answers for this host.
    _server: Option<ClockServer>,
}

impl<'a> ClockWatch<'a> {
    /// Compares the clocks before a case.
    ///
    /// # Errors
    /// When a host does not answer.
    pub(crate) fn start(hosts: &'a Hosts, ends: Ends) -> Result<Self, CaseError> {
        let base = hosts.spec.host_of(EndId { role: Role::Publisher, index: 0 });
        let mut watch = Self { hosts, base, others: BTreeMap::new(), _server: None };
        for number in hosts.used(ends) {
            if hosts.hosts[number].shares_clock_of(&hosts.hosts[base]) {
                continue;
            }
            let address = watch.answer(number)?;
            let offset = watch.compare(number, address)?;
            watch.others.insert(number, (address, offset));
        }
        Ok(watch)
    }

    /// The time of the first publisher's host, nanoseconds of its monotonic clock, and how long reading it took.
    pub(crate) fn now_ns(&self) -> Result<(u64, u64), CaseError> {
        let before_ns = clock::now_ns();
        if self.hosts.hosts[self.base].link.is_none() {
            return Ok((before_ns, 0));
        }
        match self.hosts.ask(self.base, &ToHost::Clock, ANSWER_WAIT)? {
            FromHost::Clock { now_ns } => Ok((now_ns, clock::now_ns() - before_ns)),
            _ => Err(self.out_of_turn(self.base)),
        }
    }

    /// A time of the first publisher's host as the host of an end has it.
    pub(crate) fn at(&self, id: EndId, base_ns: u64) -> u64 {
        let ahead_ns =
            self.others.get(&self.hosts.spec.host_of(id)).map_or(0, |(_, offset)| offset.offset_ns);
        base_ns.saturating_add_signed(ahead_ns)
    }

    /// Compares the clocks after the case: the relation of the first subscriber's clock to the first publisher's.
    pub(crate) fn finish(&self) -> Result<ClockRelation, CaseError> {
        let number = self.hosts.spec.host_of(EndId { role: Role::Subscriber, index: 0 });
        let Some((address, before)) = self.others.get(&number) else {
            return Ok(ClockRelation { shared: true, ..ClockRelation::default() });
        };
        Ok(clock_relation(*before, self.compare(number, *address)?))
    }

    /// Lets a host answer for its clock.
    fn answer(&mut self, number: usize) -> Result<SocketAddrV4, CaseError> {
        let host = &self.hosts.hosts[number];
        let address = host.interface.address;
        if host.link.is_none() {
            let server = ClockServer::start(address)
                .map_err(|error| CaseError::Failed(format!("no socket at {address}: {error}")))?;
            let address = server.address();
            self._server = Some(server);
            return Ok(address);
        }
        match self.hosts.ask(number, &ToHost::AnswerClock { address }, ANSWER_WAIT)? {
            FromHost::AnswersClock { address } => Ok(address),
            _ => Err(self.out_of_turn(number)),
        }
    }

    fn compare(&self, number: usize, to: SocketAddrV4) -> Result<ClockOffset, CaseError> {
        let base = &self.hosts.hosts[self.base];
        let from = base.interface.address;
        let compared = if base.link.is_none() {
            clocks::compare(from, to)
                .map_err(|error| CaseError::Failed(format!("no socket at {from}: {error}")))?
        } else {
            match self.hosts.ask(self.base, &ToHost::CompareClock { from, to }, ANSWER_WAIT)? {
                FromHost::Compared { offset } => offset,
                _ => return Err(self.out_of_turn(self.base)),
            }
        };
        compared.ok_or_else(|| {
            let (one, other) = (self.hosts.name(self.base), self.hosts.name(number));
            CaseError::Failed(format!(
                "the clocks of {one} and {other} cannot be compared: no answer by UDP from {to} to {from}; does a \
                 firewall drop it?"
            ))
        })
    }

    fn out_of_turn(&self, number: usize) -> CaseError {
        CaseError::Failed(format!("{} sent a message out of turn", self.hosts.name(number)))
    }
}
