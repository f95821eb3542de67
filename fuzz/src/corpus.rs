//! The committed corpus: a few small inputs for each target, made by our own emitters or found by
//! the fuzzer.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    fn folder(target: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
    }

    /// Runs every committed input of a target, and checks that the emitters' output is among them.
    ///
    /// With `WEIR_BLESS=1` the seeds are written instead of compared.
    fn check(target: &str, run: fn(&[u8]), seeds: Vec<(&'static str, Vec<u8>)>) {
        let folder = folder(target);
        for (name, bytes) in seeds {
            let path = folder.join(name);
            if std::env::var_os("WEIR_BLESS").is_some() {
                std::fs::create_dir_all(&folder).unwrap();
                std::fs::write(&path, &bytes).unwrap();
            }
            let committed = std::fs::read(&path).unwrap_or_default();
            assert_eq!(
                committed, bytes,
                "{target}/{name} differs from what is emitted: write it anew with WEIR_BLESS=1"
            );
        }
        let entries: Vec<_> = std::fs::read_dir(&folder).unwrap().map(Result::unwrap).collect();
        assert!(!entries.is_empty(), "{target} has no corpus");
        for entry in entries {
            run(&std::fs::read(entry.path()).unwrap());
        }
    }

    #[test]
    fn attack() {
        check("attack", crate::attack::run, crate::attack::seeds());
    }

    #[test]
    fn cdr() {
        check("cdr", crate::cdr::run, crate::cdr::seeds());
    }

    #[test]
    fn filter() {
        check("filter", crate::filter::run, crate::filter::seeds());
    }

    #[test]
    fn message() {
        check("message", crate::message::run, crate::message::seeds());
    }

    #[test]
    fn parameter_list() {
        check("parameter_list", crate::parameter_list::run, crate::parameter_list::seeds());
    }

    #[test]
    fn endpoints() {
        check("endpoints", crate::endpoints::run, crate::endpoints::seeds());
    }

    #[test]
    fn participant() {
        check("participant", crate::participant::run, crate::participant::seeds());
    }

    #[test]
    fn udp_control() {
        check("udp_control", crate::udp_control::run, crate::udp_control::seeds());
    }
}
