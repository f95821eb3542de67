//! Refuses QoS that contradict themselves.

use weir_rtps::qos::{Durability, DurabilityService, Qos};

use super::History;
use crate::error::{DdsError, Result};

/// Refuses policies that contradict each other.
pub(crate) fn check_policies(policies: &Qos) -> Result<()> {
    if policies.deadline < policies.time_based_filter {
        return Err(DdsError::InconsistentPolicy(format!(
            "DEADLINE: a period of {:?} is shorter than the minimum separation of TIME_BASED_FILTER, {:?}: every \
             deadline would be missed",
            policies.deadline, policies.time_based_filter
        )));
    }
    check_limits(policies)?;
    if policies.durability >= Durability::Transient {
        check_service(&policies.durability_service)
    } else {
        Ok(())
    }
}

/// Refuses a DURABILITY_SERVICE that serves nothing (DDS 1.4, 2.2.3.5).
fn check_service(service: &DurabilityService) -> Result<()> {
    let least = [
        ("max_samples", service.max_samples),
        ("max_instances", service.max_instances),
        ("max_samples_per_instance", service.max_samples_per_instance),
    ];
    let text = if service.history == History::KeepLast(0) {
        "DURABILITY_SERVICE: KEEP_LAST needs a depth of at least 1".to_owned()
    } else if let Some((name, _)) = least.iter().find(|(_, limit)| *limit == Some(0)) {
        format!("DURABILITY_SERVICE: {name} is 0: use at least 1, or None for no bound")
    } else {
        return Ok(());
    };
    Err(DdsError::InconsistentPolicy(text))
}

/// Refuses limits that contradict each other or the history (DDS 1.4, 2.2.3.18, 2.2.3.19).
fn check_limits(policies: &Qos) -> Result<()> {
    let refuse = |text: String| Err(DdsError::InconsistentPolicy(text));
    let limits = &policies.resource_limits;
    let counts = [
        ("max_samples", limits.max_samples),
        ("max_instances", limits.max_instances),
        ("max_samples_per_instance", limits.max_samples_per_instance),
    ];
    if let Some((name, _)) = counts.iter().find(|(_, limit)| *limit == Some(0)) {
        return refuse(format!("RESOURCE_LIMITS: {name} is 0: use at least 1, or None for no bound"));
    }
    if limits.max_bytes == Some(0) {
        return refuse("RESOURCE_LIMITS: max_bytes is 0: use at least 1, or None".to_owned());
    }
    if let (Some(all), Some(each)) = (limits.max_samples, limits.max_samples_per_instance)
        && all < each
    {
        return refuse(format!(
            "RESOURCE_LIMITS: max_samples ({all}) is less than max_samples_per_instance ({each})"
        ));
    }
    let History::KeepLast(depth) = policies.history else { return Ok(()) };
    if depth == 0 {
        return refuse("HISTORY: KEEP_LAST needs a depth of at least 1".to_owned());
    }
    let least = [("max_samples_per_instance", limits.max_samples_per_instance), counts[0]];
    match least
        .iter()
        .find_map(|(name, limit)| limit.filter(|limit| *limit < depth).map(|limit| (name, limit)))
    {
        Some((name, limit)) => {
            refuse(format!("HISTORY: a depth of {depth} does not fit RESOURCE_LIMITS: {name} is {limit}"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durability_service_that_serves_nothing_is_refused() {
        let check = |durability, change: fn(&mut DurabilityService)| {
            let mut policies = Qos { durability, ..Qos::for_writer() };
            change(&mut policies.durability_service);
            check_policies(&policies).map_err(|error| error.to_string())
        };
        let [depth, samples, instances, each]: [fn(&mut DurabilityService); 4] = [
            |it| it.history = History::KeepLast(0),
            |it| it.max_samples = Some(0),
            |it| it.max_instances = Some(0),
            |it| it.max_samples_per_instance = Some(0),
        ];
        for change in [depth, samples, instances, each] {
            let refused = check(Durability::Persistent, change).unwrap_err();
            assert!(refused.starts_with("DURABILITY_SERVICE: "), "{refused}");
            assert_eq!(check(Durability::TransientLocal, change), Ok(()), "it is not used");
        }
        assert_eq!(check(Durability::Transient, |_| {}), Ok(()));
    }
}
