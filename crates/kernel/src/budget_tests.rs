use super::*;

fn tokens(tokens: u64) -> Limits {
    Limits { tokens: Some(tokens), ..Limits::default() }
}

fn input(input_tokens: u64) -> Amount {
    Amount { input_tokens, ..Amount::default() }
}

#[test]
fn a_reservation_is_whole_or_nothing_and_settles_to_what_was_used() {
    let budget = Budget::new(&Limits { model_calls: Some(1), ..tokens(100) });
    let call = Amount { model_calls: 1, ..input(60) };
    let first = budget.reserve(call).unwrap();
    let refused = budget.reserve(Amount { model_calls: 1, ..input(10) }).unwrap_err();
    assert_eq!(refused, Exhausted { resource: Resource::ModelCalls, used: 1, limit: 1, wanted: 1 });
    assert_eq!(budget.used().tokens, 60, "the tokens of the refused one were given back");
    first.settle(Amount { output_tokens: 90, ..call });
    assert_eq!((budget.used().tokens, budget.remaining().tokens), (150, Some(0)), "an overrun is counted");
    drop(budget.reserve(Amount { tool_calls: 3, ..Amount::default() }).unwrap());
    assert_eq!(budget.used().tool_calls, 0);
}

#[test]
fn children_share_what_their_parent_has() {
    let parent = Budget::new(&Limits { children: Some(2), depth: Some(1), ..tokens(100) });
    let (a, b) = (parent.child(&tokens(80)).unwrap(), parent.child(&tokens(80)).unwrap());
    a.charge(input(70));
    assert_eq!(b.remaining().tokens, Some(30), "what the sister left");
    assert!(b.reserve(input(31)).is_err());
    assert_eq!(parent.used().tokens, 70, "a refusal takes nothing");
    assert_eq!(parent.child(&Limits::default()).unwrap_err().resource, Resource::Children);
    assert_eq!(a.child(&Limits::default()).unwrap_err().resource, Resource::Depth);
}

#[test]
fn a_part_is_shared_by_children_and_is_none_itself() {
    let run = Budget::new(&Limits { children: Some(2), depth: Some(1), ..tokens(1000) });
    let part = run.part(&tokens(100));
    assert_eq!(run.used().children, 0);
    let (a, b) = (part.child(&tokens(80)).unwrap(), part.child(&tokens(80)).unwrap());
    a.charge(input(70));
    assert_eq!((b.remaining().tokens, run.used().tokens), (Some(30), 70));
    assert_eq!(a.child(&Limits::default()).unwrap_err().resource, Resource::Depth);
    assert_eq!(part.child(&Limits::default()).unwrap_err().resource, Resource::Children);
    assert_eq!(run.remaining().tokens, Some(930), "the run has the rest");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_goes_on_has_a_slice_of_what_is_left_beside_what_was_counted_of_it() {
    // It had used 600 when its parent paused with it, and 50 more when it was cut off.
    let used =
        |input_tokens, seconds| Used { tokens: input_tokens, input_tokens, seconds, ..Used::default() };
    let parent = Budget::new(&Limits { seconds: Some(100.0), ..tokens(1000) });
    parent.start();
    parent.carry(&used(600, 60.0), &used(600, 60.0));
    let of_left = Limits { seconds: Some(30.0), ..tokens(300) };
    let child = parent.slice(&tokens(5000), &of_left, true).unwrap();
    child.carry(&used(650, 65.0), &used(600, 60.0));
    assert_eq!((child.limits().tokens, child.used().tokens), (Some(900), 650));
    assert_eq!((child.remaining().tokens, parent.used().tokens), (Some(250), 650));
    assert_eq!(child.remaining().seconds, Some(25.0), "thirty, and five of them before it was cut off");

    let child = parent.slice(&tokens(700), &of_left, true).unwrap();
    child.carry(&used(600, 60.0), &used(600, 60.0));
    assert_eq!(child.remaining().tokens, Some(100), "in all it may use no more than it might at first");
}

#[test]
fn concurrent_reservations_never_exceed_the_limit() {
    let budget = Budget::new(&tokens(1000));
    let granted: u64 = std::thread::scope(|scope| {
        let worker = || {
            let granted = (0..1000).filter(|_| match budget.reserve(input(1)) {
                Ok(reserved) => {
                    reserved.settle(input(1));
                    true
                }
                Err(_) => false,
            });
            granted.count() as u64
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(granted <= 1000, "{granted}");
    assert_eq!(budget.used().tokens, granted);
}

#[test]
fn it_can_be_extended_carried_over_and_spelled_as_json() {
    let budget = Budget::new(&Limits { cost: Some(0.5), ..tokens(100) });
    budget.extend(&Limits { tool_calls: Some(3), ..tokens(50) });
    assert_eq!(budget.limits().tokens, Some(150));
    assert_eq!(budget.limits().tool_calls, None, "what has no limit needs no extension");
    let earlier = Used { input_tokens: 120, cost: 0.25, seconds: 3.0, ..Used::default() };
    budget.carry(&earlier, &Used::default());
    assert_eq!((budget.remaining().tokens, budget.remaining().cost), (Some(30), Some(0.25)));
    assert_eq!(budget.used().seconds, 3.0);
    let json = serde_json::to_value(budget.limits()).unwrap();
    assert_eq!(json, serde_json::json!({"tokens": 150, "cost": 0.5}));
    assert!(serde_json::from_value::<Limits>(serde_json::json!({"token": 1})).is_err());
    assert!(Budget::default().is_unlimited());
    assert!(!budget.child(&Limits::default()).unwrap().is_unlimited());
}

#[test]
fn money_is_counted_with_the_cache() {
    let price = crate::Price { input: 3.0, output: 15.0, cached_input: Some(0.3) };
    assert_eq!(price.of(1_000_000, 0, 0), 3_000_000);
    assert_eq!(price.of(1_000_000, 1_000_000, 100_000), 1_800_000);
    assert_eq!(price.of(10, 99, 0), 3, "more cached than sent is all of it");
}

#[tokio::test(start_paused = true)]
async fn the_clock_stops_where_the_nearest_deadline_is() {
    let seconds = |seconds: f64| Limits { seconds: Some(seconds), ..Limits::default() };
    let parent = Budget::new(&seconds(10.0));
    assert_eq!(parent.deadline(), None, "it has not begun");
    parent.start();
    let child = parent.child(&seconds(60.0)).unwrap();
    assert_eq!(child.out_of_time().await, Duration::from_secs(10));
    parent.extend(&seconds(100.0));
    assert_eq!(child.out_of_time().await, Duration::from_secs(60));
    let late = Budget::default();
    late.start();
    let waiting = async { late.out_of_time().await };
    let limiting = async { late.tighten(&seconds(5.0)) };
    assert_eq!(tokio::join!(waiting, limiting).0, Duration::from_secs(5), "a limit that came later");
}
