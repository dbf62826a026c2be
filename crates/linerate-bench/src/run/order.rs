//! The order of a run: which cells share servers, and whose turn it is.

use super::PlannedCell;

/// Groups the cells that can be measured with the same servers: the cells of one scenario that need
/// the same mode. Returns lists of indices. Groups, and the cells in them, are in the order of the
/// plan.
pub(super) fn groups(cells: &[PlannedCell]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, planned) in cells.iter().enumerate() {
        let same = |&first: &usize| {
            let first = &cells[first].cell;
            first.scenario == planned.cell.scenario && first.mode() == planned.cell.mode()
        };
        match groups
            .iter_mut()
            .find(|group| group.first().is_some_and(same))
        {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Returns the turns of a cell as rounds and indices of contenders. In each round every contender
/// has one turn. Each round begins with a different contender, so that none always follows the same
/// other one.
pub(super) fn turns(rounds: u32, contenders: usize) -> impl Iterator<Item = (u32, usize)> {
    (0..rounds).flat_map(move |round| {
        (0..contenders).map(move |turn| (round, (round as usize + turn) % contenders))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn each_round_has_all_and_begins_with_another() {
        let turns: Vec<_> = turns(4, 3).collect();
        assert_eq!(
            turns,
            [
                (0, 0),
                (0, 1),
                (0, 2),
                (1, 1),
                (1, 2),
                (1, 0),
                (2, 2),
                (2, 0),
                (2, 1),
                (3, 0),
                (3, 1),
                (3, 2),
            ]
        );
    }

    #[test]
    fn nobody_has_no_turns() {
        assert_eq!(turns(3, 0).count(), 0);
    }

    #[test]
    fn cells_of_a_scenario_and_a_mode_share_servers() {
        let text = "title = 'a'\nabout = 'b'\n[[cells]]\nkind = 'echo'\nconnections = [1, 2]\n\
            payload-bytes = 8\ntls = [false, true]\n";
        let mut cells = Vec::new();
        for name in ["a", "b"] {
            let scenario = Scenario::parse(name, text).unwrap();
            cells.extend(
                scenario
                    .cells
                    .into_iter()
                    .map(|cell| PlannedCell { cell, rounds: 1 }),
            );
        }
        let groups = groups(&cells);
        let names: Vec<Vec<String>> = groups
            .iter()
            .map(|group| group.iter().map(|&index| cells[index].cell.id()).collect())
            .collect();
        assert_eq!(
            names,
            [
                ["a/8B-1c-1w", "a/8B-2c-1w"],
                ["a/8B-1c-1w-tls", "a/8B-2c-1w-tls"],
                ["b/8B-1c-1w", "b/8B-2c-1w"],
                ["b/8B-1c-1w-tls", "b/8B-2c-1w-tls"],
            ]
        );
    }
}
