//! `weir man` and `weir reference`: the manual of all four commands.

use crate::args::{ManArgs, ReferenceArgs};
use crate::exit::{Exit, Failure};
use crate::{manual, output};

/// Writes one man page per command and subcommand.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    output::folder(&args.output)?;
    let pages = manual::pages();
    for page in &pages {
        let file = args.output.join(format!("{}.1", manual::file_name(&page.name)));
        output::file(&file, &manual::man(page, &pages))?;
    }
    output::talk(&format!("wrote {} pages to {}", pages.len(), args.output.display()));
    Ok(Exit::Success)
}

/// Writes the reference in Markdown.
pub(crate) fn reference(args: &ReferenceArgs) -> Result<Exit, Failure> {
    output::file(&args.output, &manual::markdown(&manual::pages())).map(|()| Exit::Success)
}
