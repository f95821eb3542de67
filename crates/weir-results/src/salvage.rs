//! Reading damaged results files as far as they go.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::file::{Header, ResultsError, check_schema};
use crate::{Case, Run};

/// What can be read of a results file.
#[derive(Debug, Clone, PartialEq)]
pub struct Salvaged {
    /// The run, with the cases that can be read.
    pub run: Run,
    /// The numbers of complete lines that are no cases, from 1.
    pub damaged_lines: Vec<usize>,
    /// Whether the last line was cut short: the run is being written, or was killed.
    pub is_cut: bool,
    /// The first line, as it is in the file.
    pub header: String,
}

impl Run {
    /// Reads a `results.jsonl` as far as it goes: lines that are damaged are counted and left out.
    ///
    /// # Errors
    /// If the file cannot be read, its first line is not the header of a run, or it has another schema version.
    pub fn salvage(file: impl AsRef<Path>) -> Result<Salvaged, ResultsError> {
        let path = file.as_ref();
        let failed = |source| ResultsError::Read { path: path.to_owned(), source };
        let mut lines = Lines { reader: BufReader::new(File::open(path).map_err(failed)?), line: Vec::new() };
        let damaged = |source| ResultsError::Parse { path: path.to_owned(), line: 1, source };
        lines.next().map_err(failed)?;
        let header: serde_json::Value = serde_json::from_slice(&lines.line).map_err(damaged)?;
        check_schema(&header, path)?;
        let text = String::from_utf8_lossy(&lines.line).trim_end().to_owned();
        let header: Header = serde_json::from_value(header).map_err(damaged)?;
        let mut salvaged =
            Salvaged { run: header.into_run(), damaged_lines: Vec::new(), is_cut: false, header: text };
        let mut number = 1;
        while lines.next().map_err(failed)? {
            number += 1;
            let is_complete = lines.line.ends_with(b"\n");
            match serde_json::from_slice::<Case>(&lines.line) {
                Ok(case) => salvaged.run.cases.push(case),
                Err(_) if lines.line.trim_ascii().is_empty() => {}
                Err(_) if is_complete => salvaged.damaged_lines.push(number),
                Err(_) => salvaged.is_cut = true,
            }
        }
        Ok(salvaged)
    }
}

/// The lines of a file. A longer one than [`Lines::BYTES_MAX`] is several, none of which is a case.
struct Lines {
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl Lines {
    /// Far more than a case with telemetry takes.
    const BYTES_MAX: u64 = 256 << 20;

    /// Reads the next line; `false` at the end of the file.
    fn next(&mut self) -> std::io::Result<bool> {
        self.line.clear();
        self.reader.by_ref().take(Self::BYTES_MAX).read_until(b'\n', &mut self.line)?;
        Ok(!self.line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{Environment, Reliability, Test};

    fn text() -> String {
        let case = |size| Case::new("weir", Test::Latency, Reliability::Reliable, size);
        let mut run = Run::new(Environment { date: "2026-11-24T10:00:00Z".into(), ..Environment::default() });
        run.cases = [1, 2, 3].map(case).to_vec();
        run.to_lines()
    }

    fn salvaged(bytes: &[u8]) -> Result<Salvaged, ResultsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        fs::write(&path, bytes).unwrap();
        Run::salvage(&path)
    }

    #[test]
    fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
        let text = text();
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        for cut in 0..=text.len() {
            // Without its line break, a line is as good as with it.
            let complete = ends.iter().filter(|end| **end <= cut).count();
            match salvaged(&text.as_bytes()[..cut]) {
                Ok(found) => {
                    assert_eq!(
                        (found.run.cases.len() + 1, found.damaged_lines.len()),
                        (complete, 0),
                        "{cut}"
                    );
                    let is_between = cut == 0 || ends.iter().any(|end| *end == cut || *end + 1 == cut);
                    assert_eq!(found.is_cut, !is_between, "{cut}");
                }
                Err(error) => assert_eq!(complete, 0, "{cut}: {error}"),
            }
        }
    }

    #[test]
    fn damaged_lines_are_left_out_and_the_others_are_not() {
        let text = text();
        let mut lines: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
        lines[2] = b"{\"engine\": \"weir\xff\xfe";
        let found = salvaged(&[&lines.join(&b'\n')[..], b"\n\n"].concat()).unwrap();
        let sizes: Vec<u64> = found.run.cases.iter().map(|case| case.point.size_bytes).collect();
        assert_eq!((sizes, found.damaged_lines, found.is_cut), (vec![1, 3], vec![3], false));
        assert!(salvaged(b"not a run\n").is_err());
        let newer = salvaged(br#"{"schema": 99, "environment": {}}"#).unwrap_err().to_string();
        assert!(newer.contains("schema 99"), "{newer}");
    }
}
