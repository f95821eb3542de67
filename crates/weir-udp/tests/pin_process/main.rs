//! Pinning a whole process: a separate test binary, because it pins every thread.

use std::sync::mpsc::channel;
use std::thread;

use weir_udp::affinity::{allowed_cpus, pin_process};

#[test]
fn every_thread_of_the_process_is_pinned() {
    let cpu = *allowed_cpus().unwrap().last().unwrap();
    let (ask, asked) = channel::<()>();
    // It runs before the process is pinned and checks after that.
    let other = thread::spawn(move || {
        asked.recv().unwrap();
        allowed_cpus().unwrap()
    });
    pin_process(cpu).unwrap();
    ask.send(()).unwrap();
    assert_eq!(other.join().unwrap(), [cpu]);
    assert_eq!(allowed_cpus().unwrap(), [cpu]);
    assert_eq!(thread::spawn(|| allowed_cpus().unwrap()).join().unwrap(), [cpu]);
}
