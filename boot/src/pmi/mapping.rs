//! Process mapping: the launcher's description of which processes of a job share a node.
//!
//! `(vector,(0,1,3),(1,1,1))` is a list of blocks (first node, number of nodes, processes on each): ranks 0-2
//! on node 0, rank 3 on node 1. If there are more ranks than the blocks cover, the blocks repeat. Source: the
//! process mapping of MPICH's process managers.

/// The node of each of `size` ranks; `None` if the text is not a mapping that covers them.
pub(crate) fn nodes(text: &str, size: usize) -> Option<Vec<usize>> {
    let body = text.strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut blocks = Vec::new();
    for block in body.split_inclusive(')') {
        let block = block.trim_start_matches(',').strip_prefix('(')?.strip_suffix(')')?;
        let mut numbers = block.split(',').map(|number| number.parse::<usize>().ok());
        let (Some(Some(first)), Some(Some(count)), Some(Some(each)), None) =
            (numbers.next(), numbers.next(), numbers.next(), numbers.next())
        else {
            return None;
        };
        first.checked_add(count)?;
        blocks.push((first, count, each));
    }
    if !blocks.iter().any(|(_, count, each)| *count > 0 && *each > 0) {
        return None;
    }
    let once = blocks.iter().filter(|block| block.2 > 0).flat_map(|(first, count, each)| {
        (*first..first + count).flat_map(move |node| std::iter::repeat_n(node, *each))
    });
    Some(once.cycle().take(size).collect())
}

/// The mapping of a job with these numbers of processes on the nodes, in the order of their ranks.
pub(crate) fn of_nodes(counts: &[usize]) -> String {
    let mut text = "(vector".to_owned();
    let mut first = 0;
    for run in counts.chunk_by(|a, b| a == b) {
        text += &format!(",({first},{},{})", run.len(), run[0]);
        first += run.len();
    }
    text + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_nodes() {
        assert_eq!(nodes("(vector,(0,1,3),(1,1,1))", 4), Some(vec![0, 0, 0, 1]));
        assert_eq!(nodes("(vector,(0,3,2))", 6), Some(vec![0, 0, 1, 1, 2, 2]));
        assert_eq!(nodes("(vector,(0,2,1))", 5), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(nodes("(vector,(0,1,8))", 3), Some(vec![0, 0, 0]));
        assert_eq!(nodes("(vector,(4,1,1),(0,1,0),(2,1,1))", 2), Some(vec![4, 2]));
        assert_eq!(nodes(&of_nodes(&[3]), 3), Some(vec![0, 0, 0]));
    }

    #[test]
    fn mappings_are_short_and_are_read_back() {
        assert_eq!(of_nodes(&[4]), "(vector,(0,1,4))");
        assert_eq!(of_nodes(&[2, 2, 1]), "(vector,(0,2,2),(2,1,1))");
        assert_eq!(nodes(&of_nodes(&[2, 2, 1]), 5), Some(vec![0, 0, 1, 1, 2]));
        assert_eq!(nodes(&of_nodes(&[1, 3, 3]), 7), Some(vec![0, 1, 1, 1, 2, 2, 2]));
    }

    #[test]
    fn texts_that_are_no_mapping() {
        for text in [
            "",
            "none",
            "(vector)",
            "(vector,)",
            "(vector,(0,1))",
            "(vector,(0,1,1,1))",
            "(vector,(0,1,x))",
            "(vector,(0,0,1))",
            "(vector,(0,1,0))",
            "(vector,(-1,1,1))",
            "(vector,(0,1,1)",
            "(vector,(18446744073709551615,1,1))",
            "(flat,(0,1,1))",
        ] {
            assert_eq!(nodes(text, 2), None, "{text}");
        }
    }

    #[test]
    fn absurd_counts_cost_nothing() {
        assert_eq!(
            nodes("(vector,(0,18446744073709551615,0),(7,1,18446744073709551615))", 2),
            Some(vec![7, 7])
        );
    }
}
