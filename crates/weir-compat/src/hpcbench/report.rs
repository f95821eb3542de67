//! The report file and the console lines in hpcbench's form: pure functions of the measurement.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::hpcbench::control::Counted;
use crate::hpcbench::settings::{Mode, Settings};
use crate::hpcbench::trial::Trial;

/// The heading of a report.
#[derive(Clone, Debug)]
pub(crate) struct Heading {
    /// When it began, as [`ctime`] writes it.
    pub(crate) date: String,
    pub(crate) client_host: String,
    pub(crate) server_host: String,
    pub(crate) client_buffers: Buffers,
    pub(crate) server_buffers: Buffers,
    pub(crate) server_port: u16,
}

/// UDP buffers in bytes, as the kernel reports them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) send: u64,
    pub(crate) recv: u64,
}

impl fmt::Display for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SNDBUF: {} RCVBUF: {}", self.send, self.recv)
    }
}

/// What stands above the rows.
pub(crate) fn heading(settings: &Settings, heading: &Heading) -> String {
    let kind = match settings.mode {
        Mode::Bidirectional => "Fixed packet size bidirectional stream test",
        Mode::Exponential => "Exponential size unidirectional stream test",
        _ => "Fixed packet size unidirectional stream test",
    };
    let tos = settings.service_type.map_or("Default", |service| service.name);
    let Heading { date, client_host, server_host, .. } = heading;
    let (client, server) = (heading.client_buffers, heading.server_buffers);
    let datagram = settings.datagram_bytes;
    let mut text = format!(
        "# UDP communication test -- {date}\n\
         # {kind}\n\
         # Hosts: {client_host} (client) <--> {server_host} (server)\n\n\
         # Client UDP socket buffer size (Bytes) -- {client}\n\
         # Server UDP socket buffer size (Bytes) -- {server}\n\
         # Client IP TOS type: {tos}\n\
         # Server IP TOS type: {tos}\n\
         # UDP datagram (packet) size (Bytes) -- Client: {datagram} Server: {datagram}\n"
    );
    let seconds = settings.time.as_secs_f64();
    if settings.mode == Mode::Exponential {
        text += &format!("# Test time (second): {seconds:.6}\n\n");
        return text + EXPONENTIAL_COLUMNS;
    }
    let (data, Settings { message_bytes, repeat, .. }) = (settings.write_bytes(), settings);
    text += &format!(
        "# Data size of each read/write (Bytes) -- Client: {data} Server: {data}\n\
         # Message size (Bytes): {message_bytes}\n\
         # Test time (Second): {seconds:.6}\n\
         # Test repeat: {repeat}\n\n"
    );
    text + if settings.mode == Mode::Bidirectional { BIDIRECTIONAL_COLUMNS } else { UNIDIRECTIONAL_COLUMNS }
}

const UNIDIRECTIONAL_COLUMNS: &str =
    "#   Network(Mbps) Local(Mbps) SentPkg(C) SentByte(C) RecvPkg(S) RecvByte(S)  LostPkg  LossRate\n";

const BIDIRECTIONAL_COLUMNS: &str = "\
#     Network     Local    Client     Client    Server     Server    Client     Client    Server     Server   Server
#   throughput throughput   sent       sent      recv       recv      recv       recv      sent       sent     recv
#     (Mbps)     (Mbps)    packet      byte     packet      byte     packet      byte     packet      byte   loss-rate
";

const EXPONENTIAL_COLUMNS: &str = "\
#   Size    Network     Local    Client      Client    Server      Server    Server  ServerRecv
#  (Byte)    (Mbps)    (Mbps)   SentPkg    SentByte   RecvPkg    RecvByte   LostPkg    LossRate
";

/// The row of a trial; numbers start at 1.
pub(crate) fn row(mode: Mode, number: usize, trial: &Trial) -> String {
    let (network, local) = (trial.network_mbps(), trial.local_mbps());
    let (lost, loss) = (trial.lost_packets(), trial.loss_rate());
    let Trial { write_bytes, client, server } = trial;
    let (Counted { sent_packets, sent_bytes, .. }, Counted { recv_packets, recv_bytes, .. }) =
        (client, server);
    match mode {
        Mode::Bidirectional => format!(
            "{number:<3}{network:>10.3}{local:>11.3}\
             {sent_packets:>9}{sent_bytes:>12}{recv_packets:>9}{recv_bytes:>12}\
             {:>9}{:>12}{:>9}{:>12}{loss:>9.3}\n",
            client.recv_packets, client.recv_bytes, server.sent_packets, server.sent_bytes
        ),
        Mode::Exponential => format!(
            "{number:<3}{write_bytes:>6}{network:>10.3}{local:>10.3}\
             {sent_packets:>10}{sent_bytes:>12}{recv_packets:>10}{recv_bytes:>12}\
             {lost:>10}{loss:>10.3}\n"
        ),
        _ => format!(
            "{number:<3}{network:>13.4}{local:>12.4}\
             {sent_packets:>11}{sent_bytes:>12}{recv_packets:>11}{recv_bytes:>12}\
             {lost:>10}{loss:>10.3}\n"
        ),
    }
}

/// What stands below the rows: averages of more than two equal trials, and the processor time.
pub(crate) fn tail(mode: Mode, trials: &[Trial]) -> String {
    let mut text = String::from("\n");
    if trials.len() > 2 && mode != Mode::Exponential {
        text += &averages("Local", trials.iter().map(Trial::local_mbps));
        text += &averages("Network", trials.iter().map(Trial::network_mbps));
        text.push('\n');
    }
    text += "# Process information for each test: \n\n\
             #         Client     C-process   C-process      Server     S-process   S-process\n\
             #      Elapsed-time  User-mode  System-mode  Elapsed-time  User-mode  System-mode\n\
             #       (Seconds)    (Seconds)   (Seconds)    (Seconds)    (Seconds)   (Seconds)\n";
    for (index, Trial { client, server, .. }) in trials.iter().enumerate() {
        let [elapsed, user, system] = seconds(client);
        text += &format!("#{:<4}{elapsed:>11.2}{user:>13.2}{system:>12.2}", index + 1);
        let [elapsed, user, system] = seconds(server);
        text += &format!("{elapsed:>13.2}{user:>13.2}{system:>12.2}\n");
    }
    text + "\n"
}

/// The time of an end, and the processor time in user mode and in the kernel.
fn seconds(counted: &Counted) -> [f64; 3] {
    [counted.elapsed_ns, counted.user_ns, counted.system_ns].map(|ns| ns as f64 / 1e9)
}

fn averages(name: &str, figures: impl Iterator<Item = f64> + Clone) -> String {
    let count = figures.clone().count() as f64;
    let average = figures.clone().sum::<f64>() / count;
    let (least, most) = extremes(figures);
    format!("# {name} Average: {average:.6}  Minimum: {least:.6}  Maximum: {most:.6}\n")
}

/// The least and the greatest; of none, infinities.
pub(crate) fn extremes(figures: impl Iterator<Item = f64>) -> (f64, f64) {
    figures.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), x| (least.min(x), most.max(x)))
}

/// The console's line for a trial.
pub(crate) fn brief(number: usize, trial: &Trial) -> String {
    format!(" ({number}) Throughput: {:.6}  Loss-rate: {:.6}", trial.network_mbps(), trial.loss_rate())
}

/// What `-v` says before the first trial.
pub(crate) fn verbose_heading(settings: &Settings, heading: &Heading) -> String {
    let kind = match settings.mode {
        Mode::Exponential => "UDP throughput exponential test",
        Mode::RoundTrip { .. } => "UDP round trip time test",
        _ => "UDP throughput fixed packet size test",
    };
    let Heading { client_host, server_host, server_port, client_buffers: Buffers { send, recv }, .. } =
        heading;
    format!(
        "{kind}\n{client_host} (client) <--> {server_host} (server)\n\
         UDP-port: {server_port} UDP-send-buffer: {send} UDP-recv-buffer: {recv}\n"
    )
}

/// What `-v` says about a trial.
pub(crate) fn verbose(trial: &Trial) -> String {
    let Counted { sent_bytes, sent_packets, recv_bytes, recv_packets, .. } = trial.client;
    let client = format!(
        "[Client] Sent-bytes: {sent_bytes} Sent-packets: {sent_packets} Recv-bytes: {recv_bytes} \
         Recv-Packets: {recv_packets}"
    );
    let Counted { sent_bytes, sent_packets, recv_bytes, recv_packets, .. } = trial.server;
    let server = format!(
        "[Server] Recv-bytes: {recv_bytes} Recv-Packets: {recv_packets} Sent-bytes: {sent_bytes} \
         Sent-Packets: {sent_packets}"
    );
    let ([client_s, ..], [server_s, ..]) = (seconds(&trial.client), seconds(&trial.server));
    let (network, local) = (trial.network_mbps(), trial.local_mbps());
    let (lost, loss) = (trial.lost_packets(), trial.loss_rate());
    format!(
        "{client}\n{server}\n\
         Client-time(Sec.): {client_s:.6}  Server-time(Sec.): {server_s:.6}\n\
         Network-throughput(Mbps): {network:.6} Local-throughput: {local:.6}\n\
         Lost-packets (c->s): {lost}  Loss-rate(c->s): {loss:.6}\n"
    )
}

/// What stands above the times of a round trip report.
pub(crate) fn round_trip_heading(heading: &Heading, message_bytes: u64, iterations: u64) -> String {
    let Heading { date, client_host, server_host, client_buffers: Buffers { send, recv }, .. } = heading;
    format!(
        "# UDP roundtrip time test {date}\n# {client_host} <--> {server_host}\n\
         # UDP-send-buffer: {send} UDP-recv-buffer: {recv}\n\
         # Message-size: {message_bytes} Iteration: {iterations}\n"
    )
}

/// The line for one mean round trip time.
pub(crate) fn round_trip_row(number: usize, time_us: f64) -> String {
    let (time, unit) = in_unit(time_us, time_us);
    format!("UDP Round Trip Time ({number}) : {time:6.3} {unit}")
}

/// The lines below the times.
pub(crate) fn round_trip_tail(message_bytes: u64, times_us: &[f64]) -> String {
    let (least, most) = extremes(times_us.iter().copied());
    let average = times_us.iter().sum::<f64>() / times_us.len() as f64;
    let ((least, unit), (average, _), (most, _)) =
        (in_unit(least, average), in_unit(average, average), in_unit(most, average));
    format!(
        "{} trials with message size {message_bytes} Bytes.\n\
         UDP RTT min/avg/max = {least:.3}/{average:.3}/{most:.3} {unit}\n",
        times_us.len()
    )
}

/// A time in milliseconds when `judge` is above 1000 us.
fn in_unit(time_us: f64, judge: f64) -> (f64, &'static str) {
    if judge > 1000.0 { (time_us / 1000.0, "msec") } else { (time_us, "usec") }
}

/// A time as `ctime(3)` writes it, in UTC.
pub(crate) fn ctime(moment: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = moment.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days of the Gregorian calendar repeat every 400 years; years start in March here, so that the
    // leap day is the last of its year.
    let from_march_0 = days + 719_468;
    let (era, day) = (from_march_0 / 146_097, from_march_0 % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 2, era * 400 + year) } else { (month - 10, era * 400 + year + 1) };
    format!(
        "{} {} {day_of_month:>2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests;
