use proptest::prelude::*;

use super::*;

fn read(lost: u64) -> LossEvidence {
    LossEvidence {
        lost,
        left_out: 0,
        refused: Some(0),
        rejected: 0,
        receiver_socket: Some(Drops::exact(0)),
        sender_queue: Some(Drops::exact(0)),
        receiver_host: Some(Drops::exact(0)),
    }
}

fn trains(counted: u64, mean: f64, max: f64) -> Option<Drops> {
    Some(Drops { counted, samples: SamplesPerBuffer { mean, max } })
}

/// refused, queue, socket, host, path, unplaced; what the engines count themselves is elsewhere.
#[track_caller]
fn check(evidence: &LossEvidence, expected: [u64; 6]) {
    let loss = attribute(evidence);
    let found = [
        loss.sender_refused,
        loss.sender_queue,
        loss.receiver_socket,
        loss.receiver_host,
        loss.path,
        loss.unplaced,
    ];
    assert_eq!(found, expected, "{evidence:?}");
    assert_eq!(found.iter().sum::<u64>(), evidence.lost);
}

#[test]
fn each_place_gets_what_its_counter_says() {
    check(&LossEvidence { refused: Some(4), ..read(10) }, [4, 0, 0, 0, 6, 0]);
    check(&LossEvidence { sender_queue: Some(Drops::exact(4)), ..read(10) }, [0, 4, 0, 0, 6, 0]);
    check(&LossEvidence { receiver_socket: Some(Drops::exact(10)), ..read(10) }, [0, 0, 10, 0, 0, 0]);
    check(&LossEvidence { receiver_host: Some(Drops::exact(3)), ..read(10) }, [0, 0, 0, 3, 7, 0]);
    check(&read(10), [0, 0, 0, 0, 10, 0]);
}

#[test]
fn what_the_engines_left_out_and_rejected_was_not_lost_on_the_path() {
    let evidence = LossEvidence { left_out: 6, rejected: 3, sender_queue: None, ..read(10) };
    let loss = attribute(&evidence);
    assert_eq!((loss.sender_left_out, loss.receiver_rejected, loss.unplaced, loss.path), (6, 3, 1, 0));
    assert_eq!(
        loss.explanation(),
        "6 left out by the writer, 3 rejected by the reader's full cache, 1 unplaced"
    );
    // An engine counts more than was lost, if the reader was sent some of it later.
    let loss = attribute(&LossEvidence { lost: 5, ..evidence });
    assert_eq!((loss.sender_left_out, loss.receiver_rejected, loss.unplaced), (5, 0, 0));
}

#[test]
fn counters_beyond_the_loss_are_cut_and_the_surest_goes_first() {
    let loud = LossEvidence {
        refused: Some(3),
        receiver_socket: Some(Drops::exact(5)),
        sender_queue: Some(Drops::exact(900)),
        receiver_host: Some(Drops::exact(900)),
        ..read(10)
    };
    check(&loud, [3, 2, 5, 0, 0, 0]);
    check(&LossEvidence { lost: 0, ..loud }, [0; 6]);
    check(&LossEvidence { lost: 2, ..loud }, [2, 0, 0, 0, 0, 0]);
}

#[test]
fn counters_that_could_not_be_read_leave_the_rest_unplaced() {
    check(&LossEvidence { sender_queue: None, ..read(10) }, [0, 0, 0, 0, 0, 10]);
    let evidence = LossEvidence { receiver_host: None, receiver_socket: Some(Drops::exact(4)), ..read(10) };
    check(&evidence, [0, 0, 4, 0, 0, 6]);
    check(&LossEvidence { lost: 7, ..LossEvidence::default() }, [0, 0, 0, 0, 0, 7]);
}

#[test]
fn counters_of_buffers_are_scaled_and_what_they_leave_open_is_unplaced() {
    // Ten trains of 64 on average, possibly full.
    let evidence = LossEvidence { receiver_socket: trains(10, 63.5, 64.0), ..read(640) };
    check(&evidence, [0, 0, 635, 0, 0, 5]);
    assert_eq!(attribute(&evidence).samples_per_drop, Some(63.5));
    check(&LossEvidence { lost: 1000, ..evidence }, [0, 0, 635, 0, 360, 5]);
    // Ten fragments of samples with twenty each: at least one sample, at most ten.
    let evidence = LossEvidence { receiver_socket: trains(10, 0.05, 1.0), ..read(7) };
    check(&evidence, [0, 0, 1, 0, 0, 6]);
    assert_eq!(attribute(&read(5)).samples_per_drop, None);
}

fn refused(refused: u64) -> EngineCounts {
    EngineCounts { refused, ..EngineCounts::default() }
}

fn counters(boot_id: &str, namespace: u64) -> DropCounters {
    DropCounters {
        boot_id: Some(boot_id.to_owned()),
        namespace: Some(namespace),
        socket: Some(0),
        queue: Some(0),
        device_sent: Some(0),
        device_received: Some(0),
        backlog: Some(0),
        sent: Some(100),
        delivered: Some(100),
        receive_buffer_errors: Some(0),
        send_buffer_errors: Some(0),
        no_ports: Some(0),
        ip_discards: Some(0),
    }
}

#[test]
fn the_backlog_of_one_host_is_not_also_the_virtual_device_of_the_sender() {
    let sender = DropCounters { device_sent: Some(5), backlog: Some(5), ..counters("a", 1) };
    let receiver = DropCounters { backlog: Some(5), device_received: Some(5), ..counters("a", 2) };
    check(&LossEvidence::new(9, refused(0), &sender, &receiver, Carried::ONE), [0, 0, 0, 5, 4, 0]);
    // The backlog dropped packets from other devices.
    let receiver = DropCounters { backlog: Some(5), ..counters("a", 2) };
    let sender = DropCounters { backlog: Some(5), ..counters("a", 1) };
    check(&LossEvidence::new(9, refused(0), &sender, &receiver, Carried::ONE), [0, 0, 0, 0, 9, 0]);
    let sender = DropCounters { device_sent: Some(5), ..sender };
    // On two hosts these are separate drops.
    let receiver = DropCounters { backlog: Some(2), device_received: Some(3), ..counters("b", 2) };
    check(&LossEvidence::new(9, refused(0), &sender, &receiver, Carried::ONE), [0, 5, 0, 3, 1, 0]);
}

#[test]
fn counters_of_the_namespace_stand_in_for_those_that_are_missing() {
    let sender = DropCounters { queue: None, send_buffer_errors: Some(6), ..counters("a", 1) };
    let receiver = DropCounters { socket: None, receive_buffer_errors: Some(3), ..counters("b", 1) };
    check(&LossEvidence::new(10, refused(2), &sender, &receiver, Carried::ONE), [2, 4, 3, 0, 1, 0]);
    // An engine that does not report refusals.
    let sender = DropCounters { queue: Some(4), send_buffer_errors: Some(6), ..counters("a", 1) };
    check(&LossEvidence::new(10, refused(0), &sender, &receiver, Carried::ONE), [2, 4, 3, 0, 1, 0]);
    // No counter was read.
    let nothing = DropCounters::default();
    check(&LossEvidence::new(10, refused(1), &nothing, &nothing, Carried::ONE), [1, 0, 0, 0, 0, 9]);
}

#[test]
fn ends_of_one_namespace_share_its_counters_but_not_their_sockets() {
    let one = DropCounters { socket: Some(2), queue: Some(7), backlog: Some(1), ..counters("a", 1) };
    let other = DropCounters { socket: Some(3), queue: Some(8), backlog: Some(1), ..counters("a", 1) };
    let both = DropCounters::together(&[one.clone(), other.clone()]);
    assert_eq!((both.socket, both.queue, both.backlog), (Some(5), Some(8), Some(1)));
    let elsewhere = DropCounters { namespace: Some(2), ..other.clone() };
    let both = DropCounters::together(&[one.clone(), elsewhere]);
    assert_eq!((both.socket, both.queue, both.backlog, both.namespace), (Some(5), Some(15), Some(1), None));
    let far = DropCounters { boot_id: Some("b".into()), ..other };
    assert_eq!(DropCounters::together(&[one.clone(), far]).backlog, Some(2));
    let silent = DropCounters { queue: None, ..one.clone() };
    assert_eq!(DropCounters::together(&[one, silent]).queue, None);
    assert_eq!(DropCounters::together(&[]), DropCounters::default());
}

#[test]
fn buffers_are_measured() {
    assert_eq!(SamplesPerBuffer::measured(640, 10, 64), SamplesPerBuffer { mean: 64.0, max: 64.0 });
    assert_eq!(SamplesPerBuffer::measured(0, 0, 64), SamplesPerBuffer { mean: 1.0, max: 64.0 });
    assert_eq!(SamplesPerBuffer::measured(5, 100, 1), SamplesPerBuffer { mean: 0.05, max: 1.0 });
}

#[test]
fn what_a_buffer_carries_follows_from_the_kernels_counts() {
    let one = counters("a", 1);
    // A train of ten in each send, split before it arrives.
    let carried = Carried::measured(1000, &one, 98, &one, 64);
    assert_eq!(carried.sent, SamplesPerBuffer { mean: 10.0, max: 64.0 });
    assert_eq!(carried.received, SamplesPerBuffer::ONE);
    // Fragments.
    assert_eq!(Carried::measured(5, &one, 4, &one, 1).received, SamplesPerBuffer { mean: 0.04, max: 1.0 });
    let blind = DropCounters::default();
    assert_eq!(Carried::measured(5, &blind, 4, &blind, 1), Carried::ONE);
}

#[test]
fn the_line_names_places_by_their_share_and_estimates_as_such() {
    let evidence = LossEvidence { refused: Some(2), receiver_socket: Some(Drops::exact(5)), ..read(10) };
    assert_eq!(
        attribute(&evidence).to_string(),
        "10 lost: 5 dropped at the receiver's full socket buffer, 3 lost on the path, \
         2 refused by the sender's socket"
    );
    let evidence = LossEvidence { receiver_socket: trains(1, 64.0, 64.0), ..read(64) };
    assert_eq!(
        attribute(&evidence).to_string(),
        "64 lost: 64 dropped at the receiver's full socket buffer (estimated: the kernel counts buffers, and \
         one stands for 64 samples on average)"
    );
    assert_eq!(attribute(&read(0)).to_string(), "0 lost");
}

fn some_drops() -> impl Strategy<Value = Option<Drops>> {
    prop::option::of((any::<u64>(), 0.0..100.0, 0.0..100.0).prop_map(|(counted, mean, max)| Drops {
        counted: counted >> (counted % 64),
        samples: SamplesPerBuffer { mean, max },
    }))
}

fn some_evidence() -> impl Strategy<Value = LossEvidence> {
    let small = |count: u64| count >> (count % 64);
    let counts = (any::<u64>(), any::<u64>(), prop::option::of(any::<u64>()), any::<u64>());
    (counts, some_drops(), some_drops(), some_drops()).prop_map(
        move |((lost, left_out, refused, rejected), receiver_socket, sender_queue, receiver_host)| {
            LossEvidence {
                lost: small(lost),
                left_out: small(left_out),
                refused: refused.map(small),
                rejected: small(rejected),
                receiver_socket,
                sender_queue,
                receiver_host,
            }
        },
    )
}

proptest! {
    #[test]
    fn the_places_add_up_whatever_was_counted(evidence in some_evidence()) {
        let loss = attribute(&evidence);
        let sum: u128 = loss.places().iter().map(|(_, count)| u128::from(*count)).sum();
        prop_assert_eq!(sum, u128::from(evidence.lost));
        prop_assert!(loss.sender_refused <= evidence.refused.unwrap_or(0));
    }

    #[test]
    fn a_place_gets_nothing_when_its_counter_stood_still(evidence in some_evidence()) {
        let quiet = Some(Drops::exact(0));
        let silent = LossEvidence { receiver_socket: quiet, ..evidence };
        prop_assert_eq!(attribute(&silent).receiver_socket, 0);
        let silent = LossEvidence { sender_queue: quiet, ..evidence };
        prop_assert_eq!(attribute(&silent).sender_queue, 0);
        let silent = LossEvidence { receiver_host: quiet, ..evidence };
        prop_assert_eq!(attribute(&silent).receiver_host, 0);
    }

    #[test]
    fn the_path_gets_nothing_while_a_counter_is_missing(evidence in some_evidence()) {
        let blind = LossEvidence { sender_queue: None, ..evidence };
        prop_assert_eq!(attribute(&blind).path, 0);
    }

    #[test]
    fn more_loss_makes_no_place_smaller(evidence in some_evidence(), more in 0..1000_u64) {
        let before = attribute(&evidence);
        let after = attribute(&LossEvidence { lost: evidence.lost.saturating_add(more), ..evidence });
        for ((name, one), (_, other)) in before.places().into_iter().zip(after.places()) {
            prop_assert!(other >= one, "{}", name);
        }
    }
}
