//! The other side of the interoperability tests in `interop/tests/exchange`, for engines in Rust. The programs run
//! commands from standard input, one per line, and answer each with a line that starts with "ok" or "failed".
//!
//! - `writer|reader ShapeType TOPIC reliable|best-effort [transient-local] [keep-last=DEPTH]`
//! - `matched COUNT`: waits until COUNT readers or writers are matched
//! - `incompatible`: waits for one with incompatible QoS; answers with the policy's number
//! - `write FIRST COUNT SIZE INSTANCES`, `dispose NUMBER INSTANCES`
//! - `acknowledged`: waits until everything written is acknowledged
//! - `read FIRST COUNT SIZE INSTANCES`: reads COUNT samples, all from the first on, in the order of each instance
//! - `state INSTANCE disposed`: reads until the instance is in this state
//! - `delete`: deletes the writer or reader
//! - `quit`

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

/// A ShapeType, as in the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The key.
    pub color: String,
    /// The number of the sample.
    pub x: i32,
    /// The number, negated.
    pub y: i32,
    /// Bytes of payload.
    pub shapesize: i32,
    /// The payload.
    pub additional_payload_size: Vec<u8>,
}

impl Shape {
    /// Makes sample `number`, as `interop/tests/exchange/types.rs` does.
    pub fn make(number: u32, size: u32, instances: u32) -> Self {
        let bytes = (0..size).map(|index| number.wrapping_add(index).to_le_bytes()[0]);
        Self {
            color: color(number % instances),
            x: number.cast_signed(),
            y: -number.cast_signed(),
            shapesize: size.cast_signed(),
            additional_payload_size: bytes.collect(),
        }
    }
}

/// The key of an instance.
pub fn color(instance: u32) -> String {
    if instance.is_multiple_of(2) { format!("C-{instance}") } else { format!("THE-COLOR-{instance}") }
}

/// What can go wrong.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// QoS of a writer or reader.
#[derive(Debug, Clone, Copy)]
pub struct Qos {
    /// Not best effort.
    pub is_reliable: bool,
    /// Late readers get the history.
    pub is_transient_local: bool,
    /// Samples per instance; `None`: all.
    pub depth: Option<u32>,
}

/// What a reader has received.
#[derive(Debug)]
pub enum Taken {
    /// A sample.
    Shape(Shape),
    /// The end of an instance: its key, if known.
    Disposed(Option<String>),
}

/// An engine with one writer or reader.
pub trait Engine {
    /// Makes the writer.
    fn writer(&mut self, topic: &str, qos: Qos) -> Outcome<()>;
    /// Makes the reader.
    fn reader(&mut self, topic: &str, qos: Qos) -> Outcome<()>;
    /// Deletes the writer or reader.
    fn delete(&mut self);
    /// The number of endpoints that are matched.
    fn matched(&mut self) -> Outcome<u32>;
    /// The policy of the last endpoint that was incompatible.
    fn incompatible(&mut self) -> Outcome<Option<i32>>;
    /// Writes a sample.
    fn write(&mut self, shape: Shape) -> Outcome<()>;
    /// Disposes the instance of a sample.
    fn dispose(&mut self, shape: Shape) -> Outcome<()>;
    /// Waits for acknowledgements, at most this long.
    fn acknowledged(&mut self, limit: Duration) -> Outcome<()>;
    /// Takes the next sample, if there is any.
    fn take(&mut self) -> Outcome<Option<Taken>>;
}

/// Time limit of a command.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the commands.
///
/// # Errors
/// Standard input or output is closed.
pub fn run(mut engine: impl Engine) -> std::io::Result<()> {
    let mut disposed = Vec::new();
    answer("ok")?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line == "quit" {
            break;
        }
        match act(&mut engine, &line, &mut disposed) {
            Ok(text) => answer(&format!("ok {text}"))?,
            Err(error) => {
                answer(&format!("failed: {error}"))?;
                std::process::exit(1);
            }
        }
    }
    engine.delete();
    drop(engine);
    answer("ok")
}

fn answer(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}")?;
    stdout.flush()
}

fn act(engine: &mut impl Engine, line: &str, disposed: &mut Vec<Option<String>>) -> Outcome<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| -> Outcome<u32> {
        Ok(words.get(index).ok_or_else(|| format!("bad command: {line}"))?.parse()?)
    };
    match words.first().copied().unwrap_or_default() {
        kind @ ("writer" | "reader") if words.len() >= 4 => {
            let depth = words.iter().find_map(|word| word.strip_prefix("keep-last="));
            let qos = Qos {
                is_reliable: words[3] == "reliable",
                is_transient_local: words.contains(&"transient-local"),
                depth: depth.map(str::parse).transpose()?,
            };
            if kind == "writer" { engine.writer(words[2], qos)? } else { engine.reader(words[2], qos)? }
        }
        "matched" => {
            let count = number(1)?;
            poll("matches", || Ok((engine.matched()? == count).then_some(())))?;
        }
        "incompatible" => return Ok(poll("incompatible QoS", || engine.incompatible())?.to_string()),
        "write" => {
            for it in number(1)?..number(1)? + number(2)? {
                engine.write(Shape::make(it, number(3)?, number(4)?))?;
            }
        }
        "dispose" => engine.dispose(Shape::make(number(1)?, 0, number(2)?))?,
        "acknowledged" => engine.acknowledged(LIMIT)?,
        "read" => read(engine, [number(1)?, number(2)?, number(3)?, number(4)?], disposed)?,
        "state" => {
            let color = color(number(1)?);
            poll("the end of the instance", || {
                if let Some(Taken::Disposed(instance)) = engine.take()? {
                    disposed.push(instance);
                }
                Ok(disposed.iter().any(|it| it.as_ref() == Some(&color)).then_some(()))
            })?;
        }
        "delete" => engine.delete(),
        _ => return Err(format!("bad command: {line}").into()),
    }
    Ok(String::new())
}

fn read(
    engine: &mut impl Engine,
    [first, count, size, instances]: [u32; 4],
    disposed: &mut Vec<Option<String>>,
) -> Outcome<()> {
    let mut next: BTreeMap<u32, u32> =
        (first..first + instances).map(|number| (number % instances, number)).collect();
    for taken in 0..count {
        let shape = poll(&format!("{taken} of {count} samples"), || match engine.take()? {
            Some(Taken::Shape(shape)) => Ok(Some(shape)),
            Some(Taken::Disposed(instance)) => {
                disposed.push(instance);
                Ok(None)
            }
            None => Ok(None),
        })?;
        let number = shape.x.cast_unsigned();
        let expected = next.entry(number % instances).or_default();
        if number != *expected || shape != Shape::make(number, size, instances) {
            return Err(format!("{shape:?} came instead of number {expected}").into());
        }
        *expected += instances;
    }
    Ok(())
}

/// Repeats until there is a result. Not every engine can wait for all of this.
fn poll<T>(what: &str, mut look: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() > end {
            return Err(format!("only {what} within {LIMIT:?}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
