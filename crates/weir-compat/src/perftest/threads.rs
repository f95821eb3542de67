//! Processors and priorities of the threads of an end.

use std::io;

use weir_udp::threads::{OwnThread, own_threads};

use weir_bench::endpoint::EndpointError;

/// The kinds of threads of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerThread<T> {
    /// The thread that publishes or reports, and those that it starts.
    pub main: T,
    /// The engine's thread that receives samples.
    pub receive: T,
    /// The engine's thread of timers and discovery.
    pub event: T,
    /// The engine's thread that calls status listeners.
    pub status: T,
}

/// Settings for the threads of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSettings {
    /// Priorities of `SCHED_FIFO`, 1 to 99.
    pub priorities: Option<PerThread<i32>>,
    /// Processors, at least one for each.
    pub cpus: Option<PerThread<Vec<usize>>>,
}

impl<T: Clone> PerThread<T> {
    /// The same for all.
    pub fn all(value: &T) -> Self {
        let [main, receive, event, status] = std::array::from_fn(|_| value.clone());
        Self { main, receive, event, status }
    }

    fn of(&self, thread: &OwnThread) -> &T {
        match thread.name.as_str() {
            "weir-receive" => &self.receive,
            "weir-timers" => &self.event,
            "weir-listeners" => &self.status,
            _ => &self.main,
        }
    }
}

impl ThreadSettings {
    /// Call before the engine starts: it checks whether it has a single processor.
    pub(super) fn prepare(&self) -> Result<(), EndpointError> {
        match &self.cpus {
            Some(cpus) if *cpus == PerThread::all(&cpus.main) => {
                let done = weir_udp::affinity::restrict_current_thread(&cpus.main);
                done.map_err(|error| no_cpu(&cpus.main, &error))
            }
            _ => Ok(()),
        }
    }

    /// Applies the settings to all threads of the process.
    ///
    /// # Errors
    /// [`EndpointError::Environment`] with a sentence: no permission, or no such processor.
    pub(super) fn apply(&self) -> Result<(), EndpointError> {
        if *self == Self::default() {
            return Ok(());
        }
        let threads = own_threads().map_err(|error| {
            EndpointError::Environment(format!("the threads of this process cannot be listed: {error}"))
        })?;
        for thread in &threads {
            if let Some(cpus) = &self.cpus {
                let cpus = cpus.of(thread);
                thread.restrict(cpus).map_err(|error| no_cpu(cpus, &error))?;
            }
            if let Some(priorities) = &self.priorities {
                thread.set_fifo_priority(*priorities.of(thread)).map_err(|error| no_priority(&error))?;
            }
        }
        Ok(())
    }
}

fn no_cpu(cpus: &[usize], error: &io::Error) -> EndpointError {
    let names: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let (names, plural) = (names.join(", "), if cpus.len() > 1 { "s" } else { "" });
    EndpointError::Environment(format!(
        "this process may not run on processor{plural} {names}, which -threadCPUAffinity names: {error}"
    ))
}

fn no_priority(error: &io::Error) -> EndpointError {
    EndpointError::Environment(match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "-threadPriorities needs the capability CAP_SYS_NICE (root has it) or a sufficient limit of real-time \
             priority (`ulimit -r`), and a control group with real-time time"
                .to_owned()
        }
        _ => format!("-threadPriorities: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_what_their_names_stand_for() {
        let thread = |name: &str| {
            let mut thread = own_threads().unwrap().remove(0);
            thread.name = name.to_owned();
            thread
        };
        let each = PerThread { main: 1, receive: 2, event: 3, status: 4 };
        let of = |name: &str| *each.of(&thread(name));
        assert_eq!((of("perftest"), of("weir-receive"), of("weir-timers")), (1, 2, 3));
        assert_eq!((of("weir-listeners"), of("anything else")), (4, 1));
    }

    #[test]
    fn a_processor_that_is_not_there_is_named() {
        let settings =
            ThreadSettings { cpus: Some(PerThread::all(&vec![1023])), ..ThreadSettings::default() };
        let error = settings.apply().unwrap_err().to_string();
        assert!(error.contains("processor 1023"), "{error}");
        assert!(ThreadSettings::default().apply().is_ok());
        // The kernel would do with the one that is there.
        let allowed = weir_udp::affinity::allowed_cpus().unwrap();
        let partly = PerThread::all(&vec![allowed[0], 1023]);
        let settings = ThreadSettings { cpus: Some(partly), ..ThreadSettings::default() };
        let thread = std::thread::spawn(move || settings.prepare().unwrap_err().to_string());
        let error = thread.join().unwrap();
        assert!(error.contains(&format!("processors {}, 1023", allowed[0])), "{error}");
    }
}
