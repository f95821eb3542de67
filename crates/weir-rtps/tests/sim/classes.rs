//! Classes of defects found in DDS engines, as datagrams against a live participant. After each
//! attack, nonsense was counted, nothing has exceeded its limit, and an honest peer still exchanges
//! samples, in order and once. The parser's part is in weir-wire's own tests.

mod amplification;
mod discovery;
mod impostors;
mod parsing;
mod samples;

use core::time::Duration;

use crate::live::Live;

/// One attack.
pub(crate) struct Row {
    /// The class of defects.
    class: &'static str,
    /// The attack.
    says: &'static str,
    attack: fn(&mut Live),
    /// Additional checks.
    holds: fn(&mut Live),
}

fn check(rows: &[Row]) {
    for Row { class, says, attack, holds } in rows {
        let _in_case_of_panic = Says(class, says);
        let mut live = Live::new();
        attack(&mut live);
        live.run_for(Duration::from_millis(20));
        live.check_bounds();
        holds(&mut live);
        live.exchange();
        live.check_bounds();
    }
}

/// Prints the row whose check failed.
struct Says(&'static str, &'static str);

impl Drop for Says {
    #[expect(clippy::print_stderr, reason = "says which row it was")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.0, self.1);
        }
    }
}

#[test]
fn lengths_sets_and_offsets_that_lie() {
    check(parsing::ROWS);
}

#[test]
fn samples_heartbeats_gaps_and_fragments_that_lie() {
    check(samples::ROWS);
}

#[test]
fn acknowledgements_and_addresses_that_make_us_send() {
    check(amplification::ROWS);
}

#[test]
fn participants_and_endpoints_that_are_too_many_or_somebody_elses() {
    check(discovery::ROWS);
}

#[test]
fn messages_in_the_name_of_the_peer() {
    check(impostors::ROWS);
}
