use super::*;

fn report(name: &str, rounds: &[(Value, Value)]) -> Report {
    let measure = MEASURES.iter().find(|measure| measure.name == name).unwrap();
    let rounds = rounds.iter().map(|(floor, bridge)| Round { floor: floor.clone(), bridge: bridge.clone() }).collect();
    let mut report = Report { measure, rounds, faults: Vec::new(), skipped: None };
    report.judge_rounds();
    report
}

fn rates(name: &str, pairs: &[(f64, f64)]) -> Report {
    let rounds: Vec<(Value, Value)> =
        pairs.iter().map(|(floor, bridge)| (json!({"rps": floor}), json!({"rps": bridge}))).collect();
    report(name, &rounds)
}

#[test]
fn the_ratio_is_the_median_of_pairs_and_not_the_ratio_of_medians() {
    let report = rates("call16", &[(100.0, 50.0), (10.0, 9.0), (200.0, 190.0)]);
    assert_eq!(report.ratio(), Some(0.9));
    assert!(report.is_kept());
}

#[test]
fn a_promise_is_kept_or_missed_on_its_own_side() {
    assert!(rates("call16", &[(100.0, 80.0)]).is_kept());
    assert!(!rates("call16", &[(100.0, 79.0)]).is_kept());
    let latency = |floor: u32, bridge: u32| report("call1", &[(json!({"p50_us": floor}), json!({"p50_us": bridge}))]);
    assert!(latency(100, 130).is_kept());
    assert!(!latency(100, 131).is_kept());
}

#[test]
fn a_figure_that_people_were_promised_is_held_against_itself() {
    let signal = |p99: u32| report("signal", &[(json!({"p99_us": 1}), json!({"p99_us": p99}))]);
    assert!(signal(4999).is_kept());
    assert!(!signal(5000).is_kept());
    assert!(signal(4999).to_string().contains("promise < 5000"), "{}", signal(4999));
}

#[test]
fn a_cost_is_what_comes_on_top_of_the_other_side() {
    let cost = |bare: f64, inside: f64| report("sandbox", &[(json!({"ms": bare}), json!({"ms": inside}))]);
    assert!(cost(3.0, 18.0).is_kept() && cost(300.0, 310.0).is_kept());
    assert!(!cost(3.0, 18.5).is_kept());
    assert!(cost(3.0, 12.0).to_string().contains("promise + <= 15"), "{}", cost(3.0, 12.0));
    let work = |bare: f64, inside: f64| report("sandbox-work", &[(json!({"ms": bare}), json!({"ms": inside}))]);
    assert!(work(1000.0, 1050.0).is_kept() && !work(1000.0, 1051.0).is_kept());
}

#[test]
fn what_is_promised_by_itself_needs_nothing_beside_it() {
    let alone = report("tree", &[(json!({"ms": null}), json!({"ms": 84.0, "entries": 10_000, "files": 50_000}))]);
    assert_eq!((alone.ratio(), alone.verdict()), (None, "ok"));
}

#[test]
fn a_fault_is_a_miss_even_where_nothing_was_promised() {
    let faulty = report("call64", &[(json!({"rps": 1.0}), json!({"rps": 1.0, "failed": "3 wrong answers"}))]);
    assert_eq!((faulty.is_kept(), faulty.verdict()), (false, "MISSED"));
    assert!(faulty.to_string().contains("prism: 3 wrong answers"), "{faulty}");
}

#[test]
fn a_figure_that_is_not_there_is_a_miss() {
    assert_eq!(report("idle", &[(json!({}), json!({}))]).verdict(), "MISSED");
    assert_eq!(report("idle", &[]).verdict(), "MISSED");
}

#[test]
fn a_lost_note_and_a_doubled_one_are_misses() {
    let notes = |on_post: u32, on_get: u32| {
        let bridge = json!({"rps": 9.0, "notes": {"sent": 10, "on_post": on_post, "on_get": on_get}});
        report("notify", &[(json!({"rps": 10.0}), bridge)])
    };
    assert!(notes(4, 6).is_kept());
    assert!(!notes(4, 5).is_kept());
    assert!(!notes(10, 1).is_kept());
}

#[test]
fn a_skipped_measure_is_not_a_miss() {
    let mut skipped = report("many", &[]);
    skipped.skipped = Some("too few open files".into());
    assert_eq!((skipped.is_kept(), skipped.verdict()), (true, "skipped"));
}

#[test]
fn a_proxied_measure_is_held_against_the_proxy() {
    let kept = rates("proxy16", &[(100.0, 80.0)]);
    assert!(kept.is_kept() && kept.to_string().contains("proxy     100 /s"), "{kept}");
    let faulty = report("proxy16", &[(json!({"rps": 1.0, "failed": "no answer"}), json!({"rps": 1.0}))]);
    assert!(!faulty.is_kept() && faulty.to_string().contains("proxy: no answer"), "{faulty}");
    assert!(!rates("modern16", &[(100.0, 74.0)]).is_kept());
}

#[test]
fn the_hub_is_held_against_its_own_destination() {
    let list = |direct: u32, hub: u32| report("hublist", &[(json!({"p50_us": direct}), json!({"p50_us": hub}))]);
    assert!(list(100, 200).is_kept() && list(100, 200).to_string().contains("direct     100 us"));
    assert!(!list(100, 201).is_kept());
    assert!(rates("hubcall", &[(100.0, 90.0)]).is_kept());
    assert!(!rates("hubcall", &[(100.0, 89.0)]).is_kept());
    assert!(rates("gated", &[(100.0, 95.0)]).is_kept());
    assert!(!rates("gated", &[(100.0, 94.0)]).is_kept());
}
