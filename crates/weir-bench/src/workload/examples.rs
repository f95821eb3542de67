//! The workloads of the tests.

/// A node in each of two processes, with two topics from the first to the second: all samples kept, and the latest.
pub(crate) const PAIR: &str = "
    processes = 2
    [[node]]
    name = 'a'
    processes = [1]
    [[node]]
    name = 'b'
    processes = [2]
    [[topic]]
    name = 'kept'
    size = 64
    rate = 10
    from = 'a'
    to = 'b'
    [[topic]]
    name = 'latest'
    size = 64
    rate = 10
    history = 1
    from = 'a'
    to = 'b'
";

/// A topic with two writers and three readers, each in a process of its own.
pub(crate) const FAN: &str = "
    processes = 5
    [[node]]
    name = 'a'
    count = 2
    processes = [1, 2]
    [[node]]
    name = 'b'
    count = 3
    processes = [3, 4, 5]
    [[topic]]
    name = 't'
    size = 64
    rate = 10
    from = 'a'
    writers = 2
    to = 'b'
    readers = 3
";

/// A hub and its leaves in three processes, and nodes that run anywhere.
pub(crate) const STAR: &str = "
    processes = 3
    [[node]]
    name = 'hub'
    processes = [1]
    [[node]]
    name = 'leaf'
    count = 4
    processes = [2, 3]
    [[node]]
    name = 'any'
    count = 5
    [[topic]]
    name = 'down'
    count = 2
    size = 64
    rate = 1
    from = 'hub'
    to = 'leaf'
    readers = 3
    [[topic]]
    name = 'up'
    size = 64
    rate = 1
    from = 'leaf'
    writers = 8
    to = 'hub'
";

/// The nodes of [`topic`]: seven lines.
pub(crate) const NODES: &str =
    "processes = 2\n[[node]]\nname = 'a'\nprocesses = [1]\n[[node]]\nname = 'b'\ncount = 3\n";

/// Those nodes with a topic `t`, whose keys after its name are given, from line 10 on.
pub(crate) fn topic(keys: &str) -> String {
    format!("{NODES}[[topic]]\nname = 't'\n{keys}")
}
