//! Content-filtered topics and queries (DDS 1.4, 2.2.2.3.3, 2.2.2.5.9, annex B).

use weir_dds::{
    ContentFilteredTopic, DataReader, DataReaderQos, DataWriterQos, DdsError, DdsType, DomainParticipant,
    InstanceState, Query, Sample, SampleSeq, States, TopicDescription,
};

use crate::support::{DEADLINE, Keyed, World, lossless_reader, lossless_writer, matched, pair, take_exactly};

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "appendable", name = "ShapeType")]
struct Shape {
    #[dds(key, max_len = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
}

fn shape(color: &str, shapesize: i32) -> Shape {
    Shape { color: color.to_owned(), x: 1, y: -2, shapesize }
}

fn filtered<T: DdsType>(
    world: &World,
    on: &DomainParticipant,
    expression: &str,
    parameters: &[&str],
) -> ContentFilteredTopic<T> {
    on.create_contentfilteredtopic("filtered", &world.topic::<T>(on), expression, parameters).unwrap()
}

fn reader<T: DdsType>(
    on: &DomainParticipant,
    topic: &impl TopicDescription<T>,
    qos: DataReaderQos,
) -> DataReader<T> {
    on.create_subscriber().unwrap().create_datareader(topic, qos).unwrap()
}

fn sizes(reader: &DataReader<Shape>, count: usize) -> Vec<i32> {
    take_exactly(reader, count).iter().map(|sample| sample.data().unwrap().shapesize).collect()
}

#[test]
fn a_reader_receives_only_what_passes_whatever_the_durability_and_the_reliability() {
    for (writer_qos, reader_qos) in [
        (lossless_writer(), lossless_reader()),
        (lossless_writer().transient_local(), lossless_reader().transient_local()),
        (
            DataWriterQos::default().best_effort().keep_all(),
            DataReaderQos::default().best_effort().keep_all(),
        ),
    ] {
        let world = World::new();
        let on = world.participant();
        let writer = world.writer::<Shape>(&world.participant(), writer_qos);
        let topic = filtered::<Shape>(&world, &on, "color = %0 AND shapesize <= 20", &["'RED'"]);
        let filtered = reader(&on, &topic, reader_qos.clone());
        let all = reader(&on, topic.related_topic(), reader_qos);
        matched(&[&writer], &[&filtered, &all]);
        for size in 0..50 {
            writer.write(&shape(if size % 2 == 0 { "RED" } else { "BLUE" }, size)).unwrap();
        }
        take_exactly(&all, 50);
        assert_eq!(sizes(&filtered, 11), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
        assert_eq!(filtered.sample_lost_status().total_count, 0);
        assert_eq!(filtered.available(), 0);
    }
}

#[test]
fn a_writer_does_not_send_what_no_reader_wants() {
    let world = World::new();
    let on = world.participant();
    let writer = world.writer::<Shape>(&world.participant(), lossless_writer());
    let topic = filtered::<Shape>(&world, &on, "shapesize >= 90", &[]);
    let reader = reader(&on, &topic, lossless_reader());
    matched(&[&writer], &[&reader]);
    (0..100).for_each(|size| writer.write(&shape("RED", size)).unwrap());
    assert_eq!(sizes(&reader, 10), (90..100).collect::<Vec<_>>());
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    // Nothing reached the reader that did not pass: the writer has left it out.
    let counters = reader.protocol_counters();
    assert_eq!((counters.samples_content_filtered, counters.samples_lost), (0, 0));
    assert!(writer.protocol_counters().gaps_sent > 0);
}

#[test]
fn changed_parameters_reach_the_reader_and_its_writers() {
    let world = World::new();
    let on = world.participant();
    let writer = world.writer::<Shape>(&world.participant(), lossless_writer());
    let topic = filtered::<Shape>(&world, &on, "shapesize BETWEEN %0 AND %1", &["0", "9"]);
    let filtered = reader(&on, &topic, lossless_reader());
    let all = reader(&on, topic.related_topic(), lossless_reader());
    matched(&[&writer], &[&filtered, &all]);
    (0..20).for_each(|size| writer.write(&shape("RED", size)).unwrap());
    take_exactly(&all, 20);
    assert_eq!(sizes(&filtered, 10), (0..10).collect::<Vec<_>>());
    assert!(topic.set_expression_parameters(&["0"]).is_err());
    assert_eq!(topic.expression_parameters(), ["0", "9"]);
    topic.set_expression_parameters(&["10", "12"]).unwrap();
    assert_eq!(topic.expression_parameters(), ["10", "12"]);
    // Both readers are at the same address, so the writer sends all, and the reader applies the new parameters at once.
    (0..20).for_each(|size| writer.write(&shape("RED", size)).unwrap());
    assert_eq!(sizes(&filtered, 3), [10, 11, 12]);
}

#[test]
fn what_does_not_pass_replaces_nothing_and_ends_of_instances_pass_if_a_value_has() {
    let world = World::new();
    let on = world.participant();
    let writer = world.writer::<Shape>(&world.participant(), lossless_writer());
    let topic = filtered::<Shape>(&world, &on, "shapesize < 10", &[]);
    let filtered = reader(&on, &topic, DataReaderQos::default().reliable().keep_last(1));
    let all = reader(&on, topic.related_topic(), lossless_reader());
    matched(&[&writer], &[&filtered, &all]);
    for (color, size) in [("RED", 1), ("RED", 30), ("BLUE", 40)] {
        writer.write(&shape(color, size)).unwrap();
    }
    writer.dispose(&shape("RED", 0)).unwrap();
    writer.dispose(&shape("BLUE", 0)).unwrap();
    take_exactly(&all, 5);
    let samples = take_exactly(&filtered, 2);
    assert_eq!(*samples[0].data().unwrap(), shape("RED", 1));
    assert!(!samples[1].info.valid_data);
    assert_eq!(samples[1].info.instance_state, InstanceState::NotAliveDisposed);
    assert_eq!(filtered.available(), 0);
    assert_eq!(filtered.lookup_instance(&shape("BLUE", 0)).unwrap(), None);
}

#[test]
fn readers_and_writers_of_one_participant_filter_too() {
    let world = World::new();
    let on = world.participant();
    let writer = world.writer::<Keyed>(&on, lossless_writer());
    let topic = filtered::<Keyed>(&world, &on, "id = 2 OR value > 90", &[]);
    assert_eq!((topic.name(), topic.type_name()), ("filtered", "Keyed"));
    assert_eq!(topic.filter_expression(), "id = 2 OR value > 90");
    let reader = reader(&on, &topic, lossless_reader());
    matched(&[&writer], &[&reader]);
    (0..100).for_each(|value| writer.write(&Keyed { id: value as u32 % 4, value }).unwrap());
    let expected: Vec<_> = (0..100).filter(|value| value % 4 == 2 || *value > 90).collect();
    let samples = take_exactly(&reader, expected.len());
    assert_eq!(samples.iter().map(|sample| sample.data().unwrap().value).collect::<Vec<_>>(), expected);
}

#[test]
fn an_expression_that_cannot_be_used_is_refused_with_the_place_and_the_cause() {
    let world = World::new();
    let on = world.participant();
    let topic = world.topic::<Shape>(&on);
    let refusal = |expression: &str, parameters: &[&str]| match on
        .create_contentfilteredtopic("f", &topic, expression, parameters)
    {
        Err(DdsError::BadParameter(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refusal("colour = 'RED'", &[]),
        "content-filtered topic \"f\": character 1 of the expression: type ShapeType has no member colour: its \
         members are color, x, y, shapesize; write a text in single quotes"
    );
    assert_eq!(
        refusal("x = %1", &["1"]),
        "content-filtered topic \"f\": the expression: it needs %0 to %1, and 1 parameters were given"
    );
    assert!(on.create_contentfilteredtopic("", &topic, "x = 1", &[] as &[&str]).is_err());
    let query = Query::<Shape>::new("x = 'RED'", &[] as &[&str]).unwrap_err();
    assert_eq!(
        query.to_string(),
        "query: character 5 of the expression: x is an integer and cannot be compared with the text \"RED\": write a \
         number, such as 10 or 0x1F"
    );
}

#[test]
fn a_query_selects_samples_in_its_order_and_leaves_the_others() {
    let (writer, reader) = pair::<Shape>(lossless_writer(), lossless_reader());
    for (color, size) in [("RED", 7), ("BLUE", 3), ("GREEN", 20), ("BLUE", 1), ("RED", 5)] {
        writer.write(&shape(color, size)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let query = Query::new("shapesize < %0 ORDER BY color, shapesize", &["10"]).unwrap();
    assert!(reader.has_query(&query, States::NOT_READ));
    let read = reader.read_query(&query, 3, States::default());
    let read: Vec<_> = read
        .iter()
        .map(|sample| (sample.key().unwrap().color.as_str(), sample.data().unwrap().shapesize))
        .collect();
    assert_eq!(read, [("BLUE", 1), ("BLUE", 3), ("RED", 5)]);
    let unread = reader.take_query(&query, 10, States::NOT_READ);
    assert_eq!(unread.iter().map(|sample| sample.data().unwrap().shapesize).collect::<Vec<_>>(), [7]);
    query.set_parameters(&["2"]).unwrap();
    assert_eq!(reader.take_query(&query, 10, States::default()).len(), 1);
    assert!(!reader.has_query(&query, States::default()));
    assert_eq!(sizes(&reader, 3), [3, 20, 5]);
    assert!(query.matches(&shape("RED", 1)) && !query.matches(&shape("RED", 2)));
    assert!(query.is_ordered() && query.compare(&shape("BLUE", 2), &shape("RED", 1)).is_lt());
}

#[test]
fn a_selection_combines_conditions_and_queries_with_instances() {
    let (writer, reader) = pair::<Shape>(lossless_writer(), lossless_reader());
    for (color, size) in [("RED", 7), ("BLUE", 30), ("GREEN", 4), ("RED", 20), ("GREEN", 9), ("RED", 3)] {
        writer.write(&shape(color, size)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let red = reader.lookup_instance(&shape("RED", 0)).unwrap().unwrap();
    let small = Query::new("shapesize < 10 ORDER BY shapesize", &[] as &[&str]).unwrap();
    let sizes_of = |samples: &[Sample<Shape>]| {
        samples.iter().map(|sample| sample.data().unwrap().shapesize).collect::<Vec<_>>()
    };
    assert_eq!(sizes_of(&reader.select().query(&small).instance(red).read()), [3, 7]);
    assert_eq!(sizes_of(&reader.select().query(&small).states(States::NOT_READ).max(1).read()), [4]);
    // An instance without such samples is passed over.
    let mut by_instance = Vec::new();
    let mut previous = None;
    loop {
        let samples = reader.select().query(&small).next_instance(previous).read();
        let Some(first) = samples.first() else { break };
        previous = Some(first.info.instance_handle);
        by_instance.push(sizes_of(&samples));
    }
    by_instance.sort();
    assert_eq!(by_instance, [[3, 7], [4, 9]]);
    assert!(reader.select().query(&small).next_instance(None).max(0).read().is_empty());

    let even = reader.query_condition(States::NOT_READ, |shape: &Shape| shape.shapesize % 2 == 0);
    let selection = reader.select().condition(&even).unwrap();
    assert_eq!(selection.read_serialized().len(), 2);
    assert!(selection.read().is_empty(), "they are read now");
    let even = reader.query(|shape: &Shape| shape.shapesize % 2 == 0);
    let mut samples = SampleSeq::new();
    assert_eq!(reader.select().condition(&even).unwrap().instance(red).take_into(&mut samples), 1);
    assert_eq!(samples.data().map(|shape| shape.shapesize).collect::<Vec<_>>(), [20]);
    let unread = reader.read_condition(States::NOT_READ);
    assert!(reader.select().condition(&unread).unwrap().take().is_empty());
    assert_eq!(reader.select().take().len(), 5);

    let (_, other) = pair::<Shape>(lossless_writer(), lossless_reader());
    let refused = other.select().condition(&even).err().unwrap();
    assert!(matches!(refused, DdsError::PreconditionNotMet(_)), "{refused}");
}
