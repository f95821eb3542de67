//! Exchanges on a lossy loopback interface, captured and checked by Wireshark.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_dds::{DataWriterQos, Reliability};
use weir_interop::{Requirement, tshark};

use crate::cyclonedds;
use crate::namespace::{self, Capture};
use crate::types::{Blob, Everything, Numbered, ShapeType};
use crate::weir::{LIMIT, Run, take_exactly};

const COUNT: u32 = 3000;
const LOSS_PERCENT: u32 = 10;

fn are_met(requirements: &[Requirement]) -> bool {
    requirements.iter().all(|requirement| requirement.is_met())
}

fn capture_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns tshark's names of the packets in a capture, up to the kind: "DATA(w)", "HEARTBEAT".
fn kinds(capture: &Path, filter: &str) -> BTreeSet<String> {
    let infos = tshark_fields(capture, filter, "_ws.col.Info");
    let kinds = infos.lines().flat_map(|line| line.split(", ").map(|kind| kind.split(" -> ").next()));
    kinds.flatten().map(str::to_owned).collect()
}

fn tshark_fields(capture: &Path, filter: &str, field: &str) -> String {
    let mut command = Command::new("tshark");
    let output =
        // The ports of some domains are registered for other protocols.
        command.args(["-o", "udp.try_heuristic_first:TRUE"]).arg("-r").arg(capture).args(["-n", "-Y", filter, "-T", "fields", "-e", field]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Weir's packets: its vendor id is 1.240.
const WEIR: &str = "rtps.vendorId == 0x01f0";

/// Every kind of submessage that Weir sends; those of discovery by their subject.
const KINDS: [&str; 9] =
    ["DATA(p)", "DATA(w)", "DATA(r)", "DATA", "HEARTBEAT", "ACKNACK", "GAP", "INFO_TS", "INFO_DST"];

#[test]
fn wireshark_finds_nothing_wrong_with_an_exchange_that_loses_a_tenth() {
    if !are_met(&[Requirement::Netns, Requirement::Tshark]) {
        return;
    }
    let name = "captured::wireshark_finds_nothing_wrong_with_an_exchange_that_loses_a_tenth";
    namespace::inside(name, || {
        let file = capture_file("lossy.pcap");
        let capture = Capture::start(&file);
        let run = Run::new("captured");
        let reader = run.reader::<ShapeType>(Reliability::Reliable);
        let other = run.another();
        let writer = other.writer::<ShapeType>(Reliability::Reliable);
        writer.wait_for_subscriptions(1, LIMIT).unwrap();
        reader.wait_for_publications(1, LIMIT).unwrap();
        namespace::lose(LOSS_PERCENT);
        std::thread::scope(|scope| {
            let write = |number| writer.write(&ShapeType::make(number, 20, 5)).unwrap();
            scope.spawn(move || (0..COUNT).for_each(write));
            take_exactly(&reader, 0, COUNT, 20, 5);
        });
        writer.dispose(&ShapeType::make(0, 0, 5)).unwrap();
        writer.unregister_instance(&ShapeType::make(1, 0, 5)).unwrap();
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        drop(writer);
        // A writer that no longer has what was lost, and reports that.
        let forgetful = other.writer_with_qos::<ShapeType>(DataWriterQos::default().reliable().keep_last(1));
        forgetful.wait_for_subscriptions(1, LIMIT).unwrap();
        reader.wait_for_publications(1, LIMIT).unwrap();
        (0..COUNT).for_each(|number| forgetful.write(&ShapeType::make(number, 20, 1)).unwrap());
        forgetful.wait_for_acknowledgments(LIMIT).unwrap();
        let lost = namespace::lost();
        drop((forgetful, other, reader, run));
        capture.finish();

        let verdict = tshark::dissect_live(&file).unwrap();
        println!("# {lost} datagrams lost; {} packets: {:?}", verdict.packets, verdict.submessages);
        assert!(lost > 0);
        assert_eq!(verdict.complaints, Vec::<String>::new(), "{}", file.display());
        // Empty datagrams wake our own threads up.
        assert_eq!(
            tshark_fields(&file, "udp.length > 8 and not rtps", "frame.number"),
            "",
            "all of it is RTPS"
        );
        let seen = kinds(&file, WEIR);
        assert!(KINDS.iter().all(|kind| seen.contains(*kind)), "{seen:?}");
        for (field, name) in [("rtps.param.topicName", "captured_"), ("rtps.param.typeName", "ShapeType")] {
            assert!(tshark_fields(&file, WEIR, field).contains(name), "{field}");
        }
    });
}

#[test]
fn exchanges_with_cyclone_survive_the_loss_of_a_tenth() {
    if !are_met(&[Requirement::CycloneDds, Requirement::Netns, Requirement::Tshark]) {
        return;
    }
    namespace::inside("captured::exchanges_with_cyclone_survive_the_loss_of_a_tenth", || {
        let file = capture_file("cyclonedds-lossy.pcap");
        let capture = Capture::start(&file);
        let to_cyclone = Run::new("lossy_to_cyclone");
        let mut subscriber = cyclonedds::start(&to_cyclone, "");
        subscriber.ask(&to_cyclone.command::<Everything>("reader", Reliability::Reliable));
        let writer = to_cyclone.writer::<Everything>(Reliability::Reliable);
        cyclonedds::await_match(&writer, &mut subscriber);
        let to_weir = Run::new("lossy_to_weir");
        let reader = to_weir.reader::<Blob>(Reliability::Reliable);
        let mut publisher = cyclonedds::start(&to_weir, "");
        publisher.ask(&to_weir.command::<Blob>("writer", Reliability::Reliable));
        publisher.ask("matched 1");
        namespace::lose(LOSS_PERCENT);
        subscriber.tell(&format!("read 0 {COUNT} 0 1"));
        (0..COUNT).for_each(|number| writer.write(&Everything::make(number, 0, 1)).unwrap());
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        subscriber.answer();
        let lost_to_cyclone = namespace::lost();
        publisher.tell(&format!("write 0 {COUNT} 300 1"));
        take_exactly(&reader, 0, COUNT, 300, 1);
        publisher.answer();
        publisher.ask("acknowledged");
        assert_eq!(reader.sample_lost_status().total_count, 0);
        let lost_to_weir = namespace::lost() - lost_to_cyclone;
        subscriber.quit();
        publisher.quit();
        drop((writer, reader, to_cyclone, to_weir));
        capture.finish();

        let verdict = tshark::dissect_live(&file).unwrap();
        println!("# {lost_to_cyclone} and {lost_to_weir} datagrams lost; {:?}", verdict.submessages);
        assert!(lost_to_cyclone > 0 && lost_to_weir > 0);
        assert_eq!(verdict.complaints, Vec::<String>::new(), "{}", file.display());
    });
}
