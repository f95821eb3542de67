//! The files beside each other: report, system logs, plot.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::connection::Connection;
use super::control::Request;
use crate::hpcbench::settings::Settings;
use crate::hpcbench::system_log::SystemLog;
use weir_measure::{MeasureError, pause};
use weir_results::{WholeFile, write_whole};

/// How long both hosts are sampled before the first trial and after the last.
const IDLE: Duration = Duration::from_secs(1);

/// The report. It is written beside its place as trials end, so that it survives what follows; nothing without `-o`.
pub(super) struct ReportFile(Option<(PathBuf, WholeFile)>);

impl ReportFile {
    pub(super) fn create(settings: &Settings) -> Result<Self, MeasureError> {
        let Some(path) = &settings.output else { return Ok(Self(None)) };
        let file =
            WholeFile::create(path).map_err(|source| MeasureError::Write { path: path.clone(), source })?;
        Ok(Self(Some((path.clone(), file))))
    }

    /// Appends whole rows.
    pub(super) fn write(&mut self, text: &str) -> Result<(), MeasureError> {
        let Some((path, file)) = &mut self.0 else { return Ok(()) };
        file.append(text.as_bytes()).map_err(|source| MeasureError::Write { path: path.clone(), source })
    }

    /// Puts the report in its place. One that is not finished leaves what was there.
    pub(super) fn finish(&mut self) -> Result<(), MeasureError> {
        let Some((path, file)) = self.0.take() else { return Ok(()) };
        file.finish().map_err(|source| MeasureError::Write { path, source })
    }
}

/// The system logs of both hosts; nothing without `-c`.
pub(super) struct Watch<'a> {
    output: Option<&'a Path>,
    client: SystemLog,
}

impl<'a> Watch<'a> {
    pub(super) fn new(settings: &'a Settings) -> Self {
        let output = settings.output.as_deref().filter(|_| settings.system_log);
        Self { output, client: SystemLog::default() }
    }

    /// Ends an entry of both logs.
    pub(super) fn look(&mut self, connection: &mut Connection) -> Result<(), MeasureError> {
        if self.output.is_some() {
            self.client.watch();
            connection.expect_ready(&Request::Watch)?;
        }
        Ok(())
    }

    /// An entry of both logs while nothing happens.
    pub(super) fn idle(
        &mut self,
        connection: &mut Connection,
        halt: &AtomicBool,
    ) -> Result<(), MeasureError> {
        let is_halted = || halt.load(Ordering::Relaxed).then_some(());
        if self.output.is_some() && pause(IDLE, is_halted).is_some() {
            return Err(MeasureError::Interrupted);
        }
        self.look(connection)
    }

    /// Writes the logs, the client's first: the server may be gone.
    pub(super) fn write(&self, connection: &mut Connection) -> Result<(), MeasureError> {
        let Some(output) = self.output else { return Ok(()) };
        let heading = &connection.heading;
        let text = self.client.text(&heading.client_host, &heading.date);
        write_beside(output, ".c_log", text.as_bytes())?;
        let text = connection.system_log()?;
        write_beside(output, ".s_log", &text)
    }
}

/// Writes the file that is named like the report, with an ending.
pub(super) fn write_beside(output: &Path, ending: &str, content: &[u8]) -> Result<(), MeasureError> {
    let mut path = output.as_os_str().to_owned();
    path.push(ending);
    let path = PathBuf::from(path);
    let written = write_whole(&path, |file| file.write_all(content));
    written.map_err(|source| MeasureError::Write { path, source })
}
