//! Readers under what applications run: an iterator that waits, tokio, and async-io, which smol is built on.

use std::time::Duration;

use futures::StreamExt;
use weir_dds::{DataReader, DataWriter};

use crate::support::{DEADLINE, Numbered, lossless_reader, lossless_writer, pair};

const COUNT: u64 = 1_000;

fn write_all(writer: &DataWriter<Numbered>) {
    (0..COUNT).for_each(|number| writer.write(&Numbered::new(0, number)).unwrap());
    // A writer that is dropped before that may leave a reader without the last ones.
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}

/// Reads all numbers from a stream.
async fn numbers(reader: DataReader<Numbered>) -> Vec<u64> {
    let samples = reader.stream().take(COUNT as usize);
    samples.map(|sample| sample.into_data().unwrap().number).collect().await
}

/// Waits for the end of a stream without samples.
async fn ends(reader: DataReader<Numbered>) -> bool {
    reader.stream().next().await.is_none()
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap()
}

#[test]
fn an_iterator_has_every_sample_in_order_and_ends_when_the_reader_is_closed() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    std::thread::scope(|scope| {
        scope.spawn(|| write_all(&writer));
        let samples = reader.iter(DEADLINE).take(COUNT as usize);
        assert!(samples.map(|sample| sample.into_data().unwrap().number).eq(0..COUNT));
        assert!(reader.iter(Duration::ZERO).next().is_none());
        let waiting = scope.spawn(|| reader.iter(Duration::MAX).next());
        reader.close().unwrap();
        assert!(waiting.join().unwrap().is_none());
    });
}

#[test]
fn a_stream_is_read_by_tasks_of_tokio_and_ends_when_the_reader_is_closed() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    tokio().block_on(async {
        let reading = tokio::spawn(numbers(reader.clone()));
        tokio::task::spawn_blocking(move || write_all(&writer)).await.unwrap();
        assert!(reading.await.unwrap().into_iter().eq(0..COUNT));
        let ending = tokio::spawn(ends(reader.clone()));
        tokio::task::yield_now().await;
        reader.close().unwrap();
        assert!(ending.await.unwrap());
    });
}

#[test]
fn the_descriptor_of_a_reader_is_watched_by_tokio() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    tokio().block_on(async {
        let event_fd = reader.event_fd().unwrap();
        #[expect(deprecated, reason = "its successor is unsafe; this descriptor stays the same, and is open")]
        let watched =
            tokio::io::unix::AsyncFd::with_interest(event_fd, tokio::io::Interest::READABLE).unwrap();
        for number in 0..10 {
            writer.write(&Numbered::new(0, number)).unwrap();
            let sample = loop {
                let mut guard = watched.readable().await.unwrap();
                // Before the access: what arrives from here on makes it readable again.
                guard.clear_ready();
                if let Some(sample) = reader.take(1).pop() {
                    break sample;
                }
            };
            assert_eq!(sample.into_data(), Some(Numbered::new(0, number)));
        }
    });
}

#[test]
fn a_stream_is_read_under_smol_and_ends_when_the_reader_is_closed() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    std::thread::scope(|scope| {
        scope.spawn(|| write_all(&writer));
        assert!(async_io::block_on(numbers(reader.clone())).into_iter().eq(0..COUNT));
        let ending = scope.spawn(|| async_io::block_on(ends(reader.clone())));
        reader.close().unwrap();
        assert!(ending.join().unwrap());
    });
}

#[test]
fn the_descriptor_of_a_reader_is_watched_under_smol() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    async_io::block_on(async {
        let watched = async_io::Async::new(reader.event_fd().unwrap()).unwrap();
        for number in 0..10 {
            writer.write(&Numbered::new(0, number)).unwrap();
            let sample = loop {
                watched.readable().await.unwrap();
                if let Some(sample) = reader.take(1).pop() {
                    break sample;
                }
            };
            assert_eq!(sample.into_data(), Some(Numbered::new(0, number)));
        }
    });
}
