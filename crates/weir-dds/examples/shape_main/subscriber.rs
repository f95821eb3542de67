//! The subscribing side.

use weir_dds::{
    DataReader, DataReaderQos, DomainParticipant, InstanceHandle, InstanceState, Sample, SampleSeq,
    SubscriberQos, Topic,
};

use crate::listeners::Endpoint;
use crate::options::Options;
use crate::shape::{ShapeType, end_line};
use crate::{Failure, Stop, initializing, running};

pub(crate) fn run(
    participant: &DomainParticipant,
    topics: &[Topic<ShapeType>],
    options: &Options,
    stop: &Stop,
) -> Result<(), Failure> {
    options.refuse_fragment_size().map_err(Failure::Initializing)?;
    let group = SubscriberQos::default().presentation(options.presentation());
    let group = group.partition(options.partition.iter());
    let subscriber = participant.create_subscriber_with_qos(group).map_err(initializing)?;
    let readers = topics.iter().map(|topic| match options.filter() {
        None => {
            println!("Create reader for topic: {}", topic.name());
            let listener = Endpoint(topic.name().to_owned());
            let reader = subscriber.create_datareader_with_listener(topic, qos(options), listener);
            Ok((topic.name().to_owned(), reader.map_err(initializing)?))
        }
        Some((expression, parameters)) => {
            let name = format!("{}_filtered", topic.name());
            let filtered = participant.create_contentfilteredtopic(&name, topic, &expression, &parameters);
            let filtered = filtered.map_err(|error| {
                Failure::Initializing(format!("failed to create content filtered topic: {error}"))
            })?;
            println!("Create reader for topic: {name}");
            let listener = Endpoint(name.clone());
            let reader = subscriber.create_datareader_with_listener(&filtered, qos(options), listener);
            Ok((name, reader.map_err(initializing)?))
        }
    });
    let readers = readers.collect::<Result<Vec<_>, Failure>>()?;
    let mut samples = SampleSeq::new();
    let mut iteration = 0;
    while !stop.is_set() && options.num_iterations.is_none_or(|count| iteration < count) {
        if options.coherent {
            println!("Reading coherent sets, iteration {iteration}");
        }
        if options.ordered {
            println!("Reading with ordered access, iteration {iteration}");
        }
        let is_presented = options.coherent || options.ordered;
        if is_presented {
            subscriber.begin_access().map_err(running)?;
        }
        for (name, reader) in &readers {
            print_available(name, reader, &mut samples, options);
        }
        if is_presented {
            subscriber.end_access().map_err(running)?;
        }
        iteration += 1;
        stop.pause(options.read_period);
    }
    Ok(())
}

fn qos(options: &Options) -> DataReaderQos {
    let qos = DataReaderQos::default().copy_from_topic_qos(&options.topic_qos());
    match options.time_filter {
        Some(separation) => qos.time_based_filter(separation),
        None => qos,
    }
}

/// Reads or takes what a reader has, and prints it: instance by instance, or in the order of the reader.
fn print_available(
    topic: &str,
    reader: &DataReader<ShapeType>,
    samples: &mut SampleSeq<ShapeType>,
    options: &Options,
) {
    let mut previous: Option<InstanceHandle> = None;
    loop {
        let selection = match options.takes_by_instance {
            true => reader.select().next_instance(previous),
            false => reader.select(),
        };
        let count = match options.use_read {
            true => selection.read_into(samples),
            false => selection.take_into(samples),
        };
        if count == 0 {
            return;
        }
        samples.iter().for_each(|sample| print(topic, reader, sample));
        if !options.takes_by_instance {
            // Another read would return the same samples.
            return;
        }
        previous = samples.iter().next().map(|sample| sample.info.instance_handle);
    }
}

fn print(topic: &str, reader: &DataReader<ShapeType>, sample: &Sample<ShapeType>) {
    if let Some(shape) = sample.data() {
        println!("{}", shape.line(topic));
    }
    if let Some(error) = sample.error() {
        eprintln!("a sample of {topic} cannot be decoded: {error}");
    }
    let state = match sample.info.instance_state {
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
        _ => return,
    };
    let key = sample.key().cloned().or_else(|| reader.key_value(sample.info.instance_handle));
    println!("{}", end_line(topic, key.as_ref().map_or("", |key| &key.color), state));
}
