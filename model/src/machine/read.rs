//! Machine files. Invariant: every key is needed, except those of other kinds of topology: a file hides no
//! default.

use super::reader::{Defect, Section};
use super::{Compute, Contention, Link, Links, Machine, Node, Protocol};
use crate::topology::{Dragonfly, FatTree, Level, Torus};

impl Machine {
    /// The machine that a text in TOML describes. `file` is its name in errors.
    ///
    /// # Errors
    /// The first key that is missing, unknown or out of its bounds, with the remedy.
    pub fn parse(file: &str, text: &str) -> Result<Machine, Defect> {
        let document = toml_span::parse(text).map_err(|error| {
            let line =
                text.as_bytes().iter().take(error.span.start).filter(|byte| **byte == b'\n').count() + 1;
            let reason = format!("line {line}: this is not TOML: {error}").replace('\n', " ");
            Defect { file: file.to_owned(), reason }
        })?;
        let root = Section::root(file, document.as_table().expect("a document is a table"));
        let machine = Machine {
            name: root.text("name")?,
            about: root.text("about")?,
            pes_per_node: root.count("pes_per_node", 1..=4096)? as usize,
            cards_per_node: root.count("cards_per_node", 1..=64)? as usize,
            network: network(&root.section("network")?)?,
            node: node(&root.section("node")?)?,
            compute: compute(&root.section("compute")?)?,
            protocol: protocol(&root.section("protocol")?)?,
            links: links(&root.section("topology")?)?,
            contention: root.choice("contention", &Contention::ALL)?,
        };
        root.end()?;
        if machine.cards_per_node > machine.pes_per_node {
            return Err(root.defect(format!(
                "cards_per_node = {} is more than pes_per_node = {}: a PE uses one card; lower it",
                machine.cards_per_node, machine.pes_per_node
            )));
        }
        Ok(machine)
    }
}

fn network(section: &Section) -> Result<Link, Defect> {
    let link = Link {
        latency: section.nanoseconds("latency_ns")?,
        hop_latency: section.nanoseconds("hop_latency_ns")?,
        send_overhead: section.nanoseconds("send_overhead_ns")?,
        send_rest: section.nanoseconds("send_rest_ns")?,
        receive_overhead: section.nanoseconds("receive_overhead_ns")?,
        wait_overhead: section.nanoseconds("wait_overhead_ns")?,
        gap: section.nanoseconds("gap_ns")?,
        bytes_per_second: section.bandwidth("bytes_per_second")?,
    };
    section.end().map(|()| link)
}

fn node(section: &Section) -> Result<Node, Defect> {
    let node = Node {
        latency: section.nanoseconds("latency_ns")?,
        overhead: section.nanoseconds("overhead_ns")?,
        bytes_per_second: section.bandwidth("bytes_per_second")?,
        memory_bytes_per_second: section.bandwidth("memory_bytes_per_second")?,
    };
    section.end().map(|()| node)
}

fn compute(section: &Section) -> Result<Compute, Defect> {
    let compute = Compute {
        copy_bytes_per_second: section.bandwidth("copy_bytes_per_second")?,
        reduce_bytes_per_second: section.bandwidth("reduce_bytes_per_second")?,
    };
    section.end().map(|()| compute)
}

fn protocol(section: &Section) -> Result<Protocol, Defect> {
    let protocol = Protocol {
        eager_bytes: section.count("eager_bytes", 0..=1 << 40)?,
        message_send_overhead: section.nanoseconds("message_send_overhead_ns")?,
        message_receive_overhead: section.nanoseconds("message_receive_overhead_ns")?,
        handshake_overhead: section.nanoseconds("handshake_overhead_ns")?,
        progresses_alone: section.choice("progress", &[("alone", true), ("in calls", false)])?,
        has_hardware_puts: section.choice("puts", &[("hardware", true), ("software", false)])?,
        signals_follow: section.choice("signals", &[("with data", false), ("after data", true)])?,
        processor_moves_data: section.choice("data_moved_by", &[("card", false), ("processor", true)])?,
        card_has_overhead: section.choice("overhead_of", &[("card", true), ("processor", false)])?,
        outstanding: section.count("outstanding", 1..=1 << 20)? as u32,
        packet_bytes: section.count("packet_bytes", 16..=1 << 30)?,
    };
    section.end().map(|()| protocol)
}

fn links(section: &Section) -> Result<Links, Defect> {
    let make: fn(&Section) -> Result<Links, Defect> = section.choice(
        "kind",
        &[
            ("switch", (|_| Ok(Links::Switch)) as fn(&Section) -> _),
            ("torus", torus),
            ("fat tree", fat_tree),
            ("dragonfly", dragonfly),
        ],
    )?;
    let links = make(section)?;
    section.end().map(|()| links)
}

fn torus(section: &Section) -> Result<Links, Defect> {
    let link_bytes_per_second = section.bandwidth("link_bytes_per_second")?;
    if section.has("shape") {
        let shape = section.shape("shape")?;
        let wraps = section.choice("wraps", &[("yes", true), ("no", false)])?;
        return Ok(Links::Torus(Torus { shape, wraps, link_bytes_per_second }));
    }
    Ok(Links::FittingTorus {
        dimensions: section.count("dimensions", 1..=6)? as usize,
        wraps_from_nodes: section.count("wraps_from_nodes", 1..=1 << 40)? as usize,
        link_bytes_per_second,
    })
}

fn fat_tree(section: &Section) -> Result<Links, Defect> {
    let link_bytes_per_second = section.bandwidth("link_bytes_per_second")?;
    let tables = section.sections("levels")?;
    if !(1..=8).contains(&tables.len()) {
        return Err(section.defect(format!("{} levels: a fat tree has 1 to 8 of them", tables.len())));
    }
    let level = |table: &Section| {
        let level = Level {
            children: table.count("children", 1..=1 << 16)? as usize,
            uplinks: table.count("uplinks", 1..=1 << 16)? as usize,
        };
        table.end().map(|()| level)
    };
    let levels = tables.iter().map(level).collect::<Result<Vec<_>, _>>()?;
    if levels.iter().map(|level| level.children as f64).product::<f64>() > f64::from(1 << 24) {
        return Err(section.defect("the levels have more than 2^24 nodes: lower their children".to_owned()));
    }
    // Each subtree of a level has as many links upwards, and as many downwards.
    let links = (1..levels.len()).map(|above| {
        let subtrees: f64 = levels[above..].iter().map(|level| level.children as f64).product();
        2.0 * subtrees * levels[above - 1].uplinks as f64
    });
    if links.sum::<f64>() > f64::from(1 << 24) {
        return Err(section.defect("the levels have more than 2^24 links: lower their uplinks".to_owned()));
    }
    Ok(Links::FatTree(FatTree { levels, link_bytes_per_second }))
}

fn dragonfly(section: &Section) -> Result<Links, Defect> {
    let count = |key| section.count(key, 1..=1024).map(|count| count as usize);
    let fly = Dragonfly {
        groups: count("groups")?,
        routers: count("routers_per_group")?,
        nodes: count("nodes_per_router")?,
        links_between_groups: count("links_between_groups")?,
        local_bytes_per_second: section.bandwidth("local_bytes_per_second")?,
        global_bytes_per_second: section.bandwidth("global_bytes_per_second")?,
    };
    let sizes = [fly.groups * fly.groups * fly.links_between_groups, fly.groups * fly.routers * fly.routers];
    if sizes.iter().any(|size| *size > 1 << 24) {
        return Err(section.defect("the dragonfly has more than 2^24 links: lower its sizes".to_owned()));
    }
    Ok(Links::Dragonfly(fly))
}
