use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const DELAYS: Backoff = Backoff(&[
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_secs(1),
]);

fn ledger(restarts: usize) -> Ledger {
    Ledger::new(
        Intensity {
            restarts,
            within: MINUTE,
        },
        DELAYS,
    )
}

#[tokio::test(start_paused = true)]
async fn failures_within_the_window_wait_longer_and_then_give_up() {
    let mut ledger = ledger(3);
    let now = Instant::now();
    let restart = |after| Verdict::Restart { after };
    assert_eq!(ledger.failed(now), restart(Duration::ZERO));
    assert_eq!(ledger.failed(now), restart(Duration::from_millis(100)));
    assert_eq!(ledger.failed(now), restart(Duration::from_secs(1)));
    assert_eq!(ledger.failed(now), Verdict::GiveUp);
}

#[tokio::test(start_paused = true)]
async fn old_failures_are_forgotten() {
    let mut ledger = ledger(1);
    let start = Instant::now();
    assert_eq!(
        ledger.failed(start),
        Verdict::Restart {
            after: Duration::ZERO
        }
    );
    assert_eq!(
        ledger.failed(start + MINUTE + Duration::from_millis(1)),
        Verdict::Restart {
            after: Duration::ZERO
        }
    );
    assert_eq!(
        ledger.failed(start + MINUTE + Duration::from_millis(2)),
        Verdict::GiveUp
    );
}

#[test]
fn policies_differ_in_what_they_restart() {
    assert!(RestartPolicy::Permanent.restarts(false) && RestartPolicy::Permanent.restarts(true));
    assert!(!RestartPolicy::Transient.restarts(false) && RestartPolicy::Transient.restarts(true));
    assert!(!RestartPolicy::Temporary.restarts(true));
}

mod children {
    use ractor::{Actor, ActorProcessingErr, ActorRef};

    use super::*;

    struct Idle;

    impl Actor for Idle {
        type Msg = ();
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }
    }

    async fn idle() -> ActorCell {
        let (actor, _) = Actor::spawn(None, Idle, ())
            .await
            .expect("an idle actor starts");
        actor.get_cell()
    }

    #[tokio::test]
    async fn a_restarted_child_keeps_its_place_and_old_ends_are_nobodys() {
        let mut ordered = Ordered::default();
        let (first, second, again) = (idle().await, idle().await, idle().await);
        ordered.started("journal", first.clone());
        ordered.started("session", second.clone());
        assert_eq!(ordered.ended(first.get_id()), Some("journal"));
        assert_eq!(ordered.ended(first.get_id()), None);
        ordered.started("journal", again.clone());
        let order: Vec<_> = std::iter::from_fn(|| ordered.pop_last())
            .map(|(key, _)| key)
            .collect();
        assert_eq!(order, ["session", "journal"]);
        for cell in [first, second, again] {
            cell.stop(None);
        }
    }

    #[tokio::test]
    async fn a_guarded_task_ends_with_its_owner() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let _held = sender;
            std::future::pending::<()>().await;
        });
        drop(AbortOnDrop::new(&task));
        assert!(receiver.await.is_err());
    }
}
