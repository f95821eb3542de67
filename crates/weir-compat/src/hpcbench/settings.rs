//! The settings of a test, and which are refused.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use weir_measure::{Family, MeasureError, Secret};

use crate::hpcbench::plot::PlotData;

/// Receives text for the console: lines, without the last line end.
pub type Console<'a> = dyn FnMut(&str) -> io::Result<()> + 'a;

/// The largest datagram, as in hpcbench.
pub const DATAGRAM_BYTES_MAX: u64 = 65_000;

/// Which test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Client to server.
    #[default]
    Unidirectional,
    /// Both directions at once.
    Bidirectional,
    /// Client to server, with 1, 2, 4... bytes, and finally the datagram size.
    Exponential,
    /// Round trips of one datagram.
    RoundTrip {
        /// Bytes of the datagram.
        message_bytes: u64,
    },
    /// Datagrams to a host that runs no server.
    Generator,
}

/// The types of service that hpcbench's `-q` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceType {
    /// The byte in the IP header.
    byte: u8,
    /// The name in the report.
    pub(crate) name: &'static str,
}

impl ServiceType {
    /// By hpcbench's number, 1 to 6.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let (byte, name) = *SERVICE_TYPES.get(usize::from(number).checked_sub(1)?)?;
        Some(Self { byte, name })
    }
}

/// Bytes in the IP header and names, in the order of their numbers.
const SERVICE_TYPES: [(u8, &str); 6] = [
    (0x10, "IPTOS_Minimize_Delay"),
    (0x08, "IPTOS_Maximize_Throughput"),
    (0x28, "DiffServ_AF11"),
    (0x38, "DiffServ_AF13"),
    (0x88, "DiffServ_AF41"),
    (0x98, "DiffServ_AF43"),
];

/// A test.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The server, or the target of the generator.
    pub host: String,
    /// The version of IP.
    pub family: Family,
    /// The port of the server's control connection, or the UDP port for the generator.
    pub port: u16,
    /// Which test.
    pub mode: Mode,
    /// Bytes of UDP buffers at the client; `None`: the system's default.
    pub client_buffer_bytes: Option<u64>,
    /// Bytes of UDP buffers at the server; `None`: as at the client.
    pub server_buffer_bytes: Option<u64>,
    /// The most bytes of a datagram.
    pub datagram_bytes: u64,
    /// Bytes of each write; `None`: the whole datagram.
    pub data_bytes: Option<u64>,
    /// The least bytes of a trial. Ignored with a rate.
    pub message_bytes: u64,
    /// The least time of a trial.
    pub time: Duration,
    /// The number of trials.
    pub repeat: u32,
    /// Payload rate limit, bits per second; `None`: as fast as possible.
    pub rate_bps: Option<u64>,
    /// Type of service; `None` is the system's default.
    pub service_type: Option<ServiceType>,
    /// The report file.
    pub output: Option<PathBuf>,
    /// Whether the hosts' loads are logged, next to the report.
    pub system_log: bool,
    /// Whether a plot is made, next to the report.
    pub plot: bool,
    /// Whether the console shows every detail of a trial.
    pub verbose: bool,
    /// Whether the generator may send to multicast and broadcast addresses.
    pub many_receivers: bool,
    /// The secret shared with the server.
    pub secret: Option<Secret>,
    /// Draws a plot as an SVG document, next to gnuplot's script; `None`: no SVG.
    pub draw: Option<fn(&PlotData) -> String>,
}

impl Settings {
    /// hpcbench's defaults.
    #[must_use]
    pub fn new(host: &str, mode: Mode) -> Self {
        Self {
            host: host.to_owned(),
            port: 5678,
            mode,
            datagram_bytes: 1460,
            message_bytes: 1 << 20,
            time: Duration::from_secs(5),
            repeat: 10,
            ..Self::default()
        }
    }

    /// The type of service in the IP header.
    pub(crate) fn tos(&self) -> u8 {
        self.service_type.map_or(0, |service| service.byte)
    }

    /// Bytes of each write.
    pub(crate) fn write_bytes(&self) -> u64 {
        self.data_bytes.unwrap_or(self.datagram_bytes)
    }

    /// The sizes of the trials: constant, or growing.
    pub(crate) fn trial_sizes(&self) -> Vec<u64> {
        match self.mode {
            Mode::Exponential => exponential_sizes(self.write_bytes()),
            _ => vec![self.write_bytes(); self.repeat as usize],
        }
    }

    /// The least bytes of a trial; 0 where time alone decides.
    pub(crate) fn message_criterion(&self) -> u64 {
        if self.rate_bps.is_some() || self.mode == Mode::Exponential { 0 } else { self.message_bytes }
    }

    /// Checks the settings.
    pub(crate) fn check(&self) -> Result<(), MeasureError> {
        self.refusal().map_or(Ok(()), |what| Err(MeasureError::Usage(what)))
    }

    /// What is wrong with them.
    fn refusal(&self) -> Option<String> {
        let range = 1..=DATAGRAM_BYTES_MAX;
        Some(if !range.contains(&self.datagram_bytes) {
            format!("a datagram (-l) has 1 to {DATAGRAM_BYTES_MAX} bytes")
        } else if self.write_bytes() == 0 || self.write_bytes() > self.datagram_bytes {
            let most = self.datagram_bytes;
            format!("each write (-d) has at least 1 byte and at most the datagram's {most} (-l)")
        } else if matches!(self.mode, Mode::RoundTrip { message_bytes } if !range.contains(&message_bytes)) {
            format!("a round trip's message (-A) has 1 to {DATAGRAM_BYTES_MAX} bytes")
        } else if self.repeat == 0 {
            "at least one repetition (-r) is needed".to_owned()
        } else if self.output.is_none() && (self.system_log || self.plot) {
            "the system log (-c) and the plot (-P) are files beside the report: name it with -o".to_owned()
        } else if self.mode == Mode::Generator {
            return self.generator_refusal().map(str::to_owned);
        } else if self.plot && matches!(self.mode, Mode::RoundTrip { .. }) {
            "round trip times are not plotted (-P)".to_owned()
        } else if self.port == 0 {
            "port 0 is not a server's: give the port that udpserver printed (-p)".to_owned()
        } else {
            return None;
        })
    }

    fn generator_refusal(&self) -> Option<&'static str> {
        Some(if self.rate_bps.is_none() {
            "the generator (-g) needs a rate: there is no server that would limit it (-T 200M)"
        } else if self.output.is_some() {
            "the generator (-g) writes no report (-o)"
        } else if self.secret.is_some() {
            "the generator (-g) talks to no server that could ask for a secret (--secret-file)"
        } else if self.port == 0 {
            "the generator (-g) needs a UDP port to send to (-p)"
        } else {
            return None;
        })
    }
}

/// Powers of two below `last`, and `last`.
fn exponential_sizes(last: u64) -> Vec<u64> {
    let powers = std::iter::successors(Some(1_u64), |size| size.checked_mul(2));
    powers.take_while(|size| *size < last).chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_sizes_end_with_the_datagram() {
        assert_eq!(exponential_sizes(1460), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1460]);
        assert_eq!(exponential_sizes(8), [1, 2, 4, 8]);
        assert_eq!(exponential_sizes(1), [1]);
    }

    #[test]
    fn nonsense_is_refused_with_the_option_named() {
        let check = |change: fn(&mut Settings), option: &str| {
            let mut settings = Settings::new("a", Mode::Unidirectional);
            assert!(settings.check().is_ok());
            change(&mut settings);
            let text = settings.check().unwrap_err().to_string();
            assert!(text.contains(option), "{text}");
        };
        check(|settings| settings.datagram_bytes = 65_001, "-l");
        check(|settings| settings.data_bytes = Some(1461), "-d");
        check(|settings| settings.data_bytes = Some(0), "-d");
        check(|settings| settings.repeat = 0, "-r");
        check(|settings| settings.plot = true, "-o");
        check(|settings| settings.system_log = true, "-o");
        check(|settings| settings.port = 0, "-p");
        check(|settings| settings.mode = Mode::RoundTrip { message_bytes: 0 }, "-A");
        check(|settings| settings.mode = Mode::Generator, "-T");
    }

    #[test]
    fn the_message_does_not_count_beside_a_rate() {
        let mut settings = Settings::new("a", Mode::Unidirectional);
        assert_eq!(settings.message_criterion(), 1_048_576);
        settings.rate_bps = Some(1);
        assert_eq!(settings.message_criterion(), 0);
    }
}
