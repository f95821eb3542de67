//! `weir targets`: the table of performance targets.

use crate::support::Scene;

#[test]
fn the_table_of_an_earlier_run_says_what_is_missing() {
    let scene = Scene::new();
    scene.bench("--engines mock --sizes 32 --batch 0").expect_code(0);
    let table = scene.weir("targets --from results --domain 231").expect_code(0).stdout;
    let expected = [
        "| Measure ",
        "| one-way p50, block, 32 B ",
        "at most 1.10 x raw UDP",
        "weir: not measured",
        " inconclusive\n",
    ];
    for expected in expected {
        assert!(table.contains(expected), "no `{expected}` in: {table}");
    }
}

#[test]
fn an_unknown_series_is_rejected_with_the_known_ones() {
    let scene = Scene::new();
    scene.weir("targets --only latancy").expect_code(2).expect_stderr("best-effort-veth");
}
