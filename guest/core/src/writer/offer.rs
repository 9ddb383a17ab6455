//! What a first run left uncited, offered once more in smaller pieces.
//!
//! What comes of a batch is bounded by what a model can hold, not by what was said: of many turns some are passed over. So each turn that the
//! first run does not cite is offered a second time with fewer others. What is uncited after that is reported and stays in the ledger.

/// Which turns are offered together, by their places in the batch. `turns` says of each turn of the batch, in order, its tokens and whether
/// topics cite it; `most` is `writer.second-tokens`.
///
/// Each piece has fewer turns than the batch had, keeps to `most` unless it is one turn, and all of them have every uncited turn once.
/// Nothing comes of a batch of one turn: it would be the same again.
#[must_use]
pub fn second_offer(turns: &[(u64, bool)], most: u64) -> Vec<Vec<usize>> {
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    if turns.len() < 2 {
        return pieces;
    }
    // None: the last piece takes no other turn.
    let mut room: Option<u64> = None;
    for (place, (tokens, is_cited)) in turns.iter().enumerate() {
        if *is_cited {
            continue;
        }
        let left = room.and_then(|room| room.checked_sub(*tokens));
        match pieces.last_mut().filter(|piece| left.is_some() && piece.len() + 1 < turns.len()) {
            Some(piece) => {
                piece.push(place);
                room = left;
            }
            None => {
                pieces.push(vec![place]);
                room = most.checked_sub(*tokens);
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces() {
        assert_eq!(second_offer(&[(5, false), (5, true), (5, false)], 10), [vec![0, 2]]);
        assert_eq!(second_offer(&[(5, false), (5, false), (5, true), (5, false)], 10), [vec![0, 1], vec![3]]);
        assert_eq!(second_offer(&[(50, false), (1, false), (9, true)], 10), [vec![0], vec![1]]);
        // The same batch again would come to the same.
        assert_eq!(second_offer(&[(1, false), (1, false)], 10), [vec![0], vec![1]]);
        assert_eq!(second_offer(&[(1, false)], 10), [[0_usize; 0]; 0]);
        assert_eq!(second_offer(&[(1, true), (1, true)], 10), [[0_usize; 0]; 0]);
    }

    proptest! {
        #[test]
        fn every_uncited_turn_once_and_never_the_same_batch(
            turns in prop::collection::vec((0_u64..20, any::<bool>()), 0..40), most in 1_u64..30,
        ) {
            let pieces = second_offer(&turns, most);
            let offered: Vec<usize> = pieces.iter().flatten().copied().collect();
            let uncited: Vec<usize> = (0..turns.len()).filter(|place| !turns[*place].1).collect();
            if turns.len() > 1 {
                prop_assert_eq!(offered, uncited);
            }
            for piece in &pieces {
                prop_assert!(!piece.is_empty() && piece.len() < turns.len());
                let tokens: u64 = piece.iter().map(|place| turns[*place].0).sum();
                prop_assert!(piece.len() == 1 || tokens <= most);
            }
        }
    }
}
