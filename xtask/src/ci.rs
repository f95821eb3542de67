//! Runs steps, prints one line each, and ends with the numbers of passed, failed and skipped ones.

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use crate::environment::Environment;
use crate::steps;

/// One check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// One line of help.
    pub(crate) about: &'static str,
    /// Whether it measures nothing and needs no results of others: the steps that follow run beside it.
    pub(crate) is_beside_others: bool,
    /// Whether a skip counts as a failure when `CI=true`.
    pub(crate) is_required_in_ci: bool,
    /// Runs it.
    pub(crate) run: fn(&Environment) -> Outcome,
}

/// How a step ended: passed, with a count if there is one, or not.
pub(crate) type Outcome = Result<String, NotPassed>;

/// Why a step did not pass. Any error text is a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotPassed {
    /// Failed, with the full output.
    Failed(String),
    /// Skipped, with the reason.
    Skipped(String),
}

impl From<String> for NotPassed {
    fn from(output: String) -> Self {
        Self::Failed(output)
    }
}

/// Starts all steps in order, regardless of failures, and returns the exit code.
pub(crate) fn run(steps: &[Step]) -> ExitCode {
    let environment = &Environment::detect();
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let mut beside_others = Vec::new();
        for &step in steps {
            let run = move || {
                timed(step.name, || {
                    let outcome = (step.run)(environment);
                    if environment.is_ci { refuse_skip(step, outcome) } else { outcome }
                })
            };
            if step.is_beside_others {
                beside_others.push(scope.spawn(run));
            } else {
                tally.add(&run());
            }
        }
        for step in beside_others {
            tally.add(&step.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
    });
    println!("{}", tally.line());
    ExitCode::from(u8::from(tally.failed > 0))
}

/// Runs something that is not a step of `ci`, and returns the exit code.
pub(crate) fn run_one(name: &str, run: impl FnOnce(&Environment) -> Outcome) -> ExitCode {
    let environment = Environment::detect();
    let outcome = timed(name, || run(&environment));
    ExitCode::from(u8::from(matches!(outcome, Err(NotPassed::Failed(_)))))
}

/// Runs a step and prints its line.
fn timed(name: &str, run: impl FnOnce() -> Outcome) -> Outcome {
    let start = Instant::now();
    let outcome = run();
    report(name, start.elapsed().as_secs_f64(), &outcome);
    outcome
}

/// Returns the steps with these names, in the order of `ci`, or the first unknown name.
pub(crate) fn select<'a>(names: &[&'a str]) -> Result<Vec<Step>, &'a str> {
    if let Some(unknown) = names.iter().find(|name| steps::ALL.iter().all(|step| step.name != **name)) {
        return Err(unknown);
    }
    Ok(steps::ALL.iter().filter(|step| names.contains(&step.name)).copied().collect())
}

/// In CI a required step fails if it is skipped.
fn refuse_skip(step: Step, outcome: Outcome) -> Outcome {
    outcome.map_err(|why| match why {
        NotPassed::Skipped(reason) if step.is_required_in_ci => {
            NotPassed::Failed(format!("skipped, which CI=true does not allow: {reason}\n"))
        }
        why => why,
    })
}

fn report(name: &str, seconds: f64, outcome: &Outcome) {
    match outcome {
        Ok(counted) if counted.is_empty() => println!("{name:<12} passed  {seconds:6.1} s"),
        Ok(counted) => println!("{name:<12} passed  {seconds:6.1} s  {counted}"),
        Err(NotPassed::Skipped(reason)) => println!("{name:<12} skipped {seconds:6.1} s  {reason}"),
        Err(NotPassed::Failed(output)) => {
            println!("{name:<12} FAILED  {seconds:6.1} s");
            println!("{}", output.trim_end());
        }
    }
}

/// The number of steps by outcome.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Ok(_) => &mut self.passed,
            Err(NotPassed::Failed(_)) => &mut self.failed,
            Err(NotPassed::Skipped(_)) => &mut self.skipped,
        } += 1;
    }

    fn line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_selected_in_the_order_of_ci() {
        let names: Vec<&str> = select(&["tidy", "fmt"]).unwrap().iter().map(|step| step.name).collect();
        assert_eq!(names, ["fmt", "tidy"]);
        assert_eq!(select(&["fmt", "nonsense"]).unwrap_err(), "nonsense");
    }

    #[test]
    fn the_closing_line_counts_each_outcome() {
        let mut tally = Tally::default();
        for outcome in [Ok(String::new()), Err(NotPassed::Skipped(String::new())), Ok(String::new())] {
            tally.add(&outcome);
        }
        assert_eq!(tally.line(), "2 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn only_required_steps_fail_when_skipped_in_ci() {
        let [required, optional] = [true, false].map(|is_required_in_ci| Step {
            name: "x",
            about: "",
            is_beside_others: false,
            is_required_in_ci,
            run: |_| Ok(String::new()),
        });
        let skipped = || Err(NotPassed::Skipped("no tool".into()));
        assert!(
            matches!(refuse_skip(required, skipped()), Err(NotPassed::Failed(text)) if text.contains("no tool"))
        );
        assert_eq!(refuse_skip(optional, skipped()), skipped());
        assert_eq!(refuse_skip(required, Ok(String::new())), Ok(String::new()));
    }

    #[test]
    fn steps_have_names_of_their_own() {
        for (i, step) in steps::ALL.iter().enumerate() {
            assert!(steps::ALL[i + 1..].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }
}
