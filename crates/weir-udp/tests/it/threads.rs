//! Threads by name.

use std::io;
use std::sync::mpsc::channel;
use std::thread;

use weir_udp::affinity::allowed_cpus;
use weir_udp::threads::{OwnThread, own_threads};

/// Runs `look` on a thread of this name, and returns what `inside` finds there afterwards.
fn with_thread<T: Send + 'static>(name: &str, look: impl FnOnce(&OwnThread), inside: fn() -> T) -> T {
    let (ask, asked) = channel::<()>();
    let (tell, told) = channel::<()>();
    let run = move || {
        tell.send(()).unwrap();
        asked.recv().unwrap();
        inside()
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(run).unwrap();
    // From now on it has its name.
    told.recv().unwrap();
    let threads = own_threads().unwrap();
    look(threads.iter().find(|thread| thread.name == name).unwrap());
    ask.send(()).unwrap();
    thread.join().unwrap()
}

#[test]
fn a_thread_is_found_by_its_name_and_pinned_alone() {
    let before = allowed_cpus().unwrap();
    let last = *before.last().unwrap();
    let cpus = with_thread("pin-me", |thread| thread.pin(last).unwrap(), || allowed_cpus().unwrap());
    assert_eq!(cpus, [last]);
    let cpus =
        with_thread("restrict-me", |thread| thread.restrict(&before).unwrap(), || allowed_cpus().unwrap());
    assert_eq!(cpus, before);
    assert_eq!(allowed_cpus().unwrap(), before);
    assert_eq!(own_threads().unwrap().iter().filter(|thread| thread.is_main()).count(), 1);
}

#[test]
fn an_absent_processor_and_an_absent_priority_are_refused() {
    let look = |thread: &OwnThread| {
        assert_eq!(thread.pin(usize::MAX).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        // Also beside one that is there.
        let first = allowed_cpus().unwrap()[0];
        for cpus in [&[first, usize::MAX][..], &[first, 1023], &[]] {
            assert_eq!(thread.restrict(cpus).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{cpus:?}");
        }
        assert_eq!(thread.set_fifo_priority(0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(thread.set_fifo_priority(100).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    };
    with_thread("refuse-me", look, || ());
}

/// The policy (0 ordinary, 1 FIFO) and priority of the calling thread, as in /proc.
fn policy_and_priority() -> (String, String) {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[38].to_owned(), fields[37].to_owned())
}

#[test]
fn an_urgent_thread_is_urgent_where_that_is_allowed() {
    let mut done = Ok(());
    let found = with_thread("hurry-me", |thread| done = thread.set_fifo_priority(3), policy_and_priority);
    match done {
        Ok(()) => assert_eq!(found, ("1".to_owned(), "3".to_owned())),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(found.0, "0");
        }
    }
}
