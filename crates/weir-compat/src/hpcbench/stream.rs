//! The throughput tests: one direction, both, growing sizes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::connection::Connection;
use super::files::{ReportFile, Watch, write_beside};
use crate::hpcbench::flow::Pace;
use crate::hpcbench::plot;
use crate::hpcbench::report;
use crate::hpcbench::settings::{Console, Mode, Settings};
use crate::hpcbench::trial::Trial;
use weir_measure::MeasureError;

pub(super) fn run(
    settings: &Settings,
    halt: &AtomicBool,
    console: &mut Console<'_>,
) -> Result<(), MeasureError> {
    let mut connection = Connection::open(settings)?;
    let mut test = Test {
        settings,
        report: ReportFile::create(settings)?,
        watch: Watch::new(settings),
        trials: Vec::new(),
        console,
    };
    let measured = test.measure(&mut connection, halt);
    // The results are kept whatever ended the test; the first error is reported.
    let finished = test.finish(&mut connection);
    measured.and(finished)?;
    test.say(&test.farewell())
}

struct Test<'a, 'c> {
    settings: &'a Settings,
    report: ReportFile,
    watch: Watch<'a>,
    trials: Vec<Trial>,
    console: &'a mut Console<'c>,
}

impl Test<'_, '_> {
    fn say(&mut self, text: &str) -> Result<(), MeasureError> {
        (self.console)(text).map_err(MeasureError::Console)
    }

    /// Writes to the report, or to the console if that is the only place for rows.
    fn write(&mut self, text: &str) -> Result<(), MeasureError> {
        let settings = self.settings;
        if settings.mode == Mode::Exponential && settings.output.is_none() && !settings.verbose {
            self.say(text.trim_end_matches('\n'))?;
        }
        self.report.write(text)
    }

    fn measure(&mut self, connection: &mut Connection, halt: &AtomicBool) -> Result<(), MeasureError> {
        let settings = self.settings;
        self.write(&report::heading(settings, &connection.heading))?;
        if settings.verbose {
            self.say(&report::verbose_heading(settings, &connection.heading))?;
        }
        self.watch.look(connection)?;
        self.watch.idle(connection, halt)?;
        for (index, size) in settings.trial_sizes().into_iter().enumerate() {
            if halt.load(Ordering::Relaxed) {
                return Err(MeasureError::Interrupted);
            }
            let pace = Pace {
                write_bytes: size as usize,
                time: settings.time,
                message_bytes: settings.message_criterion(),
                rate_bps: settings.rate_bps,
            };
            let trial = connection.trial(&pace, settings.mode == Mode::Bidirectional, halt)?;
            if index == 0 && trial.server.recv_packets == 0 {
                return Err(MeasureError::NothingArrives { port: connection.heading.server_port });
            }
            self.watch.look(connection)?;
            self.trials.push(trial);
            self.tell(index + 1, &trial)?;
        }
        self.watch.idle(connection, halt)
    }

    fn tell(&mut self, number: usize, trial: &Trial) -> Result<(), MeasureError> {
        if self.settings.verbose {
            self.say(&report::verbose(trial))?;
        } else if self.settings.mode != Mode::Exponential {
            self.say(&report::brief(number, trial))?;
        }
        self.write(&report::row(self.settings.mode, number, trial))
    }

    fn finish(&mut self, connection: &mut Connection) -> Result<(), MeasureError> {
        if self.trials.is_empty() {
            return Ok(());
        }
        let tail = self.write(&report::tail(self.settings.mode, &self.trials));
        tail.and(self.report.finish())?;
        if let Some(output) = self.settings.output.as_deref().filter(|_| self.settings.plot) {
            let hosts = &connection.heading;
            let title = format!("UDP throughput: {} <--> {}", hosts.client_host, hosts.server_host);
            let plot = plot::data(self.settings.mode, &self.trials, &title);
            write_beside(output, ".plot", plot::gnuplot(output, &plot).as_bytes())?;
            if let Some(draw) = self.settings.draw {
                write_beside(output, ".svg", draw(&plot).as_bytes())?;
            }
        }
        self.watch.write(connection)
    }

    fn farewell(&self) -> String {
        let Some(output) = &self.settings.output else { return "Test done!".to_owned() };
        let output = output.display();
        let mut text = format!("Test done! The results are stored in file \"{output}\"");
        if self.settings.system_log {
            text += &format!("\nLocal-syslog: \"{output}.c_log\"  server-syslog: \"{output}.s_log\"");
        }
        text
    }
}
