//! A short session of each engine of this build, and its settings.

#[cfg(any(
    feature = "aeron",
    feature = "cyclonedds",
    feature = "fastdds",
    feature = "rustdds",
    feature = "zenoh",
    feature = "zeromq"
))]
use serde_json::Value;

use crate::support::Scene;

/// Latency and throughput, small and fragmented samples, content verified: every case is measured, and
/// reliable ones lose nothing.
#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
fn a_short_session(engine: &str, more: &str) {
    let domain = crate::support::Domain::claim();
    let both = format!("--sizes 32 {more}");
    // A best-effort reader may receive no large sample at all.
    let large = format!("--sizes 100k --reliability reliable {more}");
    for (words, cases_min) in [(both, 4), (large, 2)] {
        let scene = Scene::new();
        let finished = scene.weir(&format!(
            "bench --output results --duration 300ms --warmup 100ms --engines {engine} --verify --format json \
             --domain {domain} --cpus none {words}"
        ));
        let document = finished.expect_code(0).json();
        let cases = document["cases"].as_array().unwrap();
        assert!(cases.len() >= cases_min, "{cases:?}");
        cases.iter().for_each(check);
    }
}

/// The case was measured, and it names the version of the engine.
#[cfg(any(
    feature = "aeron",
    feature = "cyclonedds",
    feature = "fastdds",
    feature = "rustdds",
    feature = "zenoh",
    feature = "zeromq"
))]
fn check(case: &Value) {
    assert_eq!(case["not_measured"], Value::Null, "{case}");
    assert!(case["settings"]["engine_version"].is_string(), "{case}");
    let count = match case["test"].as_str() {
        Some("latency") => &case["latency_us"]["count"],
        _ => &case["throughput"]["total_samples"],
    };
    assert!(count.as_u64() > Some(0), "{case}");
}

#[cfg(feature = "cyclonedds")]
#[test]
fn cyclonedds_is_measured() {
    a_short_session("cyclonedds", "");
    a_short_session("cyclonedds-tuned", "--instances 3");
}

#[cfg(feature = "fastdds")]
#[test]
fn fastdds_is_measured() {
    a_short_session("fastdds", "");
    a_short_session("fastdds-tuned", "--instances 3");
}

/// One engine publishes, and the other subscribes.
#[cfg(feature = "cyclonedds")]
#[test]
fn pairs_with_cyclonedds_are_measured() {
    a_short_session("weir:cyclonedds", "");
    a_short_session("cyclonedds-tuned:weir", "--instances 3");
}

#[cfg(feature = "fastdds")]
#[test]
fn pairs_with_fastdds_are_measured() {
    a_short_session("weir:fastdds", "");
    a_short_session("fastdds-tuned:weir", "--instances 3");
}

/// Engines that are no DDS are mostly reliable, and shown apart.
#[cfg(any(feature = "aeron", feature = "zenoh", feature = "zeromq"))]
fn a_session_apart(engine: &str, more: &str) {
    let words = format!(
        "--engines {engine} --sizes 32,100k --reliability reliable --verify --format json --cpus none {more}"
    );
    let document = Scene::new().bench(&words).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        check(case);
        assert_eq!(case["apart"], true, "{case}");
    }
}

#[cfg(feature = "zeromq")]
#[test]
fn zeromq_is_measured() {
    a_session_apart("zeromq", "");
}

#[cfg(feature = "zenoh")]
#[test]
fn zenoh_is_measured() {
    a_session_apart("zenoh-tcp", "");
    let words = "--engines zenoh-udp --sizes 32 --reliability best-effort --format json --cpus none";
    let document = Scene::new().bench(words).expect_code(0).json();
    document["cases"].as_array().unwrap().iter().for_each(check);
}

#[cfg(feature = "aeron")]
#[test]
fn aeron_is_measured() {
    a_session_apart("aeron", "");
    a_session_apart("aeron-tuned", "--wait spin");
}

/// These engines sometimes lose reliable samples or panic: the results report it, and the run goes on.
#[cfg(any(feature = "dust_dds", feature = "int2dds", feature = "rustdds"))]
fn a_session_that_may_fail(engine: &str, sizes: &[&str]) {
    let domain = crate::support::Domain::claim();
    let words =
        format!("--engines {engine} --sizes {} --batch 0 --format json --domain {domain}", sizes.join(","));
    let finished = Scene::new().bench(&words);
    assert!(matches!(finished.code, Some(0 | 1 | 3)), "{:?}: {}", finished.code, finished.stderr);
    let cases = finished.json()["cases"].clone();
    assert_eq!(cases.as_array().map(Vec::len), Some(4 * sizes.len()), "{cases}");
    for case in cases.as_array().unwrap() {
        let has_figures = !case["latency_us"].is_null() || !case["throughput"].is_null();
        assert_ne!(has_figures, case["not_measured"]["reason"].is_string(), "{case}");
    }
}

#[cfg(feature = "dust_dds")]
#[test]
fn dust_dds_is_measured_or_its_failure_told() {
    a_session_that_may_fail("dust_dds", &["32", "8k"]);
}

#[cfg(feature = "rustdds")]
#[test]
fn rustdds_is_measured_or_its_failure_told() {
    a_session_that_may_fail("rustdds", &["32", "8k"]);
}

/// Tuned, it loses no reliable sample.
#[cfg(feature = "rustdds")]
#[test]
fn rustdds_tuned_is_measured() {
    let domain = crate::support::Domain::claim();
    let words = format!(
        "--engines rustdds-tuned --tests throughput --reliability reliable --sizes 32,8k --batch 0 --format json \
         --domain {domain} --cpus none"
    );
    let document = Scene::new().bench(&words).expect_code(0).json();
    assert_eq!(document["cases"].as_array().unwrap().len(), 2, "{document}");
    document["cases"].as_array().unwrap().iter().for_each(check);
}

#[cfg(feature = "int2dds")]
#[test]
fn int2dds_is_measured_or_its_failure_told() {
    a_session_that_may_fail("int2dds-tuned", &["32"]);
}

#[cfg(feature = "fastdds")]
#[test]
fn settings_from_a_file_are_in_the_results() {
    let scene = Scene::new();
    std::fs::write(scene.path("mine.toml"), "[fastdds]\nmax_samples = 77\n").unwrap();
    let domain = crate::support::Domain::claim();
    let words = format!(
        "--engines fastdds --tests latency --sizes 32 --reliability reliable --format json --domain {domain}"
    );
    let document = scene.bench(&format!("{words} --settings mine.toml")).expect_code(0).json();
    assert_eq!(document["cases"][0]["settings"]["engine.max_samples"], "77");
}

/// The settings name the user's own file, which applies, or is refused by its name and the cause.
#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
fn a_file_of_the_engines_own(engine: &str, setting: &str, good: &str, bad: &str, cause: &str) {
    let domain = crate::support::Domain::claim();
    let bench = |file: &str| {
        let scene = Scene::new();
        std::fs::write(scene.path("good.xml"), good).unwrap();
        std::fs::write(scene.path("bad.xml"), bad).unwrap();
        std::fs::write(scene.path("mine.toml"), format!("[{engine}]\n{setting} = '{file}'\n")).unwrap();
        scene.bench(&format!(
            "--engines {engine} --tests throughput --sizes 32 --batch 0 --reliability reliable --format json \
             --domain {domain} --cpus none --settings mine.toml"
        ))
    };
    let measured = bench("good.xml").expect_code(0).json();
    check(&measured["cases"][0]);
    assert_eq!(measured["cases"][0]["settings"][format!("engine.{setting}")], "good.xml");
    for (file, cause) in [("bad.xml", cause), ("missing.xml", "missing.xml")] {
        let refused = bench(file).expect_code(3).json();
        let reason = refused["cases"][0]["not_measured"]["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(file) && reason.contains(cause), "{reason}");
    }
}

#[cfg(feature = "cyclonedds")]
#[test]
fn cyclonedds_takes_a_configuration_of_its_own() {
    let file =
        |element: &str| format!("<CycloneDDS><Domain><Internal>{element}</Internal></Domain></CycloneDDS>");
    let (good, bad) = (file("<NackDelay>2ms</NackDelay>"), file("<Nonsense/>"));
    a_file_of_the_engines_own("cyclonedds", "uri", &good, &bad, "Nonsense: unknown element");
}

#[cfg(feature = "fastdds")]
#[test]
fn fastdds_takes_profiles_of_its_own() {
    let file = |element: &str| {
        format!(
            "<profiles xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">\
             <data_writer profile_name=\"w\" is_default_profile=\"true\">{element}</data_writer></profiles>"
        )
    };
    let (good, bad) =
        (file("<qos><publishMode><kind>ASYNCHRONOUS</kind></publishMode></qos>"), file("<nonsense/>"));
    a_file_of_the_engines_own("fastdds", "profiles_file", &good, &bad, "nonsense");
}

#[test]
fn the_settings_of_all_engines_read_back() {
    let scene = Scene::new();
    let shown = scene.weir("bench --show-settings").expect_code(0).stdout;
    std::fs::write(scene.path("all.toml"), &shown).unwrap();
    let again = scene.weir("bench --show-settings --settings all.toml").expect_code(0).stdout;
    assert_eq!(again, shown);
}

#[test]
fn help_lists_the_engines_of_this_build_and_those_that_it_lacks() {
    let help = Scene::new().weir("bench --help").expect_code(0).stdout;
    let (built, missing) = help.split_once("\n  not in this build  ").unwrap_or((&help, ""));
    assert_eq!(built.contains("\n  cyclonedds  "), cfg!(feature = "cyclonedds"), "{help}");
    assert_eq!(missing.contains("cyclonedds,"), cfg!(not(feature = "cyclonedds")), "{help}");
}

/// Both ways between two processes: reliable and best effort, small and fragmented, keyed and not.
#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
fn a_workload(engine: &str) {
    const WORKLOAD: &str = "\
        processes = 2\n\
        [[node]]\nname = 'a'\ncount = 2\nprocesses = [1]\n\
        [[node]]\nname = 'b'\ncount = 2\nprocesses = [2]\n\
        [[topic]]\nname = 'state'\ncount = 3\nsize = 200\nrate = 50\nfrom = 'a'\nto = 'b'\nreaders = 2\n\
        [[topic]]\nname = 'source'\nsize = '100k'\nrate = 5\ninstances = 2\nhistory = 10\nfrom = 'b'\nwriters = 4\n\
        to = 'a'\n\
        [[topic]]\nname = 'joint'\nsize = 64\nrate = 50\nburst = 2\nreliability = 'best-effort'\nhistory = 10\n\
        from = 'b'\nto = 'a'\n";
    let (scene, domain) = (Scene::new(), crate::support::Domain::claim());
    std::fs::write(scene.path("small.toml"), WORKLOAD).unwrap();
    let finished = scene.weir(&format!(
        "bench --workload small.toml --output results --duration 400ms --warmup 200ms --engines {engine} \
         --format json --domain {domain}"
    ));
    let document = finished.expect_code(0).json();
    let case = &document["cases"][0];
    assert!(case["not_measured"].is_null() && case["settings"]["engine_version"].is_string(), "{case}");
    for group in case["workload"]["groups"].as_array().unwrap() {
        assert!(group["received"].as_u64() > Some(0), "{case}");
    }
}

#[cfg(feature = "cyclonedds")]
#[test]
fn cyclonedds_is_measured_with_a_workload() {
    a_workload("cyclonedds");
}

#[cfg(feature = "fastdds")]
#[test]
fn fastdds_is_measured_with_a_workload() {
    a_workload("fastdds");
}
