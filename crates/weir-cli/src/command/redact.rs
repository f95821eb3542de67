//! `weir redact`: results files without names.

use anyhow::anyhow;

use crate::args::RedactCommandArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::runs::{self, Finder};

pub(crate) fn run(args: &RedactCommandArgs) -> Result<Exit, Failure> {
    let is_file = args.output.extension().is_some_and(|it| it.eq_ignore_ascii_case("jsonl"));
    if is_file && args.runs.len() > 1 {
        return Err(Failure::usage(anyhow!(
            "--output {}: name a folder for the files of several runs",
            args.output.display()
        )));
    }
    if !is_file && args.output.is_file() {
        return Err(Failure::usage(anyhow!(
            "--output {}: end the name of a results file in .jsonl",
            args.output.display()
        )));
    }
    let mut found = Finder::new(&args.results).load(&args.runs)?;
    runs::redact(&mut runs::new_redactor(&args.also), &mut found)?;
    if !is_file {
        output::folder(&args.output)?;
    }
    for (number, found) in (1..).zip(&found) {
        let path = if is_file {
            args.output.clone()
        } else {
            // Folders of different places may have the same name.
            let is_free = |name: &String| !args.output.join(format!("{name}.jsonl")).exists();
            let name = Some(found.name.clone()).filter(is_free).unwrap_or_else(|| format!("run-{number}"));
            args.output.join(format!("{name}.jsonl"))
        };
        output::new_file(&path, &found.run.to_lines())?;
        output::talk(&format!("redacted: {}", path.display()));
    }
    Ok(Exit::Success)
}
