//! Allowed dependencies between crates: the table of the architecture, compared with `cargo
//! metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Complaint;
use crate::environment::Environment;
use crate::peers;
use crate::process;
use crate::steps;

/// Every workspace crate with the workspace crates that it may use. A new arrow is a design
/// decision: ARCHITECTURE.md changes with it.
const ARROWS: &[(&str, &[&str])] = &[
    ("weir", &["weir-cli", "weir-peers"]),
    ("weir-baseline", &["weir-measure", "weir-results", "weir-telemetry", "weir-udp"]),
    (
        "weir-bench",
        &[
            "weir-baseline",
            "weir-dds",
            "weir-measure",
            "weir-netsim",
            "weir-peer-api",
            "weir-results",
            "weir-telemetry",
            "weir-udp",
        ],
    ),
    ("weir-cdr", &["weir-cdr-derive"]),
    ("weir-cdr-derive", &[]),
    (
        "weir-cli",
        &[
            "weir-baseline",
            "weir-bench",
            "weir-compat",
            "weir-dds",
            "weir-history",
            "weir-measure",
            "weir-report",
            "weir-results",
        ],
    ),
    (
        "weir-compat",
        &[
            "weir-baseline",
            "weir-bench",
            "weir-dds",
            "weir-measure",
            "weir-results",
            "weir-telemetry",
            "weir-udp",
        ],
    ),
    ("weir-dds", &["weir-cdr", "weir-filter", "weir-rtps", "weir-udp", "weir-wire"]),
    ("weir-exchange-peers", &[]),
    ("weir-filter", &["weir-cdr"]),
    ("weir-history", &["weir-results"]),
    ("weir-interop", &["weir-cdr", "weir-dds", "weir-netsim", "weir-rtps", "weir-udp", "weir-wire"]),
    ("weir-measure", &["weir-results", "weir-udp"]),
    ("weir-netsim", &[]),
    ("weir-peer-api", &[]),
    ("weir-peers", &["weir-peer-api"]),
    ("weir-report", &["weir-results"]),
    ("weir-results", &[]),
    ("weir-rtps", &["weir-cdr", "weir-filter", "weir-wire"]),
    ("weir-telemetry", &["weir-results"]),
    ("weir-udp", &[]),
    ("weir-wire", &["weir-cdr"]),
    ("xtask", &[]),
];

/// Additional crates that tests, examples and benches may use.
const TEST_ARROWS: &[(&str, &[&str])] =
    &[("weir-cdr-derive", &["weir-cdr"]), ("weir-dds", &["weir-netsim"]), ("weir-rtps", &["weir-netsim"])];

/// Crates without input and output, clock, threads or randomness: no crate that offers those may be
/// among their dependencies.
const PURE: &[&str] = &["weir-cdr", "weir-filter", "weir-netsim", "weir-report", "weir-rtps", "weir-wire"];
const IMPURE: &[&str] =
    &["async-std", "getrandom", "libc", "mio", "nix", "rand", "rustix", "smol", "socket2", "tokio"];

/// Heavy or opinionated crates, and the only workspace crates that may use them.
const RESERVED: &[(&str, &[&str])] = &[
    ("anyhow", &["weir-cli", "xtask"]),
    ("clap", &["weir-cli"]),
    ("libc", &["weir-udp"]),
    ("plotters", &["weir-report"]),
    ("socket2", &["weir-udp"]),
];

/// What Cargo knows about the main workspace and `peers/`.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// Names of the members.
    pub(crate) members: BTreeSet<String>,
    /// Folder of each member, from the root of the repository.
    folders: BTreeMap<String, String>,
    /// (user, dependency, kind) for every dependency of a member; kind is empty for a normal one,
    /// else "dev" or "build".
    dependencies: BTreeSet<(String, String, String)>,
    /// Everything that a member of the main workspace is built from, other than through a
    /// procedural macro or a build script.
    closures: BTreeMap<String, BTreeSet<String>>,
}

/// Runs `cargo metadata`.
pub(crate) fn metadata(environment: &Environment) -> Result<Metadata, String> {
    let mut metadata = Metadata::default();
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let main = [&["metadata", "--format-version", "1", "--locked"], &platform[..]].concat();
    metadata.add("", &ask(environment, &main)?);
    // Nothing there is pure: what its members name is enough, and nothing is downloaded for it.
    let peers = peers::manifest(&["metadata", "--format-version", "1", "--no-deps"]);
    metadata.add("peers/", &ask(environment, &peers)?);
    Ok(metadata)
}

fn ask(environment: &Environment, arguments: &[&str]) -> Result<Value, String> {
    let finished = process::run(&mut environment.cargo(arguments), steps::BUILD_LIMIT)?;
    serde_json::from_str(&finished.stdout).map_err(|error| format!("cargo metadata is no JSON: {error}"))
}

/// Compares with the tables.
pub(crate) fn check(metadata: &Metadata) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut complain = |name: &str, what: String| {
        let folder = metadata.folders.get(name).map_or(name, String::as_str);
        complaints.push(Complaint { path: format!("{folder}/Cargo.toml"), line: 0, what });
    };
    for name in &metadata.members {
        if lookup(ARROWS, name).is_none() {
            complain(name, format!("{name} is not in the table of arrows (xtask/src/tidy/arrows.rs)"));
        }
        if metadata.folders[name].rsplit('/').next() != Some(name) && name != "weir-interop" {
            complain(name, format!("the folder of {name} has another name"));
        }
    }
    for (from, to, kind) in &metadata.dependencies {
        let allowed = lookup(ARROWS, from).unwrap_or_default();
        let for_tests = lookup(TEST_ARROWS, from).unwrap_or_default();
        let is_allowed =
            allowed.contains(&to.as_str()) || (kind == "dev" && for_tests.contains(&to.as_str()));
        if metadata.members.contains(to) && !is_allowed {
            complain(from, format!("{from} may not use {to}"));
        }
        let owners = lookup(RESERVED, to).filter(|_| kind != "dev" && from != "weir-interop");
        if owners.is_some_and(|owners| !owners.contains(&from.as_str())) {
            complain(from, format!("{from} may not use {to}"));
        }
    }
    for name in PURE {
        let built_from = metadata.closures.get(*name).into_iter().flatten();
        for found in built_from.filter(|found| IMPURE.contains(&found.as_str())) {
            complain(name, format!("{name} touches no operating system, but is built from {found}"));
        }
    }
    complaints
}

fn lookup(table: &'static [(&str, &[&str])], name: &str) -> Option<&'static [&'static str]> {
    table.iter().find(|(from, _)| *from == name).map(|(_, to)| *to)
}

impl Metadata {
    /// Adds the workspace whose folder has this path from the top of the repository.
    fn add(&mut self, prefix: &str, value: &Value) {
        let root = value["workspace_root"].as_str().unwrap_or_default();
        let ids: BTreeSet<&str> = array(&value["workspace_members"]).filter_map(Value::as_str).collect();
        let names: BTreeMap<&str, &str> = array(&value["packages"])
            .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
            .collect();
        let is_member = |package: &&Value| package["id"].as_str().is_some_and(|id| ids.contains(id));
        for package in array(&value["packages"]).filter(is_member) {
            let name = package["name"].as_str().unwrap_or_default().to_owned();
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = manifest.trim_start_matches(root).trim_matches('/').trim_end_matches("/Cargo.toml");
            self.folders.insert(name.clone(), format!("{prefix}{folder}"));
            for dependency in array(&package["dependencies"]) {
                let to = dependency["name"].as_str().unwrap_or_default().to_owned();
                let kind = dependency["kind"].as_str().unwrap_or_default().to_owned();
                self.dependencies.insert((name.clone(), to, kind));
            }
            self.members.insert(name);
        }
        let edges = edges(value);
        for id in ids {
            let mut reached = BTreeSet::new();
            let mut next = vec![id];
            while let Some(id) = next.pop() {
                for to in edges.get(id).into_iter().flatten().filter(|to| reached.insert(**to)) {
                    next.push(to);
                }
            }
            let reached =
                reached.iter().filter_map(|id| names.get(id)).map(|name| (*name).to_owned()).collect();
            self.closures.insert((*names.get(id).unwrap_or(&id)).to_owned(), reached);
        }
    }
}

/// Returns the normal dependencies of every package by id, without procedural macros, which run in
/// the compiler.
fn edges(value: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let is_macro = |package: &&Value| {
        array(&package["targets"]).flat_map(|target| array(&target["kind"])).any(|kind| kind == "proc-macro")
    };
    let macros: BTreeSet<&str> =
        array(&value["packages"]).filter(is_macro).filter_map(|package| package["id"].as_str()).collect();
    let mut edges = BTreeMap::new();
    for node in array(&value["resolve"]["nodes"]) {
        let normal =
            array(&node["deps"]).filter(|dep| array(&dep["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        let to: BTreeSet<&str> =
            normal.filter_map(|dep| dep["pkg"].as_str()).filter(|id| !macros.contains(id)).collect();
        edges.insert(node["id"].as_str().unwrap_or_default(), to);
    }
    edges
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A workspace with these dependencies (user, dependency, kind).
    fn workspace(dependencies: &[(&str, &str, Option<&str>)]) -> Metadata {
        let mut names: BTreeSet<&str> = dependencies.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
        names.insert("weir-wire");
        let packages: Vec<Value> = names
            .iter()
            .map(|name| {
                let uses = dependencies.iter().filter(|(from, _, _)| from == name);
                let uses: Vec<Value> = uses.map(|(_, to, kind)| json!({"name": to, "kind": kind})).collect();
                let kind = if name.ends_with("-derive") { "proc-macro" } else { "lib" };
                json!({"id": name, "name": name, "manifest_path": format!("/top/crates/{name}/Cargo.toml"),
                       "targets": [{"kind": [kind]}], "dependencies": uses})
            })
            .collect();
        let nodes: Vec<Value> = names
            .iter()
            .map(|name| {
                let uses = dependencies.iter().filter(|(from, _, _)| from == name);
                let uses: Vec<Value> =
                    uses.map(|(_, to, kind)| json!({"pkg": to, "dep_kinds": [{"kind": kind}]})).collect();
                json!({"id": name, "deps": uses})
            })
            .collect();
        let members: Vec<&str> = names.iter().copied().filter(|name| name.starts_with("weir")).collect();
        let mut metadata = Metadata::default();
        metadata.add(
            "",
            &json!({"workspace_root": "/top", "workspace_members": members, "packages": packages, "resolve": {"nodes": nodes}}),
        );
        metadata
    }

    fn complaints(dependencies: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        check(&workspace(dependencies)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let none: Vec<String> = Vec::new();
        assert_eq!(complaints(&[("weir-rtps", "weir-wire", None), ("weir-udp", "libc", None)]), none);
        assert_eq!(complaints(&[("weir-rtps", "weir-netsim", Some("dev"))]), none);
    }

    #[test]
    fn other_arrows_are_refused() {
        assert_eq!(
            complaints(&[("weir-wire", "weir-rtps", None)]),
            ["crates/weir-wire/Cargo.toml: weir-wire may not use weir-rtps"]
        );
        assert_eq!(
            complaints(&[("weir-rtps", "weir-netsim", None)]),
            ["crates/weir-rtps/Cargo.toml: weir-rtps may not use weir-netsim"]
        );
        assert_eq!(
            complaints(&[("weir-cli", "weir-peers", None)]),
            ["crates/weir-cli/Cargo.toml: weir-cli may not use weir-peers"]
        );
        assert_eq!(
            complaints(&[("weir-bench", "clap", None)]),
            ["crates/weir-bench/Cargo.toml: weir-bench may not use clap"]
        );
    }

    #[test]
    fn pure_crates_reach_no_operating_system() {
        let found = complaints(&[
            ("weir-rtps", "weir-wire", None),
            ("weir-wire", "bytes", None),
            ("bytes", "libc", None),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("weir-rtps touches no operating system, but is built from libc"));
        let macros = [("weir-cdr", "weir-cdr-derive", None), ("weir-cdr-derive", "rand", None)];
        assert!(complaints(&macros).is_empty(), "what a procedural macro uses runs in the compiler");
        assert!(complaints(&[("weir-rtps", "rand", Some("dev"))]).is_empty());
    }

    #[test]
    fn an_unknown_crate_is_asked_about() {
        assert!(complaints(&[("weir-new", "weir-wire", None)])[0].contains("not in the table of arrows"));
    }
}
