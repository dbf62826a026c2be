//! Tests of scenarios: parsing, combinations and errors.

use super::*;
use crate::cell::{Load, Payload};

fn parse(cells: &str) -> Result<Scenario, ScenarioError> {
    let text = format!("title = \"T\"\nabout = \"A\"\n{cells}");
    Scenario::parse("test", &text)
}

const SMALL: &str = "[[cells]]\nkind = \"echo\"\nconnections = 1\npayload-bytes = 8\n";

#[test]
fn the_bundled_scenarios_are_those_of_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/scenarios");
    let mut bundled = Scenario::bundled().unwrap();
    bundled.sort_by(|one, other| one.name.cmp(&other.name));
    assert_eq!(Scenario::load_folder(&folder).unwrap(), bundled);
}

#[test]
fn a_quick_run_measures_at_least_one_cell_and_not_all_of_them() {
    let scenarios = Scenario::bundled().unwrap();
    let quick = scenarios.iter().flat_map(|s| s.cells_at(Effort::Quick));
    let standard = scenarios.iter().flat_map(|s| s.cells_at(Effort::Standard));
    let (quick, standard) = (quick.count(), standard.count());
    assert!(0 < quick && quick < standard, "{quick} of {standard}");
}

#[test]
fn fields_that_are_left_out_have_the_plain_value() {
    let scenario = parse(SMALL).unwrap();
    let Load::Echo(echo) = &scenario.cells[0].load else {
        panic!("{:?}", scenario.cells[0].load);
    };
    assert_eq!((echo.window, echo.frames, echo.tls), (1, 1, false));
    assert_eq!(echo.payload, Payload::Ascii);
    assert_eq!(scenario.cells[0].id(), "test/8B-1c-1w");
    assert_eq!(
        scenario.cells[0].title,
        "8 B text, 1 connection, 1 in flight"
    );
}

#[test]
fn lists_stand_for_every_combination() {
    let cells = "[[cells]]\nkind = \"echo\"\nconnections = [1, 2]\nwindow = [1, 2]\n\
        payload-bytes = [1, 2]\npayload = [\"ascii\", \"binary\"]\nframes = 1\ntls = [false, true]\n\
        deflate = [\"off\", \"takeover\", \"no-takeover\"]\n";
    let scenario = parse(cells).unwrap();
    assert_eq!(scenario.cells.len(), 2 * 2 * 2 * 2 * 2 * 3);
}

#[test]
fn an_upload_has_at_least_one_message_in_flight() {
    let cells = "[[cells]]\nkind = \"upload\"\npayload-bytes = [65536, 16777216]\n\
        window-bytes = 1048576\ntotal-bytes = 1073741824\n";
    let scenario = parse(cells).unwrap();
    let windows = scenario.cells.iter().map(|cell| match &cell.load {
        Load::Upload(upload) => upload.window,
        other => panic!("{other:?}"),
    });
    assert_eq!(windows.collect::<Vec<_>>(), [16, 1]);
    assert_eq!(scenario.cells[1].title, "1 GiB in messages of 16 MiB");
}

#[test]
fn numbers_outside_of_their_limits_are_refused_with_both() {
    for (field, wrong) in [
        ("connections = 1", "connections = 0"),
        ("connections = 1", "connections = 25001"),
        ("payload-bytes = 8", "payload-bytes = 67108865"),
        ("payload-bytes = 8", "payload-bytes = 8\nframes = 9"),
        ("payload-bytes = 8", "payload-bytes = 8\nrate = 0.5"),
        ("payload-bytes = 8", "payload-bytes = 8\nwindow = 65537"),
    ] {
        let error = parse(&SMALL.replace(field, wrong)).unwrap_err();
        assert!(
            matches!(error, ScenarioError::OutOfRange { .. }),
            "{wrong}: {error}"
        );
    }
    let error = parse(&SMALL.replace("connections = 1", "connections = 25001")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "scenario test: connections is 25001, which is outside 1 to 25000"
    );
}

#[test]
fn too_many_combinations_are_refused() {
    let list: Vec<u32> = (1..=32).collect();
    let cells =
        format!("[[cells]]\nkind = \"echo\"\nconnections = {list:?}\npayload-bytes = {list:?}\n");
    assert!(matches!(
        parse(&cells).unwrap_err(),
        ScenarioError::TooManyCells { max: 1_000, .. }
    ));
}

#[test]
fn two_cells_of_one_name_are_refused() {
    let error = parse(&SMALL.repeat(2)).unwrap_err();
    assert!(matches!(error, ScenarioError::Duplicate { .. }), "{error}");
}

#[test]
fn an_unknown_quick_cell_is_refused() {
    let error = parse(&format!("quick = [\"9B-1c-1w\"]\n{SMALL}")).unwrap_err();
    assert!(
        matches!(error, ScenarioError::UnknownQuick { .. }),
        "{error}"
    );
}

#[test]
fn unknown_fields_are_refused() {
    let error = parse(&format!("{SMALL}conections = 3\n")).unwrap_err();
    assert!(matches!(error, ScenarioError::Syntax { .. }), "{error}");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = Scenario::load_folder(Path::new("/nowhere/scenarios")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/scenarios");
}
