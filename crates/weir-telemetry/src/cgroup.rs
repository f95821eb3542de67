//! The control group of this process, usually a container: its processor quota, and how often it
//! was throttled.

use std::fs;
use std::path::{Path, PathBuf};

use crate::counters::counters;
use crate::proc_file::ProcFile;

counters! {
    /// Throttling of a control group's processes since it was created.
    Throttling {
        /// Periods in which its processes used up their quota.
        periods,
        /// Time that its processes were throttled, in microseconds.
        throttled_us,
    }
}

/// The group's counter files, kept open.
#[derive(Debug)]
pub(crate) struct Cgroup {
    stat: ProcFile,
}

impl Cgroup {
    /// Finds the group of this process; a group without counters has none.
    pub(crate) fn find() -> Self {
        // The group with the quota is the one that throttles; without a quota the counters do not
        // change.
        let folder = limits().into_iter().min_by(|one, other| one.cpus.total_cmp(&other.cpus));
        let folder = folder.map(|limit| limit.folder).or_else(|| folders().into_iter().next());
        Self { stat: folder.map_or_else(ProcFile::default, |folder| ProcFile::open(folder.join("cpu.stat"))) }
    }

    /// Returns the counters now.
    pub(crate) fn read(&mut self) -> Option<Throttling> {
        parse_stat(self.stat.read()?)
    }
}

/// Returns the processor quota of this process's control group or an ancestor, in processors;
/// `None` without a limit.
pub(crate) fn cpu_quota() -> Option<f64> {
    limits().into_iter().map(|limit| limit.cpus).reduce(f64::min)
}

struct Limit {
    cpus: f64,
    folder: PathBuf,
}

fn limits() -> Vec<Limit> {
    let of = |folder: PathBuf| Some(Limit { cpus: read_quota(&folder)?, folder });
    folders().into_iter().filter_map(of).collect()
}

/// Returns the folders of this process's group and its ancestors, as far as this mount shows them.
fn folders() -> Vec<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
    let mut found = Vec::new();
    for group in parse_groups(&groups) {
        for mount in mounts.iter().map(Path::new) {
            let mut folder = Some(group);
            while let Some(path) = folder {
                let candidate = mount.join(path.trim_start_matches('/'));
                if candidate.join("cpu.stat").exists() && !found.contains(&candidate) {
                    found.push(candidate);
                }
                folder = (!path.trim_matches('/').is_empty())
                    .then(|| path.rsplit_once('/').map_or("", |(before, _)| before));
            }
        }
    }
    found
}

/// Returns the groups that limit processors, from `/proc/self/cgroup`: version 2 (`0::/path`), or
/// the controller `cpu` of version 1.
fn parse_groups(text: &str) -> Vec<&str> {
    fn of_line(line: &str) -> Option<&str> {
        let mut words = line.splitn(3, ':').skip(1);
        let (controllers, path) = (words.next()?, words.next()?);
        let limits = controllers.is_empty() || controllers.split(',').any(|name| name == "cpu");
        limits.then_some(path)
    }
    text.lines().filter_map(of_line).collect()
}

fn read_quota(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    match read("cpu.max") {
        Some(text) => parse_quota(&text),
        None => parse_quota(&format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?)),
    }
}

/// Parses `quota period` in microseconds; a quota of `max` (version 2) or -1 (version 1) is none.
fn parse_quota(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let quota: f64 = words.next()?.parse().ok()?;
    let period: f64 = words.next()?.parse().ok()?;
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// Parses `cpu.stat`: microseconds in version 2, nanoseconds in version 1.
fn parse_stat(text: &str) -> Option<Throttling> {
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
    };
    let throttled_us = value("throttled_usec").or_else(|| Some(value("throttled_time")? / 1000))?;
    Some(Throttling { periods: value("nr_throttled")?, throttled_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let v2 = "usage_usec 9\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1500\n";
        assert_eq!(parse_stat(v2), Some(Throttling { periods: 3, throttled_us: 1500 }));
        let v1 = "nr_periods 7\nnr_throttled 3\nthrottled_time 1500000\n";
        assert_eq!(parse_stat(v1), Some(Throttling { periods: 3, throttled_us: 1500 }));
        assert_eq!(parse_stat("usage_usec 9\n"), None);
        assert_eq!(parse_quota("150000 100000\n"), Some(1.5));
        assert_eq!(parse_quota("max 100000\n"), None);
        assert_eq!(parse_quota("-1 100000"), None);
        assert_eq!(parse_quota(""), None);
    }

    #[test]
    fn groups_that_limit_processors() {
        let text = "9:name=systemd:/x\n4:memory:/m\n2:cpu,cpuacct:/a/b\n0::/c:d\nodd\n";
        assert_eq!(parse_groups(text), ["/a/b", "/c:d"]);
    }

    #[test]
    fn this_process_has_a_group_or_none() {
        let _ = Cgroup::find().read();
        assert!(cpu_quota().is_none_or(|cpus| cpus > 0.0));
    }
}
