//! Compiles the shims of the engines that are not written in Rust, by feature.

fn main() {
    println!("cargo:rerun-if-changed=native");
    #[cfg(feature = "cyclonedds")]
    native::cyclonedds();
    #[cfg(feature = "fastdds")]
    native::fastdds();
}

#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
mod native {
    /// Cyclone DDS's own compiler generates the code of the type.
    #[cfg(feature = "cyclonedds")]
    pub(super) fn cyclonedds() {
        let out = std::env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
        let idl = std::path::absolute("native/test_data.idl").expect("the package's folder is there");
        let idlc = std::process::Command::new("idlc").args(["-l", "c"]).arg(idl).current_dir(&out).status();
        assert!(
            idlc.is_ok_and(|status| status.success()),
            "idlc of Cyclone DDS failed; on Debian run `cargo xtask peers`, \
             or apt-get install cyclonedds-dev cyclonedds-tools"
        );
        cc::Build::new()
            .file("native/cyclonedds.c")
            .file(format!("{out}/test_data.c"))
            .include(&out)
            .opt_level(2)
            .warnings(false)
            .compile("weir_cyclonedds");
        println!("cargo:rustc-link-lib=ddsc");
    }

    #[cfg(feature = "fastdds")]
    pub(super) fn fastdds() {
        cc::Build::new()
            .cpp(true)
            .std("c++14")
            .file("native/fastdds.cpp")
            .opt_level(2)
            .warnings(false)
            .compile("weir_fastdds");
        for library in ["fastrtps", "fastcdr"] {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}
