//! A lab: hosts that are network namespaces of this machine, and stay until they are removed.
//!
//! Two hosts are joined by a cable or an emulated link, more by cables to a switch. All that a lab consists of can be
//! found by its name, however the program that made it ended: the namespaces, a file with what they are, and a file
//! with the process of the link emulator. That process ends when the first file is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::emulator::Emulator;
use super::link::{INTERFACE, configure, create_tun};
use super::namespace::{LinkError, NAMED, Namespace};
use super::veth::VethSpec;
use super::{PathError, PathSpec};
use crate::hosts::{HostsSpec, Place};

/// The lab of commands that name none.
pub const DEFAULT: &str = "lab";

/// A lab that is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lab {
    /// Its name.
    pub name: String,
    /// Its hosts.
    pub hosts: Vec<LabHost>,
    /// The link between them.
    pub link: String,
}

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabHost {
    /// Its name in the lab.
    pub name: String,
    /// Its network namespace.
    pub namespace: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// What there is of a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabStatus {
    /// Nothing.
    Down,
    /// Namespaces without the file that describes them.
    Leftovers(Vec<String>),
    /// All or part of a lab; `broken` says what is missing.
    Up {
        /// As it was made.
        lab: Lab,
        /// What has gone.
        broken: Vec<String>,
    },
}

/// Why there is no lab.
#[derive(Debug, Error)]
pub enum LabError {
    /// A name that no namespace may have.
    #[error(
        "`{0}` is no name for a lab or its host: expected 1 to 20 letters, digits and dashes, the first a letter"
    )]
    Name(String),
    /// Two hosts of one name.
    #[error("two hosts have the name `{0}`")]
    Twice(String),
    /// Too few or too many hosts.
    #[error("a lab has 2 to {HOSTS_MAX} hosts, not {0}")]
    Count(usize),
    /// An emulated link between more than two hosts.
    #[error("an emulated link joins two hosts, not {0}: use --link veth,..., or leave out hosts")]
    Emulated(usize),
    /// It is up already.
    #[error(
        "the lab `{0}` is up: `weir lab status` shows it, `weir lab down` removes it; --name NAME makes another one"
    )]
    IsUp(String),
    /// It is not.
    #[error("the lab `{0}` is not up: `weir lab up` makes it")]
    IsDown(String),
    /// Leftovers are in the way.
    #[error("namespaces of a lab that ended early are in the way ({0}): `weir lab down` removes them")]
    Leftovers(String),
    /// No such host.
    #[error("the lab has no host `{0}`: there are {1}")]
    NoHost(String, String),
    /// A file cannot be written or read.
    #[error("cannot {what} {path}: {source} (labs need root)")]
    File {
        /// `write` or `read`.
        what: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The namespaces or the link.
    #[error("{}", .0.to_string().replace("--link cannot make its network namespaces", "the lab cannot be made"))]
    Link(#[from] LinkError),
    /// The text of the link in the file.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The emulator did not start.
    #[error("the link emulator did not start: {0}")]
    Emulator(String),
}

impl Lab {
    /// Makes a lab. `emulator` starts this program as the emulator of a lab, whose name follows.
    ///
    /// # Errors
    /// When it is up, or cannot be made; then nothing is left of it.
    pub fn up(
        name: &str,
        hosts: &[String],
        link: &PathSpec,
        emulator: &mut Command,
    ) -> Result<Self, LabError> {
        let lab = Self::plan(name, hosts, link)?;
        match status(name)? {
            LabStatus::Down => {}
            LabStatus::Leftovers(names) => return Err(LabError::Leftovers(names.join(", "))),
            LabStatus::Up { .. } => return Err(LabError::IsUp(name.to_owned())),
        }
        lab.write()?;
        if let Err(error) = lab.make(link, emulator) {
            // The error says why; what cannot be removed is shown as left over.
            let _ = down(name);
            return Err(error);
        }
        Ok(lab)
    }

    /// The host of this name.
    ///
    /// # Errors
    /// When there is none, with those that there are.
    pub fn host(&self, name: &str) -> Result<&LabHost, LabError> {
        let found = self.hosts.iter().find(|host| host.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            LabError::NoHost(name.to_owned(), names.join(", "))
        })
    }

    /// Reads what is known of a lab that is up.
    ///
    /// # Errors
    /// When it is not up.
    pub fn load(name: &str) -> Result<Self, LabError> {
        check_name(name)?;
        match read(name)? {
            Some(lab) => Ok(lab),
            None => Err(LabError::IsDown(name.to_owned())),
        }
    }

    fn plan(name: &str, hosts: &[String], link: &PathSpec) -> Result<Self, LabError> {
        check_name(name)?;
        if !(2..=HOSTS_MAX).contains(&hosts.len()) {
            return Err(LabError::Count(hosts.len()));
        }
        if hosts.len() > 2 && matches!(link, PathSpec::Tun(_)) {
            return Err(LabError::Emulated(hosts.len()));
        }
        let mut planned: Vec<LabHost> = Vec::new();
        for (host, number) in hosts.iter().zip(1..) {
            check_name(host)?;
            if host == SWITCH || planned.iter().any(|other| other.name == *host) {
                return Err(LabError::Twice(host.clone()));
            }
            let (namespace, address) = (namespace_of(name, host), Ipv4Addr::new(10, 78, 0, number));
            planned.push(LabHost { name: host.clone(), namespace, address });
        }
        Ok(Self { name: name.to_owned(), hosts: planned, link: link.to_string() })
    }

    /// Writes what the lab is, before anything is made.
    fn write(&self) -> Result<(), LabError> {
        let path = state_file(&self.name);
        let write = || {
            fs::create_dir_all(FOLDER)?;
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(serde_json::to_string_pretty(self)?.as_bytes())
        };
        write().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => LabError::IsUp(self.name.clone()),
            _ => file_error("write", &path, source),
        })
    }

    fn make(&self, link: &PathSpec, emulator: &mut Command) -> Result<(), LabError> {
        let namespaces: Vec<Namespace> =
            self.hosts.iter().map(|host| Namespace::create(&host.namespace)).collect::<Result<_, _>>()?;
        match (link, &namespaces[..]) {
            (PathSpec::Tun(_), _) => return self.start_emulator(emulator),
            (PathSpec::Veth(spec), [one, other]) => spec.lay([one, other])?,
            (PathSpec::Veth(spec), _) => {
                let switch = Namespace::create(&namespace_of(&self.name, SWITCH))?;
                VethSpec::make_switch(&switch)?;
                for (number, namespace) in (1..).zip(&namespaces) {
                    spec.lay_to_switch(namespace, &switch, &format!("port{number}"))?;
                }
            }
        }
        for (host, namespace) in self.hosts.iter().zip(&namespaces) {
            configure(link, namespace, (host.address, v6(host.address)))?;
        }
        for namespace in &namespaces {
            namespace.wait_until_up(INTERFACE)?;
        }
        if let PathSpec::Veth(spec) = link {
            spec.start_losses(&namespaces.iter().collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Starts the process that emulates the link, and waits until it does.
    fn start_emulator(&self, emulator: &mut Command) -> Result<(), LabError> {
        let trouble = |error: io::Error| LabError::Emulator(error.to_string());
        emulator.arg(&self.name).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // It outlives this program, and the terminal's Ctrl-C.
        let mut child = emulator.process_group(0).spawn().map_err(trouble)?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(trouble)?;
        }
        if line.trim() == READY {
            return Ok(());
        }
        let said = child.stderr.take().and_then(|errors| io::read_to_string(errors).ok());
        let _ = child.wait();
        Err(LabError::Emulator(said.unwrap_or_default().trim().to_owned()))
    }
}

/// Emulates the link of a lab until the lab is removed. Prints a line when it does.
///
/// # Errors
/// When the lab is not up, or the link fails.
pub fn emulate(name: &str, on_ready: impl FnOnce(&str)) -> Result<(), LabError> {
    let lab = Lab::load(name)?;
    let path = process_file(name);
    let written = File::create(&path).and_then(|mut file| file.write_all(identity().as_bytes()));
    written.map_err(|source| file_error("write", &path, source))?;
    let link: PathSpec = lab.link.parse()?;
    let PathSpec::Tun(pair) = &link else {
        return Err(LabError::Emulator(format!("`{}` needs no emulator", lab.link)));
    };
    let namespaces = [0, 1].map(|index| Namespace::named(&lab.hosts[index].namespace));
    let [one, other] = &namespaces;
    let tuns = [create_tun(one)?, create_tun(other)?];
    for (host, namespace) in lab.hosts.iter().zip(&namespaces) {
        configure(&link, namespace, (host.address, v6(host.address)))?;
    }
    for namespace in &namespaces {
        namespace.wait_until_up(INTERFACE)?;
    }
    let emulator = Emulator::start((**pair).clone(), tuns).map_err(LinkError::Emulator)?;
    emulator.begin(1, 0);
    on_ready(READY);
    while emulator.is_running() && state_file(name).exists() {
        thread::sleep(CHECK);
    }
    Ok(())
}

/// Removes a lab and all that is left of it; returns what was there.
///
/// # Errors
/// When something cannot be removed.
pub fn down(name: &str) -> Result<Vec<String>, LabError> {
    check_name(name)?;
    let mut removed = Vec::new();
    // First what the emulator lives by.
    let state = state_file(name);
    match fs::remove_file(&state) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(source) => return Err(file_error("remove", &state, source)),
    }
    if let Some(pid) = emulator_of(name) {
        end(pid);
        removed.push(format!("the link emulator (process {})", pid.as_raw_nonzero()));
    }
    // Fails when there is none.
    let _ = fs::remove_file(process_file(name));
    for namespace in namespaces_of(name) {
        Namespace::remove(&namespace)?;
        removed.push(namespace);
    }
    Ok(removed)
}

/// What there is of a lab.
///
/// # Errors
/// When its file cannot be read.
pub fn status(name: &str) -> Result<LabStatus, LabError> {
    check_name(name)?;
    let present = namespaces_of(name);
    let Some(lab) = read(name)? else {
        let is_down = present.is_empty() && emulator_of(name).is_none();
        return Ok(if is_down { LabStatus::Down } else { LabStatus::Leftovers(present) });
    };
    let missing = lab.hosts.iter().filter(|host| !present.contains(&host.namespace));
    let mut broken: Vec<String> = missing.map(|host| format!("the namespace {}", host.namespace)).collect();
    let is_emulated = matches!(lab.link.parse(), Ok(PathSpec::Tun(_)));
    if is_emulated && emulator_of(name).is_none() {
        broken.push("the link emulator".to_owned());
    }
    Ok(LabStatus::Up { lab, broken })
}

/// The link of the lab, if all hosts of a run are in one.
#[must_use]
pub fn link_of(hosts: &HostsSpec) -> Option<String> {
    let namespace =
        |place: &Place| if let Place::Namespace(name) = place { Some(name.clone()) } else { None };
    let names: Vec<String> =
        hosts.hosts().iter().map(|host| namespace(&host.place)).collect::<Option<_>>()?;
    let labs = fs::read_dir(FOLDER).ok()?.flatten().map(|entry| entry.path());
    let mut labs = labs.filter(|path| path.extension().is_some_and(|end| end == "json"));
    labs.find_map(|path| {
        let lab: Lab = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        let has = |name: &String| lab.hosts.iter().any(|host| host.namespace == *name);
        names.iter().all(has).then_some(lab.link)
    })
}

/// The network namespace of a host: `HOST` of the usual lab, or `LAB/HOST`; `None`: it cannot be one.
pub(crate) fn namespace(text: &str) -> Option<String> {
    let (lab, host) = text.split_once('/').unwrap_or((DEFAULT, text));
    check_name(lab).and_then(|()| check_name(host)).ok().map(|()| namespace_of(lab, host))
}

/// No dot in a name, so that the hosts of one lab are not those of another.
fn namespace_of(lab: &str, host: &str) -> String {
    if lab == DEFAULT { format!("{PREFIX}{host}") } else { format!("{PREFIX}{lab}.{host}") }
}

fn check_name(name: &str) -> Result<(), LabError> {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    if is_plain && begins && name.len() <= 20 { Ok(()) } else { Err(LabError::Name(name.to_owned())) }
}

/// The namespaces whose names are those of the lab.
fn namespaces_of(lab: &str) -> Vec<String> {
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let is_its = |name: &String| {
        let Some(rest) = name.strip_prefix(PREFIX) else { return false };
        match rest.split_once('.') {
            Some((of, _)) => of == lab,
            None => lab == DEFAULT,
        }
    };
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(is_its).collect();
    names.sort_unstable();
    names
}

fn read(name: &str) -> Result<Option<Lab>, LabError> {
    let path = state_file(name);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(file_error("read", &path, source)),
    };
    // The program that wrote it may have been killed.
    Ok(serde_json::from_str(&text).ok())
}

fn state_file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.json"))
}

fn process_file(name: &str) -> PathBuf {
    Path::new(FOLDER).join(format!("{name}.emulator"))
}

fn file_error(what: &'static str, path: &Path, source: io::Error) -> LabError {
    LabError::File { what, path: path.display().to_string(), source }
}

/// This process, and when it started: another one may get its number.
fn identity() -> String {
    let pid = std::process::id();
    format!("{pid} {}", started(pid).unwrap_or_default())
}

/// The time at which a process started, in clock ticks since boot.
fn started(pid: u32) -> Option<u64> {
    procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok().map(|stat| stat.starttime)
}

/// The running emulator of a lab.
fn emulator_of(name: &str) -> Option<Pid> {
    let text = fs::read_to_string(process_file(name)).ok()?;
    let (pid, start) = text.split_once(' ')?;
    let pid: u32 = pid.parse().ok()?;
    let is_it = started(pid)? == start.trim().parse::<u64>().ok()?;
    is_it.then(|| Pid::from_raw(i32::try_from(pid).ok()?)).flatten()
}

/// Ends a process, and waits until it has ended.
fn end(pid: Pid) {
    // Fails when it has just ended.
    let _ = kill_process(pid, Signal::TERM);
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline && rustix::process::test_kill_process(pid).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
}

fn v6(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0x78, 0, 0, 0, 0, 0, address.octets()[3].into())
}

/// Begins the names of all namespaces of labs.
const PREFIX: &str = "weir-lab-";

/// The host that is the switch.
const SWITCH: &str = "switch";

/// Files of labs that are up. A restart of the machine empties it.
const FOLDER: &str = "/run/weir";

/// What the emulator prints once it carries packets.
const READY: &str = "ready";

/// How often the emulator checks whether its lab is still there.
const CHECK: Duration = Duration::from_secs(1);

/// Hosts that a lab may have.
const HOSTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(hosts: &[&str], link: &str) -> Result<Lab, LabError> {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        Lab::plan("lab", &hosts, &link.parse().unwrap())
    }

    #[test]
    fn hosts_have_a_namespace_and_an_address_each() {
        let lab = plan(&["a", "b", "c"], "veth").unwrap();
        let last = &lab.hosts[2];
        assert_eq!((last.namespace.as_str(), last.address), ("weir-lab-c", Ipv4Addr::new(10, 78, 0, 3)));
        assert_eq!(lab.link, "veth,mtu=1500,gso=on");
        assert!(lab.host("d").unwrap_err().to_string().contains("there are a, b, c"));
    }

    #[test]
    fn what_can_be_no_lab_is_refused() {
        let check = |hosts: &[&str], link: &str, expected: &str| {
            let error = plan(hosts, link).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&["a"], "veth", "2 to 100 hosts, not 1");
        check(&["a", "b", "c"], "lte", "joins two hosts, not 3");
        check(&["a", "a"], "veth", "two hosts have the name `a`");
        check(&["a", "../b"], "veth", "`../b` is no name");
        check(&["a", "switch"], "veth", "the name `switch`");
    }

    #[test]
    fn hosts_of_one_lab_are_not_those_of_another() {
        assert_eq!(namespace("a").as_deref(), Some("weir-lab-a"));
        assert_eq!(namespace("big/a").as_deref(), Some("weir-lab-big.a"));
        for text in ["", "a.b", "x/", "a/b/c"] {
            assert_eq!(namespace(text), None, "{text}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_start() {
        let pid = std::process::id();
        assert!(started(pid).is_some());
        assert_eq!(identity(), identity());
    }
}
