//! The generated pages and pictures of the documentation, and the results that they are made from.
//!
//! `cargo xtask docs` writes them from `docs/performance/results`, by `weir report`. The step of `ci` makes them in
//! memory and fails where the committed ones differ. `cargo xtask docs --measure` first measures the results again.
//!
//! - [`mod@measure`]: which results there are, and the commands that make them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ci::Outcome;
use crate::environment::Environment;
use crate::process;
use crate::steps;

mod measure;

/// Compares the committed pages with what the committed results give.
pub(crate) fn check(environment: &Environment) -> Outcome {
    Ok(Docs::new(environment, steps::weir(environment)?)?.check()?)
}

/// Writes the pages anew.
pub(crate) fn write(environment: &Environment) -> Outcome {
    let mut build = environment.cargo(&["build", "--locked", "--package", "weir-cli", "--bin", "weir"]);
    process::run(&mut build, steps::BUILD_LIMIT)?;
    Ok(Docs::new(environment, steps::built_weir(environment))?.write()?)
}

/// Measures everything with a release build of `weir`, or with the given one, and writes the pages anew.
pub(crate) fn measure(environment: &Environment, weir: Option<&Path>, only: &[&str]) -> Outcome {
    measure::all(environment, weir, only, &environment.root.join(RESULTS))?;
    write(environment)
}

struct Docs {
    root: PathBuf,
    weir: PathBuf,
    /// For pictures and for a README that is only compared.
    scratch: PathBuf,
}

/// Files by their name in [`GENERATED`].
type Files = BTreeMap<String, String>;

impl Docs {
    fn new(environment: &Environment, weir: PathBuf) -> Result<Self, String> {
        // What an earlier run left there would be taken for pictures of this one.
        let scratch = emptied(environment.target_folder().join("docs"))?;
        Ok(Self { root: environment.root.clone(), weir, scratch })
    }

    fn write(&self) -> Result<String, String> {
        let files = self.generate()?;
        let folder = self.root.join(GENERATED);
        for stale in self.committed()?.keys().filter(|name| !files.contains_key(*name)) {
            fs::remove_file(folder.join(stale)).map_err(at(stale.as_ref()))?;
        }
        for (name, text) in &files {
            write_file(&folder.join(name), text)?;
        }
        write_file(&self.root.join(README), &self.readme()?)?;
        Ok(format!("{} files in {GENERATED}, and {README}", files.len()))
    }

    fn check(&self) -> Result<String, String> {
        let (made, committed) = (self.generate()?, self.committed()?);
        let names: BTreeSet<&String> = made.keys().chain(committed.keys()).collect();
        let mut stale: Vec<String> = names
            .into_iter()
            .filter(|name| made.get(*name) != committed.get(*name))
            .map(|name| format!("{GENERATED}/{name}\n"))
            .collect();
        if self.readme()? != read(&self.root.join(README))? {
            stale.push(format!("{README}\n"));
        }
        if stale.is_empty() {
            return Ok(format!("{} generated files", made.len()));
        }
        Err(format!("{}differ from what {RESULTS} gives: cargo xtask docs\n", stale.concat()))
    }

    /// Every generated file.
    fn generate(&self) -> Result<Files, String> {
        let mut files = Files::new();
        for page in PAGES {
            let parts: Vec<&Part> = page.parts.iter().filter(|part| self.is_measured(part)).collect();
            let notice = if parts.is_empty() { not_measured(page.name) } else { notice(&parts) };
            let mut text = format!("# {}\n\n{}\n\n{notice}", page.title, page.about);
            for part in parts {
                self.add(part, &mut text, &mut files)?;
            }
            files.insert(format!("{}.md", page.name), text);
        }
        Ok(files)
    }

    /// Whether there are results of a part. A page is without those that were never measured.
    fn is_measured(&self, part: &Part) -> bool {
        self.root.join(RESULTS).join(part.results).exists()
    }

    /// Appends tables and pictures of a results file to a page, and the pictures to the files.
    fn add(&self, part: &Part, page: &mut String, files: &mut Files) -> Result<(), String> {
        let results = self.root.join(RESULTS).join(part.results);
        let results = results.to_string_lossy();
        if !part.title.is_empty() {
            *page += &format!("\n## {}\n", part.title);
        }
        for plot in part.plots {
            let folder = self.scratch.join(part.results).join(plot);
            let output = folder.to_string_lossy();
            self.weir(&["report", &results, "--plot", plot, "--output", &output])?;
            for (name, svg) in read_folder(&folder)? {
                let prefix = part.results.trim_end_matches(".jsonl");
                let alt = name.trim_end_matches(".svg").replace('-', " ");
                // The plots of some results have their name already.
                let name = if name.starts_with(prefix) { name } else { format!("{prefix}-{name}") };
                *page += &format!("\n![{alt}]({name})\n");
                files.insert(name, svg);
            }
        }
        let arguments: Vec<String> =
            part.tables.iter().filter_map(|word| self.argument(word, &results)).collect();
        if !arguments.is_empty() {
            let text = self.weir(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
            // A page made by `weir published page` has a title of its own.
            let text = text
                .split_once("\n\n")
                .filter(|(first, _)| first.starts_with("# "))
                .map_or(&*text, |it| it.1);
            *page += &format!("\n{}\n", text.trim_end());
            if part.tables != COMPACT && part.results.ends_with(".jsonl") {
                let origin = origin(&read(Path::new(&*results))?);
                *page += &origin.ok_or_else(|| format!("{results} does not say how it was measured\n"))?;
            }
        }
        Ok(())
    }

    /// A word of [`Part::tables`] as an argument: for a path below [`RESULTS`], that file, if it is there.
    fn argument(&self, word: &str, results: &str) -> Option<String> {
        match word.strip_prefix(RESULTS) {
            None => Some(word.to_owned()),
            Some("") => Some(results.to_owned()),
            Some(_) => {
                let path = self.root.join(word);
                path.exists().then(|| path.to_string_lossy().into_owned())
            }
        }
    }

    /// The README with the overview's tables between its marks.
    fn readme(&self) -> Result<String, String> {
        let results = self.root.join(RESULTS).join(OVERVIEW);
        let tables = self.weir(&["report", &results.to_string_lossy(), "--compact"])?;
        between_marks(&read(&self.root.join(README))?, &tables)
            .ok_or_else(|| format!("{README} lacks the line {BEGIN} or {END}\n"))
    }

    fn weir(&self, arguments: &[&str]) -> Result<String, String> {
        let finished = process::run(Command::new(&self.weir).args(arguments), steps::PROGRAM_LIMIT)?;
        Ok(finished.stdout)
    }

    fn committed(&self) -> Result<Files, String> {
        read_folder(&self.root.join(GENERATED))
    }
}

/// What stands at the top of each generated page.
fn notice(parts: &[&Part]) -> String {
    let mut links: Vec<String> =
        parts.iter().map(|part| format!("[{0}](../results/{0})", part.results)).collect();
    links.dedup();
    format!("Generated by `cargo xtask docs` from {}. Do not edit.\n", links.join(",\n"))
}

/// What stands there as long as a page has no results.
fn not_measured(page: &str) -> String {
    format!("Not measured yet: `cargo xtask docs --measure {page}` does it, and writes this page.\n")
}

/// When and by which command results were measured, for tables that do not say so.
fn origin(results: &str) -> Option<String> {
    let header: Value = serde_json::from_str(results.lines().next()?).ok()?;
    let environment = header.get("environment")?;
    let date = environment.get("date")?.as_str()?;
    let command = environment.get("command")?.as_array()?;
    let command: Vec<&str> = command.iter().filter_map(Value::as_str).collect();
    // A line for each option: the commands are long, and people copy them.
    let command = command.join(" ").replace(" --", " \\\n    --");
    Some(format!("\nMeasured {date} by\n\n```sh\n{command}\n```\n"))
}

/// `text` with `new` between the marks in place of what is there.
fn between_marks(text: &str, new: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", new.trim()))
}

/// Returns what makes an error text of an error about this path.
fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}\n", path.display())
}

/// Removes a folder if it is there.
fn emptied(folder: PathBuf) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(at(&folder))?;
    }
    Ok(folder)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(at(path))
}

fn write_file(path: &Path, text: &str) -> Result<(), String> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(at(path))?;
    fs::write(path, text).map_err(at(path))
}

/// Pages and pictures of a folder; none where there is no folder.
fn read_folder(folder: &Path) -> Result<Files, String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Files::new()) };
    let mut files = Files::new();
    for entry in entries {
        let entry = entry.map_err(at(folder))?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), read(&entry.path())?);
    }
    Ok(files)
}

const RESULTS: &str = "docs/performance/results";
const GENERATED: &str = "docs/performance/generated";
const README: &str = "README.md";
const OVERVIEW: &str = "overview.jsonl";
const BEGIN: &str = "<!-- generated by cargo xtask docs: begin -->";
const END: &str = "<!-- generated by cargo xtask docs: end -->";

/// A page of [`GENERATED`].
struct Page {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    parts: &'static [Part],
}

/// What a page shows of one results file.
struct Part {
    title: &'static str,
    /// File or folder in [`RESULTS`].
    results: &'static str,
    /// Arguments of `weir` that print the tables; [`RESULTS`] stands for the results, and a path below it for another
    /// file, which may be missing.
    tables: &'static [&'static str],
    /// Tests to draw, by `weir report --plot`.
    plots: &'static [&'static str],
}

const COMPACT: &[&str] = &["report", RESULTS, "--compact"];
const LINKS: &[&str] = &["report", RESULTS, "--links"];
const SCALING: &[&str] = &["scaling"];
const WHOLE: &[&str] = &["report", RESULTS];

const PAGES: &[Page] = &[
    Page {
        name: "overview",
        title: "Overview",
        about: "Raw UDP, UDP with segmentation offload, Weir and Cyclone DDS over loopback. \
                The README shows these tables.",
        parts: &[Part { title: "", results: OVERVIEW, tables: COMPACT, plots: &["latency", "throughput"] }],
    },
    Page {
        name: "comparison",
        title: "Comparison with other engines",
        about: "The [method](../method.md#comparison-with-other-engines) lists versions, settings and known limits. \
                Engines missing from the tables were not in the build.",
        parts: &[
            Part {
                title: "Virtual link that cuts segmented sends",
                results: "comparison-veth.jsonl",
                tables: COMPACT,
                plots: &["throughput"],
            },
            Part {
                title: "Loopback",
                results: "comparison.jsonl",
                tables: COMPACT,
                plots: &["latency", "throughput"],
            },
            Part {
                title: "Loopback, not pinned",
                results: "comparison-unpinned.jsonl",
                tables: COMPACT,
                plots: &["latency", "throughput"],
            },
        ],
    },
    Page {
        name: "targets",
        title: "Targets",
        about: "Performance targets of the engine against raw UDP and other engines. \
                The [method](../method.md#targets) explains the rows.",
        parts: &[Part {
            title: "",
            results: "targets.jsonl",
            tables: &[
                "targets",
                "--from",
                RESULTS,
                "docs/performance/results/targets-robot.jsonl",
                "docs/performance/results/targets-domain.json",
            ],
            plots: &[],
        }],
    },
    Page {
        name: "stages",
        title: "Stages of latency",
        about: "Where the time of a sample is spent, by `weir bench --breakdown`. \
                The [method](../method.md#stages-of-latency) defines the stages.",
        parts: &[
            Part { title: "Blocking", results: "stages-block.jsonl", tables: WHOLE, plots: &["breakdown"] },
            Part { title: "Spinning", results: "stages-spin.jsonl", tables: WHOLE, plots: &["breakdown"] },
        ],
    },
    Page {
        name: "published",
        title: "Published reference tables",
        about: "Tables that RTI published, and Weir's on one host.",
        parts: &[Part {
            title: "",
            results: "published",
            tables: &["published", "page", RESULTS],
            plots: &[],
        }],
    },
    Page {
        name: "published-mtu1500",
        title: "Published throughput tables at an MTU of 1500",
        about: "The published tables of throughput over 1 Gbit/s, over a link with the usual MTU of Ethernet.\n\
                Samples of 32 bytes go one by one, in a packet each: there, the processors are the limit, not the \
                link.",
        parts: &[Part {
            title: "",
            results: "published-mtu1500",
            tables: &["published", "page", RESULTS],
            plots: &[],
        }],
    },
    Page {
        name: "links",
        title: "Engines on emulated links",
        about: "Each engine sends one stream of samples over emulated links. The [reference](../../reference/links.md) \
                defines the links. The [method](../method.md#emulated-links) explains the run, the settings of other \
                engines, and how to contest a row.",
        parts: &[
            Part { title: "", results: "links-reliable.jsonl", tables: LINKS, plots: &[] },
            Part { title: "Over time", results: "links-reliable.jsonl", tables: &[], plots: &["links"] },
            Part { title: "Pairs of engines", results: "links-pairs.jsonl", tables: LINKS, plots: &[] },
            Part { title: "", results: "links-best-effort.jsonl", tables: LINKS, plots: &[] },
            Part { title: "", results: "links-age.jsonl", tables: LINKS, plots: &[] },
            Part { title: "", results: "links-fair.jsonl", tables: LINKS, plots: &[] },
            Part { title: "", results: "links-tcp.jsonl", tables: LINKS, plots: &[] },
        ],
    },
    Page {
        name: "scaling",
        title: "Cost against the number of readers, topics, participants and keys",
        about: "Four [workloads](../../guide/workloads.md#a-parameter), each with several values of its N.\n\
                The [method](../method.md#cost-against-n) explains the figures.",
        parts: &[
            Part { title: "Readers", results: "scaling-readers.jsonl", tables: COMPACT, plots: SCALING },
            Part { title: "Topics", results: "scaling-topics.jsonl", tables: COMPACT, plots: SCALING },
            Part {
                title: "Participants",
                results: "scaling-participants.jsonl",
                tables: COMPACT,
                plots: SCALING,
            },
            Part { title: "Keys", results: "scaling-keys.jsonl", tables: COMPACT, plots: SCALING },
            Part {
                title: "Large domains of Weir",
                results: "scaling-domain-200.json",
                tables: &[
                    "domain",
                    "--from",
                    "docs/performance/results/scaling-domain-10.json",
                    "docs/performance/results/scaling-domain-50.json",
                    "docs/performance/results/scaling-domain-100.json",
                    RESULTS,
                ],
                plots: &[],
            },
        ],
    },
    Page {
        name: "osrf-mininet",
        title: "Lossy links: Open Robotics' experiment",
        about: "The experiment of Open Robotics on lossy links (2020), repeated with Weir.",
        parts: &[Part {
            title: "",
            results: "osrf-mininet.jsonl",
            tables: &["published", "page", RESULTS],
            plots: &["osrf-mininet"],
        }],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(between_marks(&text, "new\n").unwrap(), format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(between_marks("a\n", "new"), None);
    }

    #[test]
    fn the_header_of_results_says_how_they_were_measured() {
        let header =
            "{\"environment\":{\"date\":\"D\",\"command\":[\"weir\",\"bench\",\"--sizes\",\"1k\"]}}\n{}\n";
        let expected = "\nMeasured D by\n\n```sh\nweir bench \\\n    --sizes 1k\n```\n";
        assert_eq!(origin(header).unwrap(), expected);
        assert_eq!(origin("{\"environment\":{}}"), None);
    }

    #[test]
    fn every_page_names_its_results_and_every_result_is_measured() {
        for part in PAGES.iter().flat_map(|page| page.parts) {
            assert!(measure::names().contains(&part.results), "{}", part.results);
            assert!(notice(&[part]).contains(part.results));
        }
    }
}
