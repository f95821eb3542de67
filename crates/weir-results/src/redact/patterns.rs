//! What looks like an address, a path or a serial number in a text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Redactor;

/// What replaced paths start with; they are not replaced again.
pub(super) const PATH_ALIAS: &str = "/redacted/path-";

/// Replaces the words of a text that match a pattern.
pub(super) fn replace(text: &str, redactor: &mut Redactor) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        let (between, after) = rest.split_at(start);
        replaced.push_str(between);
        let end = after.find(|it| !is_of_word(it)).unwrap_or(after.len());
        let (found, after) = after.split_at(end);
        // Punctuation at the end belongs to the sentence.
        let end = found.trim_end_matches(['.', ':', '-']).len();
        replaced.push_str(&word(&found[..end], redactor));
        replaced.push_str(&found[end..]);
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// The characters of host names, addresses, paths and URLs.
fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || "-_.:/@~%+\\[]".contains(character)
}

fn word(word: &str, redactor: &mut Redactor) -> String {
    if redactor.is_alias(word) {
        return word.to_owned();
    }
    if let Some((user, host)) = word.split_once('@')
        && !user.is_empty()
        && !host.is_empty()
        && !user.contains('/')
    {
        return login(user, host, redactor);
    }
    if let Some((scheme, rest)) = word.split_once("://") {
        return format!("{scheme}:/{}", redactor.learn_name("path", &format!("/{rest}")));
    }
    if let Some(replaced) = address(word, redactor) {
        return replaced;
    }
    if is_mac(word) {
        return redactor.learn_name("mac", word);
    }
    if is_uuid(word) {
        return redactor.learn_name("id", word);
    }
    if let Some(replaced) = interface(word, redactor) {
        return replaced;
    }
    let is_of_kernel = ["/proc/", "/sys/", "/dev/"].iter().any(|start| word.starts_with(start));
    if is_path(word) && !word.starts_with(PATH_ALIAS) && !is_of_kernel {
        return path(word, redactor);
    }
    word.to_owned()
}

/// `user@host`, with what may follow a colon: a port, or a path of scp.
fn login(user: &str, host: &str, redactor: &mut Redactor) -> String {
    let (host, rest) = host.split_once(':').map_or((host, None), |(host, rest)| (host, Some(rest)));
    let is_kept = |name: &str| name == "root" || redactor.is_alias(name);
    let (keep_user, keep_host) = (is_kept(user), redactor.is_alias(host));
    let user = if keep_user { user.to_owned() } else { redactor.learn_name("user", user) };
    let host = if keep_host { host.to_owned() } else { redactor.learn_host(host) };
    match rest {
        None => format!("{user}@{host}"),
        Some(port) if port.bytes().all(|it| it.is_ascii_digit()) => format!("{user}@{host}:{port}"),
        Some(file) => format!("{user}@{host}:{}", path(file, redactor)),
    }
}

/// An address, with a port, a prefix's length or a zone.
fn address(word: &str, redactor: &mut Redactor) -> Option<String> {
    if let Some(inner) = word.strip_prefix('[')
        && let Some((inner, after)) = inner.split_once(']')
    {
        return Some(format!("[{}]{after}", address(inner, redactor)?));
    }
    let end = word.find(['/', '%']).unwrap_or(word.len());
    let (plain, after) = word.split_at(end);
    if let Ok(found) = plain.parse::<Ipv6Addr>() {
        return Some(format!("{}{after}", redactor.address(IpAddr::V6(found))));
    }
    let end = plain.find(':').unwrap_or(plain.len());
    let (plain, port) = plain.split_at(end);
    let found: Ipv4Addr = plain.parse().ok()?;
    Some(format!("{}{port}{after}", redactor.address(IpAddr::V4(found))))
}

fn is_mac(word: &str) -> bool {
    [':', '-'].into_iter().any(|separator| {
        let groups: Vec<&str> = word.split(separator).collect();
        groups.len() == 6 && groups.iter().all(|it| it.len() == 2 && is_hex(it))
    })
}

fn is_uuid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|it| it.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|it| is_hex(it))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// An interface that is named after its hardware address, such as `enx0123456789ab`, alone or before a dot.
fn interface(word: &str, redactor: &mut Redactor) -> Option<String> {
    let (name, rest) = word.split_once('.').map_or((word, None), |(name, rest)| (name, Some(rest)));
    let is_named = ["enx", "wlx", "wwx", "ibx"]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|it| it.len() == 12 && is_hex(it)));
    let alias = is_named.then(|| redactor.learn_name("interface", name))?;
    Some(rest.map_or_else(|| alias.clone(), |rest| format!("{alias}.{rest}")))
}

/// Whether a word is a file's path: `samples/s` is not.
pub(super) fn is_path(word: &str) -> bool {
    let is_absolute = ["/", "~/", "./", "../"].iter().any(|start| word.starts_with(start));
    let parts = || word.split('/');
    let has_extension =
        || parts().next_back().is_some_and(|it| it.contains('.') && it.contains(char::is_alphabetic));
    word.len() > 1 && (is_absolute || parts().count() > 2 || (parts().count() == 2 && has_extension()))
}

/// Replaces a path, and learns the user whose home it is in.
pub(super) fn path(word: &str, redactor: &mut Redactor) -> String {
    let mut parts = word.split('/').skip_while(|it| !matches!(*it, "home" | "Users"));
    if parts.next().is_some()
        && let Some(user) = parts.next().filter(|it| !it.is_empty() && !redactor.is_alias(it))
    {
        redactor.learn_name("user", user);
    }
    // Messages may quote a file's name alone.
    let last = word.rsplit('/').next().unwrap_or(word);
    let has_extension = last.split_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && !kind.is_empty());
    if last != word && has_extension && !redactor.is_alias(last) {
        redactor.learn_name("name", last);
    }
    redactor.learn_name("path", word)
}
