//! The value of `--hosts`: which end runs where.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::control::Role;
use crate::processes::EndId;

/// `pub=PLACE,sub=PLACE`: where the ends of a case run.
///
/// Several places of a kind take its ends in turn. `pub2=PLACE` names the place of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostsSpec {
    /// In the order of the text, each place once.
    hosts: Vec<HostSpec>,
    /// Places for the ends of a kind: indexes into `hosts`.
    turns: Vec<(Role, usize)>,
    /// Ends with a place of their own.
    named: Vec<(EndId, usize)>,
    text: String,
}

/// A host and the interface that carries the samples there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostSpec {
    /// Where the processes run.
    pub place: Place,
    /// The interface; `None`: the one that reaches the other hosts.
    pub interface: Option<String>,
}

/// Where processes run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On this host, as children of this process.
    Local,
    /// On this host, in the network namespace of this name.
    Namespace(String),
    /// On the host that SSH calls so.
    Ssh(String),
    /// On the node of this name, by Slurm.
    Slurm(String),
}

/// A value of `--hosts` that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostsError {
    /// Not `END=PLACE`.
    #[error("`{0}` in --hosts is not END=PLACE: expected pub=HOST,sub=HOST, as in pub=local,sub=user@beta")]
    Form(String),
    /// No place.
    #[error(
        "`{0}` in --hosts is no place: expected local, netns:NAME, lab:NAME, slurm:NODE, HOST or USER@HOST, and \
         %INTERFACE after it to choose one"
    )]
    Place(String),
    /// An end is named twice.
    #[error("--hosts names {0} twice")]
    Twice(String),
    /// A kind of end has no place.
    #[error("--hosts names no place for {0}: expected pub=HOST,sub=HOST")]
    Missing(&'static str),
    /// An end beyond those that there are.
    #[error("--hosts names {0}, but there are only {1}: raise --{2}s")]
    Beyond(String, u32, &'static str),
}

impl HostsSpec {
    /// The hosts, each once.
    #[must_use]
    pub fn hosts(&self) -> &[HostSpec] {
        &self.hosts
    }

    /// The number of the host that an end runs on.
    pub(crate) fn host_of(&self, id: EndId) -> usize {
        if let Some((_, host)) = self.named.iter().find(|(named, _)| *named == id) {
            return *host;
        }
        let turns: Vec<usize> =
            self.turns.iter().filter(|(role, _)| *role == id.role).map(|(_, host)| *host).collect();
        // Parsing makes sure that every end has a place.
        turns.get(id.index as usize % turns.len().max(1)).copied().unwrap_or_default()
    }

    /// Rejects ends that there are not, and ends without a place.
    ///
    /// # Errors
    /// With what to change.
    pub fn check(&self, publishers: u32, subscribers: u32) -> Result<(), HostsError> {
        for (role, count) in [(Role::Publisher, publishers), (Role::Subscriber, subscribers)] {
            let mut named = self.named.iter().filter(|(id, _)| id.role == role);
            if let Some((id, _)) = named.clone().find(|(id, _)| id.index >= count) {
                return Err(HostsError::Beyond(key(*id), count, role.name()));
            }
            let has_turns = self.turns.iter().any(|(of, _)| *of == role);
            if !has_turns && (0..count).any(|index| !named.any(|(id, _)| id.index == index)) {
                return Err(HostsError::Missing(role.name()));
            }
        }
        Ok(())
    }

    fn add(&mut self, word: &str) -> Result<(), HostsError> {
        let form = || HostsError::Form(word.to_owned());
        let (key, place) = word.split_once('=').ok_or_else(form)?;
        let (role, number) = if let Some(number) = key.strip_prefix("pub") {
            (Role::Publisher, number)
        } else {
            (Role::Subscriber, key.strip_prefix("sub").ok_or_else(form)?)
        };
        let spec: HostSpec = place.parse()?;
        let host = self.hosts.iter().position(|known| *known == spec).unwrap_or_else(|| {
            self.hosts.push(spec);
            self.hosts.len() - 1
        });
        if number.is_empty() {
            self.turns.push((role, host));
            return Ok(());
        }
        let number: u32 = number.parse().map_err(|_| form())?;
        let id = EndId { role, index: number.checked_sub(1).ok_or_else(form)? };
        if self.named.iter().any(|(named, _)| *named == id) {
            return Err(HostsError::Twice(key.to_owned()));
        }
        self.named.push((id, host));
        Ok(())
    }
}

/// What the option calls an end.
pub(crate) fn key(id: EndId) -> String {
    format!("{}{}", kind(id.role), id.index + 1)
}

/// What the option calls a kind of end.
pub(crate) fn kind(role: Role) -> &'static str {
    match role {
        Role::Publisher => "pub",
        Role::Subscriber => "sub",
        Role::Process => "process",
    }
}

impl FromStr for HostsSpec {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<Self, HostsError> {
        let mut spec =
            Self { hosts: Vec::new(), turns: Vec::new(), named: Vec::new(), text: text.to_owned() };
        text.split(',').try_for_each(|word| spec.add(word.trim()))?;
        for role in [Role::Publisher, Role::Subscriber] {
            let has_turns = spec.turns.iter().any(|(of, _)| *of == role);
            if !has_turns && !spec.named.iter().any(|(id, _)| id.role == role) {
                return Err(HostsError::Missing(role.name()));
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for HostsSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for HostSpec {
    type Err = HostsError;

    fn from_str(text: &str) -> Result<Self, HostsError> {
        let wrong = || HostsError::Place(text.to_owned());
        let (place, interface) = match text.split_once('%') {
            Some((place, interface)) => (place, Some(interface)),
            None => (text, None),
        };
        let is_plain = |word: &str| {
            let is_safe =
                |letter: char| letter.is_ascii_graphic() && !"'\"`\\$;&|<>(){}*?!#".contains(letter);
            // A leading dash would be an option of ssh.
            !word.is_empty() && !word.starts_with('-') && word.chars().all(is_safe)
        };
        // The name of a file.
        let is_name = |word: &str| is_plain(word) && !word.contains('/') && !word.starts_with('.');
        if !interface.is_none_or(is_name) {
            return Err(wrong());
        }
        let place = match place.split_once(':') {
            _ if place == "local" => Place::Local,
            Some(("netns", name)) if is_name(name) => Place::Namespace(name.to_owned()),
            Some(("lab", name)) => Place::Namespace(crate::path::lab::namespace(name).ok_or_else(wrong)?),
            Some(("slurm", node)) if is_name(node) => Place::Slurm(node.to_owned()),
            Some(("netns" | "slurm", _)) => return Err(wrong()),
            _ if is_plain(place) => Place::Ssh(place.to_owned()),
            _ => return Err(wrong()),
        };
        Ok(Self { place, interface: interface.map(str::to_owned) })
    }
}

impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        self.interface.as_ref().map_or(Ok(()), |interface| write!(f, "%{interface}"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Namespace(name) => write!(f, "netns:{name}"),
            Self::Ssh(name) => f.write_str(name),
            Self::Slurm(node) => write!(f, "slurm:{node}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, publishers: u32, subscribers: u32) -> Vec<String> {
        let spec: HostsSpec = text.parse().unwrap();
        spec.check(publishers, subscribers).unwrap();
        let ends = crate::case::Ends { publishers, subscribers, entity_id: 0 };
        let place = |id| spec.hosts()[spec.host_of(id)].to_string();
        EndId::all(ends).into_iter().map(place).collect()
    }

    #[test]
    fn ends_take_the_places_of_their_kind_in_turn_or_by_name() {
        assert_eq!(hosts("pub=local,sub=me@beta", 1, 1), ["local", "me@beta"]);
        assert_eq!(hosts("pub=a,sub=b,sub=c", 1, 3), ["a", "b", "c", "b"]);
        assert_eq!(hosts("pub=a,sub=b,sub2=c%eth1", 2, 3), ["a", "a", "b", "c%eth1", "b"]);
        assert_eq!(hosts("sub=netns:x,pub1=ssh://u@h:22", 1, 1), ["ssh://u@h:22", "netns:x"]);
        assert_eq!(hosts("pub=lab:a, sub=slurm:n1", 1, 1), ["netns:weir-lab-a", "slurm:n1"]);
    }

    #[test]
    fn a_host_with_several_ends_is_one_host() {
        let spec: HostsSpec = "pub=a,sub=a,sub=a%eth0".parse().unwrap();
        assert_eq!(spec.hosts().len(), 2);
    }

    #[test]
    fn what_is_no_placement_is_refused_with_what_to_write() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<HostsSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("alpha,beta", "`alpha` in --hosts is not END=PLACE");
        check("pub=a,dub=b", "`dub=b` in --hosts is not");
        check("pub=a", "no place for subscriber");
        check("pub=a,sub0=b", "is not END=PLACE");
        check("pub=a,sub1=b,sub1=c", "names sub1 twice");
        for place in ["", "-oProxyCommand=x", "a b", "a;b", "netns:", "netns:../x", "b%", "b%../x", "x$(y)"] {
            check(&format!("pub=a,sub={place}"), "is no place");
        }
    }

    #[test]
    fn ends_beyond_those_of_the_case_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<HostsSpec>().unwrap().check(1, 2).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("pub=a,sub=b,sub3=c", "names sub3, but there are only 2: raise --subscribers");
        check("pub=a,sub1=b", "no place for subscriber");
    }
}
