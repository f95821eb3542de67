//! eProsima Fast DDS 2: its settings travel to the shim as lines of `name=value`.

use crate::foreign::FASTDDS;
use crate::node::{Node, NodeOptions, OnSample, PeerError};

pub(crate) fn version() -> String {
    FASTDDS.version()
}

pub(crate) fn open(options: &NodeOptions, on_sample: OnSample) -> Result<Box<dyn Node>, PeerError> {
    FASTDDS.open(options, &configuration(options)?, on_sample)
}

fn configuration(options: &NodeOptions) -> Result<String, PeerError> {
    let mut lines = format!("address={}\noctets={}\n", options.address, options.octets);
    if options.is_keyed {
        // Each instance has room for its share of the samples, and there is room for all of them.
        let instances = options.instances.max(1);
        let share = (options.setting("max_samples")?.unwrap_or(5000_u32) / instances).max(1);
        lines += &format!("max_instances={instances}\nmax_samples_per_instance={share}\n");
    }
    for (name, value) in &options.settings {
        if name != "publish_mode" {
            // The shim reads numbers, and takes what is none for 0.
            options.setting::<i64>(name)?;
        }
        lines += &format!("{name}={value}\n");
    }
    Ok(lines)
}
