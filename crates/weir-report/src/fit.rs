//! Texts for a terminal: a table with too many columns becomes several, and long lines are wrapped.

use std::ops::Range;

/// Fits a text with tables to lines of at most `width` characters.
///
/// The columns of a table that do not fit follow in further tables, which repeat the columns that name a row. Texts in
/// cells and outside of tables are wrapped at spaces. A word that is too long stays whole.
#[must_use]
pub fn fitted(text: &str, width: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut fitted: Vec<String> = Vec::new();
    for part in lines.chunk_by(|one, other| is_in_table(one) == is_in_table(other)) {
        match part[0] {
            line if !is_in_table(line) => fitted.extend(part.iter().flat_map(|line| wrapped(line, width, 2))),
            _ => match Drawn::read(part) {
                Some(table) if table.width() > width => fitted.extend(table.fitted(width)),
                _ => fitted.extend(part.iter().map(|line| (*line).to_owned())),
            },
        }
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    fitted.join("\n") + end
}

fn is_in_table(line: &str) -> bool {
    line.starts_with('|')
}

/// A table that was drawn.
struct Drawn {
    /// The headings and the rows.
    rows: Vec<Row>,
    /// Widths of the columns, with a space on both sides.
    widths: Vec<usize>,
}

/// The lines of each cell of a row.
type Row = Vec<Vec<String>>;

impl Drawn {
    /// `None`: these lines are no table whose columns stand below each other.
    fn read(lines: &[&str]) -> Option<Self> {
        let is_rule =
            |line: &&&str| line.len() > 1 && line.ends_with('|') && line.chars().all(|it| "|-:".contains(it));
        let rule = lines.get(1).filter(is_rule)?;
        let edges: Vec<usize> = rule.match_indices('|').map(|(at, _)| at).collect();
        let mut rows: Vec<Row> = Vec::new();
        for line in lines.iter().enumerate().filter(|(number, _)| *number != 1).map(|(_, line)| line) {
            let letters: Vec<char> = line.chars().collect();
            if letters.len() != rule.len() || edges.iter().any(|edge| letters[*edge] != '|') {
                return None;
            }
            let cell = |pair: &[usize]| letters[pair[0] + 1..pair[1]].iter().collect::<String>();
            let cells = edges.windows(2).map(cell);
            // Without a name, it is a further line of the row above.
            match rows.split_first_mut().and_then(|(_, rows)| rows.last_mut()) {
                Some(row) if letters[..edges[1]].iter().all(|letter| "| ".contains(*letter)) => {
                    row.iter_mut().zip(cells).for_each(|(lines, cell)| lines.push(cell));
                }
                _ => rows.push(cells.map(|cell| vec![cell]).collect()),
            }
        }
        let is_blank = |cell: &mut String| cell.trim().is_empty();
        for lines in rows.iter_mut().flatten() {
            while lines.pop_if(is_blank).is_some() {}
        }
        Some(Self { rows, widths: edges.windows(2).map(|pair| pair[1] - pair[0] - 1).collect() })
    }

    fn width(&self) -> usize {
        self.width_of(0..self.widths.len())
    }

    fn width_of(&self, columns: impl IntoIterator<Item = usize>) -> usize {
        1 + columns.into_iter().map(|column| self.widths[column] + 1).sum::<usize>()
    }

    /// The lines of one or several tables.
    fn fitted(mut self, width: usize) -> Vec<String> {
        let (names, columns) = (self.names(), self.widths.len());
        self.limit(0..1, (width / 2).saturating_sub(self.width_of(1..names)));
        self.limit(names..columns, width.saturating_sub(self.width_of(0..names) + 1));
        let mut tables: Vec<Vec<usize>> = Vec::new();
        if names == columns {
            tables.push((0..names).collect());
        }
        for column in names..columns {
            match tables.last_mut() {
                Some(table) if self.width_of(table.iter().copied().chain([column])) <= width => {
                    table.push(column)
                }
                _ => tables.push((0..names).chain([column]).collect()),
            }
        }
        tables.iter().map(|table| self.draw(table)).collect::<Vec<_>>().join(&String::new())
    }

    /// How many columns name a row: the first one, or those up to the size.
    fn names(&self) -> usize {
        let is_size = |cell: &Vec<String>| cell.first().is_some_and(|line| line.trim() == "Size (B)");
        self.rows[0].iter().take(NAMES_MAX).position(is_size).map_or(1, |at| at + 1)
    }

    /// Wraps the texts of columns that are wider than `most`.
    fn limit(&mut self, columns: Range<usize>, most: usize) {
        let most = most.max(WIDTH_MIN);
        for column in columns.filter(|column| self.widths[*column] > most).collect::<Vec<_>>() {
            let mut width = 0;
            for row in &mut self.rows {
                let pieces = row[column].iter().flat_map(|line| wrapped(line.trim(), most - 2, 0));
                row[column] = pieces.map(|piece| format!(" {piece} ")).collect();
                width = row[column].iter().map(|line| line.chars().count()).fold(width, usize::max);
            }
            self.widths[column] = width;
        }
    }

    fn draw(&self, columns: &[usize]) -> Vec<String> {
        let mut drawn = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let height = columns.iter().map(|column| row[*column].len()).max().unwrap_or(0);
            for line in 0..height {
                let cell = |column: &usize| {
                    let text = row[*column].get(line).map_or("", String::as_str);
                    format!("{text:width$}|", width = self.widths[*column])
                };
                drawn.push(format!("|{}", columns.iter().map(cell).collect::<String>()));
            }
            if number == 0 {
                let rule = |column: &usize| format!("{}|", "-".repeat(self.widths[*column]));
                drawn.push(format!("|{}", columns.iter().map(rule).collect::<String>()));
            }
        }
        drawn
    }
}

/// A line in pieces of at most `width` characters, the further ones indented by so many spaces more.
fn wrapped(line: &str, width: usize, hanging: usize) -> Vec<String> {
    let indent = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let further = " ".repeat(indent(line) + hanging);
    let mut pieces = Vec::new();
    let mut rest = line.trim_end().to_owned();
    while rest.chars().count() > width {
        let start = indent(&rest);
        let is_between = |(number, (_, letter)): &(usize, (usize, char))| *number > start && *letter == ' ';
        let spaces = || rest.char_indices().enumerate().filter(is_between);
        // The last one that leaves a piece short enough, or the first one behind a word that is too long.
        let fitting = spaces().take_while(|(number, _)| *number <= width).last();
        let Some((_, (at, _))) = fitting.or_else(|| spaces().next()) else { break };
        let next = format!("{further}{}", rest[at..].trim_start());
        rest.truncate(rest[..at].trim_end().len());
        pieces.push(std::mem::replace(&mut rest, next));
    }
    pieces.push(rest);
    pieces
}

/// The size of a sample is in one of the first columns, or nowhere.
const NAMES_MAX: usize = 3;

/// No column is made narrower.
const WIDTH_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Latency of samples that have a long title, reliable
| Engine | Size (B) |  Mean |     50% |  Lost |
|--------|----------|-------|---------|-------|
| udp    |       32 | 30.41 |   29.26 | 12345 |
|        |          |       | 20..300 |       |
| weir   |     8192 | 25.99 |   23.20 |     0 |

a note
";

    #[test]
    fn columns_that_do_not_fit_follow_in_a_table_with_the_same_names() {
        let expected = "\
Latency of samples that have a
  long title, reliable
| Engine | Size (B) |  Mean |
|--------|----------|-------|
| udp    |       32 | 30.41 |
| weir   |     8192 | 25.99 |

| Engine | Size (B) |     50% |
|--------|----------|---------|
| udp    |       32 |   29.26 |
|        |          | 20..300 |
| weir   |     8192 |   23.20 |

| Engine | Size (B) |  Lost |
|--------|----------|-------|
| udp    |       32 | 12345 |
| weir   |     8192 |     0 |

a note
";
        assert_eq!(fitted(TABLE, 32), expected);
        assert_eq!(fitted(TABLE, 51), TABLE);
    }

    #[test]
    fn texts_of_cells_are_wrapped_and_rows_stay_together() {
        let table = "\
| Verdict | Figure                       | Measured |
|---------|------------------------------|----------|
| met     | weir 32 B latency, reliable  |     1.25 |
|         |                              |     2.50 |
| missed  | weir 64 B                    |      300 |";
        let expected = "\
| Verdict | Figure    |
|---------|-----------|
| met     | weir 32 B |
|         | latency,  |
|         | reliable  |
| missed  | weir 64 B |

| Verdict | Measured |
|---------|----------|
| met     |     1.25 |
|         |     2.50 |
| missed  |      300 |";
        assert_eq!(fitted(table, 28), expected);
    }

    #[test]
    fn no_line_is_longer_than_the_terminal_unless_a_word_is() {
        for width in 31..60 {
            let text = fitted(TABLE, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            // Nothing is lost.
            for word in TABLE.split_whitespace().filter(|word| !word.starts_with("|-")) {
                assert!(text.contains(word), "{width}: {word} in {text}");
            }
        }
        assert_eq!(
            wrapped("  a_word_without_spaces and more", 10, 2),
            ["  a_word_without_spaces", "    and", "    more"]
        );
        assert_eq!(wrapped("µµµµ µµµµ", 4, 2), ["µµµµ", "  µµµµ"]);
        assert_eq!(wrapped("", 4, 2), [""]);
    }

    #[test]
    fn lines_that_are_no_table_stay() {
        let odd = "| a | b |\n|---|---|\n| a cell with a | inside | and another one |\n";
        assert_eq!(fitted(odd, 12), odd);
        assert_eq!(fitted("| only a line that begins so |", 12), "| only a line that begins so |");
    }
}
