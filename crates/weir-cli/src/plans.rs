//! Plans: files of studies, each measured as `weir bench` or `weir udp` would with its options.
//!
//! - `source`: the text, its values, and errors that name file and line
//! - `study`: a section, as options of a command; `require`: its requirements; `overrides`: keys of the command line
//! - `ready`: the ready-made plans; `published`: those of published tables

mod overrides;
mod published;
mod ready;
mod require;
mod source;
mod study;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use toml::de::DeTable;
use weir_bench::case::CaseSpec;
use weir_results::{Reliability, Test};

use crate::exit::Failure;
use source::Source;
use study::Defaults;

pub(crate) use overrides::section as overrides;
pub(crate) use ready::{Group, Ready};
pub(crate) use require::Required;
pub(crate) use study::{Study, StudyArgs};

/// The copy of a plan in its results folder.
pub(crate) const PLAN_NAME: &str = "plan.toml";

/// What requirements are about: a case that a study measures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) engine: &'a str,
    pub(crate) test: Test,
    pub(crate) size_bytes: u64,
    pub(crate) reliability: Reliability,
    pub(crate) batch_bytes: u64,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(case: &'a CaseSpec) -> Self {
        Self {
            engine: &case.engine,
            test: case.test,
            size_bytes: case.size_bytes as u64,
            reliability: case.reliability,
            batch_bytes: case.batch_bytes.into(),
        }
    }
}

/// A plan file.
#[derive(Debug)]
pub(crate) struct PlanFile {
    /// The file, or the name of a ready-made plan.
    name: String,
    pub(crate) text: String,
    /// Where the keys of the command line begin in the text.
    file_bytes: usize,
    /// Whether a study that fails ends the run.
    pub(crate) stops_on_failure: bool,
    pub(crate) studies: Vec<Study>,
}

impl PlanFile {
    /// Reads a ready-made plan or a file, with keys of the command line; see [`overrides()`].
    pub(crate) fn load(plan: &str, overrides: &str) -> Result<Self, Failure> {
        if let Some(ready) = Ready::find(plan) {
            return Self::read(plan, &ready.text, overrides, Some(Path::new("")));
        }
        let path = PathBuf::from(plan);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read the plan {plan}: name a file, or a ready-made plan ({})", ready::names())
        });
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::read(plan, &text.map_err(Failure::usage)?, overrides, Some(folder))
    }

    /// Reads the measured part of a plan that was copied to a results folder.
    pub(crate) fn parse_stored(path: &Path, text: &str) -> Result<Self, Failure> {
        Self::read(&path.display().to_string(), text, "", None)
    }

    /// Reads a plan. Paths in it are relative to the folder; if that is not known, requirements are left out.
    fn read(name: &str, file: &str, overrides: &str, folder: Option<&Path>) -> Result<Self, Failure> {
        let (text, file_bytes) = if overrides.is_empty() {
            (file.to_owned(), usize::MAX)
        } else {
            let file = file.trim_end();
            (format!("{file}\n{overrides}"), file.len() + 1)
        };
        let source = Source { name, text: &text, file_bytes };
        let document = DeTable::parse(&text).map_err(|error| {
            source.error(error.span().map_or(0, |span| span.start), error.message().replace('\n', ", "))
        })?;
        let (mut defaults, mut overrides) = (Defaults::default(), Defaults::default());
        let (mut stops_on_failure, mut tables) = (false, Vec::new());
        for item in source.items(document.get_ref()) {
            match item.key {
                "defaults" => defaults = Defaults::parse(source, item.table()?)?,
                overrides::SECTION => overrides = Defaults::parse(source, item.table()?)?,
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
        let studies = tables
            .into_iter()
            .map(|(at, table)| Study::parse(source, at, table, (&defaults, &overrides), folder));
        let studies: Vec<Study> = studies.collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        // A file system may not distinguish upper and lower case.
        if let Some(twice) = studies.iter().find(|study| !names.insert(study.name.to_ascii_lowercase())) {
            return Err(twice.error(source, &format!("another study has the name `{}`, too", twice.name)));
        }
        Ok(Self { name: name.to_owned(), text: text.clone(), file_bytes, stops_on_failure, studies })
    }

    fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text, file_bytes: self.file_bytes }
    }

    /// Adds to a failure of a study where it is in the plan.
    pub(crate) fn located(&self, study: &Study, failure: Failure) -> Failure {
        Failure { exit: failure.exit, ..study.error(self.source(), &failure.to_string()) }
    }

    /// Rejects requirements that are about no case.
    pub(crate) fn check_requirements(&self, study: &Study, subjects: &[Subject<'_>]) -> Result<(), Failure> {
        for Required { requirement, at } in &study.required {
            let has_batch = |bytes: u64| subjects.iter().any(|it| it.batch_bytes == bytes);
            let is_about = subjects
                .iter()
                .any(|it| requirement.is_about(it.engine, it.test, it.size_bytes, it.reliability));
            if !is_about || !requirement.selector.batch_bytes.is_none_or(has_batch) {
                let of = &requirement.selector;
                let text = format!("the study `{}` has no case that this is about ({of})", study.name);
                return Err(self.source().error(*at, text));
            }
            if let Some(engine) = requirement.limit.engine()
                && !subjects.iter().any(|it| it.engine == engine)
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
        PlanFile::read("plan.toml", text, "", Some(Path::new("")))
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
        let StudyArgs::Bench(args) = &parse(text).unwrap().studies[0].args else { panic!("not of bench") };
        assert_eq!(args.workload.sizes, [32, 1024]);
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
        let limits = "max_p50_us, max_p99_us, min_samples_per_s, max_lost_percent, no_loss, max_ratio, min_ratio, \
                      max_p99_ratio, min_p99_ratio";
        refused(&with("size = 32"), &format!("line 3: the requirement has no limit: add one of {limits}"));
        refused(
            &with("test = 'throughput'\nrelative_to = 'udp'\nmax_p99_ratio = 2"),
            "line 6: `max_p99_ratio` is a figure of the latency test",
        );
        assert!(
            parse(&with("max_ratio = 2\nrelative_to_run = 'nowhere'"))
                .unwrap_err()
                .to_string()
                .contains("line 5")
        );
    }

    #[test]
    fn the_ready_made_plans_are_valid_and_say_what_they_measure() {
        let all = Ready::all();
        let of = |group| all.iter().filter(|ready| ready.group == group).count();
        assert_eq!(Group::ALL.map(of), [4, 16, 8, 6]);
        for ready in &all {
            let plan = PlanFile::load(&ready.name, "").unwrap();
            assert!(!plan.studies.is_empty() && ready.text.starts_with("# ") && ready.about().len() < 80);
            assert!(ready.text.lines().all(|line| line.len() <= 200), "{}", ready.text);
        }
    }

    #[test]
    fn the_plan_of_a_published_table_has_its_conditions() {
        let arguments = |name: &str| {
            let plan = PlanFile::load(name, "").unwrap();
            plan.studies.iter().map(|it| it.arguments().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let keyed = arguments("micro-latency-pi-1g-keyed-best-effort");
        assert!(
            keyed[0].contains("--engines=udp,weir,weir-small --tests=latency --sizes=32,64,128,"),
            "{keyed:?}"
        );
        assert!(keyed[0].contains("--reliability=best-effort --instances=100000"), "{keyed:?}");
        assert!(keyed[0].contains("--link=veth,mtu=9000,rate=1G,burst=9100,gso=on"), "{keyed:?}");
        let batched = arguments("pro-throughput-10g-unkeyed-reliable-batch");
        assert!(batched[0].contains("--batch=0,8192 --link=veth,mtu=9000,rate=10G,gso=on"), "{batched:?}");
        let streams = arguments("hpcbench-udp-unidirectional");
        assert!(streams.len() == 3 && streams[2].contains("--sizes=500"), "{streams:?}");
    }

    #[test]
    fn keys_of_the_command_line_take_precedence_and_their_errors_name_it() {
        let plan = "# A plan\n[defaults]\nrepeat = 9\n[[study]]\nname = 'a'\nduration = '5s'\n\n";
        let with = |set: &str| PlanFile::read("plan.toml", plan, &format!("[overrides]\n{set}\n"), None);
        let read = with("duration = '1s'\nrepeat = 2").unwrap();
        let arguments: Vec<&str> = read.studies[0].arguments().collect();
        assert_eq!(arguments, ["--duration=1s", "--repeat=2"]);
        // The copy in the results folder is the same plan.
        let copy = PlanFile::parse_stored(Path::new("copy"), &read.text).unwrap();
        assert_eq!(read.check_same(&copy, Path::new("out")).map_err(|it| it.to_string()), Ok(()));
        let error = |set: &str| with(set).unwrap_err().to_string();
        assert_eq!(error("repaet = 2"), "--set: unknown key `repaet`; did you mean `repeat`?");
        assert!(error("repeat = 'x'").starts_with("--set: invalid value 'x' for '--repeat <N>'"));
    }

    #[test]
    fn studies_of_udp_have_the_options_of_that_command() {
        let defaults = "[defaults]\nduration = '1s'\nreliability = 'reliable'\nmode = 'send'\n";
        let text = format!("{defaults}[[study]]\nname = 'a'\ncommand = 'udp'\nsizes = 64");
        assert_eq!(arguments(&text), "--duration=1s --mode=send --sizes=64");
        assert_eq!(
            arguments(&text.replace("command = 'udp'\n", "")),
            "--duration=1s --reliability=reliable --sizes=64"
        );
        refused(&format!("{text}\nreliability = 'reliable'"), "line 9: unknown key `reliability`");
        refused("[[study]]\nname = 'a'\ncommand = 'tcp'", "line 3: `command` is \"bench\" or \"udp\"");
        let both = parse(&text).unwrap();
        let other = parse(&text.replace("command = 'udp'\n", "")).unwrap();
        assert!(both.check_same(&other, Path::new("out")).unwrap_err().to_string().contains("`command` of"));
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
