//! The pictures of the guide: a report, the view on a terminal, and the runs in a browser.
//!
//! `cargo xtask pictures` measures `docs/pictures/plan.toml` with a release build, or with the given program, and takes
//! screenshots by Chromium. They differ each time, so CI does not compare them: look at them before a commit.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::ci::Outcome;
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Takes all pictures.
pub(crate) fn take(environment: &Environment, weir: Option<&Path>) -> Outcome {
    environment.require(&TOOLS)?;
    let weir = match weir {
        Some(weir) => weir.to_path_buf(),
        None => {
            let build = &["build", "--release", "--locked", "--package", "weir-cli", "--bin", "weir"];
            process::run(&mut environment.cargo(build), steps::BUILD_LIMIT)?;
            environment.target_folder().join("release/weir")
        }
    };
    let scratch = environment.target_folder().join("pictures");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(failed)?;
    }
    fs::create_dir_all(&scratch).map_err(failed)?;
    let studio = Studio { weir, scratch, pictures: environment.root.join("docs/pictures") };
    let plan = studio.pictures.join("plan.toml");
    studio.run(Command::new(&studio.weir).arg("run").arg(plan).args([
        "--output",
        "run",
        "--progress",
        "none",
    ]))?;
    studio.reports()?;
    studio.terminal()?;
    studio.browser()?;
    Ok(format!("look at them: {}", studio.pictures.display()))
}

struct Studio {
    weir: PathBuf,
    /// The folder of results, pages, and pictures before they are compressed.
    scratch: PathBuf,
    pictures: PathBuf,
}

impl Studio {
    fn reports(&self) -> Result<(), String> {
        for study in ["latency", "throughput", "load"] {
            let (results, page) = (format!("run/{study}"), format!("{study}.html"));
            self.run(Command::new(&self.weir).args(["report", &results, "-o", &page]))?;
        }
        self.screenshot("report", &self.page("latency"), "1120,1900", &[])?;
        self.screenshot("report-dark", &self.page("load"), "1120,1300", &[DARK])?;
        let phone = ["--force-device-scale-factor=1.5"];
        self.screenshot("report-phone", &self.page("throughput"), "390,1500", &phone)?;
        let print = ["--print-to-pdf=paper.pdf", "--no-pdf-header-footer"];
        self.run(chromium(&print).arg(self.page("throughput")))?;
        self.run(Command::new("pdftoppm").args([
            "-r",
            "75",
            "-l",
            "1",
            "-singlefile",
            "-png",
            "paper.pdf",
            "report-paper",
        ]))?;
        self.compress("report-paper")
    }

    /// The view of a run, in the middle of its last case.
    fn terminal(&self) -> Result<(), String> {
        let tmux = |arguments: &[&str]| self.run(Command::new("tmux").args(["-L", SESSION]).args(arguments));
        let weir = self.weir.to_string_lossy();
        let line = format!(
            "'{weir}' bench --engines udp,weir --tests latency --sizes 1k --duration 10s \
                            --reliability reliable --keep-awake=no --output view"
        );
        // Its server stays, and would keep a pipe open.
        let mut start = Command::new("tmux");
        start
            .args(["-L", SESSION, "new-session", "-d", "-x", "92", "-y", "18", &line])
            .current_dir(&self.scratch);
        start.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(failed)?;
        let mut screen = String::new();
        while !(screen.contains("[2/2]")
            && (screen.contains("measuring   8.") || screen.contains("measuring   9.")))
        {
            std::thread::sleep(Duration::from_millis(200));
            screen = tmux(&["capture-pane", "-p"])?;
        }
        tmux(&["kill-server"])?;
        let (title, rest) = screen.split_once('\n').unwrap_or((&screen, ""));
        fs::write(self.scratch.join("view.html"), format!("{TERMINAL}<b>{title}</b>\n{rest}</pre>"))
            .map_err(failed)?;
        self.screenshot("view", &self.page("view"), "760,300", &[])
    }

    fn browser(&self) -> Result<(), String> {
        let mut serve = Command::new(&self.weir);
        serve.args(["serve", ".", "--port", "0"]).current_dir(&self.scratch).stdout(Stdio::piped());
        let mut serve = serve.spawn().map_err(failed)?;
        let mut address = String::new();
        let read = serve.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut address));
        let taken = match read {
            Some(Ok(1..)) => self.screenshot("serve", address.trim(), "760,300", &[]),
            _ => Err("weir serve printed no address\n".to_owned()),
        };
        serve.kill().and_then(|()| serve.wait()).map_err(failed)?;
        taken
    }

    fn page(&self, name: &str) -> String {
        format!("file://{}", self.scratch.join(format!("{name}.html")).display())
    }

    fn screenshot(&self, name: &str, address: &str, size: &str, options: &[&str]) -> Result<(), String> {
        let (size, file) = (format!("--window-size={size}"), format!("--screenshot={name}.png"));
        self.run(chromium(&[&size, &file, "--hide-scrollbars"]).args(options).arg(address))?;
        self.compress(name)
    }

    /// Writes a picture to the documentation, with 64 colours.
    fn compress(&self, name: &str) -> Result<(), String> {
        let file = format!("{name}.png");
        let output = self.pictures.join(&file);
        let mut command = Command::new("pngquant");
        command
            .args(["--force", "--strip", "--speed", "1", "--nofs", "--output"])
            .arg(output)
            .arg("64")
            .arg(file);
        self.run(&mut command).map(|_| ())
    }

    /// Returns what a program writes to its standard output.
    fn run(&self, command: &mut Command) -> Result<String, String> {
        Ok(process::run(command.current_dir(&self.scratch), steps::PROGRAM_LIMIT)?.stdout)
    }
}

fn chromium(options: &[&str]) -> Command {
    let mut command = Command::new("chromium");
    // The sandbox refuses root.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=chromium"]).args(options);
    command
}

fn failed(error: impl std::fmt::Display) -> String {
    format!("{error}\n")
}

const DARK: &str = "--blink-settings=preferredColorScheme=0";
const SESSION: &str = "weir-pictures";
/// The advance of a character is 8 pixels, so that blocks join.
const TERMINAL: &str = "<!doctype html><meta charset=\"utf-8\"><style>body{margin:0;background:#1e1e1e}\
                        pre{margin:12px;color:#d8d8d8;font:13.289px/15px 'DejaVu Sans Mono'}</style><pre>";
const TOOLS: [Tool; 4] = [
    Tool { program: "chromium", package: "chromium" },
    Tool { program: "pdftoppm", package: "poppler-utils" },
    Tool { program: "pngquant", package: "pngquant" },
    Tool { program: "tmux", package: "tmux" },
];
