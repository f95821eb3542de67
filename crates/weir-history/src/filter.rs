//! Choosing among runs and cases.

/// What runs and cases have to be. Empty lists allow all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Names of engines.
    pub engines: Vec<String>,
    /// Names of tests: `latency`, `throughput`.
    pub tests: Vec<String>,
    /// Sizes of samples in bytes.
    pub sizes: Vec<u64>,
    /// Names of hosts, at either end.
    pub hosts: Vec<String>,
    /// Names of runs, such as those of a plan's studies.
    pub names: Vec<String>,
}

impl Filter {
    /// Whether only runs with certain cases are chosen.
    #[must_use]
    pub fn has_cases(&self) -> bool {
        !self.engines.is_empty() || !self.tests.is_empty() || !self.sizes.is_empty()
    }

    pub(crate) fn takes_case(&self, engine: &str, test: &str, size_bytes: u64) -> bool {
        allows(&self.engines, engine)
            && allows(&self.tests, test)
            && (self.sizes.is_empty() || self.sizes.contains(&size_bytes))
    }

    pub(crate) fn takes_run(&self, name: &str, host: &str, peer: Option<&str>) -> bool {
        allows(&self.names, name)
            && (allows(&self.hosts, host) || peer.is_some_and(|peer| allows(&self.hosts, peer)))
    }
}

fn allows(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|it| it == value)
}
