//! Takes the processes of a workload through it.
//!
//! The messages: `hello` from all, `case` to all, `prepared` from all, `connect` to all, `connected` from all, `start`
//! to all, `sent` from all when the time is over, `finish` to all, `finished` from all, and `close` to all.

use std::net::SocketAddrV4;
use std::time::Duration;

use weir_measure::{clock, nanos};

use super::process::DRAIN_MAX;
use super::{Layout, Workload};
use crate::case::{CaseError, CaseSpec};
use crate::control::{AgentReport, FromAgent, SCHEMA, ToAgent, VERSION};
use crate::processes::EndId;
use crate::session::{OnTick, Session};

/// Returns what the processes found, in their order.
pub(crate) fn measure(
    session: &mut Session<'_>,
    case: &CaseSpec,
    workload: &Workload,
    on_tick: OnTick<'_>,
) -> Result<Vec<AgentReport>, CaseError> {
    let ends = session.ends();
    for &id in &ends {
        let case = Box::new(case.clone().with(|case| case.ends.entity_id = id.index));
        session.send(id, &ToAgent::Case { schema: SCHEMA, version: VERSION.to_owned(), case, cpu: None })?;
    }
    let layout = Layout::new(workload).map_err(|(_, cause)| CaseError::Failed(cause))?;
    join(session, &ends, &layout)?;
    let lead = lead(&layout, ends.len());
    let at_ns = clock::now_ns() + nanos(lead);
    for &id in &ends {
        session.send(id, &ToAgent::Start { at_ns: Some(at_ns) })?;
    }
    let run_wait = lead + case.warmup + case.duration + GRACE;
    let mut sent = vec![0; layout.writers.len()];
    for &id in &ends {
        match session.wait_for(id, "did not finish", run_wait, on_tick)? {
            FromAgent::Sent { sent: of_process } => {
                for (writer, count) in of_process {
                    if let Some(sent) = sent.get_mut(writer) {
                        *sent = count;
                    }
                }
            }
            other => return Err(unexpected(session, id, &other)),
        }
    }
    for &id in &ends {
        session.send(id, &ToAgent::Finish { sent: sent.clone() })?;
    }
    let mut reports = Vec::new();
    for &id in &ends {
        match session.wait_for(id, "did not report", DRAIN_MAX + GRACE, &mut |_, _| {})? {
            FromAgent::Finished { report } => reports.push(*report),
            other => return Err(unexpected(session, id, &other)),
        }
    }
    Ok(reports)
}

/// Lets all processes open their nodes and find each other.
fn join(session: &mut Session<'_>, ends: &[EndId], layout: &Layout) -> Result<(), CaseError> {
    let mut addresses: Vec<Option<SocketAddrV4>> = vec![None; layout.nodes.len()];
    for &id in ends {
        match session.wait_for(id, "was not ready", PREPARE_WAIT, &mut |_, _| {})? {
            FromAgent::Prepared { nodes, .. } => {
                for (number, address) in nodes {
                    if let Some(known) = addresses.get_mut(number) {
                        *known = Some(address);
                    }
                }
            }
            other => return Err(unexpected(session, id, &other)),
        }
    }
    // All nodes have addresses, or none: they are of one engine.
    let nodes: Vec<SocketAddrV4> = addresses.into_iter().flatten().collect();
    for &id in ends {
        session.send(id, &ToAgent::Connect { peer: None, nodes: nodes.clone() })?;
    }
    for &id in ends {
        let what = "did not find all of its peers";
        match session.wait_for(id, what, PEERS_WAIT + GRACE, &mut |_, _| {})? {
            FromAgent::Connected => {}
            other => return Err(unexpected(session, id, &other)),
        }
    }
    Ok(())
}

/// The time between announcing a schedule and its start. Until then, each process learns of it, makes a thread for
/// each of its nodes and a record for each pair of a writer and a reader.
fn lead(layout: &Layout, processes: usize) -> Duration {
    let times = |each: Duration, count: usize| each.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
    let pairs = layout.readers.iter().map(|reader| reader.writers as usize).sum();
    LEAD + times(LEAD_OF_PROCESS, processes)
        + times(LEAD_OF_NODE, layout.nodes.len())
        + times(LEAD_OF_PAIR, pairs)
}

fn unexpected(session: &Session<'_>, id: EndId, message: &FromAgent) -> CaseError {
    CaseError::Failed(format!("{} sent a message out of turn: {message:?}", session.name(id)))
}

/// How long opening all nodes of a process may take.
const PREPARE_WAIT: Duration = Duration::from_secs(120);

/// How long all endpoints of a workload may take to find each other.
pub(crate) const PEERS_WAIT: Duration = Duration::from_secs(120);

/// How much longer than its own limits a process is waited for.
const GRACE: Duration = Duration::from_secs(20);

/// The time between announcing a schedule and its start in any case.
const LEAD: Duration = Duration::from_millis(200);

/// More of it for each process.
const LEAD_OF_PROCESS: Duration = Duration::from_millis(30);

/// More of it for each node.
const LEAD_OF_NODE: Duration = Duration::from_millis(2);

/// More of it for each pair of a writer and a reader.
const LEAD_OF_PAIR: Duration = Duration::from_micros(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::examples::{PAIR, STAR};

    #[test]
    fn larger_workloads_have_a_longer_lead() {
        let lead = |text: &str, processes| {
            lead(&Layout::new(&Workload::parse("x", text).unwrap()).unwrap(), processes)
        };
        // Two nodes and two pairs; ten nodes and 2 x 3 + 8 pairs.
        assert_eq!(lead(PAIR, 2), Duration::from_micros(200_000 + 60_000 + 4_000 + 4));
        assert_eq!(lead(STAR, 3), Duration::from_micros(200_000 + 90_000 + 20_000 + 28));
    }
}
