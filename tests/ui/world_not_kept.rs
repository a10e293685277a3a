//! A world that is not kept leaves the job at once.
#![deny(unused_must_use)]

fn main() -> pelago::Result<()> {
    pelago::World::init()?;
    Ok(())
}
