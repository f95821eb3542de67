//! The text of `-help`, made from the table of options.

use std::fmt::Write as _;

use super::command_line::wanted;
use super::options::{self, Fate, OptionDef, Side, Takes};

/// The text for standard output.
pub(super) fn help() -> String {
    let mut text = String::from(
        "perftest: RTI Perftest's options, procedure and output on Weir's DDS engine\n\n\
         Usage: perftest -pub [options]     the publisher: prints latencies\n\
         \x20      perftest -sub [options]     the subscriber: prints throughput; the default\n\n\
         Options have one dash, may be shortened as far as they stay unambiguous, and are written in any case.\n",
    );
    for (title, side) in
        [("Both ends", Side::Both), ("Publisher", Side::Publisher), ("Subscriber", Side::Subscriber)]
    {
        _ = writeln!(text, "\n{title}:");
        for option in options::all().filter(|option| option.side == side && option.fate == Fate::Works) {
            _ = writeln!(text, "  {:<38} {}", spelling(option), option.about);
        }
    }
    text.push_str("\nAccepted, and nothing to change:\n");
    for option in options::all() {
        if let Fate::Idle(why) = option.fate {
            _ = writeln!(text, "  {:<38} {why}", spelling(option));
        }
    }
    text.push_str("\nNot supported:\n");
    for option in options::all() {
        if let Fate::Refused(instead) = option.fate {
            _ = writeln!(text, "  {:<38} {instead}", spelling(option));
        }
    }
    text.push_str(EXAMPLES);
    text
}

const EXAMPLES: &str = "
Examples:
  perftest -sub -nic 172.16.0.2                                            the other end of all of these
  perftest -pub -nic 172.16.0.1 -latencyTest -dataLen 32 -exec 30          latency of 32-byte samples
  perftest -pub -nic 172.16.0.1 -dataLen 1024 -exec 30                     throughput in batches of 8192 bytes
  perftest -pub -nic 172.16.0.1 -dataLen 1024 -exec 30 -batchSize 0        throughput without batches
  perftest -pub -nic lo -bestEffort -pubRate 1000:sleep -numIter 5000      5000 best-effort samples at a rate

The environment variables WEIR_WAIT (block, spin, spin:MICROSECONDS), WEIR_RECEIVE_BUFFER and WEIR_SEND_BUFFER tune the engine.
Exit codes: 0 all well, 1 reliable samples were lost, 2 usage, 3 environment or no peer, 130 interrupted
";

fn spelling(option: &OptionDef) -> String {
    match option.takes {
        Takes::Nothing => format!("-{}", option.name),
        _ if option.name == "transport" => "-transport UDPv4".to_owned(),
        takes => format!("-{} {}", option.name, wanted(takes)),
    }
}
