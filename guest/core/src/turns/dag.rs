//! The shape of a session: which node comes behind which, where branches end.
//!
//! Knows places of nodes and three kinds of them; must not know what is said or marked. Everything here costs what there are
//! nodes, whatever their shape: a chain of a million is a loop, not a recursion.

/// What a node is to the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A row of the conversation: a person's or the assistant's, said or blank.
    Row,
    /// A row that the runtime wrote for itself. It stands on its branch. The row before it ends a branch even if more comes
    /// behind, as the other program has it: that branch is part of another, and whoever comes first writes it.
    Aside,
    /// A tool call, or what was taken back: those behind it come behind what it comes behind.
    Through,
}

/// The shape. Made of a forest: circles are cut before.
#[derive(Clone, Debug, Default)]
pub(super) struct Dag {
    kinds: Vec<Kind>,
    /// The nearest row or aside above each node.
    up: Vec<Option<usize>>,
    /// How many of those are above it.
    depth: Vec<u32>,
    /// Every node behind the one it comes behind.
    order: Vec<usize>,
    /// Rows that no row comes behind, in the order of the nodes.
    tips: Vec<usize>,
}

/// What stands at a place.
pub(super) fn at<T: Copy>(list: &[T], place: usize) -> Option<T> {
    list.get(place).copied()
}

/// Puts something at a place, if there is one.
pub(super) fn set<T>(list: &mut [T], place: usize, value: T) {
    if let Some(slot) = list.get_mut(place) {
        *slot = value;
    }
}

impl Dag {
    /// Of nodes of these kinds that come behind these places.
    pub(super) fn new(kinds: Vec<Kind>, parents: &[Option<usize>]) -> Self {
        let order = parents_first(parents);
        let mut up = vec![None; kinds.len()];
        let mut depth = vec![0_u32; kinds.len()];
        let mut is_inner = vec![false; kinds.len()];
        for &place in &order {
            let parent = at(parents, place).flatten();
            let above = match parent {
                Some(parent) if at(&kinds, parent) == Some(Kind::Through) => at(&up, parent).flatten(),
                parent => parent,
            };
            if let Some(above) = above {
                let below = at(&depth, above).unwrap_or_default().saturating_add(1);
                set(&mut depth, place, below);
                if (at(&kinds, place), at(&kinds, above)) == (Some(Kind::Row), Some(Kind::Row)) {
                    set(&mut is_inner, above, true);
                }
            }
            set(&mut up, place, above);
        }
        let tips = kinds.iter().zip(&is_inner).enumerate();
        let tips = tips.filter(|(_, (kind, inner))| **kind == Kind::Row && !**inner).map(|(place, _)| place).collect();
        Self { kinds, up, depth, order, tips }
    }

    /// Rows that no row comes behind.
    pub(super) fn tips(&self) -> &[usize] {
        &self.tips
    }

    /// How many rows and asides come before a node on its branch.
    pub(super) fn depth(&self, place: usize) -> u32 {
        at(&self.depth, place).unwrap_or_default()
    }

    /// Every place, parents first.
    pub(super) fn order(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.order.iter().copied()
    }

    /// The nearest row or aside above a node.
    pub(super) fn above(&self, place: usize) -> Option<usize> {
        at(&self.up, place).flatten()
    }

    /// From a node to the beginning of its branch: rows and asides, the node itself first if it is one.
    pub(super) fn upwards(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let start = if at(&self.kinds, place) == Some(Kind::Through) { self.above(place) } else { Some(place) };
        core::iter::successors(start, |place| self.above(*place))
    }

    /// The row that a node stands at: itself, or the nearest above.
    pub(super) fn row(&self, place: usize) -> Option<usize> {
        self.upwards(place).find(|place| at(&self.kinds, *place) == Some(Kind::Row))
    }
}

/// All places, each behind the one it comes behind. Places in a circle would be missing; there are none.
fn parents_first(parents: &[Option<usize>]) -> Vec<usize> {
    let mut first_child: Vec<Option<usize>> = vec![None; parents.len()];
    let mut next_sibling: Vec<Option<usize>> = vec![None; parents.len()];
    let mut open = Vec::new();
    for (place, parent) in parents.iter().enumerate().rev() {
        match parent.and_then(|parent| first_child.get_mut(parent)) {
            Some(first) => {
                let sibling = first.replace(place);
                set(&mut next_sibling, place, sibling);
            }
            None => open.push(place),
        }
    }
    let mut order = Vec::with_capacity(parents.len());
    while let Some(place) = open.pop() {
        order.push(place);
        let mut child = at(&first_child, place).flatten();
        while let Some(here) = child {
            open.push(here);
            child = at(&next_sibling, here).flatten();
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dag(nodes: &[(char, Option<usize>)]) -> Dag {
        let kind = |letter| match letter {
            'r' => Kind::Row,
            'a' => Kind::Aside,
            _ => Kind::Through,
        };
        let kinds = nodes.iter().map(|(letter, _)| kind(*letter)).collect();
        let parents: Vec<_> = nodes.iter().map(|(_, parent)| *parent).collect();
        Dag::new(kinds, &parents)
    }

    #[test]
    fn a_fork_has_two_tips() {
        // 0 - 1 - 2
        //       \ 3
        let dag = dag(&[('r', None), ('r', Some(0)), ('r', Some(1)), ('r', Some(1))]);
        assert_eq!(dag.tips(), [2, 3]);
        assert_eq!(dag.upwards(3).collect::<Vec<_>>(), [3, 1, 0]);
        assert_eq!(dag.order().collect::<Vec<_>>().len(), 4);
    }

    #[test]
    fn what_is_looked_through_is_on_no_branch() {
        let dag = dag(&[('r', None), ('t', Some(0)), ('t', Some(1)), ('r', Some(2)), ('t', Some(3))]);
        assert_eq!(dag.tips(), [3]);
        assert_eq!(dag.upwards(4).collect::<Vec<_>>(), [3, 0]);
        assert_eq!((dag.depth(3), dag.row(4), dag.row(1)), (1, Some(3), Some(0)));
    }

    #[test]
    fn a_row_before_an_aside_is_a_tip_too() {
        let dag = dag(&[('r', None), ('a', Some(0)), ('r', Some(1)), ('a', Some(2))]);
        assert_eq!(dag.tips(), [0, 2]);
        assert_eq!(dag.upwards(2).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(dag.row(3), Some(2));
    }

    #[test]
    fn a_parent_may_stand_behind_its_children() {
        let dag = dag(&[('r', Some(2)), ('r', Some(0)), ('r', None)]);
        assert_eq!(dag.order().collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!((dag.tips(), dag.depth(1)), (&[1][..], 2));
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let parents: Vec<Option<usize>> = (0..200_000_usize).map(|place| place.checked_sub(1)).collect();
        let dag = Dag::new(vec![Kind::Row; parents.len()], &parents);
        assert_eq!((dag.tips(), dag.upwards(199_999).count()), (&[199_999][..], 200_000));
    }
}
