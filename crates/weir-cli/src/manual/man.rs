//! A page in the format of man(1).

use std::fmt::Write as _;

use super::page::Page;

/// The man page, of which `pages` are the neighbours.
pub(crate) fn man(page: &Page, pages: &[Page]) -> String {
    let mut text = format!(
        ".TH {} 1 \"\" \"Weir {}\" \"Weir Manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.nf\n",
        file_name(&page.name).to_uppercase().replace('-', "\\-"),
        env!("CARGO_PKG_VERSION"),
        escaped(&file_name(&page.name)),
        escaped(&page.about)
    );
    push_lines(&mut text, &page.usage);
    text += ".fi\n";
    if !page.description.is_empty() {
        let paragraphs: Vec<String> = page.description.iter().map(|it| escaped(it)).collect();
        _ = write!(text, ".SH DESCRIPTION\n{}\n", paragraphs.join("\n.PP\n"));
    }
    let mut is_options = false;
    for section in &page.sections {
        let title = &section.title;
        if matches!(title.as_str(), "Commands" | "Arguments" | "Options") {
            _ = writeln!(text, ".SH {}", title.to_uppercase());
        } else {
            let first = if is_options { "" } else { ".SH OPTIONS\n" };
            is_options = true;
            _ = writeln!(text, "{first}.SS {}", escaped(title));
        }
        for item in &section.items {
            _ = write!(text, ".TP\n\\fB{}\\fR\n{}\n", escaped(&item.spelling), escaped(&item.text));
        }
    }
    for block in &page.blocks {
        _ = write!(text, ".SH {}\n.nf\n", escaped(&block.title.to_uppercase()));
        push_lines(&mut text, &block.lines);
        text += ".fi\n";
    }
    _ = write!(text, ".SH EXIT STATUS\n{}\n", escaped(&page.exit_codes));
    push_neighbours(&mut text, page, pages);
    text
}

/// The name of the page, without its section.
pub(crate) fn file_name(name: &str) -> String {
    name.replace(' ', "-")
}

/// Pages one level up or down, or of the other commands.
fn push_neighbours(text: &mut String, page: &Page, pages: &[Page]) {
    let parent = page.name.rsplit_once(' ').map(|(parent, _)| parent);
    let is_near = |other: &&Page| {
        let above = other.name.rsplit_once(' ').map(|(parent, _)| parent);
        other.name != page.name
            && (above == Some(&page.name)
                || Some(other.name.as_str()) == parent
                || (above, parent) == (None, None))
    };
    let names =
        pages.iter().filter(is_near).map(|other| format!("\\fB{}\\fR(1)", escaped(&file_name(&other.name))));
    let names: Vec<String> = names.collect();
    if !names.is_empty() {
        _ = write!(text, ".SH SEE ALSO\n{}\n", names.join(",\n"));
    }
}

fn push_lines(text: &mut String, lines: &[String]) {
    for line in lines {
        _ = writeln!(text, "{}", escaped(line));
    }
}

/// Text as it is: roff reads backslashes, hyphens, and dots and apostrophes at the start of a line.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga").replace('μ', "\\[mc]");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::manual::pages;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("-a \\ `x`"), "\\-a \\e \\(gax\\(ga");
        assert_eq!(escaped(".TH"), "\\&.TH");
    }

    #[test]
    fn pages_refer_to_their_neighbours() {
        let pages = pages();
        let see_also = |name: &str| {
            let page = pages.iter().find(|page| page.name == name).unwrap();
            man(page, &pages).split_once(".SH SEE ALSO\n").unwrap().1.replace("\\fB", "").replace("\\fR", "")
        };
        assert_eq!(see_also("weir udp"), "weir(1),\nweir\\-udp\\-server(1)\n");
        assert_eq!(see_also("udpserver"), "weir(1),\nperftest(1),\nudptest(1)\n");
    }

    #[test]
    fn groff_has_no_warnings() {
        let pages = pages();
        for page in &pages {
            let mut groff = Command::new("groff");
            groff.args(["-man", "-Tutf8", "-ww", "-z"]).stdin(Stdio::piped()).stderr(Stdio::piped());
            let Ok(mut groff) = groff.spawn() else {
                // Bypasses the output capture of the test harness, so that a skipped test is visible.
                let _ = writeln!(std::io::stderr(), "skipped groff_has_no_warnings: groff is not installed");
                return;
            };
            groff.stdin.take().unwrap().write_all(man(page, &pages).as_bytes()).unwrap();
            let output = groff.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{}: {said}", page.name);
        }
    }
}
