//! Rows of hpcbench's page, made again from their counts.

use super::*;
use crate::hpcbench::control::Counted;

/// A trial with these counts, and clocks that give the throughputs.
fn trial(client: Counted, server: Counted, network_mbps: f64, local_mbps: f64) -> Trial {
    let elapsed = |bytes: u64, mbps: f64| (bytes as f64 * 8e3 / mbps).round() as u64;
    let server_ns = elapsed(server.recv_bytes + client.recv_bytes, network_mbps);
    let client_ns = elapsed(server.sent_bytes + client.sent_bytes, local_mbps);
    Trial {
        write_bytes: 16,
        client: Counted { elapsed_ns: client_ns, ..client },
        server: Counted { elapsed_ns: server_ns, ..server },
    }
}

fn sent(packets: u64, bytes: u64) -> Counted {
    Counted { sent_packets: packets, sent_bytes: bytes, ..Counted::default() }
}

fn received(packets: u64, bytes: u64) -> Counted {
    Counted { recv_packets: packets, recv_bytes: bytes, ..Counted::default() }
}

#[test]
fn rows_are_those_of_the_page() {
    let one_way = trial(sent(409_395, 597_715_272), received(409_129, 597_326_912), 955.610_297, 956.342_523);
    assert_eq!(
        row(Mode::Unidirectional, 3, &one_way),
        "3       955.6103    956.3425     409395   597715272     409129   597326912       266     0.001\n"
    );
    assert_eq!(brief(3, &one_way), " (3) Throughput: 955.610297  Loss-rate: 0.000650");
    let small = trial(sent(945_192, 15_123_088), received(944_723, 15_115_584), 24.186, 24.197);
    assert_eq!(
        row(Mode::Exponential, 5, &small),
        "5      16    24.186    24.197    945192    15123088    944723    15115584       469     0.000\n"
    );
    let client = Counted { recv_packets: 344_451, recv_bytes: 502_897_032, ..sent(341_068, 497_813_656) };
    let server = Counted { sent_packets: 409_606, sent_bytes: 598_024_760, ..received(340_967, 497_810_392) };
    let both = trial(client, server, 1_601.171_587, 1_752.833);
    assert_eq!(
        row(Mode::Bidirectional, 1, &both),
        "1    1601.172   1752.833   341068   497813656   340967   497810392   344451   502897032   409606   598024760    0.000\n"
    );
}

#[test]
fn averages_need_three_equal_trials() {
    let client =
        Counted { elapsed_ns: 5_000_000_000, user_ns: 170_000_000, system_ns: 2_350_000_000, ..sent(1, 1) };
    let server = Counted {
        elapsed_ns: 5_001_000_000,
        user_ns: 70_000_000,
        system_ns: 1_680_000_000,
        ..received(1, 1)
    };
    let trial = Trial { write_bytes: 1460, client, server };
    let text = tail(Mode::Unidirectional, &[trial; 3]);
    assert!(text.starts_with("\n# Local Average: "), "{text}");
    assert!(text.contains("\n# Network Average: "), "{text}");
    assert!(
        text.contains("\n#1          5.00         0.17        2.35         5.00         0.07        1.68\n"),
        "{text}"
    );
    assert!(text.ends_with("1.68\n\n"), "{text}");
    assert!(
        tail(Mode::Unidirectional, &[trial; 2]).starts_with("\n# Process information for each test: \n\n")
    );
    assert!(!tail(Mode::Exponential, &[trial; 3]).contains("Average"));
}

#[test]
fn round_trips_change_the_unit_above_a_millisecond() {
    assert_eq!(round_trip_row(1, 61.265), "UDP Round Trip Time (1) : 61.265 usec");
    assert_eq!(round_trip_row(2, 1500.0), "UDP Round Trip Time (2) :  1.500 msec");
    assert_eq!(
        round_trip_tail(1024, &[111.552, 107.210]),
        "2 trials with message size 1024 Bytes.\nUDP RTT min/avg/max = 107.210/109.381/111.552 usec\n"
    );
}

#[test]
fn moments_are_written_like_ctime() {
    let at = |seconds| ctime(UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(0), "Thu Jan  1 00:00:00 1970");
    assert_eq!(at(1_089_759_765), "Tue Jul 13 23:02:45 2004");
    assert_eq!(at(951_782_399), "Mon Feb 28 23:59:59 2000");
    assert_eq!(at(951_782_400), "Tue Feb 29 00:00:00 2000");
    assert_eq!(at(1_735_689_599), "Tue Dec 31 23:59:59 2024");
    assert_eq!(at(4_107_542_400), "Mon Mar  1 00:00:00 2100");
}
