//! The tutorials: `stencil`, `integer-sort`.

use pelago::testing::JobReport;
use pelago::{World, try_processes};

use super::{NET, USAGE, check_refused, end, objects};

fn both(world: &World) {
    end(world, "stencil --n 40 --iterations 30 --variant all --json", 0);
    end(world, "integer-sort --keys 10000 --variant all --json", 0);
}

/// Checks the objects that `both` has printed.
fn check_both(report: &JobReport) {
    let objects = objects(report);
    let text = |object: &serde_json::Value, key| object[key].as_str().unwrap_or_default().to_owned();
    let names: Vec<_> =
        objects.iter().map(|object| text(object, "app") + " " + &text(object, "variant")).collect();
    let expected =
        ["stencil one-sided", "stencil two-sided", "integer-sort one-sided", "integer-sort two-sided"];
    assert_eq!(names, expected);
    for object in &objects {
        assert_eq!((&object["verified"], &object["wrong"]), (&true.into(), &0.into()), "{object}");
    }
}

#[test]
fn stencil_and_integer_sort_are_verified_as_processes() {
    let reports = [try_processes!(2, [], both), { try_processes!(4, [], both) }];
    reports.iter().for_each(check_both);
}

#[test]
fn stencil_and_integer_sort_are_verified_over_the_net() {
    check_both(&try_processes!(3, NET, both));
}

#[test]
fn problems_that_cannot_run_are_refused_once() {
    let reports = [
        try_processes!(3, [], |world| end(world, "stencil --n 2", USAGE)),
        try_processes!(2, [], |world| end(world, "stencil --n 1000000", USAGE)),
        try_processes!(2, [], |world| end(world, "integer-sort --keys 1000000000000", USAGE)),
    ];
    let expected = [
        ("stencil: 3 PEs need 3 rows", "the grid has 2"),
        ("stencil: a grid of 1000000 x 1000000 needs", "take a smaller --n"),
        ("integer-sort: 1000000000000 keys needs", "take fewer --keys"),
    ];
    for (report, (speaker, part)) in reports.iter().zip(&expected) {
        check_refused(report, speaker, &[part]);
    }
}
