use super::*;

macro_rules! middlewares {
    ($($name:ident),*) => { $(struct $name; impl Middleware for $name {})* };
}
middlewares!(A, B, C, Tail, X, Y, Z);

/// Takes the place of `B` by its name.
struct OtherB;
impl Middleware for OtherB {
    fn name(&self) -> &'static str {
        "B"
    }
}

/// Chooses its own place.
struct NextToA;
impl Middleware for NextToA {
    fn placement(&self) -> Placement {
        Placement::after::<A>()
    }
}

/// `A B C`, then the tail.
fn placed(extras: Vec<Placed>) -> Result<Vec<&'static str>, ChainError> {
    completed(Toggle::On, extras)
}

fn completed(b: Toggle, extras: Vec<Placed>) -> Result<Vec<&'static str>, ChainError> {
    let (mut chain, mut tail) = (Chain::default(), Chain::default());
    chain.push(A);
    chain.feature(b, || B);
    chain.push(C);
    tail.push(Tail);
    let chain = chain.complete(extras, tail)?;
    Ok(chain.iter().map(|middleware| middleware.name()).collect())
}

#[test]
fn extras_get_the_place_they_ask_for() {
    let table: Vec<(Vec<Placed>, &[&str])> = vec![
        (vec![], &["A", "B", "C", "Tail"]),
        (vec![X.into(), Y.into()], &["A", "B", "C", "X", "Y", "Tail"]),
        (vec![X.after::<A>()], &["A", "X", "B", "C", "Tail"]),
        (vec![X.before::<A>()], &["X", "A", "B", "C", "Tail"]),
        (vec![X.before::<Tail>()], &["A", "B", "C", "X", "Tail"]),
        (vec![NextToA.into()], &["A", "NextToA", "B", "C", "Tail"]),
        (vec![NextToA.before::<C>()], &["A", "B", "NextToA", "C", "Tail"]),
        (vec![X.before::<B>(), Y.after::<B>()], &["A", "X", "B", "Y", "C", "Tail"]),
        // To each other, the anchor later than what hangs on it.
        (vec![X.after::<Y>(), Y.after::<Z>(), Z.after::<A>()], &["A", "Z", "Y", "X", "B", "C", "Tail"]),
        (vec![X.before::<Y>(), Y.into()], &["A", "B", "C", "X", "Y", "Tail"]),
        // Slots.
        (vec![X.at(Slot::ModelLogical), Y.at(Slot::ToolVisible)], &["X", "Y", "A", "B", "C", "Tail"]),
        (vec![X.at(Slot::ModelPhysical), Y.into()], &["A", "B", "C", "Y", "X", "Tail"]),
        (vec![X.at(Slot::ToolRaw)], &["A", "B", "C", "X", "Tail"]),
        // By name, in place; an anchor to the one that was replaced still holds.
        (vec![OtherB.into(), X.after::<B>()], &["A", "B", "X", "C", "Tail"]),
    ];
    for (extras, expected) in table {
        let shown = format!("{extras:?}");
        assert_eq!(placed(extras).unwrap(), expected, "{shown}");
    }
}

#[test]
fn a_replaced_feature_keeps_its_place_and_its_anchors() {
    assert_eq!(completed(X.into(), vec![Y.before::<B>()]).unwrap(), ["A", "Y", "X", "C", "Tail"]);
    assert_eq!(completed(false.into(), vec![]).unwrap(), ["A", "C", "Tail"]);
}

#[test]
fn what_cannot_be_placed_is_an_error_that_names_both_sides() {
    let table: Vec<(Vec<Placed>, &[&str])> = vec![
        (vec![X.after::<A>(), Y.after::<A>()], &["`X` and `Y`", "`A`"]),
        (vec![X.after::<Y>()], &["`X`", "`Y`", "not in the chain: A, B, C, Tail"]),
        (vec![X.after::<Y>(), Y.after::<X>()], &["`X` and `Y`", "circle"]),
        (vec![X.after::<X>()], &["`X`", "circle"]),
        (vec![X.after::<Tail>()], &["`X`", "`Tail`", "nothing comes after"]),
        (vec![X.into(), X.into()], &["`X`"]),
        (vec![OtherB.before::<A>()], &["two middlewares are called `B`"]),
    ];
    for (extras, words) in table {
        let shown = format!("{extras:?}");
        let error = placed(extras).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{shown}: {error}");
        }
    }
    let without = completed(false.into(), vec![X.after::<B>()]).unwrap_err();
    assert!(matches!(without, ChainError::Unresolved { anchor: "B", .. }), "{without}");
}
