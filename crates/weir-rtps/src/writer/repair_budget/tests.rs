use core::time::Duration;

use super::*;

const FREE: u64 = config::REPAIR_FREE_BYTES;
const SOON: Time = Time(1_000_000_000);

fn host(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0000 + number)
}

fn to(hosts: &[u32]) -> Destinations {
    hosts.iter().map(|number| SocketAddrV4::new(host(*number), 7411)).collect()
}

/// Bytes of a writer that has handed out everything and keeps it.
fn kept(bytes: u64) -> SampleBytes {
    SampleBytes { written: bytes, sent: bytes, kept: bytes }
}

/// Makes readers known at `all` addresses of a host, `historic` of which want history.
fn readers(
    budgets: &mut RepairBudgets,
    now: Time,
    number: u32,
    (all, historic): (u64, u64),
    bytes: SampleBytes,
) -> u64 {
    budgets.readers_changed(now, host(number), Addresses { all, historic }, bytes)
}

/// The addresses at which these hosts may be sent something, and how much.
fn room_for(budgets: &RepairBudgets, hosts: &[u32]) -> (Destinations, Room) {
    budgets.allowed(&to(hosts), u64::MAX, (&mut AddressLists::default(), &mut Vec::new()))
}

/// What the host with the fullest account may be sent.
fn available(budgets: &mut RepairBudgets, now: Time, hosts: &[u32], bytes: SampleBytes) -> u64 {
    budgets.settle(now, &to(hosts), bytes, u64::MAX);
    room_for(budgets, hosts).1.bytes
}

#[test]
fn twice_what_was_first_sent_may_be_sent_again_and_then_a_little_at_intervals() {
    let mut budgets = RepairBudgets::default();
    readers(&mut budgets, SOON, 1, (1, 0), kept(5_000));
    assert_eq!(available(&mut budgets, SOON, &[1], kept(5_000)), FREE, "nothing was sent to it so far");
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_005_000)), FREE + 2_000_000);
    budgets.spend(&to(&[1]), FREE + 2_000_000);
    let interval = config::REPAIR_INTERVAL;
    let early = SOON + (interval - Duration::from_nanos(1));
    assert_eq!(available(&mut budgets, early, &[1], kept(1_005_000)), 0);
    assert_eq!(available(&mut budgets, SOON + interval, &[1], kept(1_005_000)), FREE);
    assert_eq!(available(&mut budgets, SOON + interval * 4, &[1], kept(1_005_000)), FREE * 4);
    let much_later = SOON + interval * 1_000_000;
    assert_eq!(available(&mut budgets, much_later, &[1], kept(1_005_000)), FREE + 2 * 1_005_000);
}

#[test]
fn what_the_history_does_not_hold_any_more_leaves_no_credit() {
    let mut budgets = RepairBudgets::default();
    readers(&mut budgets, SOON, 1, (1, 0), kept(0));
    let bytes = SampleBytes { kept: 1_000, ..kept(1 << 40) };
    assert_eq!(available(&mut budgets, SOON, &[1], bytes), FREE + 2_000);
    assert_eq!(available(&mut budgets, SOON, &[1], SampleBytes { kept: 0, ..bytes }), FREE);
}

#[test]
fn readers_that_leave_and_return_renew_nothing() {
    let mut budgets = RepairBudgets::default();
    readers(&mut budgets, SOON, 1, (1, 1), kept(1_000_000));
    let all = FREE + 1_000_000;
    assert_eq!(
        available(&mut budgets, SOON, &[1], kept(1_000_000)),
        all,
        "the history is first sent on request"
    );
    budgets.spend(&to(&[1]), all);
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_000_000)), 2_000_000);
    budgets.spend(&to(&[1]), 2_000_000);
    for _ in 0..10 {
        readers(&mut budgets, SOON, 1, (0, 0), kept(1_000_000));
        readers(&mut budgets, SOON, 1, (1, 1), kept(1_000_000));
        assert_eq!(available(&mut budgets, SOON, &[1], kept(1_000_000)), 0);
    }
    // It was not sent what was written in between.
    readers(&mut budgets, SOON, 1, (0, 0), kept(1_000_000));
    readers(&mut budgets, SOON, 1, (1, 1), kept(1_000_300));
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_000_300)), 300);
}

#[test]
fn each_address_of_a_host_is_first_sent_everything_if_they_are_there_at_the_same_time() {
    let mut budgets = RepairBudgets::default();
    readers(&mut budgets, SOON, 1, (1, 1), kept(1_000));
    readers(&mut budgets, SOON, 1, (3, 3), kept(1_000));
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_000)), FREE + 3_000);
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_100)), FREE + 3_000 + 2 * 3 * 100);
    readers(&mut budgets, SOON, 1, (1, 1), kept(1_100));
    readers(&mut budgets, SOON, 1, (3, 3), kept(1_100));
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_100)), FREE + 3_000 + 2 * 3 * 100);
    // A host has no more participants than this.
    readers(&mut budgets, SOON, 1, (1_000, 1_000), kept(1_100));
    let history = 3_000 + (config::REPAIR_ADDRESSES_MAX - 3) * 1_100;
    assert_eq!(available(&mut budgets, SOON, &[1], kept(1_100)), FREE + history + 2 * 3 * 100);
}

/// A host has more participants than the port formula has ids, if they use free ports.
#[test]
fn participants_of_this_host_are_sent_everything_however_many_they_are() {
    let mut budgets = RepairBudgets::default();
    let (here, bytes) = (Ipv4Addr::LOCALHOST, kept(10_000));
    for _ in 0..500 {
        budgets.address_added(SOON, here, true, bytes);
    }
    let to = [SocketAddrV4::new(here, 7411)];
    // To each for the first time, and to most once more.
    for _ in 0..800 {
        assert_eq!(budgets.settle(SOON, &to, bytes, u64::MAX), Repairs::Due);
        budgets.spend(&to, 10_000);
    }
}

#[test]
fn a_host_that_was_forgotten_begins_with_nothing_for_an_hour() {
    let mut budgets = RepairBudgets::default();
    let most = config::REPAIR_HOSTS_MAX as u32;
    let visit = |budgets: &mut RepairBudgets, now, number| {
        readers(budgets, now, number, (1, 1), kept(1_000_000));
        let had = available(budgets, now, &[number], kept(1_000_000));
        budgets.spend(&to(&[number]), had);
        (had, readers(budgets, now, number, (0, 0), kept(1_000_000)))
    };
    for number in 0..=most {
        let now = Time(SOON.0 + u64::from(number));
        assert_eq!(visit(&mut budgets, now, number), (FREE + 1_000_000, u64::from(number == most)));
    }
    let now = Time(SOON.0 + 1_000);
    assert_eq!(visit(&mut budgets, now, 0), (0, 1), "forgotten");
    assert_eq!(visit(&mut budgets, now, most).1, 0, "still known");
    assert_eq!(visit(&mut budgets, now, 5_000), (0, 1), "unknown, and perhaps forgotten");
    let later = now + config::REPAIR_HOST_MEMORY;
    assert_eq!(visit(&mut budgets, later, 5_001), (FREE + 1_000_000, 1));
    // Hosts with readers are never forgotten.
    for number in 10_000..10_000 + 2 * most {
        assert_eq!(readers(&mut budgets, later, number, (1, 1), kept(1_000_000)), 0);
    }
    assert!(budgets.memory() < 256 * 1024, "{}", budgets.memory());
}

#[test]
fn a_reader_at_two_hosts_is_repaired_where_that_is_allowed() {
    let mut budgets = RepairBudgets::default();
    for number in [1, 2] {
        readers(&mut budgets, SOON, number, (1, 0), kept(0));
    }
    budgets.spend(&to(&[2]), FREE);
    let allowed = |budgets: &RepairBudgets, hosts: &[u32]| {
        let (to, room) = room_for(budgets, hosts);
        (to, room.bytes)
    };
    assert_eq!(allowed(&budgets, &[1, 2]), (to(&[1]), FREE));
    budgets.spend(&to(&[1]), FREE);
    assert_eq!(allowed(&budgets, &[1, 2]).1, 0);
    assert_eq!(allowed(&budgets, &[7]).1, 0, "unknown");
    // What went to a host that was allowed less has to be made up for.
    readers(&mut budgets, SOON, 3, (1, 0), kept(0));
    assert_eq!(available(&mut budgets, SOON, &[1, 3], kept(1_000)), FREE + 2_000);
    budgets.spend(&to(&[1, 3]), FREE);
    assert_eq!(available(&mut budgets, SOON + config::REPAIR_INTERVAL, &[1], kept(1_000)), 2_000);
}

#[test]
fn samples_count_as_sent_when_they_were_handed_out() {
    let mut budgets = RepairBudgets::default();
    let sn = SequenceNumber;
    let mut sent = |unsent, next, written, waiting, begun| {
        budgets.sent((sn(unsent), sn(next)), written, (waiting, u64::MAX), begun, |_| 0)
    };
    assert_eq!(sent(5, 5, 400, Some(0), 0), 400);
    assert_eq!(sent(5, 7, 700, Some(200), 30), 530);
    assert_eq!(sent(7, 900, 8_000, None, 0), 530);
    assert_eq!(sent(899, 2_000, 19_000, None, 0), 530);
    assert_eq!(sent(900, 2_000, 19_000, None, 40), 8_040, "a part of sample 900");
    assert_eq!(sent(901, 2_000, 19_000, None, 0), 8_040);
    assert_eq!(sent(2_000, 2_010, 19_500, None, 0), 19_000);
    // All that is known of the others is how many bytes they are at most.
    assert_eq!(budgets.sent((sn(2_500), sn(9_000)), 90_000, (None, 66_000), 0, |_| 0), 24_000);
    assert_eq!(
        budgets.sent((sn(2_501), sn(9_000)), 90_000, (None, 80_000), 0, |_| 0),
        24_000,
        "it never falls"
    );
}

/// A paced path has more samples waiting than are counted one by one, for as long as it is in use.
#[test]
fn samples_that_leave_one_by_one_count_at_once_although_many_wait() {
    let mut budgets = RepairBudgets::default();
    let sn = SequenceNumber;
    let ten_each = |samples: Range<SequenceNumber>| 10 * (samples.end.0 - samples.start.0) as u64;
    let mut sent =
        |unsent, waiting| budgets.sent((sn(unsent), sn(5_000)), 50_000, (waiting, u64::MAX), 0, ten_each);
    assert_eq!(sent(1, Some(50_000)), 0);
    for unsent in [2, 700, 3_001] {
        assert_eq!(sent(unsent, None), 10 * (unsent - 1) as u64);
    }
    assert_eq!(sent(2_000, None), 30_000, "it never falls");
    assert_eq!(sent(9_000, None), 50_000, "no more than was written");
}

#[test]
fn answers_get_shorter_and_rarer_when_much_is_spent() {
    let mut budgets = RepairBudgets::default();
    let bytes = kept(10_000_000);
    readers(&mut budgets, SOON, 1, (1, 0), kept(0));
    let all = available(&mut budgets, SOON, &[1], bytes);
    let burst = |budgets: &RepairBudgets| {
        let (_, mut room) = room_for(budgets, &[1]);
        while room.take(2_000, 1_000) {}
        room.taken()
    };
    let pace = config::REPAIR_PACE;
    let quick = all / 8 * 3;
    assert_eq!(burst(&budgets) / 1_000, quick / 1_000);
    budgets.spend(&to(&[1]), quick - 100_000);
    assert_eq!(burst(&budgets), 100_000);
    assert_eq!(budgets.settle(SOON, &to(&[1]), bytes, u64::MAX), Repairs::Due);
    for (spent, pauses) in [(200_000, 1), (all / 4, 4), (all / 8, 16), (all / 8, 64)] {
        budgets.spend(&to(&[1]), spent);
        assert_eq!(burst(&budgets), 65_000, "{spent}");
        let pause = pace * pauses;
        let early = SOON + (pause - Duration::from_nanos(1));
        assert_eq!(budgets.settle(early, &to(&[1]), bytes, u64::MAX), Repairs::Paced);
        assert_eq!(budgets.settle(SOON + pause, &to(&[1]), bytes, u64::MAX), Repairs::Due);
        budgets.settle(SOON, &to(&[1]), bytes, u64::MAX);
    }
    // A single datagram is never too long.
    let (_, mut room) = room_for(&budgets, &[1]);
    assert!(room.take(70_000, 65_500) && !room.take(1, 100));
}

#[test]
fn what_a_late_joiner_was_never_sent_is_sent_as_fast_as_it_is_requested() {
    let mut budgets = RepairBudgets::default();
    let bytes = kept(10_000_000);
    readers(&mut budgets, SOON, 1, (1, 1), bytes);
    for _ in 0..100 {
        assert_eq!(budgets.settle(SOON, &to(&[1]), bytes, u64::MAX), Repairs::Due);
        budgets.spend(&to(&[1]), 100_000);
    }
    assert_eq!(available(&mut budgets, SOON, &[1], bytes), FREE + 20_000_000);
}

#[test]
fn a_reader_that_acknowledged_all_but_little_is_repaired_at_once_however_much_is_kept_for_others() {
    let mut budgets = RepairBudgets::default();
    let bytes = SampleBytes { kept: 100_000_000, ..kept(200_000_000) };
    readers(&mut budgets, SOON, 1, (1, 0), kept(199_000_000));
    budgets.settle(SOON, &to(&[1]), bytes, 100_000);
    budgets.spend(&to(&[1]), 500_000);
    assert_eq!(budgets.settle(SOON, &to(&[1]), bytes, 100_000), Repairs::Due);
}

#[test]
fn a_reader_that_moves_is_owed_what_it_had_not_acknowledged_once_for_each_host() {
    let mut budgets = RepairBudgets::default();
    let bytes = kept(1_000_000);
    let moved = |budgets: &mut RepairBudgets, from: u32, number: u32, bytes: SampleBytes| {
        readers(budgets, SOON, from, (0, 0), bytes);
        readers(budgets, SOON, number, (1, 0), bytes);
        budgets.reader_moved(&to(&[number]), 400_000, bytes.sent);
        available(budgets, SOON, &[number], bytes)
    };
    readers(&mut budgets, SOON, 1, (1, 0), kept(0));
    // What was sent to the first host was not sent to the second one.
    assert_eq!(moved(&mut budgets, 1, 2, bytes), FREE + 400_000);
    budgets.spend(&to(&[2]), 400_000);
    // It counts as first sent, so that twice as much may be sent again, and not when the reader comes back.
    assert_eq!(available(&mut budgets, SOON, &[2], bytes), FREE + 800_000);
    budgets.spend(&to(&[2]), FREE + 800_000);
    readers(&mut budgets, SOON, 2, (0, 0), bytes);
    for _ in 0..10 {
        readers(&mut budgets, SOON, 2, (1, 0), bytes);
        budgets.reader_moved(&to(&[2]), 400_000, bytes.sent);
        assert_eq!(available(&mut budgets, SOON, &[2], bytes), 0);
        readers(&mut budgets, SOON, 2, (0, 0), bytes);
    }
    // What was written while it was elsewhere was not sent to it.
    readers(&mut budgets, SOON, 2, (1, 0), kept(1_100_000));
    budgets.reader_moved(&to(&[2]), 400_000, 1_100_000);
    assert_eq!(available(&mut budgets, SOON, &[2], kept(1_100_000)), 100_000);
}

#[test]
fn the_addresses_that_are_allowed_are_in_a_list_that_is_used_again() {
    let mut budgets = RepairBudgets::default();
    for number in [1, 2] {
        readers(&mut budgets, SOON, number, (1, 0), kept(0));
    }
    budgets.spend(&to(&[2]), FREE);
    let (mut lists, mut memory) = (AddressLists::with_room(1, 2), Vec::with_capacity(2));
    for _ in 0..3 {
        let allowed = budgets.allowed(&to(&[1, 2]), u64::MAX, (&mut lists, &mut memory)).0;
        assert_eq!((allowed, lists.beyond(), memory.capacity()), (to(&[1]), 0, 2));
        let of_list = lists.list(&to(&[1]));
        assert_eq!(Arc::strong_count(&of_list), 2, "it is one of the lists");
    }
}
