//! Rule about submessages: every file starts with the drawing of its bytes, as in the
//! specification.

use super::{Complaint, File};

const FOLDER: &str = "crates/weir-wire/src/submessage/";

/// Applies the rule to the folder of submessages.
pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let submessages = files.iter().filter(|file| file.path.starts_with(FOLDER) && file.extension() == "rs");
    submessages.filter_map(check_drawing).collect()
}

/// A drawing is a text block in the documentation at the top, with bars between the fields; the
/// prose names the clause.
fn check_drawing(file: &File) -> Option<Complaint> {
    let docs: Vec<&str> =
        file.text().lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let block = docs.iter().skip_while(|line| **line != "```text").skip(1).take_while(|line| **line != "```");
    if block.filter(|line| line.starts_with('|')).count() < 2 {
        return Some(file.complain(0, "has no drawing of the submessage in its module documentation"));
    }
    let has_clause = docs.iter().any(|line| line.contains("RTPS") && line.contains('§'));
    (!has_clause).then(|| file.complain(0, "does not name the clause of the specification"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_and_a_clause_are_asked_for() {
        let check = |text: &str| check(&[File::new("crates/weir-wire/src/submessage/gap.rs", text)]);
        let drawing = "//! ```text\n//! | GAP 08 | flags |\n//! |    reader id   |\n//! ```\n";
        assert!(check(&format!("//! GAP (RTPS 2.5 §9.4.5.5).\n//!\n{drawing}")).is_empty());
        assert!(check(&format!("//! GAP.\n{drawing}"))[0].what.contains("clause"));
        assert!(
            check("//! GAP (RTPS 2.5 §9.4.5.5).\n//! | a | table |\n//! |---|---|\n")[0]
                .what
                .contains("drawing")
        );
    }

    #[test]
    fn other_files_need_none() {
        assert!(check(&[File::new("crates/weir-wire/src/guid.rs", "//! Guids\n")]).is_empty());
    }
}
