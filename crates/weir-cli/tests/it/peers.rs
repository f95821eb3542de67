//! Other engines are not in this build: how their names and settings are refused.

use crate::support::Scene;

#[test]
fn engines_that_are_not_built_in_are_named_with_what_to_do() {
    let advice = "fastdds is not built in: build with `cargo xtask peers` or `cargo build --release \
                  --manifest-path peers/Cargo.toml --features fastdds`";
    Scene::new().bench("--engines fastdds").expect_code(2).expect_stderr(advice);
    let help = Scene::new().weir("bench --help").expect_code(0).stdout;
    let (_, list) = help.split_once("\n  not in this build  ").expect("they are listed");
    let words: Vec<&str> = list.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("fastdds-tuned,") && text.contains("(cargo xtask peers)"), "{help}");
}

#[test]
fn invalid_settings_are_rejected() {
    let scene = Scene::new();
    std::fs::write(scene.path("bad.toml"), "[weir]\nturbo = true\n").unwrap();
    scene.bench("--settings bad.toml").expect_code(2).expect_stderr("weir has no setting `turbo`");
    scene.bench("--settings none.toml").expect_code(2).expect_stderr("--settings none.toml");
    std::fs::write(scene.path("peer.toml"), "[fastdds]\nmax_samples = 77\n").unwrap();
    let advice = "fastdds is not built in: build with `cargo xtask peers`";
    scene.bench("--settings peer.toml").expect_code(2).expect_stderr(advice);
}
