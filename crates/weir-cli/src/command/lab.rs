//! `weir lab`: virtual hosts on this machine.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::anyhow;
use weir_bench::path::lab::{self, DEFAULT, Lab, LabError, LabStatus};

use super::setup;
use crate::args::{LabArgs, LabCommand, LabExecArgs, LabUpArgs};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(args: &LabArgs) -> Result<Exit, Failure> {
    match &args.command {
        LabCommand::Up(args) => up(args),
        LabCommand::Exec(args) => exec(args),
        LabCommand::Down(args) => down(&args.name),
        LabCommand::Status(args) => status(&args.name),
        LabCommand::Emulate { name } => {
            // Without a reader the lab has been given up, and the emulator ends with it.
            let ready = |line: &str| _ = output::data(&format!("{line}\n"));
            lab::emulate(name, ready).map(|()| Exit::Success).map_err(failure)
        }
    }
}

fn up(args: &LabUpArgs) -> Result<Exit, Failure> {
    if let Some(doubt) = args.link.doubt() {
        output::talk(&format!("weir: {doubt}"));
    }
    let mut emulator = Command::new(setup::program()?);
    emulator.args(["lab", "emulate"]);
    let lab = Lab::up(&args.lab.name, &args.hosts, &args.link, &mut emulator).map_err(failure)?;
    output::data(&described(&lab)).map(|()| Exit::Success)
}

fn exec(args: &LabExecArgs) -> Result<Exit, Failure> {
    let lab = Lab::load(&args.lab.name).map_err(failure)?;
    let host = lab.host(&args.host).map_err(failure)?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &host.namespace]).args(&args.command);
    // Returns only when it fails.
    let error = command.exec();
    Err(Failure::environment(anyhow!("cannot run `ip netns exec`: {error}")))
}

fn down(name: &str) -> Result<Exit, Failure> {
    let removed = lab::down(name).map_err(failure)?;
    let text = match &removed[..] {
        [] => "nothing was there\n".to_owned(),
        _ => removed.iter().map(|what| format!("removed {what}\n")).collect(),
    };
    output::data(&text).map(|()| Exit::Success)
}

fn status(name: &str) -> Result<Exit, Failure> {
    let (text, exit) = match lab::status(name).map_err(failure)? {
        LabStatus::Down => (format!("the lab `{name}` is down\n"), Exit::Found),
        LabStatus::Leftovers(names) => {
            let names = if names.is_empty() { "a link emulator".to_owned() } else { names.join(", ") };
            (
                format!("left over from a lab that ended early: {names}; `weir lab down` removes it\n"),
                Exit::Found,
            )
        }
        LabStatus::Up { lab, broken } if broken.is_empty() => (described(&lab), Exit::Success),
        LabStatus::Up { lab, broken } => {
            let broken = broken.join(", ");
            let text =
                format!("{}broken: {broken} is gone; `weir lab down` removes the rest\n", described(&lab));
            (text, Exit::Found)
        }
    };
    output::data(&text).map(|()| exit)
}

/// The link, each host, and how to measure between the first two.
fn described(lab: &Lab) -> String {
    let of = |host: &str| match lab.name.as_str() {
        DEFAULT => format!("lab:{host}"),
        name => format!("lab:{name}/{host}"),
    };
    let mut text = format!("link: {}\n", lab.link);
    for host in &lab.hosts {
        text.push_str(&format!("host {}: {}, namespace {}\n", host.name, host.address, host.namespace));
    }
    if let [one, other, ..] = &lab.hosts[..] {
        let (one, other) = (of(&one.name), of(&other.name));
        text.push_str(&format!("measure: weir run smoke --hosts pub={one},sub={other}\n"));
    }
    text
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::File { .. } | LabError::Link(_) | LabError::Emulator(_) => Failure::environment(error),
        LabError::IsDown(_) | LabError::IsUp(_) | LabError::Leftovers(_) => Failure::environment(error),
        _ => Failure::usage(error),
    }
}
