//! A running program that publishes or subscribes shapes.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::netns::Namespace;

/// The role of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Waits for a reader and a line on its input, writes this many samples with `x` from 0
    /// upwards, disposes the instance.
    Publish(u32),
    /// Reads until the instance is disposed.
    Subscribe,
}

/// The common settings of both sides of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The DDS domain.
    pub domain: u32,
    /// The name of the topic.
    pub topic: String,
    /// Whether samples must not be lost.
    pub is_reliable: bool,
}

/// A running program; killed on drop.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts a program in a namespace or in the current one. Its environment selects the
    /// interface.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(program: &Command, namespace: Option<&Namespace>, role: Role, exchange: &Exchange) -> Self {
        let (verb, count) = match role {
            Role::Publish(count) => ("publish", count),
            Role::Subscribe => ("subscribe", 0),
        };
        let reliability = if exchange.is_reliable { "reliable" } else { "best-effort" };
        let mut command = Namespace::enter(namespace, program);
        command.args([verb, reliability, &exchange.domain.to_string(), &exchange.topic, &count.to_string()]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a peer can be started");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// Waits until it has discovered the other side. Samples that a volatile writer writes before
    /// may be lost.
    ///
    /// # Panics
    ///
    /// If it gives up.
    pub fn wait_for_match(&mut self) {
        match self.lines.next() {
            Some(Ok(line)) if line == "matched" => {}
            other => panic!("{other:?} instead of a match: {}", self.complaint()),
        }
    }

    /// Lets a publisher start to write.
    ///
    /// # Panics
    ///
    /// If it has ended.
    pub fn begin(&mut self) {
        let input = self.child.stdin.as_mut().expect("standard input is a pipe");
        input.write_all(b"\n").expect("the publisher waits");
    }

    /// Ends its input and waits for its end, which it reaches itself after a timeout. Returns the
    /// lines printed since the match.
    ///
    /// # Panics
    ///
    /// If it failed.
    #[must_use]
    pub fn finish(mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let lines: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let status = self.child.wait().expect("a peer can be waited for");
        assert!(status.success(), "ended with {status} after {} lines: {}", lines.len(), self.complaint());
        lines
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            // Unreadable output is left out of the message.
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }
}

impl Drop for Peer {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
