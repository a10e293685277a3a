//! Teams and spaces: the PEs stand in a grid of two columns; each row and each column is a team with
//! symmetric memory of its own, and adds up numbers without the other PEs.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 6 target/release/examples/teams
//! Prints:
//!   sums of rows: [1, 5, 9], of columns: [6, 9]

use pelago::prelude::*;

/// The sum of a number of each member, at every member.
fn sum(team: &Team<'_>, number: u64) -> pelago::Result<u64> {
    let space = team.space(1 << 12)?; // symmetric memory of the members alone
    let (mine, all) = (space.alloc::<u64>(1)?, space.alloc::<u64>(1)?);
    mine.local().set(0, number);
    team.all_reduce(ReduceOp::Sum, &all, &mine)?;
    Ok(all.local().get(0))
}

fn main() -> pelago::Result<()> {
    let world = World::init()?;
    let me = world.my_pe();
    let (row, column) = world.team().split_2d(2)?; // PE p stands in column p % 2 of row p / 2
    assert_eq!(row.pe(row.my_rank()), me); // ranks in a team are translated to PEs of the job

    let mine = [sum(&row, me as u64)?, sum(&column, me as u64)?];
    let sums = world.team().gather_values(mine)?; // those of all PEs, at every PE
    if me == 0 {
        let rows: Vec<_> = sums.iter().step_by(2).map(|sums| sums[0]).collect();
        let columns: Vec<_> = sums.iter().take(2).map(|sums| sums[1]).collect();
        println!("sums of rows: {rows:?}, of columns: {columns:?}");
    }
    Ok(())
}
