//! Each script is started as the publisher and as the subscriber; `$2` is its role, `$4` the
//! address of the control channel as `host:port`. The result reports the first failure.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_bench::control::{SCHEMA, VERSION};
use weir_bench::coordinator::{self, Event, RunOptions, RunOutcome};
use weir_bench::plan::{PlanOptions, plan};
use weir_bench::{AgentCommand, Fault};
use weir_results::{Environment, Reliability, Test};

/// Runs one case with `agent` for agents; returns why it has no figures.
fn run(agent: &AgentCommand) -> String {
    let options = PlanOptions {
        engines: vec!["mock".to_owned()],
        tests: vec![Test::Latency],
        sizes: vec![32],
        reliabilities: vec![Reliability::Reliable],
        duration: Duration::from_millis(10),
        ..PlanOptions::default()
    };
    let interrupted = AtomicBool::new(false);
    let environment = Environment::default();
    let mut reason = None;
    let run_options = RunOptions {
        agent,
        path: None,
        hosts: None,
        environment: &environment,
        interrupted: &interrupted,
        earlier: &[],
    };
    let outcome = coordinator::run(&plan(&options).unwrap(), &run_options, &mut |event| {
        if let Event::CaseFinished { case, fault, .. } = event {
            assert_eq!(fault, Some(Fault::Trouble));
            reason = case.evidence.not_measured.as_ref().map(|why| why.reason().to_owned());
        }
    });
    assert_eq!(outcome, RunOutcome { trouble: true, ..RunOutcome::default() });
    reason.unwrap()
}

/// A script that introduces itself well and then says `next`.
fn introduced(next: &str) -> String {
    format!(
        r#"CONNECT
        echo '{{"message":"hello","schema":{SCHEMA},"version":"{VERSION}","role":"'$2'","index":0,"token":"'$WEIR_CONTROL_TOKEN'"}}' >&3
        {next}"#
    )
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let connect = "exec 3<>/dev/tcp/${4%:*}/${4#*:}";
    let arguments = ["-c", &script.replace("CONNECT", connect), "bash"].map(Into::into).to_vec();
    let reason = run(&AgentCommand { program: "bash".into(), arguments });
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn an_agent_that_ends_before_it_connects_is_told_by_its_status() {
    check("exit 7", "process ended before its case did (exit status: 7)");
}

#[test]
fn an_agent_that_ends_after_it_connected_is_told_by_its_status() {
    check(&introduced("exit 9"), "process ended before its case did (exit status: 9)");
    check(&introduced("kill -9 $$"), "process ended before its case did (signal: 9");
}

#[test]
fn an_agent_of_another_version_is_refused_by_name() {
    let script = introduced("exec sleep 100").replace(VERSION, "0.0.0-other");
    check(&script, "the other process is weir 0.0.0-other");
}

#[test]
fn what_is_no_message_ends_the_case() {
    check(&introduced("echo hey >&3; exec sleep 100"), "a line that makes no sense here: `hey`");
}

#[test]
fn a_message_out_of_turn_ends_the_case() {
    check(&introduced(r#"echo '{"message":"started"}' >&3; exec sleep 100"#), "out of turn");
}

#[test]
fn a_failure_is_told_in_the_agents_own_words() {
    let failed =
        r#"echo '{"message":"failed","fault":"trouble","reason":"port 7 is taken"}' >&3; exec sleep 100"#;
    check(&introduced(failed), "port 7 is taken");
}

#[test]
fn a_program_with_a_wrong_token_is_disconnected() {
    // It introduces itself as the publisher first, without the token; then the process ends as requested.
    let script = introduced("read -u 3 line; exit 5").replace("$WEIR_CONTROL_TOKEN", "guess");
    check(&script, "exit status: 5");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let agent = AgentCommand { program: "/nowhere/weir".into(), arguments: Vec::new() };
    let reason = run(&agent);
    assert!(reason.contains("cannot start the publisher (/nowhere/weir)"), "{reason}");
}
