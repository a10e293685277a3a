//! Teams and spaces: the PEs stand in a grid of two columns; each row and each column is a team with
//! symmetric memory of its own, and adds up numbers without the other PEs.
//!
//! Build: cargo build --release -p pelago --examples
//! Run:   pelago run -n 6 target/release/examples/teams
//! Prints:
//!   sums of rows: 1, 5, 9
//!   sums of columns: 6, 9

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
    let (me, n) = (world.my_pe(), world.n_pes());
    let (row, column) = world.team().split_2d(2)?; // PE p stands in column p % 2 of row p / 2
    assert_eq!(row.pe(row.my_rank()), me); // ranks in a team are translated to PEs of the job

    // The sums of all PEs, shown by PE 0: their place in these arrays is the number of the PE.
    let sums = world.alloc_zeroed::<u64>(2 * n)?;
    sums.p(0, me, sum(&row, me as u64)?)?;
    sums.p(0, n + me, sum(&column, me as u64)?)?;
    world.barrier();

    if me == 0 {
        let sums = sums.local().to_vec();
        let list = |sums: Vec<&u64>| sums.iter().map(|sum| sum.to_string()).collect::<Vec<_>>().join(", ");
        println!("sums of rows: {}", list(sums[..n].iter().step_by(2).collect()));
        println!("sums of columns: {}", list(sums[n..].iter().take(2).collect()));
    }
    Ok(())
}
