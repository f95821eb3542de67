//! The publishing side.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weir_dds::{DataWriter, DataWriterQos, DomainParticipant, Publisher, PublisherQos, Topic};

use crate::listeners::Endpoint;
use crate::options::{FinalState, Options};
use crate::shape::{Motion, ShapeType};
use crate::{Failure, Stop, initializing, numbered, running};

pub(crate) fn run(
    participant: &DomainParticipant,
    topics: &[Topic<ShapeType>],
    options: &Options,
    stop: &Stop,
) -> Result<(), Failure> {
    options.refuse_fragment_size().map_err(Failure::Initializing)?;
    let group = PublisherQos::default().presentation(options.presentation());
    let group = group.partition(options.partition.iter());
    let publisher = participant.create_publisher_with_qos(group).map_err(initializing)?;
    let writers = topics.iter().map(|topic| {
        println!("Create writer for topic: {} color: {}", topic.name(), options.color());
        let listener = Endpoint(topic.name().to_owned());
        let writer = publisher.create_datawriter_with_listener(topic, qos(options), listener);
        writer.map_err(initializing)
    });
    let writers = writers.collect::<Result<Vec<_>, Failure>>()?;
    for writer in &writers {
        let status = writer.durability_status();
        if !status.is_as_announced() {
            eprintln!("{}: {status}", writer.topic_name());
        }
    }
    publish(&publisher, &writers, topics, options, stop)?;
    end(&writers, options)?;
    for writer in &writers {
        // Readers that have not acknowledged by then may miss the end.
        let _ = writer.wait_for_acknowledgments(Duration::from_secs(1));
        writer.set_listener(None::<Arc<Endpoint>>.map(|none| none as _));
        // Only a late acknowledgement of the end is reported here.
        let _ = writer.close();
    }
    Ok(())
}

fn qos(options: &Options) -> DataWriterQos {
    let qos = DataWriterQos::default().copy_from_topic_qos(&options.topic_qos());
    let qos = match options.ownership_strength {
        Some(strength) => qos.ownership_strength(strength),
        None => qos,
    };
    let qos = match options.lifespan {
        Some(lifespan) => qos.lifespan(lifespan),
        None => qos,
    };
    // Unregistering alone is to leave the instance without writers.
    qos.autodispose_unregistered_instances(options.final_state != Some(FinalState::Unregister))
}

/// Writes until the last iteration, or until interrupted.
fn publish(
    publisher: &Publisher,
    writers: &[DataWriter<ShapeType>],
    topics: &[Topic<ShapeType>],
    options: &Options,
    stop: &Stop,
) -> Result<(), Failure> {
    let random = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut shape = ShapeType {
        color: options.color().to_owned(),
        shapesize: options.shapesize,
        additional_payload_size: vec![255; options.additional_payload_size],
        ..ShapeType::default()
    };
    let mut motion =
        Motion::start(&mut shape, random.as_nanos() as u64 ^ u64::from(std::process::id()) << 40);
    let mut iteration = 0;
    while !stop.is_set() && options.num_iterations.is_none_or(|count| iteration < count) {
        motion.step(&mut shape);
        if options.shapesize == 0 {
            shape.shapesize = match options.size_modulo {
                Some(modulo) => shape.shapesize % modulo + 1,
                None => shape.shapesize + 1,
            };
        }
        let place_in_set = options.coherent_sample_count().map(|count| (iteration % count, count));
        if place_in_set.is_some_and(|(place, _)| place == 0) {
            println!("Started Coherent Set");
            publisher.begin_coherent_changes().map_err(running)?;
        }
        for (writer, topic) in writers.iter().zip(topics) {
            for number in 0..options.num_instances {
                shape.color = numbered(options.color(), number);
                write(writer, &shape)?;
                if options.print_writer_samples {
                    println!("{}", shape.line(topic.name()));
                }
            }
        }
        if place_in_set.is_some_and(|(place, count)| place + 1 == count) {
            println!("Finished Coherent Set");
            publisher.end_coherent_changes().map_err(running)?;
        }
        stop.pause(options.write_period);
        iteration += 1;
    }
    Ok(())
}

/// Writes a sample. A sample that readers have no room for is left out, as the suite's own program does.
fn write(writer: &DataWriter<ShapeType>, shape: &ShapeType) -> Result<(), Failure> {
    match writer.write(shape) {
        Err(error @ weir_dds::DdsError::Timeout { .. }) => {
            eprintln!("a sample was left out: {error}");
            Ok(())
        }
        result => result.map_err(running),
    }
}

/// Ends the instances as the options say.
fn end(writers: &[DataWriter<ShapeType>], options: &Options) -> Result<(), Failure> {
    let Some(state) = options.final_state else { return Ok(()) };
    for writer in writers {
        for number in 0..options.num_instances {
            let shape = ShapeType { color: numbered(options.color(), number), ..ShapeType::default() };
            match state {
                FinalState::Unregister => writer.unregister_instance(&shape),
                FinalState::Dispose => writer.dispose(&shape),
            }
            .map_err(running)?;
        }
    }
    Ok(())
}
