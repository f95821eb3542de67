//! Runs `perftest`, from the arguments to the exit code.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use weir_compat::perftest::{self, Echo, End, Event, PublisherSettings, Received, SubscriberSettings};

use super::append;
use super::banner;
use super::command_line::Typed;
use super::help;
use super::printer::Printer;
use super::settings::{self, Publishing, Role};
use super::telemetry::{self, TelemetryFile};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command until it is done or `interrupted`.
pub(crate) fn run(
    arguments: impl Iterator<Item = String>,
    interrupted: &AtomicBool,
) -> Result<Exit, Failure> {
    let usage = |text: String| Failure::usage(anyhow!("{text}"));
    let typed = Typed::parse(arguments).map_err(usage)?;
    if typed.has("help") {
        output::data(&help::help())?;
        return Ok(Exit::Success);
    }
    if typed.has("version") {
        output::data(&banner::version())?;
        return Ok(Exit::Success);
    }
    let role = settings::role(&typed).map_err(usage)?;
    let verbosity = typed.number("verbosity").unwrap_or(1);
    if verbosity > 0 {
        for note in typed.notes.iter().chain(&settings::notes(&typed)) {
            output::talk(&format!("perftest: {note}"));
        }
        for warning in role.warnings() {
            output::talk(&format!("perftest: {warning}"));
        }
    }
    output::talk(&banner::banner(&role));
    let printer = Printer::open(settings::output(&typed))?;
    let hosts = settings::telemetry_file(&typed).map(TelemetryFile::create).transpose()?;
    let session = Session { interrupted, printer, hosts, talk: Talk { verbosity } };
    match role {
        Role::Publish(publishing) => session.publish(&publishing),
        Role::Subscribe(settings) => session.subscribe(*settings),
    }
}

/// What the runs of a command share.
struct Session<'a> {
    interrupted: &'a AtomicBool,
    printer: Printer,
    hosts: Option<TelemetryFile>,
    talk: Talk,
}

impl Session<'_> {
    fn publish(mut self, publishing: &Publishing) -> Result<Exit, Failure> {
        let end = self.publish_all(publishing);
        // What was printed before an error is complete, too.
        let finished = self.printer.finish();
        let end = end?;
        finished?;
        ended(end, "the subscriber")
    }

    fn publish_all(&mut self, publishing: &Publishing) -> Result<End, Failure> {
        let open = |path| LatencyFile::open(path, publishing.precise);
        let mut file = publishing.latency_file.as_deref().map(open).transpose()?;
        let mut end = End::Complete;
        for (at, run) in publishing.runs.iter().enumerate() {
            let settings = &run.settings;
            if publishing.runs.len() > 1 {
                let (number, all) = (at + 1, publishing.runs.len());
                output::talk(&format!("Samples of {} bytes ({number} of {all}):", settings.data_len));
            }
            self.printer.begin_run();
            if let Some(file) = &mut file {
                file.begin_run()?;
            }
            let watch = TelemetryFile::watch(self.hosts.as_ref());
            let published = self.publish_once(settings, file.as_mut());
            if let Some((hosts, watch)) = self.hosts.as_mut().zip(watch) {
                let case = telemetry::case(&settings.node, settings.latency_test, settings.data_len);
                hosts.keep(case, true, watch)?;
            }
            end = published?;
            if let Some(file) = &mut file {
                file.end_run()?;
            }
            if end != End::Complete {
                break;
            }
        }
        Ok(end)
    }

    fn publish_once(
        &mut self,
        settings: &PublisherSettings,
        mut file: Option<&mut LatencyFile>,
    ) -> Result<End, Failure> {
        let (printer, talk) = (&mut self.printer, self.talk);
        let mut trouble = None;
        let mut on_event = |event| {
            let done = match event {
                Event::Echo(echo) => {
                    let kept = file.as_mut().map_or(Ok(()), |file| file.keep(echo));
                    kept.and_then(|()| printer.echo(settings.data_len, echo))
                }
                Event::Begun => {
                    printer.begin_data();
                    Ok(())
                }
                other => talk.event(&other),
            };
            trouble = trouble.take().or(done.err());
        };
        let published =
            perftest::publish(settings, self.interrupted, &mut on_event).map_err(Failure::environment)?;
        if settings.pid == 0 {
            printer.latency(settings.data_len, &published.latency)?;
        }
        printer.flush()?;
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let seconds = published.sent_in.as_secs_f64();
        talk.detail(&format!("sent {} samples in {seconds:.3} s", published.sent));
        if settings.pid == 0 && published.latency.count == 0 && published.sent > 0 {
            talk.warning(&format!(
                "no latency was measured: the first ping does not count, and {} samples brought no other echo; lower \
                 -latencyCount or run longer",
                published.sent
            ));
        }
        let lost = published.latency.lost;
        if lost > 0 {
            talk.warning(&format!("{lost} of {} pings had no echo in time", published.sent));
        }
        Ok(published.end)
    }

    /// Serves a run of the publishers and the runs that they announce.
    fn subscribe(mut self, settings: SubscriberSettings) -> Result<Exit, Failure> {
        let served = self.subscribe_all(settings);
        let finished = self.printer.finish();
        let (end, is_lossy) = served?;
        finished?;
        let exit = ended(end, "the publisher")?;
        Ok(if is_lossy && exit == Exit::Success { Exit::DataLost } else { exit })
    }

    /// How the last run ended, and whether reliable samples were lost.
    fn subscribe_all(&mut self, mut settings: SubscriberSettings) -> Result<(End, bool), Failure> {
        let mut is_lossy = false;
        loop {
            self.printer.begin_run();
            let watch = TelemetryFile::watch(self.hosts.as_ref());
            let received = self.subscribe_once(&settings);
            if let Some((hosts, watch)) = self.hosts.as_mut().zip(watch) {
                let run = received.as_ref().ok();
                let is_ping = run
                    .and_then(|run| run.description)
                    .is_some_and(|description| description.is_latency_test);
                let case = telemetry::case(&settings.node, is_ping, run.map_or(0, |run| run.data_len));
                hosts.keep(case, false, watch)?;
            }
            let received = received?;
            is_lossy |= settings.node.reliable && received.counts.lost > 0;
            let more_follows = received.description.is_some_and(|description| description.more_follows);
            if received.end != End::Complete || !more_follows {
                return Ok((received.end, is_lossy));
            }
            settings.served_before = received.served;
            settings.is_next_size = true;
        }
    }

    fn subscribe_once(&mut self, settings: &SubscriberSettings) -> Result<Received, Failure> {
        let (printer, talk) = (&mut self.printer, self.talk);
        let mut trouble = None;
        let mut on_event = |event| {
            let done = match event {
                Event::Interval(interval) => printer.interval(&interval),
                Event::Begun => {
                    printer.begin_data();
                    Ok(())
                }
                other => talk.event(&other),
            };
            trouble = trouble.take().or(done.err());
        };
        let received =
            perftest::subscribe(settings, self.interrupted, &mut on_event).map_err(Failure::environment)?;
        let described_len = received.description.map_or(0, |description| description.data_len as usize);
        let length = if received.data_len == 0 { described_len } else { received.data_len };
        printer.throughput(length, &received)?;
        printer.flush()?;
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let (counts, drops) = (&received.counts, received.kernel_drops);
        talk.detail(&format!(
            "duplicates {}, reordered {}, datagrams dropped at the socket {drops}",
            counts.duplicates, counts.reordered
        ));
        if received.loss.lost > 0 {
            talk.warning(&received.loss.to_string());
        }
        if counts.lost > 0 && drops > 0 {
            talk.warning(&format!(
                "{drops} datagrams were dropped at a full socket buffer: raise WEIR_RECEIVE_BUFFER and \
                 `sysctl net.core.rmem_max`"
            ));
        }
        Ok(received)
    }
}

fn ended(end: End, other: &str) -> Result<Exit, Failure> {
    match end {
        End::Complete => {
            output::talk("Test ended.");
            Ok(Exit::Success)
        }
        End::Interrupted => Ok(Exit::Interrupted),
        End::PeerGone => Err(Failure::environment(anyhow!("{other} disappeared before the end of the test"))),
    }
}

/// Messages on standard error, by verbosity.
#[derive(Clone, Copy)]
struct Talk {
    verbosity: u64,
}

impl Talk {
    fn event(self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Stage(text) => output::talk(text),
            Event::Warning(text) => self.warning(text),
            Event::Begun | Event::Described(_) | Event::Echo(_) | Event::Interval(_) => {}
        }
        Ok(())
    }

    fn warning(self, text: &str) {
        if self.verbosity > 0 {
            output::talk(&format!("perftest: {text}"));
        }
    }

    fn detail(self, text: &str) {
        if self.verbosity >= 3 {
            output::talk(&format!("perftest: {text}"));
        }
    }
}

/// Every latency, for `-latencyFile`.
struct LatencyFile {
    out: BufWriter<std::fs::File>,
    number: u64,
    is_precise: bool,
}

impl LatencyFile {
    fn open(path: &Path, is_precise: bool) -> Result<Self, Failure> {
        let file = append("-latencyFile", path)?;
        Ok(Self { out: BufWriter::new(file), number: 0, is_precise })
    }

    /// Begins a run.
    fn begin_run(&mut self) -> Result<(), Failure> {
        self.number = 0;
        self.line("Sample Number, Value")
    }

    fn keep(&mut self, echo: Echo) -> Result<(), Failure> {
        let number = self.number;
        self.number += 1;
        if self.is_precise {
            self.line(&format!("{number}, {:.3}", echo.rtt_ns as f64 / 2e3))
        } else {
            self.line(&format!("{number}, {}", echo.rtt_ns / 2000))
        }
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.out, "{text}").context("-latencyFile").map_err(Failure::environment)
    }

    /// Ends a run with an empty line.
    fn end_run(&mut self) -> Result<(), Failure> {
        self.line("")?;
        self.out.flush().context("-latencyFile").map_err(Failure::environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_leaves_valid_json_when_it_fails() {
        let directory = tempfile::tempdir().unwrap();
        for (name, line) in [
            // No datagram is sent: the number of peers is wrong, and there is no such interface.
            ("publisher", "-pub -rawTransport -peer 127.0.0.1:0 -numSubscribers 2 -nic 127.0.0.1"),
            ("subscriber", "-sub -rawTransport -nic nope0"),
        ] {
            let path = directory.path().join(name);
            let line = format!("{line} -verbosity 0 -outputFormat json -outputFile {}", path.display());
            let failure = run(line.split(' ').map(str::to_owned), &AtomicBool::new(false)).unwrap_err();
            assert_eq!(failure.exit, Exit::Environment, "{failure}");
            let text = std::fs::read_to_string(path).unwrap();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["perftest"].as_array().map(Vec::len), Some(0), "{text}");
        }
    }
}
