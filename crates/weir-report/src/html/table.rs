//! Tables of the HTML report.

use maud::{Markup, html};

/// A table. The first columns hold names, the others numbers, which align right.
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) headings: Vec<String>,
    /// How many columns hold names; the first of them is the heading of its row.
    pub(crate) names: usize,
    pub(crate) rows: Vec<Row>,
}

/// A row of a table.
pub(crate) struct Row {
    pub(crate) cells: Vec<String>,
    /// How the row is marked.
    pub(crate) mark: RowMark,
}

/// How a row is marked, in words and by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowMark {
    Plain,
    /// Samples were lost that should not be, or so many that the other figures mean little.
    Lossy,
    /// Published figures of another machine.
    Published,
    /// The heading of the rows below it.
    Heading,
    /// There are no figures; the last cell says why, and is as wide as the rest of the row.
    Failed,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, names: usize, headings: Vec<String>) -> Self {
        Self { caption: caption.into(), headings, names, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.push_marked(cells, RowMark::Plain);
    }

    pub(crate) fn push_marked(&mut self, cells: Vec<String>, mark: RowMark) {
        self.rows.push(Row { cells, mark });
    }

    /// Returns the table, which scrolls sideways where it is too wide.
    pub(crate) fn render(&self) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table {
                    caption { (self.caption) }
                    thead { tr {
                        @for (column, heading) in self.headings.iter().enumerate() {
                            th class=[(column < self.names).then_some("name")] scope="col" { (heading) }
                        }
                    } }
                    @for part in self.rows.chunk_by(|_, next| next.mark != RowMark::Heading) {
                        tbody { @for row in part { (self.row(row)) } }
                    }
                }
            }
        }
    }

    fn row(&self, row: &Row) -> Markup {
        let class = match row.mark {
            RowMark::Heading => {
                return html! {
                    tr { th scope="rowgroup" colspan=(self.headings.len()) { (row.cells.join(" ")) } }
                };
            }
            RowMark::Plain => None,
            RowMark::Published => Some("published"),
            RowMark::Lossy => Some("lossy"),
            RowMark::Failed => Some("failed"),
        };
        // Numbers are right-aligned by default, so that the many cells need no class.
        html! {
            tr class=[class] {
                @for (column, cell) in row.cells.iter().enumerate() {
                    @if column == 0 {
                        th scope="row" {
                            (cell)
                            @if row.mark == RowMark::Lossy { " " abbr title=(LOSSY) aria-label=(LOSSY) { "✕" } }
                        }
                    } @else if row.mark == RowMark::Failed && column + 1 == row.cells.len() {
                        td.wide colspan=(self.headings.len().saturating_sub(column).max(1)) { (cell) }
                    } @else if column < self.names {
                        td.name { (cell) }
                    } @else {
                        td { (lines(cell)) }
                    }
                }
            }
        }
    }
}

const LOSSY: &str = "lost reliable samples, or 5 % or more";

/// The lines of a cell: the first one is the figure, the others its range.
fn lines(cell: &str) -> Markup {
    let mut lines = cell.lines();
    html! {
        (lines.next().unwrap_or_default())
        @for line in lines { br; small { (line) } }
    }
}
