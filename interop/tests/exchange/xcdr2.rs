//! Exchanges with Cyclone DDS in XCDR2, in both directions: appendable types, and kinds of members
//! that only XCDR2 has there.

use weir_dds::{
    DataReader, DataRepresentation, DataWriter, DataWriterQos, DdsType, InstanceHandle, InstanceState,
    Reliability,
};
use weir_interop::Requirement;

use crate::cyclonedds::start;
use crate::types::{Everything, Numbered, ShapeType};
use crate::weir::{LIMIT, Run, await_state, take_exactly};

/// [`ShapeType`], under another name because that one is final in Cyclone DDS.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct AppendableShape {
    #[dds(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

impl Numbered for AppendableShape {
    fn make(number: u32, size: u32, instances: u32) -> Self {
        let ShapeType { color, x, y, shapesize, additional_payload_size } =
            ShapeType::make(number, size, instances);
        Self { color, x, y, shapesize, additional_payload_size }
    }

    fn number(&self) -> u32 {
        self.x.cast_unsigned()
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, DdsType)]
enum Paint {
    #[default]
    Red,
    Green,
    Blue,
}

/// Only the room belongs to the key of [`Kinds`].
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Spot {
    name: String,
    #[dds(key)]
    room: i32,
}

#[derive(Debug, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
enum Measured {
    #[dds(case = 1)]
    Celsius(f64),
    #[dds(case = -2)]
    Text(String),
}

impl Default for Measured {
    fn default() -> Self {
        Self::Celsius(0.0)
    }
}

/// Kinds of members that [`Everything`] lacks, and a key of several members.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Kinds {
    number: u32,
    #[dds(key)]
    color: Paint,
    #[dds(key)]
    wide: u64,
    #[dds(key)]
    place: Spot,
    maybe: Option<i32>,
    text: Option<String>,
    reading: Measured,
    colors: Vec<Paint>,
    places: [Spot; 2],
}

impl Numbered for Kinds {
    fn make(number: u32, _: u32, instances: u32) -> Self {
        let instance = number % instances;
        let color = |number| [Paint::Red, Paint::Green, Paint::Blue][number as usize % 3];
        let place = Spot { name: format!("place {number}"), room: instance.cast_signed() };
        let text = format!("text {number}");
        Self {
            number,
            color: color(instance),
            wide: (1 << 40) + u64::from(instance),
            place: place.clone(),
            maybe: (number % 2 == 1).then_some(-number.cast_signed()),
            text: (number % 3 == 1).then(|| text.clone()),
            reading: if number.is_multiple_of(5) {
                Measured::Text(text)
            } else {
                Measured::Celsius(f64::from(number) * 0.5)
            },
            colors: (0..number % 4).map(|index| color(number + index)).collect(),
            places: [place, Spot { name: String::new(), room: 7 }],
        }
    }

    fn number(&self) -> u32 {
        self.number
    }
}

fn writer<T: Numbered>(run: &Run) -> DataWriter<T> {
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    let qos = qos.autodispose_unregistered_instances(false);
    run.writer_with_qos(qos.data_representation(DataRepresentation::Xcdr2))
}

/// The command that makes the peer create a writer or reader.
fn command<T: Numbered>(run: &Run, kind: &str) -> String {
    run.command::<T>(kind, Reliability::Reliable) + " xcdr2"
}

fn weir_to_cyclone<T: Numbered>(name: &str, size: u32, instances: u32) {
    const COUNT: u32 = 1000;
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let mut peer = start(&run, "");
    peer.ask(&command::<T>(&run, "reader"));
    let writer = writer::<T>(&run);
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.tell(&format!("read 0 {COUNT} {size} {instances}"));
    (0..COUNT).for_each(|number| writer.write(&T::make(number, size, instances)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    peer.answer();
    if T::HAS_KEY {
        writer.dispose(&T::make(0, size, instances)).unwrap();
        peer.ask("state 0 disposed");
        // The handle is known from before, with the key in its standard form.
        let handle = writer.register_instance(&T::make(1, size, instances)).unwrap();
        writer.unregister_by_handle(handle).unwrap();
        peer.ask("state 1 no-writers");
        peer.ask("state 2 alive");
        // Cyclone DDS 0.10 and readers that expect the key in its standard form, at the same time.
        let another = run.another();
        let reader: DataReader<T> = another.reader(Reliability::Reliable);
        writer.wait_for_subscriptions(2, LIMIT).unwrap();
        writer.dispose(&T::make(2, size, instances)).unwrap();
        peer.ask("state 2 disposed");
        await_state(
            &reader,
            InstanceHandle::of(&T::make(2, 0, instances)).unwrap(),
            InstanceState::NotAliveDisposed,
        );
    }
    peer.quit();
}

fn cyclone_to_weir<T: Numbered>(name: &str, size: u32, instances: u32) {
    const COUNT: u32 = 1000;
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new(name);
    let reader: DataReader<T> = run.reader(Reliability::Reliable);
    let mut peer = start(&run, "");
    peer.ask(&command::<T>(&run, "writer"));
    peer.ask("matched 1");
    peer.tell(&format!("write 0 {COUNT} {size} {instances}"));
    take_exactly(&reader, 0, COUNT, size, instances);
    peer.answer();
    assert_eq!(reader.sample_rejected_status().total_count, 0);
    if T::HAS_KEY {
        for (command, instance, state) in [
            ("dispose", 0, InstanceState::NotAliveDisposed),
            ("unregister", 1, InstanceState::NotAliveNoWriters),
        ] {
            peer.ask(&format!("{command} {instance} {instances}"));
            let handle = InstanceHandle::of(&T::make(instance, size, instances)).unwrap();
            await_state(&reader, handle, state);
        }
    }
    peer.quit();
}

/// The key has the length of a delimiter, and once the value of one.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Numbers {
    #[dds(key)]
    instance: i32,
    number: u32,
}

impl Numbered for Numbers {
    fn make(number: u32, _: u32, instances: u32) -> Self {
        Self { instance: (number % instances).cast_signed(), number }
    }

    fn number(&self) -> u32 {
        self.number
    }
}

#[test]
fn cyclone_gets_appendable_numbers() {
    weir_to_cyclone::<Numbers>("xcdr2_numbers_to_cyclone", 0, 7);
}

#[test]
fn weir_gets_appendable_numbers() {
    cyclone_to_weir::<Numbers>("xcdr2_numbers_to_weir", 0, 7);
}

#[test]
fn cyclone_gets_appendable_shapes() {
    weir_to_cyclone::<AppendableShape>("xcdr2_shapes_to_cyclone", 100, 7);
}

#[test]
fn weir_gets_appendable_shapes() {
    cyclone_to_weir::<AppendableShape>("xcdr2_shapes_to_weir", 100, 7);
}

/// The key is a string; final, as in Cyclone DDS.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final", name = "ShapeType")]
struct FinalShape {
    #[dds(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

impl Numbered for FinalShape {
    fn make(number: u32, size: u32, instances: u32) -> Self {
        let ShapeType { color, x, y, shapesize, additional_payload_size } =
            ShapeType::make(number, size, instances);
        Self { color, x, y, shapesize, additional_payload_size }
    }

    fn number(&self) -> u32 {
        self.x.cast_unsigned()
    }
}

#[test]
fn cyclone_gets_final_shapes() {
    weir_to_cyclone::<FinalShape>("xcdr2_final_shapes_to_cyclone", 100, 7);
}

#[test]
fn weir_gets_final_shapes() {
    cyclone_to_weir::<FinalShape>("xcdr2_final_shapes_to_weir", 100, 7);
}

#[test]
fn cyclone_gets_final_members_of_every_kind() {
    weir_to_cyclone::<Everything>("xcdr2_everything_to_cyclone", 0, 1);
}

#[test]
fn weir_gets_final_members_of_every_kind() {
    cyclone_to_weir::<Everything>("xcdr2_everything_to_weir", 0, 1);
}

#[test]
fn cyclone_gets_enumerations_unions_and_optional_members() {
    weir_to_cyclone::<Kinds>("xcdr2_kinds_to_cyclone", 0, 5);
}

#[test]
fn weir_gets_enumerations_unions_and_optional_members() {
    cyclone_to_weir::<Kinds>("xcdr2_kinds_to_weir", 0, 5);
}

#[test]
fn a_reader_of_xcdr1_only_does_not_match_a_writer_of_xcdr2() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("xcdr1_only");
    let mut peer = start(&run, "");
    peer.ask(&run.command::<Everything>("reader", Reliability::Reliable));
    let writer = writer::<Everything>(&run);
    assert_eq!(peer.ask("incompatible"), DATA_REPRESENTATION);
    assert_eq!(writer.publication_matched_status().total_count, 0);
    peer.quit();
}

/// The policy's number in Cyclone DDS.
const DATA_REPRESENTATION: &str = "25";
