//! `weir budget`: the memory of a participant within a limits table.

use crate::support::Scene;

#[test]
fn the_budget_of_the_example_has_every_item_and_a_total() {
    let scene = Scene::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/limits.toml");
    let table = scene.weir(&format!("budget {example}")).expect_code(0).stdout;
    for item in ["participant ", "writer ", "match of a writer ", "reader ", "remote participant ", "total "]
    {
        assert!(table.lines().any(|line| line.starts_with(item)), "no `{item}` in: {table}");
    }
    let json = scene.weir(&format!("budget {example} --format json")).expect_code(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let total = json["total_bytes"].as_u64().unwrap().to_string();
    assert!(table.lines().last().unwrap().contains(&total), "{total} in: {table}");
}

#[test]
fn a_mistake_and_a_limit_that_is_too_small_are_usage_errors_with_the_line() {
    let scene = Scene::new();
    std::fs::write(scene.path("limits.toml"), "writers = 1\n[endpoint]\nsamples = 8\n").unwrap();
    let writer = |key| format!("[[participant.writer]]\nentity_key = {key}\ntopic = \"T\"\ntype = \"T\"\n");
    let system = format!("[[participant]]\nname = \"arm\"\n{}{}", writer(1), writer(2));
    std::fs::write(scene.path("system.toml"), system).unwrap();
    scene.weir("budget limits.toml").expect_code(0);
    scene
        .weir("budget limits.toml --system system.toml")
        .expect_code(2)
        .expect_stderr("limits.toml:1: `writers` is 1, too few: \"arm\" has 2 of them");
    scene
        .weir("budget limits.toml --system system.toml --name leg")
        .expect_code(2)
        .expect_stderr("no participant \"leg\"");
    std::fs::write(scene.path("limits.toml"), "writers = 1\nwriter = 2\n").unwrap();
    scene.weir("budget limits.toml").expect_code(2).expect_stderr("limits.toml:2: unknown key `writer`");
}
