//! Plans: files of studies, each measured as `weir bench` would with its options.
//!
//! - `source`: the text, its values, and errors that name file and line
//! - `study`: a section, as options of `weir bench`; `require`: its requirements
//! - `ready`: the ready-made plans

mod ready;
mod require;
mod source;
mod study;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use toml::de::DeTable;
use weir_bench::plan::Plan;

use crate::exit::Failure;
use source::Source;

pub(crate) use ready::{READY, Ready};
pub(crate) use require::Required;
pub(crate) use study::Study;

/// A plan file.
#[derive(Debug)]
pub(crate) struct PlanFile {
    /// The file, or the name of a ready-made plan.
    name: String,
    pub(crate) text: String,
    /// Whether a study that fails ends the run.
    pub(crate) stops_on_failure: bool,
    pub(crate) studies: Vec<Study>,
}

impl PlanFile {
    /// Reads a ready-made plan or a file.
    pub(crate) fn load(plan: &str) -> Result<Self, Failure> {
        if let Some(ready) = Ready::find(plan) {
            return Self::parse(plan, ready.text, Path::new(""));
        }
        let path = PathBuf::from(plan);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read the plan {plan}: name a file, or a ready-made plan ({})", ready::names())
        });
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(plan, &text.map_err(Failure::usage)?, folder)
    }

    /// Reads a plan. Paths in it are relative to `folder`.
    pub(crate) fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, Failure> {
        Self::read(name, text, Some(folder))
    }

    /// Reads the measured part of a plan that was copied to a results folder.
    pub(crate) fn parse_stored(path: &Path, text: &str) -> Result<Self, Failure> {
        Self::read(&path.display().to_string(), text, None)
    }

    /// Reads a plan, without its requirements if the folder is not known.
    fn read(name: &str, text: &str, folder: Option<&Path>) -> Result<Self, Failure> {
        let source = Source { name, text };
        let document = DeTable::parse(text).map_err(|error| {
            source.error(error.span().map_or(0, |span| span.start), error.message().replace('\n', ", "))
        })?;
        let (mut defaults, mut stops_on_failure, mut tables) = (Vec::new(), false, Vec::new());
        for item in source.items(document.get_ref()) {
            match item.key {
                "defaults" => defaults = study::defaults(source, item.table()?)?,
                "study" => tables = item.tables()?,
                "on_failure" => {
                    stops_on_failure = match item.text()? {
                        "continue" => false,
                        "stop" => true,
                        _ => return Err(item.expected("\"continue\" or \"stop\"")),
                    }
                }
                _ => return Err(item.unknown(["defaults", "study", "on_failure"])),
            }
        }
        if tables.is_empty() {
            return Err(source.error(0, "the plan has no study: add a section [[study]]"));
        }
        let studies =
            tables.into_iter().map(|(at, table)| Study::parse(source, at, table, &defaults, folder));
        let studies: Vec<Study> = studies.collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        // A file system may not distinguish upper and lower case.
        if let Some(twice) = studies.iter().find(|study| !names.insert(study.name.to_ascii_lowercase())) {
            return Err(twice.error(source, &format!("another study has the name `{}`, too", twice.name)));
        }
        Ok(Self { name: name.to_owned(), text: text.to_owned(), stops_on_failure, studies })
    }

    fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text }
    }

    /// Adds to a failure of a study where it is in the plan.
    pub(crate) fn located(&self, study: &Study, failure: Failure) -> Failure {
        Failure { exit: failure.exit, ..study.error(self.source(), &failure.to_string()) }
    }

    /// Rejects requirements that are about no case.
    pub(crate) fn check_requirements(&self, study: &Study, plans: &[Plan]) -> Result<(), Failure> {
        for Required { requirement, at } in &study.required {
            let steps = || plans.iter().flat_map(|plan| &plan.steps).map(|step| &step.case);
            let has_batch = |bytes: u64| steps().any(|case| u64::from(case.batch_bytes) == bytes);
            let is_about = steps().any(|case| {
                requirement.is_about(&case.engine, case.test, case.size_bytes as u64, case.reliability)
            });
            if !is_about || !requirement.selector.batch_bytes.is_none_or(has_batch) {
                let of = &requirement.selector;
                let text = format!("the study `{}` has no case that this is about ({of})", study.name);
                return Err(self.source().error(*at, text));
            }
            if let Some(engine) = requirement.limit.engine()
                && !steps().any(|case| case.engine == engine)
            {
                let text =
                    format!("`relative_to` names `{engine}`, which the study `{}` leaves out", study.name);
                return Err(self.source().error(*at, text));
            }
        }
        Ok(())
    }

    /// Rejects a plan that measures something else than the one whose results are continued. Requirements may differ.
    pub(crate) fn check_same(&self, earlier: &Self, folder: &Path) -> Result<(), Failure> {
        let changed = |what: String| {
            let folder = folder.display();
            Failure::usage(anyhow!(
                "{}: the plan has changed since {folder} was begun: {what}; choose another folder with --output",
                self.name
            ))
        };
        for (index, study) in self.studies.iter().enumerate() {
            match earlier.studies.get(index) {
                Some(before) if before.name == study.name => {
                    if let Some(option) = study.changed(before) {
                        let option = option.replace('-', "_");
                        return Err(changed(format!("`{option}` of the study `{}`", study.name)));
                    }
                }
                Some(before) => {
                    return Err(changed(format!("the study `{}` was `{}`", study.name, before.name)));
                }
                None => return Err(changed(format!("the study `{}` is new", study.name))),
            }
        }
        match earlier.studies.get(self.studies.len()) {
            Some(removed) => Err(changed(format!("the study `{}` is gone", removed.name))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PlanFile, Failure> {
        PlanFile::parse("plan.toml", text, Path::new(""))
    }

    /// The arguments of the last study.
    fn arguments(text: &str) -> String {
        let plan = parse(text).unwrap();
        plan.studies.last().unwrap().arguments().collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = parse(text).unwrap_err().to_string();
        assert_eq!(error, format!("plan.toml, {expected}"));
    }

    #[test]
    fn keys_are_the_options_of_bench() {
        let text = "[[study]]\nname = 'a'\nsizes = [32, '1k']\nsocket_buffer = 0x100000\nverify = true\nloans = false\n\
                    duration = '50ms'\nlink = ['lte', 'wan,loss=1%']\norder = 'shuffled'\nseed = 7\nuntil-width = '5%'";
        assert_eq!(
            arguments(text),
            "--sizes=32,1k --socket-buffer=1048576 --verify --duration=50ms --link=lte --link=wan,loss=1% \
             --order=shuffled --seed=7 --until-width=5%"
        );
        assert_eq!(parse(text).unwrap().studies[0].args.workload.sizes, [32, 1024]);
    }

    #[test]
    fn a_study_takes_precedence_over_the_defaults() {
        let defaults = "[defaults]\nsizes = 32\nverify = true\nlink = 'lte'\n";
        let study = "[[study]]\nname = 'a'\nverify = false\nlink = []\nsizes = 64";
        assert_eq!(arguments(&format!("{defaults}{study}")), "--sizes=64");
        assert_eq!(arguments(&format!("{study}\n{defaults}[[study]]\nname = 'b'")).matches("--").count(), 3);
    }

    #[test]
    fn errors_name_file_line_and_cause() {
        let study = |rest: &str| format!("# A plan\n[[study]]\nname = 'a'\n{rest}");
        refused(&study("sizse = 32"), "line 4: unknown key `sizse`; did you mean `sizes`?");
        refused(&study("colour = 'red'"), "line 4: unknown key `colour`");
        refused(
            &study("tests = 'latency'\nsizes = 'big'"),
            "line 5: invalid value 'big' for '--sizes <LIST>': `big` is not a size: \
             give bytes, or a whole number followed by k, M or G (powers of 1024), e.g. 32, 8k, 1M",
        );
        refused(&study("multicast = 'yes'"), "line 4: `multicast` is true or false");
        refused(
            &study("output = 'here'"),
            "line 4: `output` is no key of a plan: `weir run --output` sets the folder of all studies",
        );
        refused(&study("sizes = "), "line 4: string values must be quoted, expected literal string");
        refused("[[study]]\nsizes = 32", "line 1: the study has no `name`");
        refused(
            "[[study]]\nname = '../a'",
            "line 2: `name` is letters, digits, `-`, `_` and `.`, at most 100: it names a folder",
        );
        refused("", "line 1: the plan has no study: add a section [[study]]");
        refused(&study("[[study]]\nname = 'A'"), "line 4: another study has the name `A`, too");
        refused("[defaults]\nrequire = 1", "line 2: unknown key `require`");
    }

    #[test]
    fn requirements_are_checked() {
        let with = |rest: &str| format!("[[study]]\nname = 'a'\n[[study.require]]\n{rest}");
        let plan = parse(&with("engine = 'weir'\nsize = '1k'\nmax_p99_us = 50\nno_loss = true")).unwrap();
        assert_eq!(plan.studies[0].required.len(), 2);
        refused(&with("max_p9_us = 1"), "line 4: unknown key `max_p9_us`; did you mean `max_p99_us`?");
        refused(&with("max_p50_us = 'fast'"), "line 4: `max_p50_us` is a number of at least 0");
        refused(
            &with("test = 'latency'\nmin_samples_per_s = 1"),
            "line 5: `min_samples_per_s` is a figure of the throughput test",
        );
        refused(&with("max_ratio = 2"), "line 4: `max_ratio` needs `relative_to` or `relative_to_run`");
        let limits =
            "max_p50_us, max_p99_us, min_samples_per_s, max_lost_percent, no_loss, max_ratio, min_ratio";
        refused(&with("size = 32"), &format!("line 3: the requirement has no limit: add one of {limits}"));
        assert!(
            parse(&with("max_ratio = 2\nrelative_to_run = 'nowhere'"))
                .unwrap_err()
                .to_string()
                .contains("line 5")
        );
    }

    #[test]
    fn the_ready_made_plans_are_valid_and_say_what_they_measure() {
        for ready in READY {
            let plan = PlanFile::load(ready.name).unwrap();
            assert!(!plan.studies.is_empty() && ready.text.starts_with("# ") && ready.about().len() < 80);
        }
    }

    #[test]
    fn a_changed_plan_is_not_the_same_but_its_requirements_may_change() {
        let plan = |sizes: u32, limit: u32| {
            let text =
                format!("[[study]]\nname = 'a'\nsizes = {sizes}\n[[study.require]]\nmax_p50_us = {limit}");
            parse(&text).unwrap()
        };
        let check = |new: &PlanFile, old: &PlanFile| {
            new.check_same(old, Path::new("out")).map_err(|it| it.to_string())
        };
        assert_eq!(check(&plan(32, 2), &plan(32, 1)), Ok(()));
        let changed = check(&plan(64, 1), &plan(32, 1)).unwrap_err();
        assert!(changed.contains("has changed since out was begun: `sizes` of the study `a`"), "{changed}");
        let two = parse("[[study]]\nname = 'a'\nsizes = 32\n[[study]]\nname = 'b'").unwrap();
        assert!(check(&two, &plan(32, 1)).unwrap_err().contains("`b` is new"));
        assert!(check(&plan(32, 1), &two).unwrap_err().contains("`b` is gone"));
    }
}
