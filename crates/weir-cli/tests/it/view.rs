//! The view of a run on a terminal, which util-linux's `script` provides.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{BRIEF, KilledOnDrop, Scene, is_missing};

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const SHOW_CURSOR: &str = "\u{1b}[?25h";

/// A `weir` on a terminal.
struct OnTerminal {
    script: KilledOnDrop,
    /// What the terminal got so far.
    text: String,
}

impl OnTerminal {
    /// `None`: there is no `script`, which is reported.
    fn start(scene: &Scene, before: &str, words: &str) -> Option<Self> {
        Self::weir(scene, before, &format!("bench --output results {BRIEF} {words}"))
    }

    /// The same with any command of `weir`.
    fn weir(scene: &Scene, before: &str, words: &str) -> Option<Self> {
        let found = Command::new("script").arg("--version").output();
        if is_missing(found.err().map(|error| format!("script (bsdutils): {error}"))) {
            return None;
        }
        let weir = env!("CARGO_BIN_EXE_weir");
        let line = format!("{before}; exec {weir} {words}");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("SHELL", "/bin/sh").env("TERM", "xterm").current_dir(scene.path(""));
        let script = KilledOnDrop::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        Some(Self { script, text: String::new() })
    }

    /// Reads what the terminal gets up to a text; `None`: all of it.
    fn read_until(&mut self, text: Option<&str>) {
        let mut bytes = [0; 4096];
        while text.is_none_or(|text| !self.text.contains(text)) {
            match self.script.process.stdout.as_mut().unwrap().read(&mut bytes).unwrap() {
                0 => break,
                count => self.text += &String::from_utf8_lossy(&bytes[..count]),
            }
        }
        assert!(text.is_none_or(|text| self.text.contains(text)), "{}", self.text);
    }

    fn code(&mut self) -> Option<i32> {
        self.read_until(None);
        self.script.process.wait().unwrap().code()
    }

    /// Whether the alternate screen was entered, left as often, and left at last with a cursor.
    fn is_restored(&self) -> bool {
        let counts = [ENTER, LEAVE].map(|text| self.text.matches(text).count());
        let after = self.text.rfind(ENTER).map(|at| &self.text[at..]);
        counts[0] > 0
            && counts[0] == counts[1]
            && after.is_some_and(|after| after.contains(LEAVE) && after.contains(SHOW_CURSOR))
    }
}

#[test]
fn on_a_terminal_there_is_a_view_and_the_results_are_what_they_are() {
    let scene = Scene::new();
    let words = "--engines mock --tests latency --sizes 32 --reliability reliable --format json > document";
    let Some(mut run) = OnTerminal::start(&scene, "stty rows 30 cols 100", words) else { return };
    assert_eq!(run.code(), Some(0), "{}", run.text);
    assert!(run.is_restored() && run.text.contains("finished"), "{:?}", run.text);
    // After the view.
    let at = run.text.rfind(LEAVE).unwrap();
    assert!(run.text[at..].contains("results: results/results.jsonl"), "{:?}", run.text);
    let document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(scene.path("document")).unwrap()).unwrap();
    assert!(document["cases"][0]["latency_us"]["p50"].is_number(), "{document}");
}

#[test]
fn ctrl_c_restores_the_terminal() {
    let scene = Scene::new();
    let words = "--engines mock-hang --tests throughput --sizes 32 --reliability reliable --batch 0";
    let Some(mut run) = OnTerminal::start(&scene, "stty rows 30 cols 100", words) else { return };
    run.read_until(Some("mock-hang"));
    run.script.process.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    assert_eq!(run.code(), Some(130), "{}", run.text);
    assert!(run.is_restored(), "{:?}", run.text);
}

#[test]
fn a_terminal_of_one_cell_is_no_reason_to_fail() {
    let scene = Scene::new();
    let words = "--engines mock --tests latency --sizes 32 --reliability reliable --format json > document";
    let Some(mut run) = OnTerminal::start(&scene, "stty rows 1 cols 1", words) else { return };
    assert_eq!(run.code(), Some(0), "{}", run.text);
    assert!(run.is_restored(), "{:?}", run.text);
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let scene = Scene::new();
    let words = "--engines mock --tests latency --sizes 32 --reliability reliable > tables";
    let Some(mut run) = OnTerminal::start(&scene, "export TERM=dumb", words) else { return };
    assert_eq!(run.code(), Some(0), "{}", run.text);
    assert!(!run.text.contains('\u{1b}'), "{:?}", run.text);
    assert!(run.text.contains("[1/1] mock latency reliable 32 B: p50 "), "{:?}", run.text);
}

#[test]
fn tables_fit_in_a_terminal_of_80_columns_with_all_that_they_have() {
    let scene = Scene::new();
    let bench = format!(
        "bench --output results {BRIEF} --engines mock,mock-clock --relative-to mock --sizes 32 --batch 0 --repeat 6 \
         --resources --reliability best-effort"
    );
    scene.weir(&bench).expect_code(0);
    let published = "published show pro-latency-1g-keyed-reliable pro-throughput-10g-unkeyed-reliable-batch";
    for words in ["report results --resources --relative-to mock", "compare results results", published] {
        let to_a_file = scene.weir(words).expect_code(0).stdout;
        assert!(to_a_file.lines().any(|line| line.chars().count() > 80), "{to_a_file}");
        let Some(mut run) = OnTerminal::weir(&scene, "stty rows 30 cols 80", words) else { return };
        assert_eq!(run.code(), Some(0), "{}", run.text);
        for line in run.text.lines() {
            assert!(line.trim_end_matches('\r').chars().count() <= 80, "{words}: {line}");
        }
        for word in to_a_file.split([' ', '|', '\n']).filter(|word| !word.starts_with("--")) {
            assert!(run.text.contains(word), "{words}: no {word} in {}", run.text);
        }
    }
}
