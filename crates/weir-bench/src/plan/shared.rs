//! Cases that share their link with other traffic.

use super::{Action, PlanError, PlanOptions, Step, checks};
use crate::beside::Beside;
use crate::case::CaseSpec;
use crate::engine;
use crate::payload::HEADER_BYTES;

/// A step beside each of these; an unsupported one once.
pub(super) fn each(step: &Step, all: &[Beside]) -> Vec<Step> {
    let with = |beside: &Beside| {
        let mut step = step.clone();
        step.case.method.beside = *beside;
        if let (Beside::Samples(bytes), Some(engine)) = (*beside, engine::find(&step.case.engine)) {
            let max = engine.capabilities().size_bytes_max as u64;
            if bytes > max {
                step.action = Action::NotSupported(format!("samples of more than {max} bytes (--beside)"));
            }
        }
        step
    };
    let count = if step.action == Action::Measure { all.len() } else { 1 };
    all.iter().take(count).map(with).collect()
}

/// Whether the options allow to share a link.
pub(super) fn check(options: &PlanOptions) -> Result<(), PlanError> {
    if options.beside.is_empty() {
        return Ok(());
    }
    checks::list("--beside", &options.beside)?;
    for beside in &options.beside {
        match *beside {
            Beside::Samples(bytes) if bytes < HEADER_BYTES as u64 => {
                return Err(PlanError::TooSmall(bytes, "--beside"));
            }
            Beside::Samples(bytes) if bytes > CaseSpec::SIZE_BYTES_MAX as u64 => {
                let text = format!("--beside takes samples of up to {} bytes", CaseSpec::SIZE_BYTES_MAX);
                return Err(PlanError::Lacking(text));
            }
            _ => {}
        }
    }
    let text = if options.method.path.is_none() {
        "--beside shares a virtual link: choose one with --link"
    } else if options.method.breakdown {
        "--breakdown follows one sample at a time on a quiet host: leave out --beside"
    } else {
        return Ok(());
    };
    Err(PlanError::Lacking(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_results::{Reliability, Test};

    use super::*;
    use crate::case::Method;
    use crate::plan::plan;

    fn options(beside: &[Beside]) -> PlanOptions {
        PlanOptions {
            engines: vec!["mock".to_owned()],
            tests: vec![Test::Throughput],
            sizes: vec![1024],
            reliabilities: vec![Reliability::Reliable],
            batches: Some(vec![0]),
            duration: Duration::from_secs(1),
            beside: beside.to_vec(),
            method: Method { path: Some("tun".to_owned()), ..Method::default() },
            ..PlanOptions::default()
        }
    }

    #[test]
    fn each_case_is_measured_beside_everything_asked_for() {
        let all = [Beside::Nothing, Beside::Tcp, Beside::Samples(1 << 20)];
        let plan = plan(&options(&all)).unwrap();
        let planned: Vec<Beside> = plan.steps.iter().map(|step| step.case.method.beside).collect();
        assert_eq!(planned, all);
    }

    #[test]
    fn sharing_needs_a_link_and_possible_samples() {
        let check = |change: &dyn Fn(&mut PlanOptions), expected: &str| {
            let mut options = options(&[Beside::Tcp]);
            change(&mut options);
            let error = plan(&options).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&|options| options.method.path = None, "choose one with --link");
        check(&|options| options.beside = vec![Beside::Samples(3)], "a sample of 3 bytes is impossible");
        check(&|options| options.beside = vec![Beside::Samples(1 << 40)], "up to 1073741824 bytes");
        check(&|options| options.beside = vec![Beside::Tcp; 2], "--beside names tcp twice");
    }
}
