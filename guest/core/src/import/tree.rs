//! The order of a conversation with branches.
//!
//! Knows nodes and what each comes behind; must not know what is said. Costs what there are nodes, whatever their shape:
//! a chain of a million is a loop, not a recursion.

use std::collections::BTreeMap;

/// What a node comes behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link<'a> {
    /// Nothing.
    Start,
    /// Whatever stands before it in the archive; nothing else is known.
    Before,
    /// The node with this id, which may not be there.
    Node(&'a str),
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    /// Unique.
    pub(super) id: &'a str,
    pub(super) link: Link<'a>,
    /// It is kept. One that is not passes what it comes behind on to those that come behind it.
    pub(super) kept: bool,
}

/// What a kept node comes behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind<'a> {
    /// Nothing.
    Start,
    /// Whatever stands before it in the archive.
    Before,
    /// The kept node at this place.
    Place(usize),
    /// A node that is not among them.
    Elsewhere(&'a str),
}

/// A conversation in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ordered<'a> {
    /// Places of the kept nodes, each once, each behind the one it comes behind; the main line before the branches that
    /// leave it, and every other branch in one piece.
    pub(super) order: Vec<(usize, Behind<'a>)>,
    /// How many of them nothing kept comes behind.
    pub(super) ends: u64,
}

/// Orders nodes. `main` is the id of the node the main line leads to; without one it is the last kept node. Where nodes
/// come behind each other in a circle, the first of them in the list comes behind nothing.
pub(super) fn order<'a>(items: &[Item<'a>], main: Option<&str>) -> Ordered<'a> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    // One by one: made of a sequence, a map would be sorted first, by code that is larger than all of this.
    for (at, item) in items.iter().enumerate() {
        places.entry(item.id).or_insert(at);
    }
    let mut above: Vec<Option<usize>> = items
        .iter()
        .map(|item| match item.link {
            Link::Node(id) if id != item.id => places.get(id).copied(),
            _ => None,
        })
        .collect();
    let cut = cut_circles(&mut above);
    let behind = collapse(items, &above, &cut);
    let main = main.and_then(|id| places.get(id).copied());
    let last_kept = items.iter().rposition(|item| item.kept);
    walk(items, &behind, main.or(last_kept))
}

/// Breaks each circle at its first node, which is above nothing then; says at which nodes that was. Costs what there are
/// nodes.
pub(crate) fn cut_circles(above: &mut [Option<usize>]) -> Vec<bool> {
    // The walk on which a node was met; 0: on none.
    let mut met = vec![0_usize; above.len()];
    let mut cut = vec![false; above.len()];
    for start in 0..above.len() {
        let mut at = start;
        while let Some(mark) = met.get_mut(at) {
            if *mark == start + 1 {
                break_circle(above, &mut cut, at);
                break;
            }
            if *mark != 0 {
                break;
            }
            *mark = start + 1;
            match above.get(at).copied().flatten() {
                Some(next) => at = next,
                None => break,
            }
        }
    }
    cut
}

fn break_circle(above: &mut [Option<usize>], cut: &mut [bool], within: usize) {
    let (mut first, mut at) = (within, within);
    while let Some(next) = above.get(at).copied().flatten() {
        first = first.min(next);
        at = next;
        if at == within {
            break;
        }
    }
    if let (Some(above), Some(cut)) = (above.get_mut(first), cut.get_mut(first)) {
        *above = None;
        *cut = true;
    }
}

/// What each node comes behind once the nodes that are not kept are left out.
fn collapse<'a>(items: &[Item<'a>], above: &[Option<usize>], cut: &[bool]) -> Vec<Behind<'a>> {
    let mut behind: Vec<Option<Behind<'a>>> = vec![None; items.len()];
    let mut path = Vec::new();
    for start in 0..items.len() {
        // Up to one that is known, then back down.
        let mut at = start;
        while behind.get(at).is_some_and(Option::is_none) {
            path.push(at);
            match above.get(at).copied().flatten() {
                Some(next) => at = next,
                None => break,
            }
        }
        while let Some(at) = path.pop() {
            let known = match above.get(at).copied().flatten() {
                Some(up) if items.get(up).is_some_and(|item| item.kept) => Behind::Place(up),
                Some(up) => behind.get(up).copied().flatten().unwrap_or(Behind::Start),
                None => match items.get(at).map(|item| item.link) {
                    _ if cut.get(at) == Some(&true) => Behind::Start,
                    Some(Link::Node(id)) if items.get(at).is_some_and(|item| item.id != id) => Behind::Elsewhere(id),
                    Some(Link::Before) => Behind::Before,
                    _ => Behind::Start,
                },
            };
            if let Some(slot) = behind.get_mut(at) {
                *slot = Some(known);
            }
        }
    }
    behind.into_iter().map(|known| known.unwrap_or(Behind::Start)).collect()
}

fn walk<'a>(items: &[Item<'a>], behind: &[Behind<'a>], main: Option<usize>) -> Ordered<'a> {
    let kept = |at: &usize| items.get(*at).is_some_and(|item| item.kept);
    // Children in lists that are chained through `next`: first child, next one of the same parent.
    let mut first = vec![None; items.len()];
    let mut next = vec![None; items.len()];
    let mut first_root = None;
    for at in (0..items.len()).rev().filter(kept) {
        let head = match behind.get(at) {
            Some(Behind::Place(up)) => first.get_mut(*up),
            _ => Some(&mut first_root),
        };
        if let (Some(head), Some(slot)) = (head, next.get_mut(at)) {
            *slot = head.replace(at);
        }
    }
    let mut on_main = vec![false; items.len()];
    let mut at = main.filter(kept).or_else(|| match behind.get(main?) {
        Some(Behind::Place(up)) => Some(*up),
        _ => None,
    });
    while let Some(here) = at {
        match on_main.get_mut(here) {
            Some(mark) if !*mark => *mark = true,
            _ => break,
        }
        at = match behind.get(here) {
            Some(Behind::Place(up)) => Some(*up),
            // Where the beginning of the main line is missing, what began before it stays before it.
            Some(Behind::Elsewhere(_)) => {
                on_main.get_mut(here).into_iter().for_each(|mark| *mark = false);
                None
            }
            _ => None,
        };
    }
    let mut ordered = Ordered { order: Vec::new(), ends: 0 };
    let mut open: Vec<usize> = Vec::new();
    let mut siblings = Vec::new();
    let mut push = |open: &mut Vec<usize>, mut child: Option<usize>| {
        while let Some(at) = child {
            siblings.push(at);
            child = next.get(at).copied().flatten();
        }
        // What is pushed last comes out first: the one on the main line, then the others as they stand.
        let is_main = |at: &usize| on_main.get(*at) == Some(&true);
        open.extend(siblings.iter().rev().copied().filter(|at| !is_main(at)));
        open.extend(siblings.drain(..).find(is_main));
        siblings.clear();
    };
    push(&mut open, first_root);
    while let Some(at) = open.pop() {
        ordered.order.push((at, behind.get(at).copied().unwrap_or(Behind::Start)));
        let child = first.get(at).copied().flatten();
        ordered.ends += u64::from(child.is_none());
        push(&mut open, child);
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// `id<link`, a link of `-` for nothing, `^` for whatever is before; in brackets: not kept.
    fn items<'a>(spec: &'a str) -> Vec<Item<'a>> {
        spec.split_whitespace()
            .map(|word| {
                let plain = word.trim_matches(['(', ')']);
                let (id, link) = plain.split_once('<').unwrap();
                let link = match link {
                    "-" => Link::Start,
                    "^" => Link::Before,
                    id => Link::Node(id),
                };
                Item { id, link, kept: plain.len() == word.len() }
            })
            .collect()
    }

    fn ordered(spec: &str, main: Option<&str>) -> (String, u64) {
        let items = items(spec);
        let Ordered { order, ends } = order(&items, main);
        let words: Vec<String> = order
            .into_iter()
            .map(|(at, behind)| {
                let behind = match behind {
                    Behind::Start => "-",
                    Behind::Before => "^",
                    Behind::Place(up) => items[up].id,
                    Behind::Elsewhere(id) => id,
                };
                format!("{}<{behind}", items[at].id)
            })
            .collect();
        (words.join(" "), ends)
    }

    #[test]
    fn the_main_line_comes_first_and_every_branch_in_one_piece() {
        let spec = "a<- b<a c<b x<a y<x z<a d<c";
        assert_eq!(ordered(spec, None), ("a<- b<a c<b d<c x<a y<x z<a".into(), 3));
        assert_eq!(ordered(spec, Some("y")), ("a<- x<a y<x b<a c<b d<c z<a".into(), 3));
        assert_eq!(ordered(spec, Some("nobody")), ordered(spec, None));
        assert_eq!(ordered("", None), (String::new(), 0));
        // A child may stand before its parent in the list.
        assert_eq!(ordered("c<b b<a a<-", Some("c")), ("a<- b<a c<b".into(), 1));
    }

    #[test]
    fn what_is_left_out_passes_on_what_it_comes_behind() {
        assert_eq!(ordered("(r<-) a<r (t<a) (u<t) b<u (v<u)", None), ("a<- b<a".into(), 1));
        assert_eq!(ordered("(r<-) a<r (t<a) b<t c<t", Some("v")), ("a<- c<a b<a".into(), 2));
        // A main line that leads to one that is left out ends at the last that is kept.
        assert_eq!(ordered("a<- b<a c<a (d<b)", Some("d")), ("a<- b<a c<a".into(), 2));
        assert_eq!(ordered("(a<-) (b<a)", None), (String::new(), 0));
    }

    #[test]
    fn circles_orphans_and_strange_links() {
        assert_eq!(ordered("a<a b<a", None), ("a<- b<a".into(), 1));
        assert_eq!(ordered("a<c b<a c<b d<c", None), ("a<- b<a c<b d<c".into(), 1));
        // `c`, `b` and `a` are the circle; of these `c` stands first.
        assert_eq!(ordered("d<c c<b b<a a<c", Some("d")), ("c<- d<c a<c b<a".into(), 2));
        assert_eq!(ordered("(a<b) (b<a) c<b", None), ("c<-".into(), 1));
        assert_eq!(ordered("a<lost b<a", None), ("a<lost b<a".into(), 1));
        assert_eq!(ordered("(a<lost) b<a", None), ("b<lost".into(), 1));
        assert_eq!(ordered("a<^ b<a", None), ("a<^ b<a".into(), 1));
        assert_eq!(ordered("a<- b<-", None), ("b<- a<-".into(), 2));
        assert_eq!(ordered("a<- b<lost c<b", None), ("a<- b<lost c<b".into(), 2));
    }

    #[test]
    fn a_chain_as_long_as_an_export_allows() {
        let ids: Vec<String> = (0..100_000).map(|number| format!("n{number}")).collect();
        let chain = |reversed: bool, kept: bool| {
            let mut items: Vec<Item<'_>> = ids
                .iter()
                .enumerate()
                .map(|(at, id)| Item {
                    id,
                    link: at.checked_sub(1).map_or(Link::Start, |up| Link::Node(&ids[up])),
                    kept: kept || at + 1 == ids.len(),
                })
                .collect();
            if reversed {
                items.reverse();
            }
            order(&items, None).order.len()
        };
        assert_eq!((chain(false, true), chain(true, true), chain(true, false)), (100_000, 100_000, 1));
        // A circle of as many.
        let circle: Vec<Item<'_>> = ids
            .iter()
            .enumerate()
            .map(|(at, id)| Item { id, link: Link::Node(&ids[(at + 1) % ids.len()]), kept: true })
            .collect();
        assert_eq!(order(&circle, None).order.len(), 100_000);
    }

    /// The same, said in another way: slowly.
    fn naive<'a>(items: &[Item<'a>]) -> Vec<(usize, Behind<'a>)> {
        let place = |id: &str| items.iter().position(|item| item.id == id);
        let up = |at: usize| match items[at].link {
            Link::Node(id) if id != items[at].id => place(id),
            _ => None,
        };
        // A node is on a circle if its links lead back to it; of each circle the first node is cut.
        let circle = |at: usize| {
            let mut seen = vec![at];
            let mut here = up(at);
            while let Some(next) = here {
                if next == at {
                    return Some(seen);
                }
                if seen.contains(&next) {
                    return None;
                }
                seen.push(next);
                here = up(next);
            }
            None
        };
        let is_cut = |at: usize| circle(at).is_some_and(|nodes| nodes.iter().min() == Some(&at));
        let behind = |start: usize| {
            let mut at = start;
            loop {
                if is_cut(at) {
                    return Behind::Start;
                }
                match (items[at].link, up(at)) {
                    (_, Some(next)) if items[next].kept => return Behind::Place(next),
                    (_, Some(next)) => at = next,
                    (Link::Node(id), None) if id != items[at].id => return Behind::Elsewhere(id),
                    (Link::Before, None) => return Behind::Before,
                    _ => return Behind::Start,
                }
            }
        };
        (0..items.len()).filter(|at| items[*at].kept).map(|at| (at, behind(at))).collect()
    }

    proptest! {
        #[test]
        fn random_graphs(
            links in prop::collection::vec((0..14_usize, prop::bool::weighted(0.7)), 0..12),
            main in 0..14_usize,
        ) {
            let ids: Vec<String> = (0..14).map(|number| format!("n{number}")).collect();
            let items: Vec<Item<'_>> = links
                .iter()
                .enumerate()
                .map(|(at, (up, kept))| {
                    let link = match up {
                        12 => Link::Start,
                        13 => Link::Before,
                        up => Link::Node(&ids[*up]),
                    };
                    Item { id: &ids[at], link, kept: *kept }
                })
                .collect();
            let ordered = order(&items, Some(&ids[main]));
            let mut sorted = ordered.order.clone();
            sorted.sort_by_key(|(at, _)| *at);
            prop_assert_eq!(&sorted, &naive(&items));
            // Each behind the one it comes behind.
            let mut before = BTreeSet::new();
            for (at, behind) in &ordered.order {
                if let Behind::Place(up) = behind {
                    prop_assert!(before.contains(up));
                }
                before.insert(*at);
            }
            // The main line is one piece, at the front of what began where it began.
            let ends = sorted.iter().filter(|(at, _)| !sorted.iter().any(|(_, up)| *up == Behind::Place(*at))).count();
            prop_assert_eq!(ordered.ends, ends as u64);
            if items.get(main).is_some_and(|item| item.kept) {
                let mut line = vec![main];
                while let Some((_, Behind::Place(up))) = sorted.iter().find(|(at, _)| Some(at) == line.last()) {
                    line.push(*up);
                }
                line.reverse();
                let is_whole = !sorted.iter().any(|(at, up)| *at == line[0] && matches!(up, Behind::Elsewhere(_)));
                let front = ordered.order.iter().skip_while(|(at, _)| !is_whole && *at != line[0]);
                let front: Vec<usize> = front.take(line.len()).map(|(at, _)| *at).collect();
                prop_assert_eq!(front, line);
            }
        }
    }
}
